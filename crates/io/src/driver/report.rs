//! The state of a driver, for statistics.

use super::{HookCounters, Lateness};
use crate::port::{ExitStats, InputStats};
use weir_core::time::{Duration, Time};

/// The state of a driver.
#[derive(Debug)]
pub struct Report<'a> {
    /// Time of the report.
    pub now: Time,
    /// True if the engine has ended: no other report follows.
    pub last: bool,
    /// Time since the driver started.
    pub wall: Duration,
    /// CPU time of its thread since then.
    pub cpu: Duration,
    /// Rounds so far.
    pub rounds: u64,
    /// Times that frames bypassed the engine because its beat was late.
    pub resyncs: u64,
    /// Lateness of frames that left.
    pub lateness: &'a Lateness,
    /// Time before a deadline at which the driver stops sleeping now.
    pub margin: Duration,
    /// Packet sockets that frames come from: LAN and WAN, or none where segments come by the ring.
    pub inputs: Vec<InputStats>,
    /// Exits to LAN and WAN.
    pub exits: [ExitStats; 2],
    /// Counters of the programs in the kernel; `None` if they could not be read.
    pub hooks: Option<HookCounters>,
    /// Faults in words, such as "eth1 is down"; `None` without a fault.
    pub degraded: Option<String>,
    /// Bytes sent and received that the interface counts but the hooks did not see.
    pub unseen: [u64; 2],
    /// Frames dropped anywhere, by reason.
    pub drops: weir_core::stats::Drops,
    /// Free chunks of the pool.
    pub free_chunks: usize,
}
