//! Timers of a loop that runs the ends of flows.

use super::{Amount, Role};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Purpose of a timer. The order of variants breaks ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    Start(usize),
    Sample,
    TimeIsUp(usize),
    Reset(usize),
    Stop,
}

/// Timers, in nanoseconds since the epoch.
pub(super) struct Dues(BinaryHeap<Reverse<(u64, Due)>>);

impl Dues {
    /// Returns the timers of ends, each with its role, its start and its amount, and one that stops
    /// everything. An end that is not closed so long after its time is reset.
    pub fn of(ends: impl Iterator<Item = (Role, u64, Amount)>, linger_ns: u64, stop_ns: u64) -> Dues {
        let mut dues = Dues(BinaryHeap::new());
        for (i, (role, start_ns, amount)) in ends.enumerate() {
            if role == Role::Connect {
                dues.add(start_ns, Due::Start(i));
            }
            if let Amount::UntilNs(until) = amount {
                dues.add(until, Due::TimeIsUp(i));
                dues.add(until.saturating_add(linger_ns), Due::Reset(i));
            }
        }
        dues.add(stop_ns, Due::Stop);
        dues
    }

    /// Adds a timer.
    pub fn add(&mut self, at: u64, due: Due) {
        self.0.push(Reverse((at, due)));
    }

    /// Returns the time of the first timer.
    pub fn first(&self) -> Option<u64> {
        self.0.peek().map(|first| first.0 .0)
    }

    /// Removes the first timer if it is due at `now`.
    pub fn pop(&mut self, now: u64) -> Option<Due> {
        self.first().filter(|&at| at <= now)?;
        self.0.pop().map(|first| first.0 .1)
    }
}
