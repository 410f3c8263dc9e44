//! Spacing what leaves: by the gaps that the congestion control chooses, or at Linux's rate.

use super::Sender;
use crate::cc::Departure;
use crate::tcp::config::TcpConfig;
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};

/// Gaps as Linux makes them of a rate (`tcp_update_skb_after_send`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacer {
    /// Those that the algorithm asks for, too.
    of_algorithm: bool,
    sent: u8,
}

impl Pacer {
    /// Segments that leave before the first gap.
    const UNPACED: u8 = 10;

    /// `of_algorithm`: the gaps that the congestion control asks for are those of a rate, too.
    pub(super) fn new(of_algorithm: bool) -> Pacer {
        Pacer { of_algorithm, sent: 0 }
    }

    /// The gap after a segment that leaves at `now` and was `due` then or before, where the rate asks for `gap`: less what the segment
    /// was late, but no less than half.
    fn gap(&mut self, now: Time, due: Time, gap: Duration) -> Duration {
        self.sent = (self.sent + 1).min(Pacer::UNPACED);
        if self.sent < Pacer::UNPACED {
            return Duration::ZERO;
        }
        gap.saturating_sub(now.since(due).min(Duration::from_nanos(gap.as_nanos() / 2)))
    }
}

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
        let (gap, exact) = match self.cc.on_send(&self.window, segment) {
            Some(gap) => (gap, !self.pacer.of_algorithm),
            None => match self.own_rate(config) {
                Some(rate) => (rate.time_for(u64::from(segment.len)), false),
                None => return,
            },
        };
        self.pace_at = segment.now + if exact { gap } else { self.pacer.gap(segment.now, self.pace_at, gap) };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_left_late_is_made_up_for_by_half_a_gap_at_most() {
        let (ms, at) = (Duration::from_millis, Time::from_millis);
        let mut pacer = Pacer::default();
        for _ in 0..9 {
            assert_eq!(pacer.gap(at(0), at(0), ms(10)), Duration::ZERO);
        }
        assert_eq!(pacer.gap(at(0), at(0), ms(10)), ms(10));
        assert_eq!(pacer.gap(at(10), at(10), ms(10)), ms(10));
        assert_eq!(pacer.gap(at(23), at(20), ms(10)), ms(7));
        assert_eq!(pacer.gap(at(90), at(30), ms(10)), ms(5));
    }
}
