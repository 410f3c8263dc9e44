//! A class whose flows share its rate: its clock, its flows that take turns, and what it knows of the rest.

use super::average::{Average, ONE};
use super::clock::Clock;
use super::debt::{Debt, LUMP};
use super::node::{self, List, Node, Standing};
use super::others::Others;
use super::spill::Spilled;
use super::turn::Round;
use super::{Nested, ShareRelease, Turns};
use crate::base::linked::LinkedList;
use crate::flow::{ClassId, FlowId, Table};
use crate::rate::Rate;
use crate::steer::Tally;
use crate::systems::postack::Departures;
use crate::time::{Duration, Time};

/// A flow that has waited for its turn for so long goes before fresh ones, and those that begin wait too.
const LATE: Duration = Duration::from_millis(10);
/// Bytes of a packet that a class could send, and turns in its time while nothing waits.
const PACKET: u64 = 1500;
const IDLE_TURNS: u64 = 8;

/// Time between two times at which a class whose rate does not bind releases anything, at most.
const GAP: Duration = Duration::from_micros(200);

/// Time in which the average number of flows follows downwards, and where flows leave some of the rate.
const FEWER: Duration = Duration::from_millis(200);
const FEWER_IDLE: Duration = Duration::from_millis(50);

/// State of a class whose flows share a rate.
pub(crate) struct Share {
    /// Law of the class. Its rate is what the flows have together now.
    pub(crate) law: ShareRelease,
    /// The most that they may have.
    pub(crate) most: Rate,
    /// Bytes of a turn.
    pub(crate) quantum: u32,
    /// Earnings of each flow in a round.
    pub(crate) round: Round,
    /// Clock of the most that it may send.
    pub(crate) clock: Clock,
    /// Flows that came to hold something and have not had a turn.
    pub(crate) fresh: LinkedList,
    /// Flows that have had one.
    pub(crate) old: LinkedList,
    /// Number of flows in the two lists.
    pub(crate) listed: u32,
    /// Number of these with the least rate of the class.
    pub(crate) listed_sure: u32,
    /// Flows that have it, listed or not.
    pub(crate) sure: u32,
    /// The average of that.
    pub(crate) active: Average,
    /// Flows that ACKs cannot slow, and whose packets wait.
    pub(crate) spilled: Spilled,
    /// Traffic that passes beside its flows.
    pub(crate) others: Others,
    /// Unresponsive bytes that its clock is not charged yet.
    pub(crate) debt: Debt,
    /// Time of the next releases.
    pub(crate) next: Time,
    /// Last time at which something had to wait for its clock.
    pub(crate) bound: Time,
    /// Bytes that the hooks may let pass, and that are not charged yet.
    pub(crate) granted: u64,
    /// State of its queue.
    pub(crate) departures: Departures,
    /// Place in a tree, if it has one.
    pub(crate) node: Option<Box<Node>>,
}

impl Share {
    pub(crate) fn new(law: &ShareRelease) -> Share {
        Share {
            law: *law,
            most: law.rate,
            quantum: law.quantum(),
            round: Round::default(),
            clock: Clock::new(law.rate, law.credit()),
            fresh: LinkedList::EMPTY,
            old: LinkedList::EMPTY,
            listed: 0,
            listed_sure: 0,
            sure: 0,
            active: Average::default(),
            spilled: Spilled::default(),
            others: Others::default(),
            debt: Debt::default(),
            next: Time::ZERO,
            bound: Time::ZERO,
            granted: 0,
            departures: Departures::default(),
            node: None,
        }
    }

    /// The settings are others from now on.
    pub(crate) fn set_law(&mut self, law: &ShareRelease) {
        self.clock.set_rate(law.rate, law.credit());
        (self.law, self.most, self.quantum) = (*law, law.rate, law.quantum());
    }

    /// It is nested in the class at this place, or at the top.
    pub(crate) fn nest(&mut self, nested: &Nested, parent: Option<ClassId>) {
        match &mut self.node {
            Some(node) => node.set(nested, parent),
            none => *none = Some(Box::new(Node::new(nested, parent))),
        }
        if let Some(bound) = nested.bound() {
            let credit = if parent.is_some() { node::credit(bound) } else { self.law.credit() };
            self.clock.set_rate(bound, credit);
        }
    }

