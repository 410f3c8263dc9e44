//! The driver's side of what it shares with the programs in the kernel.

use crate::bpf::{Acks, AcksCounters, All, AllCounters, Attached, Homes, Hooks, Leaving, RuleBook, Segments};
use std::io;
use std::ops::Range;
use weir_core::gateway::Verdict;
use weir_core::steer::{Bound, Slot, Tally};
use weir_core::time::Time;

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
    /// Heartbeat of the first engine, and sockets.
    pub fn hooks(&self) -> &Hooks {
        self.hooks_of(0)
    }

    /// Heartbeat of the engine with this number, and sockets. Panics if there is none.
    fn hooks_of(&self, number: usize) -> &Hooks {
        match self {
            Programs::Acks(acks) | Programs::Both(acks, _) => acks.hooks_of(number),
            Programs::All(all) => &all.hooks,
        }
    }

    /// How many engines they know.
    pub fn engines(&self) -> usize {
        self.acks().map_or(1, Acks::engines)
    }

    /// The programs as each engine sees them.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        (0..self.engines()).map(|number| Part { programs: self, number })
    }

    /// The last beat of the engine whose last beat is longest ago.
    pub fn last_beat(&self) -> Time {
        self.parts().map(|part| part.hooks().last_beat()).min().unwrap_or(Time::ZERO)
    }

    /// The last beat of any engine.
    pub fn latest_beat(&self) -> Time {
        self.parts().map(|part| part.hooks().last_beat()).max().unwrap_or(Time::ZERO)
    }

    /// Gives all engines the same last beat: [`Time::ZERO`] says that there is none.
    pub fn beat(&self, at: Time) {
        self.parts().for_each(|part| part.hooks().beat(at));
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

    /// Where exit number `exit` of the two of an engine leaves the metadata of its frames.
    pub(crate) fn leaving(&self, engine: usize, exit: usize) -> io::Result<Leaving> {
        match self {
            Programs::Acks(acks) | Programs::Both(acks, _) => acks.leaving(engine, exit),
            Programs::All(all) => all.leaving(exit),
        }
    }

    /// Where they look up which engine has an address, if there are several.
    pub fn homes(&self) -> io::Result<Option<Homes>> {
        self.acks().map_or(Ok(None), Acks::homes)
    }

    /// Attaches the programs to an interface. Those that take ACKs see a frame first.
    pub fn attach(&self, ifindex: u32) -> io::Result<Attached> {
        match self {
            Programs::Acks(acks) => acks.attach(ifindex),
            Programs::All(all) => all.attach(ifindex),
            Programs::Both(acks, all) => {
                let behind = all.attach(ifindex)?;
                Ok(acks.attach(ifindex)?.and(behind))
            }
        }
    }

    /// Attaches the program by which frames come in on the interface numbered `home` that are sent on this one, which has Ethernet headers.
    pub fn attach_return(&self, ifindex: u32, home: u32) -> io::Result<Attached> {
        match self {
            Programs::Acks(acks) | Programs::Both(acks, _) => acks.attach_return(ifindex, home),
            Programs::All(all) => all.attach_return(ifindex, home),
        }
    }

    /// Says whether a part of the way is known to be gone: everything passes then, whether or not an engine beats.
    pub fn set_gone(&self, gone: bool) {
        self.parts().for_each(|part| part.hooks().set_gone(gone));
    }

    /// What they did so far, for all engines.
    pub fn counters(&self) -> io::Result<HookCounters> {
        match self {
            Programs::Acks(acks) => acks.counters().map(HookCounters::Acks),
            Programs::All(all) => all.counters().map(HookCounters::All),
            Programs::Both(acks, all) => Ok(HookCounters::Both(acks.counters()?, all.counters()?)),
        }
    }
}

/// The programs as one of the engines sees them.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    programs: &'a Programs,
    number: usize,
}

impl<'a> Part<'a> {
    /// The engine's number, from 0.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Heartbeat and sleep.
    pub fn hooks(&self) -> &'a Hooks {
        self.programs.hooks_of(self.number)
    }

    /// The numbers of its slots among those of all engines.
    pub fn places(&self) -> Range<usize> {
        let each = self.slots().len();
        self.number * each..(self.number + 1) * each
    }

    /// What they know of the engine's flows; empty unless they take ACKs.
    pub fn slots(&self) -> &'static [Slot] {
        self.programs.acks().map_or(&[], |acks| acks.slots_of(self.number))
    }

    /// What they count of the engine's classes that ACKs cannot slow; empty unless they take ACKs.
    pub fn tallies(&self) -> &'static [Tally] {
        self.programs.acks().map_or(&[], |acks| acks.tallies_of(self.number))
    }

    /// What they hold the engine's classes to; empty unless they take ACKs.
    pub fn bounds(&self) -> &'static [Bound] {
        self.programs.acks().map_or(&[], |acks| acks.bounds_of(self.number))
    }

    /// Where the engine's rules are written, if they take ACKs.
    pub fn rules(&self) -> io::Result<Option<RuleBook>> {
        self.programs.acks().map(|acks| acks.rules_of(self.number)).transpose()
    }

    /// The engine's ring, if they take ACKs: for the one thread that consumes it.
    pub fn segments(&self) -> io::Result<Option<Segments>> {
        self.programs.acks().map(|acks| acks.segments_of(self.number)).transpose()
    }

    /// Tells the programs about the engine's flows.
    pub fn apply(&self, verdicts: &[Verdict]) -> io::Result<()> {
        self.programs.acks().map_or(Ok(()), |acks| acks.apply_of(self.number, verdicts))
    }

    /// What they did so far for all engines, told by the first one; `None` if they could not be asked.
    pub fn counters(&self) -> Option<HookCounters> {
        (self.number == 0).then(|| self.programs.counters().ok())?
    }

    /// Are all frames of a direction taken?
    pub fn takes_frames(&self) -> bool {
        self.programs.frames().is_some()
    }
}
