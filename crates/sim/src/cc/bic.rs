//! BIC (Xu, Harfoush and Rhee, INFOCOM 2004) with the constants of Linux (`tcp_bic.c`), whose default it was
//! from 2.6.8 to 2.6.18. Below the window of the last loss it searches between that and its own; above it
//! probes faster and faster.
//!
//! Linux divides the distance to the last window by four in a round, not by two, adds at most 16 segments in
//! a round, and one segment in five rounds while it is close. Windows of 14 segments and less are Reno's.
//! Linux corrects for delayed ACKs by an average of the segments in an ACK; here growth is by the bytes
//! acknowledged, which comes to the same.

use super::hystart::SlowStartEnd;
use super::increase::Increase;
use super::{Ack, Congestion, CongestionControl, Hystart, Options, Window};
use weir_core::time::{Duration, Time};

/// Part of the distance that is added in a round (BICTCP_B).
const SEARCH: u64 = 4;
/// Most segments that are added in a round.
const MAX_INCREMENT: u64 = 16;
/// Largest window, in segments, that behaves as Reno's.
const LOW_WINDOW: u64 = 14;
/// Rounds of windows that are counted for `SEARCH` segments close to the last window.
const SMOOTH: u64 = 20;
/// Factor of a reduction, and its denominator.
const BETA: (u64, u64) = (819, 1024);
/// Slowest growth while no loss was seen: one part of the window in a round.
const UNKNOWN: u64 = 20;
/// Longest time that a pace is kept while the window stands.
const PACE_KEPT: Duration = Duration::from_nanos(31_250_000);

/// BIC sender.
#[derive(Clone, Debug)]
pub struct Bic {
    fast_convergence: bool,
    increase: Increase,
    end: SlowStartEnd,
    /// Window of the last loss in segments; 0 while it is not known.
    last_max: u64,
    /// Segments that have to be acknowledged for the next one of the window, with the window and the time at
    /// which that was computed.
    pace: Option<(u64, u64, Time)>,
    /// Bytes acknowledged since the window last grew.
    counted: u64,
}

impl Bic {
    /// Creates BIC with these options.
    pub fn new(options: &Options) -> Bic {
        let hystart = options.hystart.unwrap_or(Hystart::Off);
        Bic {
            fast_convergence: options.fast_convergence,
            increase: Increase::new(options),
            end: SlowStartEnd::new(hystart, options.paced),
            last_max: 0,
            pace: None,
            counted: 0,
        }
    }

    /// Constructor for [`super::CONTROLS`].
    pub(super) fn make(options: &Options) -> Box<dyn CongestionControl> {
        Box::new(Bic::new(options))
    }

    /// Returns how many acknowledged segments a window of `cwnd` segments takes to grow by one.
    fn segments_per_increase(&self, cwnd: u64) -> u64 {
        let (max, slow) = (self.last_max, cwnd * SMOOTH / SEARCH);
        if cwnd <= LOW_WINDOW {
            return cwnd.max(1);
        }
        let count = if cwnd < max {
            match (max - cwnd) / SEARCH {
                0 | 1 => slow,
                step => cwnd / step.min(MAX_INCREMENT),
            }
        } else if cwnd < max + SEARCH {
            slow
        } else if cwnd < max + MAX_INCREMENT * (SEARCH - 1) {
            cwnd * (SEARCH - 1) / (cwnd - max)
        } else {
            cwnd / MAX_INCREMENT
        };
        if max == 0 { count.min(UNKNOWN) } else { count }.max(1)
    }

    fn avoid(&mut self, w: &mut Window, now: Time, bytes: u64) {
        let mss = u64::from(w.mss.max(1));
        let cwnd = w.cwnd / mss;
        let kept = self.pace.filter(|&(_, of, at)| of == cwnd && now.since(at) <= PACE_KEPT);
        let (count, ..) = kept.unwrap_or_else(|| (self.segments_per_increase(cwnd), cwnd, now));
        self.pace = kept.or(Some((count, cwnd, now)));
        let needed = count.saturating_mul(mss);
        // What was counted at a slower pace adds one segment at most.
        if self.counted >= needed {
            self.counted = 0;
            w.cwnd = w.cwnd.saturating_add(mss);
        }
        self.counted = self.counted.saturating_add(bytes);
        let more = self.counted / needed;
        self.counted -= more * needed;
        w.cwnd = w.cwnd.saturating_add(more.saturating_mul(mss));
    }
}

