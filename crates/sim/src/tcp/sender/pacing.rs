//! Spacing of segments: by the gaps that the congestion control chooses, or at Linux's rate.

use super::Sender;
use crate::cc::Departure;
use crate::tcp::config::TcpConfig;
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};

/// Pacer that turns a rate into gaps as Linux does (`tcp_update_skb_after_send`, `tcp_tso_autosize`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacer {
    /// Number of segments that have left, up to those without a gap.
    sent: u8,
    /// Number of segments that may still leave together with the one that left at `since`.
    more: u32,
    since: Time,
}

/// Number of segments that leave before the first gap.
const UNPACED: u8 = 10;
/// Maximum duration at the rate of the segments that leave together (`sk_pacing_shift`): 1/1024 s.
const TOGETHER: u64 = 1_000_000_000 >> 10;
/// Minimum number of segments that leave together (`tcp_min_tso_segs`).
const LEAST: u32 = 2;

impl Pacer {
    /// Returns whether another new segment may leave together with the last one, regardless of the gap.
    fn continues(&self, now: Time) -> bool {
        self.more > 0 && self.since == now
    }

    /// Returns the earliest time of the next segment after one that left at `now` and was `due` then or
    /// before. The rate asks for `gap`, and at least `least` segments leave together. The lateness of the
    /// segment is taken off, but no more than half the gap.
    fn after(&mut self, now: Time, due: Time, gap: Duration, least: u32) -> Time {
        self.sent = (self.sent + 1).min(UNPACED);
        if self.sent < UNPACED {
            return now;
        }
        if self.continues(now) {
            self.more -= 1;
            return due + gap;
        }
        let together = (TOGETHER / gap.as_nanos().max(1)).min(64) as u32;
        (self.more, self.since) = (together.max(least) - 1, now);
        now + gap.saturating_sub(now.since(due).min(Duration::from_nanos(gap.as_nanos() / 2)))
    }
}

impl Sender {
    /// Returns the time at which the gap lets the next segment leave; [`Time::MAX`] if it does not wait for
    /// that.
    pub fn pace_deadline(&self) -> Time {
        if self.waits_for_pace {
            self.pace_at
        } else {
            Time::MAX
        }
    }

    /// Returns whether the next segment waits for its gap.
    pub(super) fn is_early(&self, now: Time) -> bool {
        self.pace_at > now && !(self.pacer.continues(now) && self.board.next_lost().is_none())
    }

    /// Sets the earliest time of the next segment by the gap behind this one, if it has a gap.
    #[inline(always)]
    pub(super) fn space(&mut self, config: &TcpConfig, segment: &Departure) {
        let gap = self.cc.on_send(&mut self.window, segment);
        if gap.is_some() || config.pacing {
            self.space_by(gap, config, segment);
        }
    }

    #[inline(never)]
    fn space_by(&mut self, gap: Option<Duration>, config: &TcpConfig, segment: &Departure) {
        let (gap, least) = match gap {
            Some(gap) => (gap, self.cc.least_at_once()),
            None => match self.own_rate(config) {
                Some(rate) => (rate.time_for(u64::from(segment.len)), Some(LEAST)),
                None => return,
            },
        };
        self.pace_at = match least {
            Some(least) => {
                let least = if segment.again { 1 } else { least };
                self.pacer.after(segment.now, self.pace_at, gap, least)
            }
            None => segment.now + gap,
        };
    }

    /// Returns Linux's pacing rate: twice cwnd / srtt in slow start, 1.2 times afterwards
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

    /// Creates a pacer after the ten unspaced segments.
    fn pacer() -> Pacer {
        let mut pacer = Pacer::default();
        for _ in 0..9 {
            assert_eq!(pacer.after(Time::ZERO, Time::ZERO, Duration::from_millis(10), 1), Time::ZERO);
        }
        pacer
    }

    #[test]
    fn what_left_late_is_made_up_for_by_half_a_gap_at_most() {
        let (gap, at) = (Duration::from_millis(10), Time::from_millis);
        let mut pacer = pacer();
        assert_eq!(pacer.after(at(0), at(0), gap, 1), at(10));
        assert_eq!(pacer.after(at(10), at(10), gap, 1), at(20));
        assert_eq!(pacer.after(at(23), at(20), gap, 1), at(30));
        assert_eq!(pacer.after(at(90), at(30), gap, 1), at(95));
    }

    #[test]
    fn gaps_of_what_leaves_together_are_behind_it() {
        let at = Time::from_millis;
        let mut pacer = pacer();
        // At least a pair leaves together. The next segment leaves alone: the window allows no other.
        let gap = Duration::from_millis(10);
        assert_eq!(pacer.after(at(0), at(0), gap, 2), at(10));
        assert!(pacer.continues(at(0)));
        assert_eq!(pacer.after(at(0), at(10), gap, 2), at(20));
        assert!(!pacer.continues(at(0)));
        assert_eq!(pacer.after(at(20), at(20), gap, 2), at(30));
        assert!(!pacer.continues(at(30)));
        // 1/1024 s holds four segments of 240 us.
        let gap = Duration::from_micros(240);
        let mut due = pacer.after(at(40), at(40), gap, 2);
        for _ in 0..3 {
            assert!(pacer.continues(at(40)));
            due = pacer.after(at(40), due, gap, 2);
        }
        assert_eq!((due, pacer.continues(at(40))), (at(40) + Duration::from_micros(960), false));
    }
}
