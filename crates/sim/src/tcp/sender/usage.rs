//! Use of the congestion window: an unused window does not grow, and comes down after a while.

use super::Sender;
use crate::cc::Phase;
use crate::tcp::config::TcpConfig;
use weir_core::time::Time;

/// Use of the congestion window (as Linux's `tcp_is_cwnd_limited`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Most bytes in flight in this window of data.
    pub(super) most: u64,
    /// End of this window of data.
    pub(super) until: u64,
}

/// Part of the congestion window that the application leaves unused.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spare {
    /// Most bytes outstanding since `since`.
    pub(super) used: u64,
    /// Time when the window was last used up, or reduced towards the used part.
    pub(super) since: Time,
}

impl Sender {
    /// Returns whether the window alone kept the sender from sending more.
    pub(super) fn cwnd_limited(&mut self) -> bool {
        let (usage, used_up) = (self.usage, self.used_up);
        let limited = if self.window.in_slow_start() {
            self.window.cwnd < 2 * usage.most.max(self.board.in_flight())
        } else {
            used_up
        };
        if self.board.una() >= usage.until {
            self.usage = Usage { most: self.board.in_flight(), until: self.board.nxt() };
            self.used_up = false;
        }
        limited
    }

    /// Reduces a window that the application left partly unused for a whole RTO. It moves halfway to the used
    /// part, as in Linux (`tcp_cwnd_application_limited`, after RFC 2861 §3.2).
    pub(super) fn validate(&mut self, config: &TcpConfig, now: Time) {
        let outstanding = self.board.nxt() - self.board.una();
        let most = self.usage.most.max(outstanding);
        if self.used_up || self.window.in_slow_start() && self.window.cwnd < 2 * most {
            self.spare = Spare { used: 0, since: now };
            return;
        }
        self.spare.used = self.spare.used.max(outstanding);
        if now.since(self.spare.since) < self.rtt.rto() || self.cc.owns_recovery() {
            return;
        }
        let used = self.spare.used.max(u64::from(config.initial_window) * u64::from(self.window.mss));
        let waits = self.limit >= self.board.nxt() + u64::from(self.window.mss);
        if self.phase == Phase::Open && !waits && used < self.window.cwnd {
            self.window.ssthresh = self.window.ssthresh.max(self.window.cwnd / 4 * 3);
            self.window.cwnd = self.window.cwnd.midpoint(used);
        }
        self.spare = Spare { used: 0, since: now };
    }
}