impl CongestionControl for Bic {
    fn on_ack(&mut self, w: &mut Window, ack: &Ack) {
        if ack.phase.reduces() {
            return;
        }
        if w.in_slow_start() {
            self.end.on_ack(w, ack);
        }
        let mut bytes = ack.growth();
        if !ack.cwnd_limited || bytes == 0 {
            return;
        }
        if w.in_slow_start() {
            bytes = self.increase.slow_start(w, bytes, ack.phase, self.end.brake());
        }
        if bytes != 0 {
            self.avoid(w, ack.now, bytes);
        }
    }

    fn on_congestion(&mut self, w: &mut Window, _now: Time, _in_flight: u64, congestion: Congestion) {
        let mss = u64::from(w.mss.max(1));
        let cwnd = w.cwnd / mss;
        let (num, den) = BETA;
        let converges = self.fast_convergence && cwnd < self.last_max;
        self.last_max = match congestion {
            Congestion::Timeout => 0,
            _ if converges => cwnd * (den + num) / (2 * den),
            _ => cwnd,
        };
        (self.pace, self.counted) = (None, 0);
        self.end.on_congestion(congestion);
        let kept = if cwnd <= LOW_WINDOW { cwnd / 2 } else { cwnd * num / den };
        w.ssthresh = kept.max(2) * mss;
    }
}

#[cfg(test)]
mod tests {
    use super::super::rig::{ack_of_a_segment, MSS};
    use super::*;

    fn bic(last_max: u64) -> Bic {
        Bic { last_max, ..Bic::new(&Options::default()) }
    }

    fn window(segments: u64) -> Window {
        Window { cwnd: segments * MSS, ssthresh: 0, mss: MSS as u32 }
    }

    #[test]
    fn growth_in_a_round_follows_the_distance_to_the_last_window() {
        let per_round = |cwnd: u64| cwnd as f64 / bic(200).segments_per_increase(cwnd) as f64;
        // Below: at most 16 segments, a quarter of the distance, and a fifth of a segment when it is close.
        for (cwnd, expected) in [(120, 16.0), (160, 10.0), (180, 5.0), (190, 2.0), (198, 0.2)] {
            assert!((per_round(cwnd) / expected - 1.0).abs() < 0.08, "{cwnd}: {}", per_round(cwnd));
        }
        // Above: a third of the distance, and 16 segments from 48 segments on.
        for (cwnd, expected) in [(202, 0.2), (212, 4.0), (230, 10.0), (248, 16.0), (480, 16.0)] {
            assert!((per_round(cwnd) / expected - 1.0).abs() < 0.08, "{cwnd}: {}", per_round(cwnd));
        }
    }

    #[test]
    fn small_windows_are_renos() {
        let mut cc = bic(12);
        assert_eq!(cc.segments_per_increase(14), 14);
        let mut w = window(12);
        cc.on_congestion(&mut w, Time::ZERO, 0, Congestion::Loss);
        assert_eq!(w.ssthresh, 6 * MSS);
    }

    #[test]
    fn a_loss_takes_a_fifth_and_below_the_last_window_lowers_what_is_searched() {
        let mut cc = bic(0);
        let mut w = window(1000);
        cc.on_congestion(&mut w, Time::ZERO, 0, Congestion::Loss);
        assert_eq!((w.ssthresh / MSS, cc.last_max), (799, 1000)); // 1000 * 819 / 1024
        w.cwnd = 900 * MSS;
        cc.on_congestion(&mut w, Time::ZERO, 0, Congestion::Loss);
        assert_eq!((w.ssthresh / MSS, cc.last_max), (719, 809)); // 900 * 1843 / 2048
        cc.on_congestion(&mut w, Time::ZERO, 0, Congestion::Timeout);
        assert_eq!(cc.last_max, 0);
    }

    #[test]
    fn without_a_loss_the_window_grows_by_five_percent_in_a_round() {
        let mut cc = bic(0);
        assert_eq!(cc.segments_per_increase(400), 20);
        let mut w = window(100);
        for n in 0..100 {
            cc.on_ack(&mut w, &ack_of_a_segment(Time::from_micros(n)));
        }
        // 100 segments with a pace that goes from 100 / 16 to 106 / 16.
        assert_eq!(w.cwnd / MSS, 116);
    }
}
