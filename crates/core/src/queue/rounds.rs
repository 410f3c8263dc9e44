//! Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995) over a table's flows, in constant time whatever
//! their number.
//!
//! - A flow may send while its deficit is above zero, and its last frame takes it below zero. It then waits
//!   for as many rounds as pay off that debt, at a quantum a round. A giant segment is charged as the packets
//!   that it stands for, so it waits for the rounds that these take. The flows of one round are a list, and
//!   the rounds are a ring of lists.
//! - A flow that becomes backlogged is placed behind the flows already served in this round. A flow with
//!   nothing left leaves, but its debt stays with it. The rounds that pass meanwhile pay it off, a quantum
//!   each; a flow that comes back earlier waits for those that are missing. Otherwise a flow of giant
//!   segments that come one at a time would have a segment in each round. If no flow is left, all debts are
//!   forgiven: no flow waited for them.
//! - A flow that comes back before another one has sent anything goes on as if it had never left. Otherwise
//!   a flow of small packets that come one at a time would have one packet in each round. FQ-CoDel does the
//!   same: an empty queue leaves the list at the next dequeue (RFC 8290 §4.2).
//! - Where flows that send little go first ([`Rounds::begin_first`]), it waits until the others have each
//!   sent as much as it did. ACKs that wait meanwhile are merged, and leave the others more than their turns.

use crate::base::linked::{self, LinkedList, Links};

/// Number of distinct rounds in the ring.
const ROUNDS: usize = 64;
/// Maximum rounds that a flow waits at once. Debt beyond these is kept. Half of the ring, since the rounds
/// that have passed for want of the flow that has just left are served again if that comes back.
const MOST_ROUNDS: i64 = ROUNDS as i64 / 2 - 1;
/// Marks the absence of a flow.
const NOBODY: u32 = u32::MAX;
/// Lists of flows that will have turns before others: the last one is of 2 KiB and more.
const SOON: usize = 12;

/// Rounds that pass when no flow is left: they pay off any giant segment, whatever the quantum.
const FORGIVEN: u32 = 1 << 17;

/// Scheduling state of one flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Bytes that the flow may still send in its round.
    deficit: i32,
    links: Links,
    /// Rounds that had passed when the flow left, modulo 2^32.
    left: u32,
    /// [`Rounds::sent`] when the flow sent last.
    at: u32,
    /// Round that the flow waits for.
    round: u8,
    /// True if the flow has sent anything.
    known: bool,
    place: Place,
}

/// List in which a flow waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The list of its round.
    Round,
    /// Flows that have turns before those of a round.
    First,
    /// Flows that go there as soon as each of those in rounds has sent as much as they did. The number of the
    /// list is the binary logarithm of these bytes.
    Soon(u8),
}

impl Turn {
    /// State of a flow that waits for no round.
    pub(super) const NONE: Turn =
        Turn { deficit: 0, links: Links::NONE, left: 0, at: 0, round: 0, known: false, place: Place::Round };

    /// Returns the flow that waits behind this one in its round.
    pub(super) fn behind(&self) -> Option<u32> {
        self.links.next()
    }
}

/// A flow with scheduling state.
pub(super) trait TakesTurns {
    fn turn(&mut self) -> &mut Turn;
}

fn links<T: TakesTurns>(flow: &mut T) -> &mut Links {
    &mut flow.turn().links
}

/// Scheduler. See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Rounds {
    rounds: [LinkedList; ROUNDS],
    /// Flows that have turns before those of this round, in the order in which they came
    /// ([`Place::First`]).
    first: LinkedList,
    /// Flows that will have such turns ([`Place::Soon`]), and the bit set of lists in which one waits.
    soon: [LinkedList; SOON],
    any_soon: u16,
    /// Bit set of the rounds in which a flow waits.
    occupied: u64,
    /// Round that is being served.
    round: u8,
    /// Rounds that have passed, modulo 2^32. A flow that comes back after all of these may pay a debt twice.
    passed: u32,
    /// Bytes that each flow may send in a round.
    quantum: i64,
    /// Flows that wait and were not placed before others.
    waiting: u32,
    /// Bytes that these flows have sent, modulo 2^32.
    sent: u32,
    /// Bytes of new flows that were placed before others, lately, and `sent` when the first of them was.
    ahead: u64,
    ahead_at: u32,
    /// Flow that has just left, and `round` and `passed` of its turn.
    left: u32,
    left_in: (u8, u32),
}

