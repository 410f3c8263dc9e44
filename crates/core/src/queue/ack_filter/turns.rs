//! Turns of backlogged flows: all in one round, or hosts in a round and the flows of each in one of its own.

use super::super::rounds::{Rounds, TakesTurns, Turn};
use super::flows::Flow;
use super::Host;
use crate::flow::Key;

/// Number of hosts that have turns of their own. The hash of an address says which, so that two hosts may
/// have one.
const HOSTS: usize = 256;

/// See the [module documentation](self). A flow that begins to wait has the next turn of its host, and a host
/// that does so the next of all, with the bounds of [`Rounds::begin_first`]: a flood of new flows takes turns
/// of its own host.
#[derive(Debug)]
pub(super) enum Turns {
    /// Each flow has turns.
    Flows(Box<Rounds>),
    /// Each host has turns, and gives them to its flows.
    Hosts(Box<Hosts>),
}

#[derive(Debug)]
pub(super) struct Hosts {
    rounds: Rounds,
    table: Box<[Rounded]>,
    /// End of a flow that is its host.
    at: Host,
    seed: u64,
}

/// A host's turn, and the rounds of its flows.
#[derive(Debug)]
struct Rounded {
    turn: Turn,
    flows: Rounds,
}

impl TakesTurns for Rounded {
    fn turn(&mut self) -> &mut Turn {
        &mut self.turn
    }
}

impl Turns {
    /// Returns turns of `quantum` bytes.
    pub(super) fn new(hosts: Option<Host>, quantum: u32, seed: u64) -> Turns {
        let rounded = |_| Rounded { turn: Turn::NONE, flows: Rounds::new(quantum) };
        match hosts {
            None => Turns::Flows(Box::new(Rounds::new(quantum))),
            Some(at) => Turns::Hosts(Box::new(Hosts {
                rounds: Rounds::new(quantum),
                table: (0..HOSTS).map(rounded).collect(),
                at,
                seed,
            })),
        }
    }

    /// Returns the host that has the turns of a flow.
    pub(super) fn host_of(&self, key: &Key) -> u16 {
        match self {
            Turns::Flows(_) => 0,
            Turns::Hosts(hosts) => hosts.of(key),
        }
    }

    /// Returns the flow whose turn it is.
    pub(super) fn next(&self) -> Option<u32> {
        match self {
            Turns::Flows(rounds) => rounds.next(),
            Turns::Hosts(hosts) => hosts.table[hosts.rounds.next()? as usize].flows.next(),
        }
    }

    /// Adds a flow with a first frame of `bytes` bytes.
    pub(super) fn begin(&mut self, flows: &mut [Flow], i: u32, bytes: u64) {
        match self {
            Turns::Flows(rounds) => rounds.begin_first(flows, i, bytes),
            Turns::Hosts(hosts) => {
                let h = flows[i as usize].host;
                let host = &mut hosts.table[usize::from(h)];
                let begins = host.flows.next().is_none();
                host.flows.begin_first(flows, i, bytes);
                if begins {
                    hosts.rounds.begin_first(&mut hosts.table, h.into(), bytes);
                }
            }
        }
    }

    /// Charges a flow for `bytes` that it has sent. `ends` is true if it has nothing left.
    pub(super) fn charge(&mut self, flows: &mut [Flow], i: u32, bytes: u64, ends: bool) {
        match self {
            Turns::Flows(rounds) => rounds.charge(flows, i, bytes, ends),
            Turns::Hosts(hosts) => {
                let h = flows[i as usize].host;
                let host = &mut hosts.table[usize::from(h)];
                host.flows.charge(flows, i, bytes, ends);
                let ends = host.flows.next().is_none();
                hosts.rounds.charge(&mut hosts.table, h.into(), bytes, ends);
            }
        }
    }

    /// Removes a flow whose last packet was dropped.
    pub(super) fn end(&mut self, flows: &mut [Flow], i: u32) {
        match self {
            Turns::Flows(rounds) => {
                rounds.end(flows, i);
                rounds.go_on(flows);
            }
            Turns::Hosts(hosts) => {
                let h = flows[i as usize].host;
                let host = &mut hosts.table[usize::from(h)];
                host.flows.end(flows, i);
                host.flows.go_on(flows);
                if host.flows.next().is_none() {
                    hosts.rounds.end(&mut hosts.table, h.into());
                    hosts.rounds.go_on(&mut hosts.table);
                }
            }
        }
    }
}

impl Hosts {
    fn of(&self, key: &Key) -> u16 {
        let src = match self.at {
            Host::Source => key.src,
            Host::Destination => key.dst,
        };
        (Key { src, ..Key::default() }.hash(self.seed) % HOSTS as u64) as u16
    }
}
