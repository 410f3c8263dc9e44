//! A class of a tree: what it has for itself, and where it stands among those that borrow from the same
//! parent.

use super::average::{Average, ONE};
use super::clock::Clock;
use super::debt::Debt;
use super::level::Level;
use super::meter::{Meter, LESS};
use super::others::Beside;
use super::Nested;
use crate::base::linked::{LinkedList, Links};
use crate::flow::ClassId;
use crate::time::{Duration, Time};

/// Least credit of a class while others have their turns, at its ceiling and at its own rate. A millisecond
/// is too little.
const CREDIT: Duration = Duration::from_millis(5);

/// The two lists of a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// Children that are below their own rates.
    Below,
    /// Children that borrow.
    Borrows,
}

impl List {
    pub(crate) const BOTH: [List; 2] = [List::Below, List::Borrows];
}

/// Standing of a class among its parent's children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing is held in it.
    Idle,
    /// All of its children wait for time.
    Bare,
    /// The ceiling is reached.
    Waits,
    /// It takes turns.
    Listed(List),
}

impl Standing {
    /// Returns whether nothing is held in it.
    pub(crate) fn is_idle(self) -> bool {
        self == Standing::Idle
    }
}

/// A list of children that take turns.
#[derive(Clone, Copy)]
pub(crate) struct Children {
    pub(crate) list: LinkedList,
    pub(crate) count: u64,
    /// Sum of the portions of all in the list.
    pub(crate) sum: u64,
}

impl Children {
    const NONE: Children = Children { list: LinkedList::EMPTY, count: 0, sum: 0 };
}

/// See the module documentation.
pub(crate) struct Node {
    /// The class that it borrows from. None at the top.
    pub(crate) parent: Option<ClassId>,
    /// Others borrow from it.
    pub(crate) lends: bool,
    /// The class's clock is one of the most that it may send.
    pub(crate) bounded: bool,
    /// Clock of the class's own rate.
    pub(crate) own: Option<Clock>,
    own_bps: u64,
    weight: u32,
    pub(crate) standing: Standing,
    /// Time since which it takes turns, if it does.
    pub(crate) listed: Option<Time>,
    /// Level up to which its children borrow.
    pub(crate) level: Level,
    /// The bucket of its unresponsive traffic has less than the class's rate.
    pub(crate) is_limited: bool,
    pub(crate) links: Links,
    /// Bytes that it may be let send in this round of each list.
    pub(crate) deficits: [i64; 2],
    /// The least of these.
    pub(crate) most_owed: i64,
    /// Children, by list.
    pub(crate) lists: [Children; 2],
    /// Children in which something is held, with their rates and weights: now, and on average.
    active: u32,
    rates: (u64, Average),
    weights: (u64, Average),
    /// Rate of what its flows are permitted.
    pub(crate) used: Meter,
    /// Rates of what passes beside their turns, of all classes below together, each by its last look: a look
    /// that comes late counts the bytes of a long time.
    pub(crate) beside: Beside,
    /// Rates that this class alone has told those above it.
    pub(crate) told: Beside,
    /// Bytes of unresponsive traffic that its turns do not pay for yet.
    pub(crate) debt: Debt,
    /// Time at which its flows' part of the rate was found last.
    pub(crate) entitled: Time,
    /// Time up to which its permissions are ahead of the clocks above it, as these were then.
    pub(crate) ahead: Time,
    /// At the top: the classes below that have flows, and which of them is looked at next for what ACKs
    /// cannot slow.
    pub(crate) leaves: Vec<ClassId>,
    pub(crate) next_leaf: usize,
    /// Time at which any were.
    pub(crate) looked: Time,
}

impl Node {
    pub(crate) fn new(nested: &Nested, parent: Option<ClassId>) -> Node {
        let mut node = Node {
            parent: None,
            lends: false,
            bounded: false,
            own: None,
            own_bps: 0,
            weight: 1,
            standing: Standing::Idle,
            listed: None,
            level: Level::NONE,
            is_limited: false,
            links: Links::NONE,
            deficits: [0; 2],
            most_owed: i64::MAX / 4,
            lists: [Children::NONE; 2],
            active: 0,
            rates: Default::default(),
            weights: Default::default(),
            used: Meter::default(),
            beside: Beside::default(),
            told: Beside::default(),
            debt: Debt::default(),
            entitled: Time::ZERO,
            ahead: Time::ZERO,
            leaves: Vec::new(),
            next_leaf: 0,
            looked: Time::ZERO,
        };
        node.set(nested, parent);
        node
    }

