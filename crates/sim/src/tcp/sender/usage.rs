//! Whether the congestion window is used: one that is not does not grow, and comes down after a while.

use super::Sender;
use crate::cc::Phase;
use crate::tcp::config::TcpConfig;
use weir_core::time::Time;

/// How much of the congestion window is used (as Linux's `tcp_is_cwnd_limited`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Most bytes in flight in this window of data.
    pub(super) most: u64,
    /// Where this window of data ends.
    pub(super) until: u64,
}

/// How much of the congestion window the application leaves unused.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spare {
    /// Most bytes outstanding since then.
    pub(super) used: u64,
    /// When the window was last used up, or brought closer to what is used.
    pub(super) since: Time,
}

impl Sender {
    /// Was the window, and nothing else, what kept the sender from sending more?
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

    /// A window of which the application left a part unused for a whole RTO is brought halfway to what was used, as
    /// in Linux (`tcp_cwnd_application_limited`, after RFC 2861 §3.2).
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
