//! Window growth in congestion avoidance as in Linux's CUBIC: `bictcp_update` and `tcp_cong_avoid_ai`.
//!
//! The window is counted in whole segments, and grows by one for each `count` segments acknowledged.
//! Acknowledged segments are saved up. When `count` falls below the saved number, the window grows at once.

use super::curve::Curve;
use crate::cc::{Ack, Window};
use weir_core::time::{Duration, Time};

/// Interval at which `count` is recomputed while the window stays the same (HZ / 32).
const UPDATE: Duration = Duration::from_nanos(1_000_000_000 / 32);
/// Maximum `count` while W_max is unknown: the window grows by 5 % in each round at least.
const MOST_UNKNOWN: u64 = 20;
/// Minimum `count`: the window grows by half in each round at most.
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

/// Growth state that outlives a stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    /// Segments to acknowledge per segment of growth.
    count: u64,
    /// Time of the last computation of `count`, and its window.
    computed: Option<(Time, u64)>,
    /// Bytes acknowledged since the window last grew.
    saved: u64,
}

impl Stage {
    pub(super) fn new(w: &Window, w_max: u64, now: Time) -> Stage {
        let curve = Curve::new(w.cwnd, w_max, w.mss);
        Stage { epoch: now, curve, estimate: w.cwnd / segment(w), acked: 0 }
    }

    /// Computes the segments to acknowledge per segment of growth.
    fn count(&mut self, w: &Window, ack: &Ack, w_max_known: bool) -> u64 {
        let cwnd = (w.cwnd / segment(w)).max(1);
        let t = ack.now.since(self.epoch) + ack.min_rtt;
        let target = self.curve.segments_at(t);
        let mut count = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if !w_max_known {
            count = count.min(MOST_UNKNOWN);
        }
        // Reno's estimate: one segment for each 15/8 of a window, 8/15 per round. The RFC's alpha is 9/17.
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

    /// Restarts saving after congestion.
    pub(super) fn reset(&mut self) {
        self.saved = 0;
    }

    /// Grows the window in congestion avoidance by `bytes` acknowledged.
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

    /// Grows the window. Data saved at a larger count is used first, as one segment.
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
