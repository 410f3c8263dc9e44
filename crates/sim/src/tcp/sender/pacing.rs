//! Spacing what leaves: by the gaps that the congestion control chooses, or at Linux's rate.

use super::Sender;
use crate::cc::Departure;
use crate::tcp::config::TcpConfig;
use weir_core::rate::Rate;
use weir_core::time::Time;

impl Sender {
    /// When its gap lets the next segment leave; [`Time::MAX`] if that is not what it waits for.
    pub fn pace_deadline(&self) -> Time {
        if self.waits_for_pace {
            self.pace_at
        } else {
            Time::MAX
        }
    }

    /// A segment leaves: the next one leaves no sooner than its gap says.
    pub(super) fn space(&mut self, config: &TcpConfig, segment: &Departure) {
        let own = |sender: &Sender| sender.own_rate(config).map(|rate| rate.time_for(u64::from(segment.len)));
        if let Some(gap) = self.cc.on_send(&self.window, segment).or_else(|| own(self)) {
            self.pace_at = segment.now + gap;
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
