//! Losses found by time: RACK (RFC 8985 §6.2).

use super::ring::{InFlight, Key, NEVER};
use super::{Progress, Scoreboard};
use weir_core::time::{Duration, Time};

/// State of RACK's newest delivered segment.
#[derive(Debug)]
pub(super) struct Newest {
    /// Time of transmission of the newest segment delivered so far (RACK.xmit_ts), of its [`Key`].
    at: Time,
    /// RACK.rtt.
    rtt: Duration,
    /// Order of the key.
    order: u16,
}

impl Default for Newest {
    fn default() -> Newest {
        let (at, order) = NEVER;
        Newest { at, rtt: Duration::ZERO, order }
    }
}

/// Newest segments that an ACK delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    /// Never retransmitted.
    pub fresh: Key,
    /// Retransmitted, and acknowledged cumulatively.
    pub again: Key,
    /// Retransmitted, and SACKed.
    pub again_sacked: Key,
}

impl Offer {
    /// No delivered segment.
    pub const NONE: Offer = Offer { fresh: NEVER, again: NEVER, again_sacked: NEVER };
}

impl Default for Offer {
    fn default() -> Offer {
        Offer::NONE
    }
}

impl Newest {
    fn segment(&self) -> Key {
        (self.at, self.order)
    }
}

impl Scoreboard {
    /// Performs steps 1 and 2 of RFC 8985 §6.2 with the progress of one ACK. `echoed` is the latest time at
    /// which the segment with the echoed timestamp can have been sent, if timestamps are used. A delivered
    /// retransmission is ignored if it was sent less than `min_rtt` ago, or later than `echoed`: the original
    /// arrived then. Only a segment in order is echoed (RFC 7323 §4.3), so `echoed` is no evidence about
    /// SACKed segments.
    pub fn rack_update(&mut self, p: &Progress, now: Time, min_rtt: Duration, echoed: Option<Time>) {
        let Offer { fresh, again, again_sacked } = p.offer;
        let newest = if (again, again_sacked) == (NEVER, NEVER) {
            fresh
        } else {
            fresh.max(Scoreboard::sound(again, again_sacked, now, min_rtt, echoed))
        };
        if newest == NEVER {
            return;
        }
        self.newest.rtt = now.since(newest.0);
        (self.newest.at, self.newest.order) = self.newest.segment().max(newest);
    }

    /// Returns the newest credible retransmission that an ACK delivered.
    #[inline(never)]
    fn sound(mut again: Key, again_sacked: Key, now: Time, min_rtt: Duration, echoed: Option<Time>) -> Key {
        if echoed.is_some_and(|echoed| again.0 > echoed) {
            again = NEVER;
        }
        again = again.max(again_sacked);
        if now.since(again.0) < min_rtt {
            return NEVER;
        }
        again
    }

    /// Returns whether all data in flight was sent after the newest segment delivered. Then
    /// [`Scoreboard::rack_detect`] finds nothing.
    #[inline]
    pub fn rack_rests(&self) -> bool {
        self.ring.oldest().is_none_or(|id| self.ring.get(id).key() >= self.newest.segment())
    }

    /// Finds losses by step 5 of RFC 8985 §6.2, after [`Scoreboard::rack_update`] and when the reordering
    /// timer expires. Data sent before the newest segment delivered is lost once a round-trip time and the
    /// reordering window have passed since. Returns the bytes newly lost, and the time to wait before the
    /// next call if more may be lost later.
    pub fn rack_detect(&mut self, now: Time, reorder_window: Duration) -> (u64, Option<Duration>) {
        let newest = self.newest.segment();
        if newest == NEVER {
            return (0, None);
        }
        let patience = self.newest.rtt + reorder_window;
        let newly = self.lose_expired(now, patience, |seg| seg.key() < newest);
        // The RFC waits for the last of them, so one timer serves all.
        let last = self.ring.last_before(newest);
        let wait = last.map(|id| (self.ring.get(id).sent.at + patience).since(now));
        (newly, wait)
    }

    /// Marks losses when the retransmission timer expires (RFC 8985 §6.3): the first piece, and the data sent
    /// so long ago that RACK would have found it. Returns the bytes newly lost.
    pub fn rack_mark_on_timeout(&mut self, now: Time, reorder_window: Duration) -> u64 {
        if self.is_empty() {
            return 0;
        }
        let patience = self.newest.rtt + reorder_window;
        self.after_rxt = self.ring.first_id();
        self.lose(self.ring.first_id()) + self.lose_expired(now, patience, |_| true)
    }

    /// Marks `eligible` segments lost that were sent `patience` ago or earlier, in order of time.
    fn lose_expired(&mut self, now: Time, patience: Duration, eligible: impl Fn(&InFlight) -> bool) -> u64 {
        let mut newly = 0;
        while let Some(id) = self.ring.oldest() {
            let seg = self.ring.get(id);
            if !eligible(seg) || seg.sent.at + patience > now {
                break;
            }
            newly += self.lose(id);
        }
        newly
    }
}

/// Number of recoveries without a DSACK after which the window is small again (RFC 8985 §6.2 step 4).
const PERSIST: u32 = 16;
/// DupThresh of RFC 5681.
const DUP_THRESH: u32 = 3;

/// Reordering window (RFC 8985 §6.2 step 4).
#[derive(Clone, Copy, Debug)]
pub struct Rack {
    /// Window in quarters of the smallest round-trip time.
    multiple: u32,
    /// Recoveries until `multiple` is 1 again.
    persist: u32,
    /// Stream offset that ends the round: until it is acknowledged, no further DSACK counts.
    round: u64,
}

impl Default for Rack {
    fn default() -> Rack {
        Rack::new()
    }
}

impl Rack {
    /// Creates a window of a quarter of the smallest round-trip time.
    pub const fn new() -> Rack {
        Rack { multiple: 1, persist: PERSIST, round: 0 }
    }

    /// Returns the lateness by which a segment may arrive behind one sent after it and still be in time. It
    /// is zero as long as no reordering was seen, and either a recovery is under way or `sacked_segments`
    /// reach DupThresh. It is never more than `srtt`.
    pub fn reorder_window(
        &self,
        seen_reordering: bool,
        min_rtt: Duration,
        srtt: Duration,
        in_recovery: bool,
        sacked_segments: u32,
    ) -> Duration {
        if !seen_reordering && (in_recovery || sacked_segments >= DUP_THRESH) {
            return Duration::ZERO;
        }
        Duration::from_nanos(min_rtt.saturating_mul(u64::from(self.multiple)).as_nanos() / 4).min(srtt)
    }

    /// Handles a DSACK: a retransmission was needless, so the window was too small. Grows it once per round
    /// trip: until `una` has reached the present `nxt`.
    pub fn on_dsack(&mut self, una: u64, nxt: u64) {
        if una < self.round {
            return;
        }
        self.round = nxt;
        self.multiple = self.multiple.saturating_add(1);
        self.persist = PERSIST;
    }

    /// Records the end of a fast or RTO recovery.
    pub fn on_recovery_exit(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.multiple = 1;
        }
    }
}
