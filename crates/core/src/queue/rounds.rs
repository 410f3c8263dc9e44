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

use crate::base::linked::{self, LinkedList, Links};

/// Number of distinct rounds in the ring.
const ROUNDS: usize = 64;
/// Maximum rounds that a flow waits at once. Debt beyond these is kept.
const MOST_ROUNDS: i64 = ROUNDS as i64 - 1;

/// Rounds that pass when no flow is left: they pay off any giant segment, whatever the quantum.
const FORGIVEN: u32 = 1 << 17;

/// Scheduling state of one flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Bytes that the flow may still send in its round.
    deficit: i64,
    links: Links,
    /// Rounds that had passed when the flow left, modulo 2^32.
    left: u32,
    /// Round that the flow waits for.
    round: u8,
}

impl Turn {
    /// State of a flow that waits for no round.
    pub(super) const NONE: Turn = Turn { deficit: 0, links: Links::NONE, left: 0, round: 0 };

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
    /// Bit set of the rounds in which a flow waits.
    occupied: u64,
    /// Round that is being served.
    round: u8,
    /// Rounds that have passed, modulo 2^32. A flow that comes back after all of these may pay a debt twice.
    passed: u32,
    /// Bytes that each flow may send in a round.
    quantum: i64,
    /// Bytes of the flows that were placed before others in this round.
    ahead: u64,
}

impl Rounds {
    /// Creates a scheduler without flows. A quantum is 1 byte at least.
    pub(super) fn new(quantum: u32) -> Rounds {
        Rounds {
            rounds: [LinkedList::EMPTY; ROUNDS],
            occupied: 0,
            round: 0,
            passed: 0,
            quantum: quantum.max(1).into(),
            ahead: 0,
        }
    }

    /// Returns the flow whose turn it is.
    pub(super) fn next(&self) -> Option<u32> {
        self.rounds[usize::from(self.round)].first()
    }

    /// Adds a flow behind those that were served in this round, or in the round in which its debt is paid.
    pub(super) fn begin<T: TakesTurns>(&mut self, flows: &mut [T], i: u32) {
        let turn = flows[i as usize].turn();
        let debt = self.debt(turn);
        if debt > 0 && self.occupied != 0 {
            turn.deficit = -debt;
            return self.enter_in_debt(flows, i);
        }
        turn.deficit = self.quantum;
        let rounds_on = u8::from(self.occupied != 0);
        self.enter(flows, i, rounds_on);
    }

    /// Bytes that a flow that has left still owes.
    fn debt(&self, turn: &Turn) -> i64 {
        let paid = i64::from(self.passed.wrapping_sub(turn.left)).saturating_mul(self.quantum);
        (-turn.deficit).saturating_sub(paid).max(0)
    }

    /// Returns whether a flow that has left owes something to those that are there.
    pub(super) fn owes<T: TakesTurns>(&self, flow: &mut T) -> bool {
        self.occupied != 0 && self.debt(flow.turn()) > 0
    }

    /// Adds a flow before the others of this round, unless it has had its turn in the round. So a flow that
    /// sends little waits only for the frame in transmission, and no flow gets more than a quantum in a
    /// round. All flows added this way share one quantum in a round with their first frames, of `bytes` each.
    /// This keeps a flood of new flows from taking the turns of the others. Otherwise works as
    /// [`Rounds::begin`].
    pub(super) fn begin_first<T: TakesTurns>(&mut self, flows: &mut [T], i: u32, bytes: u64) {
        let turn = flows[i as usize].turn();
        let ahead = self.ahead.saturating_add(bytes);
        let served = turn.round == self.round || self.debt(turn) > 0;
        if self.occupied == 0 || served || ahead > self.quantum.unsigned_abs() {
            return self.begin(flows, i);
        }
        self.ahead = ahead;
        (turn.deficit, turn.round) = (self.quantum, self.round);
        self.rounds[usize::from(self.round)].push_first(&mut linked::by(flows, links), i);
    }

    /// Removes a flow that is no longer backlogged. Call [`Rounds::go_on`] next.
    pub(super) fn end<T: TakesTurns>(&mut self, flows: &mut [T], i: u32) {
        self.remove(flows, i);
        let turn = flows[i as usize].turn();
        // The rounds that it would have waited for are not paid.
        let ahead = turn.round.wrapping_sub(self.round) % ROUNDS as u8;
        turn.deficit -= i64::from(ahead) * self.quantum;
        turn.left = self.passed;
        if self.occupied == 0 {
            self.passed = self.passed.wrapping_add(FORGIVEN);
        }
    }

    fn remove<T: TakesTurns>(&mut self, flows: &mut [T], i: u32) {
        let round = flows[i as usize].turn().round;
        let list = &mut self.rounds[usize::from(round)];
        list.remove(&mut linked::by(flows, links), i);
        if list.is_empty() {
            self.occupied &= !(1 << round);
        }
    }

    /// Charges a flow for `bytes` that it has sent. `ends` is true if it has nothing left.
    pub(super) fn charge<T: TakesTurns>(&mut self, flows: &mut [T], i: u32, bytes: u64, ends: bool) {
        let turn = flows[i as usize].turn();
        turn.deficit = turn.deficit.saturating_sub_unsigned(bytes);
        let deficit = turn.deficit;
        if ends {
            self.end(flows, i);
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
        let all = -turn.deficit / self.quantum + 1;
        // If the flow is alone, all rounds pass at once.
        let (paid, rounds_on) = match self.occupied {
            0 => (all, 1),
            _ => (all.min(MOST_ROUNDS), all.min(MOST_ROUNDS)),
        };
        turn.deficit += paid * self.quantum;
        self.passed = self.passed.wrapping_add((paid - rounds_on) as u32);
        self.enter(flows, i, rounds_on as u8);
    }

    /// Advances to the next round in which a flow waits, once this one is done. A flow whose debt is still
    /// unpaid waits for more rounds.
    pub(super) fn go_on<T: TakesTurns>(&mut self, flows: &mut [T]) {
        while self.occupied != 0 {
            let ahead = self.occupied.rotate_right(self.round.into()).trailing_zeros();
            self.round = (self.round + ahead as u8) % ROUNDS as u8;
            if ahead > 0 {
                self.ahead = 0;
                self.passed = self.passed.wrapping_add(ahead);
            }
            match self.next() {
                Some(i) if flows[i as usize].turn().deficit <= 0 => self.postpone(flows, i),
                _ => break,
            }
        }
    }

    fn enter<T: TakesTurns>(&mut self, flows: &mut [T], i: u32, rounds_on: u8) {
        let round = (self.round + rounds_on) % ROUNDS as u8;
        flows[i as usize].turn().round = round;
        self.rounds[usize::from(round)].push(&mut linked::by(flows, links), i);
        self.occupied |= 1 << round;
    }
}
