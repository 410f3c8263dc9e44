//! States of the interfaces, which the supervisor writes and the engine reads, in shared memory.

use crate::sys::mmap::Mapping;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// State of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum InterfaceState {
    Fine = 0,
    Gone = 1,
    Down = 2,
    NoCarrier = 3,
}

impl InterfaceState {
    /// Returns the words for the log: "is down".
    pub(crate) const fn words(self) -> &'static str {
        match self {
            InterfaceState::Fine => "is up",
            InterfaceState::Gone => "is gone",
            InterfaceState::Down => "is down",
            InterfaceState::NoCarrier => "has no carrier",
        }
    }
}

/// States of the configured interfaces, by their number in the configuration.
#[derive(Debug)]
pub struct InterfaceStates {
    memory: Mapping,
    names: Vec<String>,
}

impl InterfaceStates {
    pub(crate) fn new(names: Vec<String>) -> io::Result<InterfaceStates> {
        let memory = Mapping::anonymous(((names.len() + 5) * 4).next_multiple_of(8) + 16, true)?;
        Ok(InterfaceStates { memory, names })
    }

    /// Sets the state of the internal pair of interfaces, which whole frames pass.
    pub(crate) fn set_internal(&self, state: InterfaceState) {
        self.set(self.names.len(), state);
    }

    pub(crate) fn set(&self, number: usize, state: InterfaceState) {
        self.memory.atomic_u32(number * 4).store(state as u32, Ordering::Relaxed);
    }

    /// Sets whether much of the traffic sent (0) or received (1) bypasses the hooks.
    pub(crate) fn set_blind(&self, way: usize, blind: bool) {
        self.memory.atomic_u32((self.names.len() + 1 + way) * 4).store(blind.into(), Ordering::Relaxed);
    }

    /// Sets whether engines hang again and again.
    pub(crate) fn set_hanging(&self, hanging: bool) {
        self.hanging().store(hanging.into(), Ordering::Relaxed);
    }

    /// Returns whether engines hang again and again, each for so long that it is replaced.
    pub fn is_hanging(&self) -> bool {
        self.hanging().load(Ordering::Relaxed) != 0
    }

    fn hanging(&self) -> &AtomicU32 {
        self.memory.atomic_u32((self.names.len() + 3) * 4)
    }

    /// Sets whether the engine's programs are not on the interfaces yet, because earlier ones still are.
    pub(crate) fn set_apart(&self, apart: bool) {
        self.apart().store(apart.into(), Ordering::Release);
    }

    /// Returns whether the engine's programs are not on the interfaces yet, so that no way can be judged.
    pub(crate) fn is_apart(&self) -> bool {
        self.apart().load(Ordering::Acquire) != 0
    }

    fn apart(&self) -> &AtomicU32 {
        self.memory.atomic_u32((self.names.len() + 4) * 4)
    }

    /// Adds bytes sent (0) or received (1) that the hooks did not see.
    pub(crate) fn add_unseen(&self, way: usize, bytes: u64) {
        self.unseen_of(way).fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes sent and received that the hooks did not see, counted only in seconds with many of them.
    pub fn unseen(&self) -> [u64; 2] {
        [0, 1].map(|way| self.unseen_of(way).load(Ordering::Relaxed))
    }

    fn unseen_of(&self, way: usize) -> &AtomicU64 {
        self.memory.atomic_u64(((self.names.len() + 5) * 4).next_multiple_of(8) + way * 8)
    }

    /// Returns the words for traffic that bypasses the hooks.
    pub(crate) fn blind(&self, way: usize) -> String {
        let verb = if way == 0 { "leaves by" } else { "comes in on" };
        format!(
            "much of what {verb} {} goes around the hooks and is not shaped: an offload of flows, XDP, or another program in front",
            self.wan()
        )
    }

    /// Name of the interface towards the WAN, as it was at the start.
    pub(crate) fn wan(&self) -> &str {
        self.names.last().map_or("", String::as_str)
    }

    /// Returns the faults of the interfaces in words, if there are any.
    pub fn degraded(&self) -> Option<String> {
        let states =
            [InterfaceState::Fine, InterfaceState::Gone, InterfaceState::Down, InterfaceState::NoCarrier];
        let names = self.names.iter().map(String::as_str).chain(["the internal pair"]);
        let wrong = names.enumerate().filter_map(|(i, name)| {
            let state = self.memory.atomic_u32(i * 4).load(Ordering::Relaxed) as usize;
            let state = states.get(state).filter(|state| **state != InterfaceState::Fine)?;
            Some(format!("{name} {}", state.words()))
        });
        let is_blind = |way: &usize| {
            self.memory.atomic_u32((self.names.len() + 1 + way) * 4).load(Ordering::Relaxed) != 0
        };
        let blind = [0, 1].into_iter().filter(is_blind).map(|way| self.blind(way));
        let wrong: Vec<String> = wrong.chain(blind).collect();
        (!wrong.is_empty()).then(|| wrong.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_is_told() {
        let states = InterfaceStates::new(vec!["a".into(), "b".into()]).unwrap();
        assert_eq!(states.degraded(), None);
        states.set(0, InterfaceState::Gone);
        states.set(1, InterfaceState::NoCarrier);
        assert_eq!(states.degraded().unwrap(), "a is gone, b has no carrier");
        assert!(!states.is_hanging());
        states.set_hanging(true);
        states.add_unseen(0, 7);
        states.set_apart(true);
        assert_eq!((states.is_hanging(), states.is_apart(), states.unseen()), (true, true, [7, 0]));
        states.set_apart(false);
        assert!(!states.is_apart() && states.unseen() == [7, 0]);
    }
}