    /// The settings are others, and it is in no list.
    pub(crate) fn set(&mut self, nested: &Nested, parent: Option<ClassId>) {
        self.parent = parent;
        (self.lends, self.weight) = (nested.lends, nested.weight);
        self.bounded = nested.bound().is_some();
        let own = nested.rate.filter(|_| parent.is_some());
        self.own_bps = own.map_or(0, |rate| rate.bps());
        self.own = match (own, self.own.take()) {
            (Some(rate), Some(mut clock)) => {
                clock.set_rate(rate, credit(rate));
                Some(clock)
            }
            (Some(rate), None) => Some(Clock::new(rate, credit(rate))),
            (None, _) => None,
        };
        (self.standing, self.links, self.lists) = (Standing::Idle, Links::NONE, [Children::NONE; 2]);
        (self.active, self.rates.0, self.weights.0, self.listed) = (0, 0, 0, None);
        (self.beside, self.told) = Default::default();
        self.level = Level::NONE;
        self.entitled = Time::ZERO;
        self.leaves.clear();
    }

    /// Returns whether it is below its own rate.
    pub(crate) fn is_below(&self, now: Time) -> bool {
        self.own.as_ref().is_some_and(|own| own.due() <= now)
    }

    /// Returns its part in a list, next to others in it.
    pub(crate) fn portion(&self, list: List) -> u64 {
        match list {
            List::Below => (self.own_bps / 1000).max(1),
            List::Borrows => u64::from(self.weight),
        }
    }

    /// Returns the rate of all that it sends, in bits per second.
    pub(crate) fn used_bps(&self) -> u64 {
        self.used.bps() + self.beside.sum()
    }

    /// Returns its own rate in bits per second.
    pub(crate) fn own_bps(&self) -> u64 {
        self.own_bps
    }

    /// It is about to stand there.
    pub(crate) fn note_listed(&mut self, to: Standing, now: Time) {
        let takes_turns = matches!(to, Standing::Listed(_));
        self.listed = self.listed.or(Some(now)).filter(|_| takes_turns);
    }

    /// Returns whether something is held in a child, or in what is below that.
    pub(crate) fn is_active(&self) -> bool {
        self.active > 0
    }

    /// Returns whether it has a child that takes turns.
    pub(crate) fn offers(&self) -> bool {
        self.lists.iter().any(|list| list.count > 0)
    }

    /// A child with such a rate and weight has come to hold something, or holds nothing any more.
    pub(crate) fn note_child(&mut self, holds: bool, own_bps: u64, weight: u64, now: Time) {
        self.note_active(now);
        if holds {
            self.active += 1;
            self.rates.0 += own_bps;
            self.weights.0 += weight;
        } else {
            self.active -= 1;
            self.rates.0 -= own_bps;
            self.weights.0 -= weight;
        }
    }

    /// The averages follow up to `now`.
    pub(crate) fn note_active(&mut self, now: Time) {
        self.rates.1.note(self.rates.0, now, LESS);
        self.weights.1.note(self.weights.0, now, LESS);
    }

    /// Returns the part of `rate`, in bits per second, of a child with this rate and weight: its own rate,
    /// and by its weight what is no child's own.
    pub(crate) fn divide(&self, rate: u64, own_bps: u64, weight: u64) -> u64 {
        let owned = (self.rates.1.value() / ONE).max(own_bps);
        let weights = self.weights.1.value().max(weight * ONE);
        let free = u128::from(rate.saturating_sub(owned)) * u128::from(weight * ONE) / u128::from(weights);
        own_bps.saturating_add(free as u64)
    }
}

/// Returns the credit at a rate while others have their turns.
pub(crate) fn credit(rate: crate::rate::Rate) -> Duration {
    super::ShareRelease::new(rate).credit().max(CREDIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Rate;

    #[test]
    fn what_is_nobodys_own_is_divided_by_weight() {
        let nested = Nested { parent: None, rate: Some(Rate::mbit(100)), ceil: None, weight: 1, lends: true };
        let mut node = Node::new(&nested, None);
        node.note_child(true, 40_000_000, 3, Time::ZERO);
        node.note_child(true, 20_000_000, 1, Time::ZERO);
        // 40 Mbit/s are guaranteed to no class. The averages get there in a long time.
        node.note_active(Time::from_secs(1_000_000));
        let parts =
            [(40_000_000, 3), (20_000_000, 1)].map(|(own, weight)| node.divide(100_000_000, own, weight));
        let expect = [70_000_000i64, 30_000_000];
        assert!(
            parts.iter().zip(expect).all(|(&part, expect)| (part as i64 - expect).abs() < 1_000),
            "{parts:?}"
        );
        // One that is alone has all, and one that was not there has its own.
        node.note_child(false, 40_000_000, 3, Time::from_secs(1_000_000));
        node.note_active(Time::from_secs(2_000_000));
        assert!(node.divide(100_000_000, 20_000_000, 1) > 99_900_000);
    }
}