impl Rounds {
    /// Creates a scheduler without flows. A quantum is 1 byte at least.
    pub(super) fn new(quantum: u32) -> Rounds {
        Rounds {
            rounds: [LinkedList::EMPTY; ROUNDS],
            first: LinkedList::EMPTY,
            soon: [LinkedList::EMPTY; SOON],
            any_soon: 0,
            occupied: 0,
            round: 0,
            passed: 0,
            quantum: quantum.max(1).into(),
            waiting: 0,
            sent: 0,
            ahead: 0,
            ahead_at: 0,
            left: NOBODY,
            left_in: (0, 0),
        }
    }

    /// Returns the flow whose turn it is.
    pub(super) fn next(&self) -> Option<u32> {
        self.first.first().or_else(|| self.rounds[usize::from(self.round)].first())
    }

    /// Adds a flow behind those that were served in this round, or in the round in which its debt is paid.
    /// Rounds that have passed for want of a flow that has just left begin again, and it goes on with its
    /// turn.
    pub(super) fn begin<T: TakesTurns>(&mut self, flows: &mut [T], i: u32) {
        if self.left == i {
            return self.begin_again(flows, i);
        }
        self.enter_anew(flows, i);
    }

    /// Adds the flow that has just left.
    #[inline]
    fn begin_again<T: TakesTurns>(&mut self, flows: &mut [T], i: u32) {
        (self.round, self.passed) = self.left_in;
        self.left = NOBODY;
        if flows[i as usize].turn().deficit > 0 {
            return self.resume(flows, i);
        }
        self.enter_anew(flows, i);
        self.go_on(flows);
    }

    #[inline(always)]
    fn enter_anew<T: TakesTurns>(&mut self, flows: &mut [T], i: u32) {
        let turn = flows[i as usize].turn();
        let debt = self.debt(turn);
        if debt > 0 && self.occupied != 0 {
            turn.deficit = narrow(-debt);
            return self.enter_in_debt(flows, i);
        }
        turn.deficit = narrow(self.quantum);
        let rounds_on = u8::from(self.occupied != 0);
        self.enter(flows, i, rounds_on);
    }

    /// Bytes that a flow that has left still owes.
    fn debt(&self, turn: &Turn) -> i64 {
        let paid = i64::from(self.passed.wrapping_sub(turn.left)).saturating_mul(self.quantum);
        (-i64::from(turn.deficit)).saturating_sub(paid).max(0)
    }

    /// Gives a flow the rest of its turn.
    fn resume<T: TakesTurns>(&mut self, flows: &mut [T], i: u32) {
        let turn = flows[i as usize].turn();
        (turn.round, turn.place) = (self.round, Place::Round);
        self.rounds[usize::from(self.round)].push_first(&mut linked::by(flows, links), i);
        self.occupied |= 1 << self.round;
        self.waiting += 1;
    }

    /// Forgets that the flow at this place has just left: another one takes the place.
    pub(super) fn forget<T: TakesTurns>(&mut self, flows: &mut [T], i: u32) {
        *flows[i as usize].turn() = Turn::NONE;
        if self.left == i {
            self.left = NOBODY;
        }
    }

    /// Returns whether a flow that has left owes something to those that are there.
    pub(super) fn owes<T: TakesTurns>(&self, flow: &mut T) -> bool {
        self.occupied != 0 && self.debt(flow.turn()) > 0
    }

