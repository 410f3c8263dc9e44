//! A simulated TCP endpoint: real headers, payload that is only a length.
//!
//! - `config`: what can be set for a connection;
//! - `segment`: headers to bytes and back;
//! - `connection`: opening and closing, and the two halves between:
//!   - `sender` with `transmit` (what leaves next), `repair` (losses), `prr` and `timers`, over the
//!     `scoreboard` (what is in flight, SACKed and lost) and `rtt`;
//!   - `receiver` (when to acknowledge) over `reassembly` (what came out of order).
//!
//! Stream offsets are 64-bit and never wrap; sequence numbers exist on the wire only.

pub mod config;
pub mod connection;
mod prr;
pub mod reassembly;
mod receiver;
mod repair;
pub mod rtt;
pub mod scoreboard;
pub mod segment;
mod sender;
mod timers;
mod transmit;

pub use config::{Recovery, TcpConfig};
pub use connection::{Connection, Delivered, State};
pub use rtt::MinRto;
pub use sender::Sender;
