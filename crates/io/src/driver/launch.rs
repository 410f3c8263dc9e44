//! Everything that the supervisor starts an engine with.

use super::{Driver, DriverConfig, Engine, InterfaceStates, Programs};
use crate::port::{Exit, Input};
use crate::sys::letters::Letters;
use crate::sys::privileges::{self, capability};
use crate::sys::process;
use std::io;
use std::os::fd::BorrowedFd;
use weir_core::frame::Frames;
use weir_core::steer::{Slot, Tally};

/// What an engine is started with.
pub struct Launch<'a> {
    /// The pool.
    pub frames: Frames,
    /// What the kernel's programs know of flows: empty unless they take ACKs.
    pub slots: &'static [Slot],
    /// What they count of classes that ACKs cannot slow: empty unless they take ACKs.
    pub tallies: &'static [Tally],
    /// Engines that ran before this one: if any, frames have gone past.
    pub restarts: u32,
    /// Where frames come from.
    pub(crate) inputs: Vec<Input>,
    /// Ways out of LAN and WAN.
    pub(crate) exits: [Exit; 2],
    /// What is shared with the programs.
    pub(crate) programs: &'a Programs,
    /// What the supervisor says of the interfaces.
    pub(crate) interfaces: &'a InterfaceStates,
    /// From and to the supervisor's operator; `None` if there is none.
    pub letters: Option<Letters>,
    /// Readable when the engine is to stop.
    pub(crate) stop: BorrowedFd<'a>,
}

impl Launch<'_> {
    /// Runs an engine until it is told to stop. Fails if it could not send all that it held.
    pub fn run<E: Engine>(self, engine: E, config: DriverConfig) -> io::Result<E> {
        let rests = config.prepare_thread(self.restarts > 0);
        give_up_privileges()?;
        Driver::new(self, engine, config, rests)?.run()
    }
}

/// Sockets are open and memory is locked: what remains needs no privilege, but to tell the kernel of flows before
/// Linux 6.0, where every use of a map does (`kernel.unprivileged_bpf_disabled`).
fn give_up_privileges() -> io::Result<()> {
    let old = process::kernel().is_some_and(|version| version < (6, 0));
    let keep = if old { capability::BPF | capability::SYS_ADMIN } else { capability::Set::empty() };
    privileges::keep_only(keep)
}
