//! Spacing what leaves: at the rate of the congestion control, or at Linux's own.

use super::Sender;
use crate::tcp::config::TcpConfig;
use weir_core::rate::Rate;
use weir_core::time::Time;

impl Sender {
    /// When pacing lets the next segment leave, if that is what it waits for.
    pub fn pace_deadline(&self) -> Option<Time> {
        self.waits_for_pace.then_some(self.pace_at)
    }

    /// Does a rate space what leaves?
    pub(super) fn paced(&self, config: &TcpConfig) -> bool {
        config.pacing || self.cc.pacing_rate().is_some()
    }

    /// `bytes` leave now: the next segment leaves no sooner than the rate says.
    pub(super) fn pace(&mut self, config: &TcpConfig, bytes: u32, now: Time) {
        if let Some(rate) = self.cc.pacing_rate().or_else(|| self.own_rate(config)) {
            self.pace_at = self.pace_at.max(now) + rate.time_for(u64::from(bytes));
        }
    }

    /// Linux's pacing rate: twice cwnd / srtt in slow start, 1.2 times afterwards
    /// (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
    fn own_rate(&self, config: &TcpConfig) -> Option<Rate> {
        let srtt = u128::from(self.rtt.srtt().as_nanos());
        if !config.pacing || srtt == 0 {
            return None;
        }
        let percent = if self.window.cwnd < self.window.ssthresh / 2 { 200 } else { 120 };
        let window = u128::from(self.window.cwnd.max(self.board.in_flight()));
        let bps = window * 8 * 1_000_000_000 * percent / 100 / srtt;
        Rate::from_bps(bps.min(u128::from(u64::MAX)) as u64)
    }
}
