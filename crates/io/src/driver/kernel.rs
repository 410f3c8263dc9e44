//! The programs in the kernel, as the driver uses them.

use crate::bpf::{
    Acks, AcksCounters, All, AllCounters, Attached, Homes, Hooks, Leaving, RuleBook, Segments, Unlisted,
};
use std::io;
use std::ops::Range;
use weir_core::gateway::Verdict;
use weir_core::quality::Sight;
use weir_core::steer::{Bound, FlowBound, Slot, Spill, Tally};
use weir_core::time::Time;

/// The programs of one instance, loaded.
#[derive(Debug)]
pub enum Programs {
    /// Programs that take ACKs.
    Acks(Box<Acks>),
    /// Programs that take everything.
    All(All),
    /// Programs that take ACKs, and programs that take the frames that the first let pass.
    Both(Box<Acks>, All),
}

/// Counters of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookCounters {
    /// Counters of `acks` steering.
    Acks(AcksCounters),
    /// Counters of `all` steering.
    All(AllCounters),
    /// Counters of both; frames that the first let pass come to the second.
    Both(AcksCounters, AllCounters),
}

impl Programs {
    /// Heartbeat and sockets of the first engine.
    pub fn hooks(&self) -> &Hooks {
        self.hooks_of(0)
    }

    /// Heartbeat and sockets of the engine with this number. Panics if there is none.
    fn hooks_of(&self, number: usize) -> &Hooks {
        match self {
            Programs::Acks(acks) | Programs::Both(acks, _) => acks.hooks_of(number),
            Programs::All(all) => &all.hooks,
        }
    }

    /// Number of engines that the programs know.
    pub fn engines(&self) -> usize {
        self.acks().map_or(1, Acks::engines)
    }