    /// Adds a flow with a first frame of `bytes` bytes before the others of this round. So a flow that sends
    /// little waits only for the frame in transmission. One that comes back before those that wait have each
    /// sent as much as it did in its last turn has its turn when they have: no flow gets more than they do. A
    /// round says less, since flows whose frames are longer than a quantum may all have their turns in one. A
    /// flow that owes more than a quantum is added as by [`Rounds::begin`]. New flows share one quantum in
    /// the time that the others take for one each. So a flood of them does not take the turns of the others.
    pub(super) fn begin_first<T: TakesTurns>(&mut self, flows: &mut [T], i: u32, bytes: u64) {
        if self.have_sent(self.quantum, self.ahead_at) {
            self.ahead = 0;
        }
        let turn = flows[i as usize].turn();
        if self.left == i {
            self.left = NOBODY;
        }
        let owes = turn.known && self.debt(turn) > self.quantum;
        let is_flood = !turn.known && self.ahead.saturating_add(bytes) > self.quantum.unsigned_abs();
        if self.occupied == 0 || owes || is_flood {
            return self.begin(flows, i);
        }
        if turn.known && !self.has_waited(turn) {
            let list = (self.used(turn).max(1).ilog2() as usize).min(SOON - 1);
            turn.place = Place::Soon(list as u8);
            self.any_soon |= 1 << list;
            return self.soon[list].push(&mut linked::by(flows, links), i);
        }
        if !turn.known {
            if self.ahead == 0 {
                self.ahead_at = self.sent;
            }
            self.ahead += bytes;
        }
        self.place_first(flows, i);
    }

    fn place_first<T: TakesTurns>(&mut self, flows: &mut [T], i: u32) {
        let turn = flows[i as usize].turn();
        (turn.deficit, turn.place) = (narrow(self.quantum), Place::First);
        self.first.push(&mut linked::by(flows, links), i);
    }

    /// Returns whether those in rounds have each sent so many bytes since `at`.
    fn have_sent(&self, each: i64, at: u32) -> bool {
        i64::from(self.sent.wrapping_sub(at)) >= each.saturating_mul(self.waiting.into())
    }

    /// Bytes that a flow has sent in its last turn, and what it owed before.
    fn used(&self, turn: &Turn) -> i64 {
        self.quantum - i64::from(turn.deficit)
    }

    /// Returns whether those in rounds have each sent as much as a flow has, since that.
    fn has_waited(&self, turn: &Turn) -> bool {
        self.occupied == 0 || self.have_sent(self.used(turn), turn.at)
    }

    /// Places flows before others that have waited for it, at most one of each list.
    #[cold]
    #[inline(never)]
    fn advance<T: TakesTurns>(&mut self, flows: &mut [T]) {
        let mut lists = self.any_soon;
        while lists != 0 {
            let list = lists.trailing_zeros() as usize;
            lists &= lists - 1;
            let Some(i) = self.soon[list].first() else { continue };
            if self.has_waited(flows[i as usize].turn()) {
                self.remove(flows, i);
                self.place_first(flows, i);
            }
        }
    }

    /// Removes a flow that is no longer backlogged. Call [`Rounds::go_on`] next.
    pub(super) fn end<T: TakesTurns>(&mut self, flows: &mut [T], i: u32) {
        self.left = NOBODY;
        self.remove(flows, i);
        let turn = flows[i as usize].turn();
        if turn.place == Place::Round {
            // The rounds that it would have waited for are not paid.
            let ahead = turn.round.wrapping_sub(self.round) % ROUNDS as u8;
            turn.deficit = narrow(i64::from(turn.deficit) - i64::from(ahead) * self.quantum);
        }
        turn.left = self.passed;
        if self.occupied == 0 && self.first.is_empty() && self.any_soon == 0 {
            self.passed = self.passed.wrapping_add(FORGIVEN);
        }
    }

    fn remove<T: TakesTurns>(&mut self, flows: &mut [T], i: u32) {
        let Turn { round, place, .. } = *flows[i as usize].turn();
        match place {
            Place::Round => {}
            Place::First => return self.first.remove(&mut linked::by(flows, links), i),
            Place::Soon(list) => {
                let soon = &mut self.soon[usize::from(list)];
                soon.remove(&mut linked::by(flows, links), i);
                self.any_soon &= !(u16::from(soon.is_empty()) << list);
                return;
            }
        }
        let list = &mut self.rounds[usize::from(round)];
        list.remove(&mut linked::by(flows, links), i);
        self.waiting -= 1;
        if list.is_empty() {
            self.occupied &= !(1 << round);
        }
    }

