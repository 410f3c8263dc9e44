//! The driver's side of what it shares with the programs in the kernel.

use crate::bpf::{Acks, AcksCounters, All, AllCounters, Attached, Hooks};
use std::io;
use weir_core::gateway::Verdict;
use weir_core::steer::{Slot, Tally};

/// The programs of one instance, loaded.
#[derive(Debug)]
pub enum Programs {
    /// They take ACKs.
    Acks(Box<Acks>),
    /// They take everything.
    All(All),
}

/// What the programs did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookCounters {
    /// Of `acks` steering.
    Acks(AcksCounters),
    /// Of `all` steering.
    All(AllCounters),
}

impl Programs {
    /// Heartbeat and sockets.
    pub fn hooks(&self) -> &Hooks {
        match self {
            Programs::Acks(acks) => &acks.hooks,
            Programs::All(all) => &all.hooks,
        }
    }

    /// What they know of flows; empty unless they take ACKs.
    pub fn slots(&self) -> &'static [Slot] {
        match self {
            Programs::Acks(acks) => acks.slots(),
            Programs::All(_) => &[],
        }
    }

    /// What they count of classes that ACKs cannot slow; empty unless they take ACKs.
    pub fn tallies(&self) -> &'static [Tally] {
        match self {
            Programs::Acks(acks) => acks.tallies(),
            Programs::All(_) => &[],
        }
    }

    /// Attaches both programs to an interface.
    pub fn attach(&self, ifindex: u32) -> io::Result<Attached> {
        match self {
            Programs::Acks(acks) => acks.attach(ifindex),
            Programs::All(all) => all.attach(ifindex),
        }
    }

    /// Tells the programs about flows.
    pub fn apply(&self, verdicts: &[Verdict]) -> io::Result<()> {
        match self {
            Programs::Acks(acks) => acks.apply(verdicts),
            Programs::All(_) => Ok(()),
        }
    }

    /// What they did so far.
    pub fn counters(&self) -> io::Result<HookCounters> {
        match self {
            Programs::Acks(acks) => acks.counters().map(HookCounters::Acks),
            Programs::All(all) => all.counters().map(HookCounters::All),
        }
    }
}
