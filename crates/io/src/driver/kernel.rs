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
    /// The first take ACKs; what these let pass, the second take.
    Both(Box<Acks>, All),
}

/// What the programs did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookCounters {
    /// Of `acks` steering.
    Acks(AcksCounters),
    /// Of `all` steering.
    All(AllCounters),
    /// Of both, where what the first let pass comes to the second.
    Both(AcksCounters, AllCounters),
}

impl Programs {
    /// Heartbeat and sockets.
    pub fn hooks(&self) -> &Hooks {
        match self {
            Programs::Acks(acks) | Programs::Both(acks, _) => &acks.hooks,
            Programs::All(all) => &all.hooks,
        }
    }

    /// Those that take ACKs, if any do.
    pub fn acks(&self) -> Option<&Acks> {
        match self {
            Programs::Acks(acks) | Programs::Both(acks, _) => Some(acks),
            Programs::All(_) => None,
        }
    }

    /// Those that take whole frames, if any do.
    pub fn frames(&self) -> Option<&All> {
        match self {
            Programs::All(all) | Programs::Both(_, all) => Some(all),
            Programs::Acks(_) => None,
        }
    }

    /// What they know of flows; empty unless they take ACKs.
    pub fn slots(&self) -> &'static [Slot] {
        self.acks().map_or(&[], Acks::slots)
    }

    /// What they count of classes that ACKs cannot slow; empty unless they take ACKs.
    pub fn tallies(&self) -> &'static [Tally] {
        self.acks().map_or(&[], Acks::tallies)
    }

    /// Attaches the programs to an interface. Those that are attached first see a frame first.
    pub fn attach(&self, ifindex: u32) -> io::Result<Attached> {
        match self {
            Programs::Acks(acks) => acks.attach(ifindex),
            Programs::All(all) => all.attach(ifindex),
            Programs::Both(acks, all) => Ok(acks.attach(ifindex)?.and(all.attach(ifindex)?)),
        }
    }

    /// Tells the programs about flows.
    pub fn apply(&self, verdicts: &[Verdict]) -> io::Result<()> {
        self.acks().map_or(Ok(()), |acks| acks.apply(verdicts))
    }

    /// What they did so far.
    pub fn counters(&self) -> io::Result<HookCounters> {
        match self {
            Programs::Acks(acks) => acks.counters().map(HookCounters::Acks),
            Programs::All(all) => all.counters().map(HookCounters::All),
            Programs::Both(acks, all) => Ok(HookCounters::Both(acks.counters()?, all.counters()?)),
        }
    }
}