    /// Charges a flow for `bytes` that it has sent. `ends` is true if it has nothing left.
    pub(super) fn charge<T: TakesTurns>(&mut self, flows: &mut [T], i: u32, bytes: u64, ends: bool) {
        let turn = flows[i as usize].turn();
        turn.deficit = narrow(i64::from(turn.deficit).saturating_sub_unsigned(bytes));
        if turn.place == Place::Round {
            self.sent = self.sent.wrapping_add(bytes as u32);
        }
        (turn.at, turn.known) = (self.sent, true);
        let (deficit, round) = (turn.deficit, (self.round, self.passed));
        self.left = NOBODY;
        if ends {
            self.end(flows, i);
            if self.occupied != 0 {
                (self.left, self.left_in) = (i, round);
            }
        } else if deficit <= 0 {
            self.postpone(flows, i);
        }
        self.go_on(flows);
    }

    /// Postpones a flow in debt by the rounds that pay off the debt, up to the maximum at once.
    fn postpone<T: TakesTurns>(&mut self, flows: &mut [T], i: u32) {
        self.remove(flows, i);
        self.enter_in_debt(flows, i);
    }

    fn enter_in_debt<T: TakesTurns>(&mut self, flows: &mut [T], i: u32) {
        let turn = flows[i as usize].turn();
        let all = -i64::from(turn.deficit) / self.quantum + 1;
        // If the flow is alone, all rounds pass at once.
        let (paid, rounds_on) = match self.occupied {
            0 => (all, 1),
            _ => (all.min(MOST_ROUNDS), all.min(MOST_ROUNDS)),
        };
        turn.deficit = narrow(i64::from(turn.deficit) + paid * self.quantum);
        self.passed = self.passed.wrapping_add((paid - rounds_on) as u32);
        self.enter(flows, i, rounds_on as u8);
    }

    /// Advances to the next round in which a flow waits, once this one is done. A flow whose debt is still
    /// unpaid waits for more rounds.
    pub(super) fn go_on<T: TakesTurns>(&mut self, flows: &mut [T]) {
        while self.occupied != 0 {
            let ahead = self.occupied.rotate_right(self.round.into()).trailing_zeros();
            self.round = (self.round + ahead as u8) % ROUNDS as u8;
            self.passed = self.passed.wrapping_add(ahead);
            match self.next() {
                Some(i) if flows[i as usize].turn().deficit <= 0 => self.postpone(flows, i),
                _ => break,
            }
        }
        if self.any_soon != 0 {
            self.advance(flows);
        }
    }

    fn enter<T: TakesTurns>(&mut self, flows: &mut [T], i: u32, rounds_on: u8) {
        let round = (self.round + rounds_on) % ROUNDS as u8;
        let turn = flows[i as usize].turn();
        (turn.round, turn.place) = (round, Place::Round);
        self.rounds[usize::from(round)].push(&mut linked::by(flows, links), i);
        self.occupied |= 1 << round;
        self.waiting += 1;
    }
}

