//! The gateway: a two-port node between LAN and WAN.

mod config;
mod stats;

pub use config::{ClassConfig, Config, Direction, Match, Prefix};
pub use stats::{ClassStats, GatewayStats, PassReason};

use crate::node::Port;

/// The port towards the LAN.
pub const LAN: Port = Port(0);
/// The port towards the WAN.
pub const WAN: Port = Port(1);
/// Copies of headers of frames that the kernel forwards after they came in on [`LAN`].
pub const LAN_TAP: Port = Port(2);
/// Copies of headers of frames that the kernel forwards after they came in on [`WAN`].
pub const WAN_TAP: Port = Port(3);
