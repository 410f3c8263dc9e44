//! States of the interfaces, as netlink reports them.

use crate::driver::InterfaceState;
use crate::sys::link::{Event, HostInterface};

/// An interface of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Watched {
    /// Configured name, by which it is found when it is made again.
    pub wanted: String,
    /// Current name.
    pub name: String,
    /// Number, 0 while it is gone.
    pub index: u32,
    pub state: InterfaceState,
    mtu: u32,
}

/// Effect of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// No effect.
    Nothing,
    /// The state has changed.
    Changed,
    /// The interface is back: programs and sockets have to be made again.
    Back,
}

fn state_of(link: &HostInterface) -> InterfaceState {
    match (link.up, link.carrier) {
        (false, _) => InterfaceState::Down,
        (true, false) => InterfaceState::NoCarrier,
        (true, true) => InterfaceState::Fine,
    }
}

impl Watched {
    pub fn new(link: &HostInterface) -> Watched {
        let (wanted, name) = (link.name.clone(), link.name.clone());
        Watched { wanted, name, index: link.index, state: state_of(link), mtu: link.mtu }
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

    /// Like [`Watched::hear`], for a list of all interfaces.
    pub fn look(&mut self, all: &[HostInterface]) -> Heard {
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
        (self.index, self.state) = (0, InterfaceState::Gone);
        Heard::Changed
    }

    fn back(&mut self, link: &HostInterface) -> Heard {
        tracing::info!("interface {} is back, number {}", link.name, link.index);
        *self = Watched::new(link);
        Heard::Back
    }

    fn same(&mut self, link: &HostInterface) -> Heard {
        if link.name != self.name {
            tracing::info!("interface {} is called {} now", self.name, link.name);
            self.name.clone_from(&link.name);
        }
        if link.mtu != self.mtu {
            tracing::info!("the MTU of {} is {} now, was {}", self.name, link.mtu, self.mtu);
            self.mtu = link.mtu;
        }
        let state = state_of(link);
        if state == self.state {
            return Heard::Nothing;
        }
        if state == InterfaceState::Fine {
            tracing::info!("interface {} {}", self.name, state.words());
        } else {
            tracing::warn!("interface {} {}", self.name, state.words());
        }
        self.state = state;
        Heard::Changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str, index: u32) -> HostInterface {
        HostInterface {
            name: name.into(),
            index,
            up: true,
            carrier: true,
            mtu: 1500,
            ..HostInterface::default()
        }
    }

    #[test]
    fn an_interface_is_followed_through_its_life() {
        let mut watched = Watched::new(&link("eth1", 5));
        let mut hear = |event: Event| (watched.hear(&event), watched.state, watched.index);
        assert_eq!(hear(Event::Is(link("eth1", 5))), (Heard::Nothing, InterfaceState::Fine, 5));
        assert_eq!(hear(Event::Is(link("eth2", 6))), (Heard::Nothing, InterfaceState::Fine, 5));
        let down = HostInterface { up: false, carrier: false, ..link("wan", 5) };
        assert_eq!(hear(Event::Is(down)), (Heard::Changed, InterfaceState::Down, 5));
        // Another interface may take its old name.
        assert_eq!(hear(Event::Is(link("eth1", 7))), (Heard::Nothing, InterfaceState::Down, 5));
        assert_eq!(hear(Event::Gone(5)), (Heard::Changed, InterfaceState::Gone, 0));
        assert_eq!(hear(Event::Is(link("eth3", 8))), (Heard::Nothing, InterfaceState::Gone, 0));
        assert_eq!(hear(Event::Is(link("eth1", 9))), (Heard::Back, InterfaceState::Fine, 9));
    }

    #[test]
    fn missed_events_are_made_up_for() {
        let mut watched = Watched::new(&link("eth1", 5));
        assert_eq!(watched.look(&[link("eth1", 5)]), Heard::Nothing);
        assert_eq!(watched.look(&[link("eth1", 6)]), Heard::Back);
        assert_eq!(watched.look(&[link("eth2", 7)]), Heard::Changed);
        assert_eq!((watched.look(&[]), watched.state), (Heard::Nothing, InterfaceState::Gone));
    }
}
