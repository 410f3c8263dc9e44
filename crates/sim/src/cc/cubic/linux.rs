//! Growth of the window in congestion avoidance as Linux's CUBIC has it: `bictcp_update` and `tcp_cong_avoid_ai`.
//!
//! The window is counted in whole segments, and grows by one for each `count` segments acknowledged. What has been
//! acknowledged is saved up: when `count` falls below what is saved, the window grows at once.

use super::curve::Curve;
use crate::cc::{Ack, Window};
use weir_core::time::{Duration, Time};

/// While the window stays what it is, `count` is computed anew this often (HZ / 32).
const UPDATE: Duration = Duration::from_nanos(1_000_000_000 / 32);
/// `count` while W_max is not known, at most: the window grows by 5 % in each round at least.
const MOST_UNKNOWN: u64 = 20;
/// `count` at the least: the window grows by half in each round at most.
const LEAST: u64 = 2;

/// A congestion avoidance stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    pub(super) epoch: Time,
    curve: Curve,
    /// W_est in segments, and the bytes acknowledged since it last grew.
    estimate: u64,
    acked: u64,
}

/// What outlives a stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    /// Segments acknowledged that make the window a segment larger.
    count: u64,
    /// When it was computed, and for which window.
    computed: Option<(Time, u64)>,
    /// Bytes acknowledged since the window last grew.
    saved: u64,
}

impl Stage {
    pub(super) fn new(w: &Window, w_max: u64, now: Time) -> Stage {
        let curve = Curve::new(w.cwnd, w_max, w.mss);
        Stage { epoch: now, curve, estimate: w.cwnd / segment(w), acked: 0 }
    }

    /// Segments acknowledged that are to make the window a segment larger.
    fn count(&mut self, w: &Window, ack: &Ack, w_max_known: bool) -> u64 {
        let cwnd = (w.cwnd / segment(w)).max(1);
        let t = ack.now.since(self.epoch) + ack.min_rtt;
        let target = self.curve.segments_at(t);
        let mut count = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if !w_max_known {
            count = count.min(MOST_UNKNOWN);
        }
        // Reno's estimate: a segment for each 15/8 of a window, which is 8/15 in a round where alpha is 9/17.
        let round = (cwnd * 15 / 8).max(1) * segment(w);
        let rounds = self.acked.saturating_sub(1) / round;
        self.acked -= rounds * round;
        self.estimate += rounds;
        if self.estimate > cwnd {
            count = count.min(cwnd / (self.estimate - cwnd));
        }
        count.max(LEAST)
    }
}

impl Growth {
    pub(super) fn new() -> Growth {
        Growth { count: LEAST, computed: None, saved: 0 }
    }

    /// Congestion: saving starts anew.
    pub(super) fn reset(&mut self) {
        self.saved = 0;
    }

    /// Congestion avoidance by `bytes` acknowledged.
    pub(super) fn avoid(
        &mut self,
        stage: &mut Stage,
        w: &mut Window,
        ack: &Ack,
        bytes: u64,
        w_max_known: bool,
    ) {
        stage.acked += bytes;
        let fresh = self.computed.is_some_and(|(at, cwnd)| cwnd == w.cwnd && ack.now.since(at) <= UPDATE);
        if !fresh {
            self.computed = Some((ack.now, w.cwnd));
            self.count = stage.count(w, ack, w_max_known);
        }
        self.grow(w, bytes);
    }

    /// What was saved at a larger count is used first, as one segment.
    fn grow(&mut self, w: &mut Window, bytes: u64) {
        let price = self.count * segment(w);
        if self.saved >= price {
            self.saved = 0;
            w.cwnd = w.cwnd.saturating_add(segment(w));
        }
        self.saved += bytes;
        let more = self.saved / price;
        self.saved -= more * price;
        w.cwnd = w.cwnd.saturating_add(more * segment(w));
    }
}

fn segment(w: &Window) -> u64 {
    u64::from(w.mss.max(1))
}