    /// The programs as each engine sees them.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        (0..self.engines()).map(|number| Part { programs: self, number })
    }

    /// Oldest of the engines' last beats.
    pub fn last_beat(&self) -> Time {
        self.parts().map(|part| part.hooks().last_beat()).min().unwrap_or(Time::ZERO)
    }

    /// Latest beat of any engine.
    pub fn latest_beat(&self) -> Time {
        self.parts().map(|part| part.hooks().last_beat()).max().unwrap_or(Time::ZERO)
    }

    /// Gives all engines the same last beat. [`Time::ZERO`] means that there is none.
    pub fn beat(&self, at: Time) {
        self.parts().for_each(|part| part.hooks().beat(at));
    }

    /// Says to the hooks that an upgrade is under way: until then they keep bounds, and take whole frames,
    /// without an engine, too. [`Time::ZERO`] says that it is over.
    pub fn keep_bounds(&self, until: Time) {
        self.parts().for_each(|part| part.hooks().keep_bounds(until));
    }

    /// Says to the hooks that they take over now from others that had bounds of their own. Those may just
    /// have let pass what the room of a bound is for, so these begin without room.
    pub fn begin_after_others(&self, now: Time) {
        for part in self.parts() {
            part.hooks().begin_after_others(now);
            part.bounds().iter().chain(part.unread()).for_each(|bound| bound.fill(now));
        }
    }

    /// Says to the hooks that a supervisor looks after all engines.
    pub fn watched(&self, now: Time) {
        self.parts().for_each(|part| part.hooks().watched(now));
    }

    /// The programs that take ACKs, if there are any.
    pub fn acks(&self) -> Option<&Acks> {
        match self {
            Programs::Acks(acks) | Programs::Both(acks, _) => Some(acks),
            Programs::All(_) => None,
        }
    }

    /// The programs that take whole frames, if there are any.
    pub fn frames(&self) -> Option<&All> {
        match self {
            Programs::All(all) | Programs::Both(_, all) => Some(all),
            Programs::Acks(_) => None,
        }
    }

    /// Slots of flows; empty unless the programs take ACKs.
    pub fn slots(&self) -> &'static [Slot] {
        self.acks().map_or(&[], Acks::slots)
    }

    /// Place where one of an engine's two exits leaves the metadata of its frames.
    pub(crate) fn leaving(&self, engine: usize, exit: usize) -> io::Result<Leaving> {
        match self {
            Programs::Acks(acks) | Programs::Both(acks, _) => acks.leaving(engine, exit),
            Programs::All(all) => all.leaving(exit),
        }
    }

    /// Map from addresses to engines, if there are several engines.
    pub fn homes(&self) -> io::Result<Option<Homes>> {
        self.acks().map_or(Ok(None), Acks::homes)
    }

    /// Map of addresses with traffic that no class takes, where the programs take ACKs.
    pub fn unlisted(&self) -> io::Result<Option<Unlisted>> {
        self.acks().map(Acks::unlisted).transpose()
    }

    /// Attaches the programs to an interface. Programs that take ACKs see a frame first.
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

    /// Attaches the program that makes frames sent on this interface come in on the interface numbered
    /// `home`. This interface has Ethernet headers.
    pub fn attach_return(&self, ifindex: u32, home: u32) -> io::Result<Attached> {
        match self {
            Programs::Acks(acks) | Programs::Both(acks, _) => acks.attach_return(ifindex, home),
            Programs::All(all) => all.attach_return(ifindex, home),
        }
    }

    /// Replaces attached programs of the same names by these. `home` is the interface at which frames come in
    /// that are sent on another one, if one of the programs is for those.
    pub fn replace(&self, attached: &Attached, home: Option<u32>) -> io::Result<()> {
        attached.exchange(|name| {
            let of_acks = self.acks().and_then(|acks| acks.find(name));
            of_acks.or_else(|| self.frames().and_then(|all| all.find(name)))
        })?;
        home.into_iter().for_each(|home| self.hooks().lead_home(home));
        Ok(())
    }

    /// Sets whether a part of the way is known to be missing. Everything passes then, even while engines
    /// beat.
    pub fn set_gone(&self, gone: bool) {
        self.parts().for_each(|part| part.hooks().set_gone(gone));
    }

    /// Counters since the start, of all engines.
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

    /// Heartbeat and sleep of the engine.
    pub fn hooks(&self) -> &'a Hooks {
        self.programs.hooks_of(self.number)
    }

    /// Numbers of the engine's slots among those of all engines.
    pub fn places(&self) -> Range<usize> {
        let each = self.slots().len();
        self.number * each..(self.number + 1) * each
    }

    /// Slots of the engine's flows; empty unless the programs take ACKs.
    pub fn slots(&self) -> &'static [Slot] {
        self.programs.acks().map_or(&[], |acks| acks.slots_of(self.number))
    }

    /// Tallies of the engine's classes that ACKs cannot slow; empty unless the programs take ACKs.
    pub fn tallies(&self) -> &'static [Tally] {
        self.programs.acks().map_or(&[], |acks| acks.tallies_of(self.number))
    }

    /// Bounds of the engine's classes; empty unless the programs take ACKs.
    pub fn bounds(&self) -> &'static [Bound] {
        self.programs.acks().map_or(&[], |acks| acks.bounds_of(self.number))
    }

    /// Bounds of what has no readable addresses in each direction, which are the first engine's; empty unless
    /// the programs take ACKs.
    pub fn unread(&self) -> &'static [Bound] {
        let first = self.number == 0;
        self.programs.acks().filter(|_| first).map_or(&[], |acks| acks.unread())
    }

    /// Bounds of the engine's flows; empty unless the programs take ACKs.
    pub fn flow_bounds(&self) -> &'static [FlowBound] {
        self.programs.acks().map_or(&[], |acks| acks.flow_bounds_of(self.number))
    }

    /// Sights of the engine's flows; empty unless the programs take ACKs.
    pub fn sights(&self) -> &'static [Sight] {
        self.programs.acks().map_or(&[], |acks| acks.sights_of(self.number))
    }

    /// Counts of what flows spill; empty unless the programs take ACKs.
    pub fn spills(&self) -> &'static [Spill] {
        self.programs.acks().map_or(&[], Acks::spills)
    }

    /// Map that the engine's rules are written to, if the programs take ACKs.
    pub fn rules(&self) -> io::Result<Option<RuleBook>> {
        self.programs.acks().map(|acks| RuleBook::of(acks, self.number)).transpose()
    }

    /// The engine's ring, if the programs take ACKs. Only one thread may consume it.
    pub fn segments(&self) -> io::Result<Option<Segments>> {
        self.programs.acks().map(|acks| acks.segments_of(self.number)).transpose()
    }

    /// Tells the programs about the engine's flows.
    pub fn apply(&self, verdicts: &[Verdict]) -> io::Result<()> {
        self.programs.acks().map_or(Ok(()), |acks| acks.apply_of(self.number, verdicts))
    }

    /// Counters since the start of all engines, for the first engine only; `None` if they could not be read.
    pub fn counters(&self) -> Option<HookCounters> {
        (self.number == 0).then(|| self.programs.counters().ok())?
    }

    /// True if all frames of a direction are taken.
    pub fn takes_frames(&self) -> bool {
        self.programs.frames().is_some()
    }
}
