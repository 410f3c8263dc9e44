//! A flow's start by paced chirping over a path of a fixed rate, again and again.

use std::collections::VecDeque;
use weir_chirp::{FlowStart, Phase, Rules, Seen};

const MSS: u32 = 1_448;
/// Nanoseconds that the bottleneck takes for a packet: 100 Mbit/s.
const SERVICE: u64 = 120_000;
const ROUND_TRIP: u64 = 40_000_000;

/// A sender, a bottleneck and a receiver that acknowledges each packet.
pub struct Path {
    start: FlowStart,
    now: u64,
    sent: u32,
    /// Time at which the next packet may leave.
    next: u64,
    free: u64,
    /// Packets under way: when their ACKs come, and the numbers behind them.
    flying: VecDeque<(u64, u32)>,
}

impl Path {
    pub fn new() -> Path {
        Path {
            start: FlowStart::new(ROUND_TRIP, Rules::ADAPTIVE),
            now: 0,
            sent: 0,
            next: 0,
            free: 0,
            flying: VecDeque::new(),
        }
    }

    /// Sends `packets` packets and their ACKs; returns how many there were.
    pub fn run(&mut self, packets: u64) -> u64 {
        for _ in 0..packets {
            while !self.may_send() {
                self.acknowledge();
            }
            self.send();
        }
        packets
    }

    fn may_send(&self) -> bool {
        let chirping = matches!(self.start.phase(), Phase::First | Phase::Rounds);
        let room = if chirping { self.start.room() } else { 1_000 };
        let due = self.flying.front().map_or(u64::MAX, |f| f.0);
        room > 0 && (self.flying.len() as u64) < ROUND_TRIP / SERVICE && self.next.max(self.now) <= due
    }

    fn send(&mut self) {
        self.now = self.now.max(self.next);
        self.next = self.now + self.start.gap();
        self.sent = self.sent.wrapping_add(MSS);
        self.start.sent(self.sent, self.now);
        self.free = self.free.max(self.now) + SERVICE;
        self.flying.push_back((self.free + ROUND_TRIP, self.sent));
    }

    fn acknowledge(&mut self) {
        let Some((at, una)) = self.flying.pop_front() else {
            self.again();
            return;
        };
        self.now = self.now.max(at);
        self.start.acked(una, self.now, self.flying.len() as u32, Seen::default());
        if self.start.phase() == Phase::Done {
            self.again();
        }
    }

    /// Another flow begins.
    fn again(&mut self) {
        self.flying.clear();
        self.start = FlowStart::new(ROUND_TRIP, Rules::ADAPTIVE);
        self.next = self.now;
        self.sent = 0;
    }
}
