//! Following the interfaces: what netlink says of them, and what the engine is told.

use crate::sys::link::{Event, Link};
use crate::sys::mmap::Mapping;
use std::io;
use std::sync::atomic::Ordering;

/// How an interface is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum State {
    Fine = 0,
    Gone = 1,
    Down = 2,
    NoCarrier = 3,
}

impl State {
    fn of(link: &Link) -> State {
        match (link.up, link.carrier) {
            (false, _) => State::Down,
            (true, false) => State::NoCarrier,
            (true, true) => State::Fine,
        }
    }
    const fn words(self) -> &'static str {
        match self {
            State::Fine => "is up",
            State::Gone => "is gone",
            State::Down => "is down",
            State::NoCarrier => "has no carrier",
        }
    }
}

/// An interface that is worked on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Watched {
    /// As configured: what it is found by when it is made anew.
    pub wanted: String,
    /// Its name now.
    pub name: String,
    /// Its number, 0 while it is gone.
    pub index: u32,
    pub state: State,
    mtu: u32,
}

/// What is to be done after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nothing.
    Nothing,
    /// Its state is another one.
    Changed,
    /// It is back: programs and sockets are to be made anew.
    Back,
}

impl Watched {
    pub fn new(link: &Link) -> Watched {
        let (wanted, name) = (link.name.clone(), link.name.clone());
        Watched { wanted, name, index: link.index, state: State::of(link), mtu: link.mtu }
    }

    /// Follows an event, with a line in the log for each change.
    pub fn hear(&mut self, event: &Event) -> Heard {
        match event {
            Event::Gone(index) if *index == self.index => self.gone(),
            Event::Is(link) if link.index == self.index => self.same(link),
            Event::Is(link) if self.index == 0 && link.name == self.wanted => self.back(link),
            _ => Heard::Nothing,
        }
    }

    /// As [`Watched::hear`] for all interfaces that there are.
    pub fn look(&mut self, all: &[Link]) -> Heard {
        match all.iter().find(|link| link.index == self.index) {
            Some(link) => self.same(link),
            None => {
                let heard = if self.index == 0 { Heard::Nothing } else { self.gone() };
                let back = all.iter().find(|link| link.name == self.wanted);
                back.map_or(heard, |link| self.back(link))
            }
        }
    }

    fn gone(&mut self) -> Heard {
        tracing::warn!("interface {} is gone: waiting for {}", self.name, self.wanted);
        (self.index, self.state) = (0, State::Gone);
        Heard::Changed
    }

    fn back(&mut self, link: &Link) -> Heard {
        tracing::info!("interface {} is back, number {}", link.name, link.index);
        *self = Watched::new(link);
        Heard::Back
    }

    fn same(&mut self, link: &Link) -> Heard {
        if link.name != self.name {
            tracing::info!("interface {} is called {} now", self.name, link.name);
            self.name.clone_from(&link.name);
        }
        if link.mtu != self.mtu {
            tracing::info!("the MTU of {} is {} now, was {}", self.name, link.mtu, self.mtu);
            self.mtu = link.mtu;
        }
        let state = State::of(link);
        if state == self.state {
            return Heard::Nothing;
        }
        if state == State::Fine {
            tracing::info!("interface {} {}", self.name, state.words());
        } else {
            tracing::warn!("interface {} {}", self.name, state.words());
        }
        self.state = state;
        Heard::Changed
    }
}

/// What the supervisor tells the engine of the interfaces, in memory that both have.
#[derive(Debug)]
pub struct Status {
    memory: Mapping,
    names: Vec<String>,
}

impl Status {
    pub(super) fn new(names: Vec<String>) -> io::Result<Status> {
        Ok(Status { memory: Mapping::anonymous(names.len() * 4, true)?, names })
    }

    pub(super) fn set(&self, number: usize, state: State) {
        self.memory.atomic_u32(number * 4).store(state as u32, Ordering::Relaxed);
    }

    /// What is wrong with the interfaces, if anything is.
    pub fn degraded(&self) -> Option<String> {
        let states = [State::Fine, State::Gone, State::Down, State::NoCarrier];
        let wrong = self.names.iter().enumerate().filter_map(|(i, name)| {
            let state = self.memory.atomic_u32(i * 4).load(Ordering::Relaxed) as usize;
            let state = states.get(state).filter(|state| **state != State::Fine)?;
            Some(format!("{name} {}", state.words()))
        });
        let wrong: Vec<String> = wrong.collect();
        (!wrong.is_empty()).then(|| wrong.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str, index: u32) -> Link {
        Link { name: name.into(), index, up: true, carrier: true, mtu: 1500, ..Link::default() }
    }

    #[test]
    fn an_interface_is_followed_through_its_life() {
        let mut watched = Watched::new(&link("eth1", 5));
        let mut hear = |event: Event| (watched.hear(&event), watched.state, watched.index);
        assert_eq!(hear(Event::Is(link("eth1", 5))), (Heard::Nothing, State::Fine, 5));
        assert_eq!(hear(Event::Is(link("eth2", 6))), (Heard::Nothing, State::Fine, 5));
        let down = Link { up: false, carrier: false, ..link("wan", 5) };
        assert_eq!(hear(Event::Is(down)), (Heard::Changed, State::Down, 5));
        // Another one may take its old name.
        assert_eq!(hear(Event::Is(link("eth1", 7))), (Heard::Nothing, State::Down, 5));
        assert_eq!(hear(Event::Gone(5)), (Heard::Changed, State::Gone, 0));
        assert_eq!(hear(Event::Is(link("eth3", 8))), (Heard::Nothing, State::Gone, 0));
        assert_eq!(hear(Event::Is(link("eth1", 9))), (Heard::Back, State::Fine, 9));
    }

    #[test]
    fn missed_events_are_made_up_for() {
        let mut watched = Watched::new(&link("eth1", 5));
        assert_eq!(watched.look(&[link("eth1", 5)]), Heard::Nothing);
        assert_eq!(watched.look(&[link("eth1", 6)]), Heard::Back);
        assert_eq!(watched.look(&[link("eth2", 7)]), Heard::Changed);
        assert_eq!((watched.look(&[]), watched.state), (Heard::Nothing, State::Gone));
    }

    #[test]
    fn the_engine_is_told() {
        let status = Status::new(vec!["a".into(), "b".into()]).unwrap();
        assert_eq!(status.degraded(), None);
        status.set(0, State::Gone);
        status.set(1, State::NoCarrier);
        assert_eq!(status.degraded().unwrap(), "a is gone, b has no carrier");
    }
}