/// Bytes of a deficit: none is near the bounds.
fn narrow(bytes: i64) -> i32 {
    bytes.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTUM: u32 = 300;
    const FRAME: u64 = 1_500;

    impl TakesTurns for Turn {
        fn turn(&mut self) -> &mut Turn {
            self
        }
    }

    /// Five flows that always wait, with frames of five quanta, so that all have their turns in one round,
    /// and others with packets of `bytes` bytes, which come when so many bytes have left since their last
    /// ones. Returns for each flow its bytes, and the most frames that left before one of its own since that
    /// came.
    fn serve(others: usize, bytes: u64, frames: u32, after: u64) -> Vec<(u64, u32)> {
        let mut rounds = Rounds::new(QUANTUM);
        let mut flows = vec![Turn::NONE; 5 + others];
        let mut sent = vec![(0, 0); flows.len()];
        let (mut since, mut came) = (vec![0; flows.len()], vec![None; flows.len()]);
        (0..5).for_each(|i| rounds.begin(&mut flows, i));
        for n in 0..frames {
            for i in 5..flows.len() {
                if came[i].is_none() && since[i] >= after {
                    rounds.begin_first(&mut flows, i as u32, bytes);
                    came[i] = Some(n);
                }
            }
            let i = rounds.next().unwrap() as usize;
            let size = if i < 5 { FRAME } else { bytes };
            since.iter_mut().for_each(|since| *since += size);
            since[i] = 0;
            let wait = came[i].take().map_or(0, |came| n - came);
            sent[i] = (sent[i].0 + size, wait.max(sent[i].1));
            rounds.charge(&mut flows, i as u32, size, i >= 5);
        }
        sent
    }

    /// Each of five flows sends 240 bytes in the time of a frame: 1,200 to 1,500 bytes.
    #[test]
    fn a_flow_that_sends_less_than_its_share_is_next() {
        let sent = serve(1, 240, 1_000, FRAME);
        assert_eq!(sent[5].1, 0, "{sent:?}");
        assert!(sent[5].0 > 400 * 240, "{sent:?}");
    }

    #[test]
    fn those_that_are_next_are_served_in_order() {
        let mut rounds = Rounds::new(QUANTUM);
        let mut flows = vec![Turn::NONE; 5];
        (0..2).for_each(|i| rounds.begin(&mut flows, i));
        (2..5).for_each(|i| rounds.begin_first(&mut flows, i, 100));
        let order = [0; 5].map(|_| {
            let i = rounds.next().unwrap();
            rounds.charge(&mut flows, i, 100, true);
            i
        });
        assert_eq!(order, [2, 3, 4, 0, 1]);
    }

    /// Two flows wait with full frames, and a quantum is one of these. A third one comes back at once with a
    /// fifth of it: five times a round, and not once.
    #[test]
    fn a_flow_that_comes_back_at_once_has_its_share() {
        let mut rounds = Rounds::new(FRAME as u32);
        let (mut flows, mut sent, mut waits) = (vec![Turn::NONE; 3], [0; 3], false);
        (0..2).for_each(|i| rounds.begin(&mut flows, i));
        for _ in 0..7_000 {
            if !core::mem::replace(&mut waits, true) {
                rounds.begin(&mut flows, 2);
            }
            let i = rounds.next().unwrap();
            let bytes = if i == 2 { FRAME / 5 } else { FRAME };
            rounds.charge(&mut flows, i, bytes, i == 2);
            sent[i as usize] += bytes;
            waits &= i != 2;
        }
        let third = sent.iter().sum::<u64>() / 3;
        assert!(sent.iter().all(|sent| sent.abs_diff(third) <= 2 * FRAME), "{sent:?}");
    }

    /// Each of five has sent 300 bytes when a frame has left, and 600 when two have. A round has five.
    #[test]
    fn a_flow_that_comes_back_early_waits_for_what_it_sent() {
        let mut rounds = Rounds::new(FRAME as u32);
        let mut flows = vec![Turn::NONE; 6];
        (0..5).for_each(|i| rounds.begin(&mut flows, i));
        let mut order = Vec::new();
        for n in 0..9 {
            if n == 0 || n % 3 == 2 {
                rounds.begin_first(&mut flows, 5, 600);
            }
            let i = rounds.next().unwrap();
            rounds.charge(&mut flows, i, if i == 5 { 600 } else { FRAME }, i == 5);
            order.push(i);
        }
        assert_eq!(order, [5, 0, 1, 5, 2, 3, 5, 4, 0]);
    }

    /// Twenty that come back at once have no more than those that wait.
    #[test]
    fn flows_that_come_back_have_no_more_than_their_share() {
        for bytes in [60, 240, 300] {
            let sent = serve(20, bytes, 20_000, 0);
            let least = sent[..5].iter().min().unwrap().0;
            assert!(sent[5..].iter().all(|sent| sent.0 <= least), "{bytes}: {sent:?}");
        }
    }
}
