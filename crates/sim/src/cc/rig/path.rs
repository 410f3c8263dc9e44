//! The path of the rig, and the receiver at its end.

use super::{Rig, MSS};
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};

/// Losses on the path.
#[derive(Clone, Copy, Debug)]
pub enum Losses {
    None,
    /// Every n-th transmission.
    Every(u64),
    /// Each transmission with this probability, in millionths.
    Random(u64),
}

#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Bits of payload per second; `None` for no bottleneck.
    pub rate: Option<Rate>,
    /// Round-trip time without a queue.
    pub rtt: Duration,
    /// Bytes that may wait.
    pub queue: u64,
    /// Bytes that may wait without a mark.
    pub mark: u64,
    pub losses: Losses,
    /// Segments per ACK.
    pub delayed_ack: u32,
}

impl Path {
    /// Creates a path without bottleneck and losses, with an ACK for each segment.
    pub fn new(rtt: Duration) -> Path {
        Path { rate: None, rtt, queue: u64::MAX, mark: u64::MAX, losses: Losses::None, delayed_ack: 1 }
    }
}

/// Transmission on the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) start: u64,
    pub(super) at: Time,
    /// Time of arrival; `None` if it is lost.
    pub(super) arrives: Option<Time>,
    pub(super) marked: bool,
    pub(super) again: bool,
    pub(super) delivered: u64,
    pub(super) delivered_at: Time,
    pub(super) first_sent: Time,
}

/// ACK on the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flying {
    pub(super) at: Time,
    pub(super) una: u64,
    /// Transmissions that had arrived or been lost when the ACK left.
    pub(super) through: u64,
    pub(super) ece: bool,
}

impl Rig {
    /// Returns the bytes that wait for the rate now.
    pub fn backlog(&self) -> u64 {
        self.path.rate.map_or(0, |r| r.bytes_in(self.free_at.since(self.now)))
    }

    /// Sends one segment into the path. Returns its time of arrival, and whether it is marked.
    pub(super) fn transmit(&mut self) -> (Option<Time>, bool) {
        self.transmissions += 1;
        let lost = match self.path.losses {
            Losses::None => false,
            Losses::Every(n) => self.transmissions % n == 0,
            Losses::Random(millionths) => self.rng.below(1_000_000) < millionths,
        };
        let backlog = self.backlog();
        if lost || backlog + MSS > self.path.queue {
            return (None, false);
        }
        if let Some(rate) = self.path.rate {
            self.free_at = self.free_at.max(self.now) + rate.time_for(MSS);
        }
        let out = self.free_at.max(self.now);
        (Some(out + Duration::from_nanos(self.path.rtt.as_nanos() / 2)), backlog > self.path.mark)
    }

    /// Handles the arrival of the next transmission. Earlier ones that did not arrive are now known to be
    /// lost.
    pub(super) fn receive(&mut self) {
        while self.outstanding[self.arriving].arrives.is_none() {
            self.arriving += 1;
        }
        let s = self.outstanding[self.arriving];
        self.arriving += 1;
        let in_order = s.start == self.expected && self.early.is_empty();
        if s.start >= self.expected {
            self.early.insert(s.start);
        }
        while self.early.remove(&self.expected) {
            self.expected += MSS;
        }
        // RFC 8257 §3.2: a change of marks is acknowledged at once, after the waiting data with the earlier
        // marks.
        let changes = s.marked != self.ece;
        if changes && self.unacked > 0 {
            self.acknowledge();
        }
        self.ece = s.marked;
        self.unacked += 1;
        if changes || !in_order || self.unacked >= self.path.delayed_ack {
            self.acknowledge();
        } else {
            self.ack_by.get_or_insert(self.now + Duration::from_millis(40));
        }
    }

    pub(super) fn acknowledge(&mut self) {
        self.unacked = 0;
        self.ack_by = None;
        let at = self.now + Duration::from_nanos(self.path.rtt.as_nanos() / 2);
        let through = self.sent_before + self.arriving as u64;
        self.acks.push_back(Flying { at, una: self.expected, through, ece: self.ece });
    }
}
