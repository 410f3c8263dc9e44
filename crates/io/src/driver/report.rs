//! The state of a driver, for statistics.

use super::{HookCounters, Lateness};
use crate::port::{ExitStats, InputStats};
use weir_core::time::{Duration, Time};

/// The state of a driver.
#[derive(Debug)]
pub struct Report<'a> {
    /// The time.
    pub now: Time,
    /// The engine has ended: there will be no other.
    pub last: bool,
    /// Since the driver started.
    pub wall: Duration,
    /// CPU time that its thread has used since then.
    pub cpu: Duration,
    /// Rounds so far.
    pub rounds: u64,
    /// Times it had been away so long that frames went past it.
    pub resyncs: u64,
    /// How late frames left.
    pub lateness: &'a Lateness,
    /// How long before a deadline it stops sleeping now.
    pub margin: Duration,
    /// The packet sockets that frames come from: LAN and WAN, or none where segments come by the ring.
    pub inputs: Vec<InputStats>,
    /// The ways out: LAN and WAN.
    pub exits: [ExitStats; 2],
    /// What the programs in the kernel did; `None` if they could not be asked.
    pub hooks: Option<HookCounters>,
    /// What is wrong with the interfaces: "eth1 is down". `None` if nothing is.
    pub degraded: Option<String>,
    /// Bytes sent and received that the hooks did not see, although the interface counts them.
    pub unseen: [u64; 2],
    /// Frames dropped by all, with reasons.
    pub drops: weir_core::stats::Drops,
    /// Chunks free in the pool.
    pub free_chunks: usize,
}