    /// It is in no tree.
    pub(crate) fn stand_alone(&mut self) {
        if self.node.take().is_some() {
            self.law.rate = self.most;
            self.clock.set_rate(self.most, self.law.credit());
        }
    }

    /// A class with flows is below this one, which is at the top.
    pub(crate) fn has_leaf(&mut self, place: ClassId) {
        if let Some(node) = self.node_mut() {
            node.leaves.push(place);
        }
    }

    /// Returns the flow whose turn it is.
    pub(crate) fn head(&self) -> Option<FlowId> {
        self.fresh.first().or(self.old.first()).map(FlowId)
    }

    /// Time between two times at which anything is released.
    pub(crate) fn gap(&self) -> Duration {
        GAP.min(self.law.rate.time_for(u64::from(self.quantum)))
    }

    /// Returns each flow's share of the rate.
    pub(crate) fn each(&self) -> Rate {
        let bps =
            u128::from(self.left_to_flows()) * u128::from(ONE) / u128::from(self.active.value().max(ONE));
        Rate::from_bps(bps as u64).unwrap_or(self.law.rate)
    }

    /// The average follows the number of flows up to `now`.
    pub(crate) fn note_active(&mut self, now: Time) {
        let down = if self.clock.is_idle(now) { FEWER_IDLE } else { FEWER };
        self.active.note(u64::from(self.listed + self.spilled.count), now, down);
    }

    /// The flow whose turn it is: a fresh one, unless one that had its turn has waited longer, and for too
    /// long.
    pub(crate) fn first(&self, table: &Table, now: Time) -> Option<FlowId> {
        let (Some(fresh), Some(old)) = (self.fresh.first(), self.old.first()) else { return self.head() };
        let [of_fresh, of_old] = [fresh, old].map(|i| table[FlowId(i)].law.listed().place.waited(now));
        let is_late = !self.law.is_of_acks() && of_old >= LATE && of_old > of_fresh;
        Some(FlowId(if is_late { old } else { fresh }))
    }

    /// Returns whether a flow has waited for its turn for too long.
    pub(crate) fn is_late(&self, table: &Table, now: Time) -> bool {
        let heads = [self.fresh.first(), self.old.first()];
        heads.into_iter().flatten().any(|i| table[FlowId(i)].law.listed().place.waited(now) >= LATE)
    }

    /// Something may be released now: what can be goes together.
    pub(crate) fn begin(&mut self, now: Time) {
        self.note_active(now);
        if now >= self.next {
            self.next = now + self.gap();
        }
    }

    /// Returns whether it has something to release, and its clock is not ahead.
    pub(crate) fn may_release(&self, now: Time) -> bool {
        self.offers() && self.clock.due() <= now
    }

    /// Returns its place in a tree, if it is in one.
    pub(crate) fn node(&self) -> Option<&Node> {
        self.node.as_deref()
    }

    /// See [`Share::node`].
    pub(crate) fn node_mut(&mut self) -> Option<&mut Node> {
        self.node.as_deref_mut()
    }

    /// The place of the class that it borrows from.
    pub(crate) fn parent(&self) -> Option<ClassId> {
        self.node()?.parent
    }

    /// Returns whether other classes borrow from it.
    pub(crate) fn lends(&self) -> bool {
        self.node().is_some_and(|node| node.lends)
    }

    /// Something is to be released: does that have to wait?
    pub(crate) fn note_bound(&mut self, now: Time) {
        if self.clock.due() > now {
            self.bound = now;
        }
    }

    /// Returns whether a flow waits for its turn.
    fn has_flows(&self) -> bool {
        self.head().is_some() || self.spilled.count > 0
    }

    /// Returns the flow that has spilled and whose turn it is, if it is that of one of them.
    pub(crate) fn spilled_turn(&self) -> Option<u32> {
        self.spilled.turn(self.head().is_some())
    }

    /// Flows with controlled ACKs have had turns of `bytes` together.
    pub(crate) fn note_turns(&mut self, bytes: i64) {
        if self.spilled.count > 0 {
            self.spilled.note_others(bytes, self.listed, self.quantum);
        }
    }

    /// Returns whether there is anything to release.
    pub(crate) fn offers(&self) -> bool {
        self.has_flows() || self.node().is_some_and(Node::offers)
    }

