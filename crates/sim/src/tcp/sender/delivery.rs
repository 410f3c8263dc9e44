//! Delivery rate at the receiver (draft-cheng-iccrg-delivery-rate-estimation).

use super::scoreboard::Sent;
use super::{Progress, Sender};
use crate::cc::RateSample;
use weir_core::time::{Duration, Time};

/// Delivery rate estimator (draft-cheng-iccrg-delivery-rate-estimation §3).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivery {
    pub(super) bytes: u64,
    pub(super) at: Time,
    pub(super) first_sent: Time,
    /// Total delivered bytes up to which samples are application-limited; 0 if they are not.
    pub(super) app_limited: u64,
}

impl Sender {
    /// Accounts delivered data. Returns the delivery rate of the newest delivered segment's flight.
    pub(super) fn deliver(&mut self, progress: &Progress, now: Time) -> Option<RateSample> {
        if progress.delivered == 0 {
            return None;
        }
        let d = &mut self.delivery;
        d.bytes += progress.delivered;
        d.at = now;
        if d.app_limited != 0 && d.bytes > d.app_limited {
            d.app_limited = 0;
        }
        let (sent, retransmitted) = progress.newest?;
        d.first_sent = sent.at;
        let interval = sent.at.since(sent.first_sent).max(now.since(sent.delivered_at));
        // Intervals shorter than any round trip come from compressed ACKs (§3.3).
        if interval < self.rtt.min_rtt() || interval == Duration::ZERO {
            return None;
        }
        Some(RateSample {
            delivered: d.bytes - sent.delivered,
            interval,
            prior_delivered: sent.delivered,
            app_limited: sent.app_limited,
            retransmitted,
        })
    }

    /// Accounts the first `len` bytes of the stream, which left with the SYN at `at` and are acknowledged
    /// with it. The window stays: Linux sets it afterwards (`tcp_init_transfer`).
    pub fn sent_with_syn(&mut self, len: u32, at: Time, now: Time) {
        self.limit = self.limit.max(len.into());
        self.board.sent_new(len, Sent { at, first_sent: at, delivered_at: at, ..Sent::default() });
        let mut progress = Progress::default();
        self.board.on_ack_before(&mut (), len.into(), &[], now, &mut progress);
        self.delivery.bytes += progress.delivered;
        self.delivery.at = now;
    }

    /// Records that there is nothing to send although the window would allow it (RFC 9438 §4.2; delivery rate
    /// §3.4).
    #[inline(never)]
    pub(super) fn note_app_limited(&mut self) {
        if self.board.in_flight() < self.window.cwnd {
            self.delivery.app_limited = (self.delivery.bytes + self.board.in_flight()).max(1);
        }
    }
}
