//! Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995) over the flows of a table, in constant time whatever their number.
//!
//! - A flow may send as long as its deficit is above zero, and goes below zero with its last frame. It then waits for as many rounds as it
//!   takes, at a quantum a round, to make up for that. A giant segment is charged as the packets that it stands for, so it pays with
//!   the rounds that these take. The flows of one round are a list, and the rounds are a ring of lists.
//! - A flow that begins to wait does so behind the flows that have been served in this round. A flow that has nothing left is forgotten,
//!   and its debt with it.

use super::links::{Ends, Links};

/// Rounds that are told apart.
const ROUNDS: usize = 64;
/// Rounds that a flow waits at once, at most; a debt that these do not pay is kept.
const MOST_ROUNDS: i64 = ROUNDS as i64 - 1;

/// What is kept of a flow that takes turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Bytes that it may still send in its round.
    deficit: i64,
    links: Links,
    /// The round that it waits for.
    round: u8,
}

impl Turn {
    /// Of a flow that waits for none.
    pub(super) const NONE: Turn = Turn { deficit: 0, links: Links::ALONE, round: 0 };

    /// The flow that waits behind it in its round.
    pub(super) fn behind(&self) -> Option<u32> {
        self.links.behind()
    }
}

/// A flow that takes turns.
pub(super) trait TakesTurns {
    fn turn(&mut self) -> &mut Turn;
}

fn links<T: TakesTurns>(flow: &mut T) -> &mut Links {
    &mut flow.turn().links
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Rounds {
    rounds: [Ends; ROUNDS],
    /// Rounds in which a flow waits.
    occupied: u64,
    /// The round that is being served.
    round: u8,
    /// Bytes that each flow may send in a round.
    quantum: i64,
    /// Bytes of the flows that have begun before others in this round.
    ahead: u64,
}

impl Rounds {
    /// Nothing waits. A quantum is 1 byte at least.
    pub(super) fn new(quantum: u32) -> Rounds {
        Rounds {
            rounds: [Ends::EMPTY; ROUNDS],
            occupied: 0,
            round: 0,
            quantum: quantum.max(1).into(),
            ahead: 0,
        }
    }

    /// The flow whose turn it is.
    pub(super) fn next(&self) -> Option<u32> {
        self.rounds[usize::from(self.round)].first()
    }

    /// The flow waits for its turn: behind those that were served in this round.
    pub(super) fn begin<T: TakesTurns>(&mut self, flows: &mut [T], i: u32) {
        let rounds_on = u8::from(self.occupied != 0);
        flows[i as usize].turn().deficit = self.quantum;
        self.enter(flows, i, rounds_on);
    }

    /// As [`Rounds::begin`], but before the others of this round, unless the flow has had its turn in it: who sends little waits for
    /// the frame that is being sent and for no other, and nobody gets more than a quantum in a round. All that begin so with their first
    /// frames, of so many bytes, have one quantum in a round: a flood of new flows does not keep the others from their turns.
    pub(super) fn begin_first<T: TakesTurns>(&mut self, flows: &mut [T], i: u32, bytes: u64) {
        let turn = flows[i as usize].turn();
        let ahead = self.ahead.saturating_add(bytes);
        if self.occupied == 0 || turn.round == self.round || ahead > self.quantum.unsigned_abs() {
            return self.begin(flows, i);
        }
        self.ahead = ahead;
        (turn.deficit, turn.round) = (self.quantum, self.round);
        self.rounds[usize::from(self.round)].push_first(flows, i, links);
    }

    /// Nothing of the flow waits any more. [`Rounds::go_on`] follows.
    pub(super) fn end<T: TakesTurns>(&mut self, flows: &mut [T], i: u32) {
        let round = flows[i as usize].turn().round;
        let ends = &mut self.rounds[usize::from(round)];
        ends.remove(flows, i, links);
        if ends.is_empty() {
            self.occupied &= !(1 << round);
        }
    }

    /// The flow has sent so many bytes. Does it end with them?
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

    /// A flow in debt waits for as many rounds as pay for that, and for no more than there are at once.
    fn postpone<T: TakesTurns>(&mut self, flows: &mut [T], i: u32) {
        self.end(flows, i);
        let turn = flows[i as usize].turn();
        let all = -turn.deficit / self.quantum + 1;
        // Of a flow that is alone all rounds pass at once.
        let (paid, rounds_on) = match self.occupied {
            0 => (all, 1),
            _ => (all.min(MOST_ROUNDS), all.min(MOST_ROUNDS)),
        };
        turn.deficit += paid * self.quantum;
        self.enter(flows, i, rounds_on as u8);
    }

    /// The next round in which a flow waits is served once this one is done. A flow whose debt is not paid by
    /// then waits for more.
    pub(super) fn go_on<T: TakesTurns>(&mut self, flows: &mut [T]) {
        while self.occupied != 0 {
            let ahead = self.occupied.rotate_right(self.round.into()).trailing_zeros();
            self.round = (self.round + ahead as u8) % ROUNDS as u8;
            if ahead > 0 {
                self.ahead = 0;
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
        self.rounds[usize::from(round)].push(flows, i, links);
        self.occupied |= 1 << round;
    }
}