    /// Returns the standing that it should have.
    pub(crate) fn standing(&self, node: &Node, now: Time) -> Standing {
        if !self.has_flows() && !node.is_active() {
            Standing::Idle
        } else if !self.offers() {
            Standing::Bare
        } else if node.bounded && self.clock.due() > now {
            Standing::Waits
        } else if node.is_below(now) {
            Standing::Listed(List::Below)
        } else {
            Standing::Listed(List::Borrows)
        }
    }

    /// Charges this class alone, as [`ClassTree::charge`](super::ClassTree::charge) does with all above it.
    pub(crate) fn charge(&mut self, bytes: u64, since: Time, now: Time) -> u64 {
        let owes = self.node().is_some_and(|node| node.debt.bytes > 0);
        let turns = owes.then(|| self.pace(self.law.rate));
        let Some(node) = self.node.as_deref_mut() else { return self.clock.charge_since(bytes, since, now) };
        node.used.note(bytes, now);
        let list = if node.is_below(now) { List::Below } else { List::Borrows };
        let owed = turns.map_or(0, |pace| node.debt.pay(pace, 0, LUMP, now));
        let deficit = &mut node.deficits[list as usize];
        *deficit = deficit.saturating_sub_unsigned(bytes + owed).max(-node.most_owed);
        if let Some(own) = node.own.as_mut().filter(|_| list == List::Below) {
            own.charge_since(bytes, since, now);
        }
        if node.bounded {
            self.clock.charge_since(bytes, since, now)
        } else {
            0
        }
    }

    /// Gives back to this class alone, as [`ClassTree::give_back`](super::ClassTree::give_back) does to all
    /// above it.
    pub(crate) fn give_back(&mut self, bytes: u64, now: Time) {
        let quantum = i64::from(self.quantum);
        let Some(node) = self.node.as_deref_mut() else { return self.clock.give_back(bytes) };
        if node.is_below(now) {
            if let Some(own) = &mut node.own {
                own.give_back(bytes);
            }
        } else {
            let deficit = &mut node.deficits[List::Borrows as usize];
            *deficit = deficit.saturating_add_unsigned(bytes).min(quantum.max(*deficit));
        }
        if node.bounded {
            self.clock.give_back(bytes);
        }
    }

    /// Returns whether its clock is one of the most that it may send.
    pub(crate) fn is_bounded(&self) -> bool {
        self.node().is_none_or(|node| node.bounded)
    }

    /// Begins to be charged with what this tally counts, if flows are to share the rate. Returns the rate of
    /// the tally's bucket, for how long that may be exceeded, and the overhead of a packet in bytes, if the
    /// class has a bucket.
    pub(crate) fn count_in(&mut self, tally: &Tally, shares: bool) -> Option<(Rate, Duration, i64)> {
        if shares && !self.others.begun {
            (self.others.counted, self.others.beyond) = (tally.counted(), None);
        }
        self.others.begun = shares;
        self.bucket(self.most).filter(|_| shares)
    }

    /// Returns the rate of the bucket of its unresponsive traffic where that may have `rate`, for how long it
    /// may be exceeded, and the overhead of a packet in bytes, if the class has a bucket.
    pub(crate) fn bucket(&self, rate: Rate) -> Option<(Rate, Duration, i64)> {
        let law = &self.law;
        let burst = law.unresponsive.burst().filter(|_| law.turns == Turns::Bytes)?;
        Some((law.counts.served_by_hooks(rate), burst, law.counts.overhead_of_packet()))
    }

    /// Begins to count again, with another tally.
    pub(crate) fn count_anew(&mut self) {
        self.others.begun = false;
    }

    pub(crate) fn first_listed(&self) -> Option<FlowId> {
        self.old.first().map(FlowId)
    }

    pub(crate) fn list_idle(&mut self, table: &mut Table, i: FlowId) {
        self.listed += 1;
        self.old.push(table, i.0);
    }

    /// Time between turns while the class has nothing to send.
    pub(crate) fn idle_time(&self) -> Duration {
        self.law.rate.time_for(PACKET / IDLE_TURNS)
    }

    /// A turn was had: where the queue is empty the next one comes a little later.
    pub(crate) fn note_turn(&mut self, now: Time) {
        self.departures.next_idle = now + self.idle_time();
    }
}
