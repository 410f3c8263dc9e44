//! Random losses against the definitions of RFC 6675 §4, octet by octet, with segments of a few octets.

use super::*;
use proptest::prelude::*;

const SMSS: u64 = 3;
const DUP_THRESH: u64 = 3;

/// State of the RFC: SACKed octets, HighACK, HighData, HighRxt (all exclusive ends). It also holds the data
/// once found lost, which the scoreboard does not take back.
#[derive(Default)]
struct Octets {
    sacked: Vec<bool>,
    found: Vec<bool>,
    high_ack: u64,
    high_rxt: u64,
}

impl Octets {
    fn high_data(&self) -> u64 {
        self.sacked.len() as u64
    }
    fn unsacked(&self, from: u64) -> impl Iterator<Item = u64> + '_ {
        (from.max(self.high_ack)..self.high_data()).filter(|&s| !self.sacked[s as usize])
    }

    fn is_lost(&self, seq: u64) -> bool {
        self.found[seq as usize]
    }

    fn find_lost(&mut self) {
        for seq in self.high_ack..self.high_data() {
            self.found[seq as usize] |= self.lost_now(seq);
        }
    }

    fn lost_now(&self, seq: u64) -> bool {
        let above = &self.sacked[seq as usize + 1..];
        let bytes = above.iter().filter(|&&s| s).count() as u64;
        let begins = above.windows(2).filter(|w| !w[0] && w[1]).count();
        let ranges = begins + usize::from(above.first() == Some(&true));
        ranges as u64 >= DUP_THRESH || bytes > (DUP_THRESH - 1) * SMSS
    }

    fn set_pipe(&self) -> u64 {
        self.unsacked(0).map(|s| u64::from(!self.is_lost(s)) + u64::from(s < self.high_rxt)).sum()
    }

    fn high_sacked(&self) -> u64 {
        (self.high_ack..self.high_data())
            .rev()
            .find(|&s| self.sacked[s as usize])
            .map_or(self.high_ack, |s| s + 1)
    }

    /// Applies rules 1 and 3 of NextSeg.
    fn rule_1(&self) -> Option<u64> {
        self.rule_3().filter(|&s| self.is_lost(s))
    }
    fn rule_3(&self) -> Option<u64> {
        self.unsacked(self.high_rxt).next().filter(|&s| s < self.high_sacked())
    }
}

#[derive(Clone, Debug)]
enum Op {
    Send(u32),
    /// Delivers the segment at this place in flight, in thousandths.
    Deliver(u64),
    Retransmit,
    Rule3,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (1..=SMSS as u32).prop_map(Op::Send),
        2 => Just(Op::Send(SMSS as u32)),
        4 => (0u64..1000).prop_map(Op::Deliver),
        2 => Just(Op::Retransmit),
        1 => Just(Op::Rule3),
    ]
}

/// Receiver whose ACKs arrive at once.
struct Exchange {
    board: Scoreboard,
    octets: Octets,
    segments: Vec<(u64, u64)>,
    now: u64,
}

impl Exchange {
    fn send(&mut self, len: u32) {
        let start = self.board.nxt();
        self.board.sent_new(len, sent(self.now));
        self.segments.push((start, self.board.nxt()));
        self.octets.sacked.resize(self.board.nxt() as usize, false);
        self.octets.found.resize(self.board.nxt() as usize, false);
    }

    /// Delivers a segment: its octets are SACKed, and the ACK carries all ranges.
    fn deliver(&mut self, start: u64, end: u64) {
        let octets = &mut self.octets;
        (start..end).for_each(|s| octets.sacked[s as usize] = true);
        let first = octets.unsacked(0).next();
        octets.high_ack = first.unwrap_or(octets.high_data());
        let mut blocks: Vec<(u64, u64)> = Vec::new();
        for s in (octets.high_ack..octets.high_data()).filter(|&s| octets.sacked[s as usize]) {
            match blocks.last_mut().filter(|b| b.1 == s) {
                Some(b) => b.1 += 1,
                None => blocks.push((s, s + 1)),
            }
        }
        blocks.reverse();
        self.board.on_ack(octets.high_ack, &blocks, ms(self.now));
        self.octets.find_lost();
        self.board.mark_lost_by_sack(DUP_THRESH as u32);
    }

    fn retransmit(&mut self, start: u64) {
        let end = self.segments.iter().find(|s| s.0 == start).map_or(start, |s| s.1);
        self.board.retransmitted(start, sent(self.now));
        self.octets.high_rxt = self.octets.high_rxt.max(end);
    }

    fn apply(&mut self, op: &Op) {
        self.now += 1;
        match *op {
            Op::Send(len) => {
                self.send(len);
            }
            Op::Deliver(place) => {
                let high_ack = self.octets.high_ack;
                let flying: Vec<_> = self.segments.iter().filter(|s| s.0 >= high_ack).copied().collect();
                if let Some(&(start, end)) = flying.get(flying.len() * place as usize / 1000) {
                    self.deliver(start, end);
                }
            }
            Op::Retransmit => {
                if let Some(start) = self.octets.rule_1() {
                    self.retransmit(start);
                }
            }
            Op::Rule3 => {
                if let Some(start) = self.octets.rule_3().filter(|_| self.octets.rule_1().is_none()) {
                    self.retransmit(start);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn as_the_rfc_defines_it(ops in proptest::collection::vec(op(), 1..250)) {
        let mut w = Exchange { board: Scoreboard::new(), octets: Octets::default(), segments: Vec::new(), now: 0 };
        w.send(SMSS as u32); // so that SMSS is known
        for op in &ops {
            w.apply(op);
            let (board, octets) = (&w.board, &w.octets);
            prop_assert_eq!(board.in_flight(), octets.set_pipe(), "after {:?}", op);
            prop_assert_eq!(board.una(), octets.high_ack);
            prop_assert_eq!(board.high_sacked(), octets.high_sacked());
            prop_assert_eq!(board.next_lost().map(|p| p.start), octets.rule_1());
            prop_assert_eq!(board.next_unsacked().map(|p| p.start), octets.rule_3());
            let last = octets.unsacked(0).last();
            prop_assert_eq!(board.last_unsacked().map(|p| p.start + u64::from(p.len) - 1), last);
            board.check();
        }
    }
}
