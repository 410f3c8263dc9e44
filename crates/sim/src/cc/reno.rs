//! Reno (RFC 5681): slow start, additive increase, halving.
//!
//! Three choices follow Linux (`tcp_cong.c`) where RFC 5681 says otherwise:
//!
//! - ssthresh is half of cwnd, not half of FlightSize (equation 4). They are equal for a sender limited by
//!   its window. They differ for one limited by its application or by the receiver: its window may exceed the
//!   data in flight, by at most twice, since unused windows do not grow. Linux considers such a window valid;
//!   RFC 5681 does not.
//! - HyStart is off unless the flow asks for it, though RFC 9406 is for any sender: Linux's Reno has none.
//! - Growth by one ACK has no limit (RFC 3465 has L = 2), unless [`Options::abc_limit`] sets one.

use super::hystart::SlowStartEnd;
use super::increase::Increase;
use super::{Ack, Congestion, CongestionControl, Hystart, Options, Window};
use weir_core::time::Time;

/// Reno sender.
#[derive(Clone, Debug)]
pub struct Reno {
    increase: Increase,
    end: SlowStartEnd,
}

impl Reno {
    /// Creates Reno with these options.
    pub fn new(options: &Options) -> Reno {
        let hystart = options.hystart.unwrap_or(Hystart::Off);
        Reno { increase: Increase::new(options), end: SlowStartEnd::new(hystart, options.paced) }
    }

    /// Constructor for [`super::CONTROLS`].
    pub(super) fn make(options: &Options) -> Box<dyn CongestionControl> {
        Box::new(Reno::new(options))
    }
}

/// Returns half the window, at least two segments (RFC 5681 equation 4). A window that grows by whole
/// segments stays whole, as in Linux. A fraction of a segment is never used, and would cost a round trip in
/// half of all sawteeth.
pub(super) fn half(w: &Window, whole: bool) -> u64 {
    let mss = u64::from(w.mss.max(1));
    let half = if whole { w.cwnd / mss / 2 * mss } else { w.cwnd / 2 };
    half.max(2 * mss)
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, w: &mut Window, ack: &Ack) {
        if ack.phase.reduces() {
            return;
        }
        if w.in_slow_start() {
            self.end.on_ack(w, ack);
        }
        // An unused window says nothing about the path (RFC 7661 §3, RFC 2861).
        if ack.cwnd_limited {
            self.increase.on_ack(w, ack, self.end.brake());
        }
    }

    fn on_congestion(&mut self, w: &mut Window, _now: Time, _in_flight: u64, congestion: Congestion) {
        w.ssthresh = half(w, self.increase.by_bytes());
        self.increase.reset();
        self.end.on_congestion(congestion);
    }
}

#[cfg(test)]
mod tests {
    use super::super::rig::{Losses, Path, Rig, MSS};
    use super::super::Phase;
    use super::*;
    use weir_core::time::Duration;

    const RTT: Duration = Duration::from_millis(100);

    /// Returns the windows in segments in the middle of the first `n` rounds.
    fn rounds(options: &Options, delayed_ack: u32, ssthresh: u64, n: u64) -> Vec<f64> {
        let mut rig = Rig::new("reno", options, Path { delayed_ack, ..Path::new(RTT) });
        rig.w.cwnd = 16 * MSS;
        rig.w.ssthresh = ssthresh;
        (0..n)
            .map(|i| {
                rig.run(Time::from_millis(50 + 100 * i), |_| {});
                rig.segments()
            })
            .collect()
    }

    #[test]
    fn slow_start_doubles_by_bytes() {
        // The whole window is acknowledged in each round, whatever the number of ACKs.
        for delayed_ack in [1, 2] {
            let w = rounds(&Options::default(), delayed_ack, u64::MAX, 5);
            assert_eq!(w, [16.0, 32.0, 64.0, 128.0, 256.0]);
        }
    }

    #[test]
    fn slow_start_by_acks_grows_by_half_with_delayed_acks() {
        let by_acks = Options { abc: false, ..Options::default() };
        assert_eq!(rounds(&by_acks, 1, u64::MAX, 4), [16.0, 32.0, 64.0, 128.0]);
        assert_eq!(rounds(&by_acks, 2, u64::MAX, 4), [16.0, 24.0, 36.0, 54.0]);
    }

    #[test]
    fn avoidance_adds_a_segment_in_a_round() {
        let w = rounds(&Options::default(), 1, 16 * MSS, 6);
        assert_eq!(w, [16.0, 17.0, 18.0, 19.0, 20.0, 21.0]);
        // By ACKs it is a little less: the window grows while the round is acknowledged.
        let by_acks = Options { abc: false, ..Options::default() };
        let w = rounds(&by_acks, 1, 16 * MSS, 2);
        assert!((16.9..17.0).contains(&w[1]), "{w:?}");
        // With delayed ACKs it is half of that.
        let w = rounds(&by_acks, 2, 16 * MSS, 2);
        assert!((16.45..16.5).contains(&w[1]), "{w:?}");
    }

    #[test]
    fn the_limit_of_rfc_3465_holds_back_stretched_acks() {
        // L = 2 and ACKs of 4 segments: four of them for 16 segments.
        let limited = Options { abc_limit: 2, ..Options::default() };
        assert_eq!(rounds(&limited, 4, u64::MAX, 2), [16.0, 24.0]);
    }

    #[test]
    fn the_average_window_is_the_law_of_the_square_root() {
        // With periodic losses, rounds from W / 2 to W in W / 2 rounds, and one of recovery at W / 2, send
        // 3/8 W^2 + W/2 = 1/p segments. That is sqrt(3 / 2p) on average (Mathis et al. 1997; 38 and 120 in
        // the table of RFC 9438 §5.1) with the round of recovery added.
        for (every, table) in [(1_000, 38.0), (10_000, 120.0)] {
            let n = every as f64;
            let peak = (-0.5 + (0.25 + 1.5 * n).sqrt()) / 0.75;
            let law = n / (peak / 2.0 + 1.0);
            let losses = Losses::Every(every);
            let mut rig = Rig::new("reno", &Options::default(), Path { losses, ..Path::new(RTT) });
            rig.w.ssthresh = 40 * MSS;
            rig.run(Time::from_secs(60), |_| {});
            let average = rig.average(Time::from_secs(260));
            assert!((average / law - 1.0).abs() < 0.02, "{average} for {law}");
            assert!((average / table - 1.0).abs() < 0.03, "{average} for {table}");
        }
    }

    #[test]
    fn halves_at_least_to_two_segments() {
        let mut reno = Reno::new(&Options::default());
        for (cwnd, ssthresh) in [(20, 10), (5, 2), (3, 2), (1, 2)] {
            let mut w = Window { cwnd: cwnd * MSS, ssthresh: u64::MAX, mss: MSS as u32 };
            reno.on_congestion(&mut w, Time::ZERO, cwnd * MSS, Congestion::Loss);
            assert_eq!(w.ssthresh / MSS, ssthresh);
        }
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut rig = Rig::new("reno", &Options::default(), Path::new(RTT));
        rig.run(Time::from_millis(250), |_| {});
        let mut ack = rig.last.expect("an ACK");
        let before = rig.w;
        ack.cwnd_limited = false;
        rig.cc.on_ack(&mut rig.w, &ack);
        assert_eq!(rig.w, before);
        ack.phase = Phase::Recovery;
        ack.cwnd_limited = true;
        rig.cc.on_ack(&mut rig.w, &ack);
        assert_eq!(rig.w, before);
    }

    #[test]
    fn what_sack_told_is_not_counted_again() {
        // A hole is filled: 10 segments are acknowledged, but only one was not yet known to be delivered.
        let mut rig = Rig::new("reno", &Options::default(), Path::new(RTT));
        rig.run(Time::from_millis(150), |_| {});
        let mut ack = rig.last.expect("an ACK");
        (ack.acked, ack.delivered) = (10 * MSS, MSS);
        rig.cc.on_ack(&mut rig.w, &ack);
        assert_eq!(rig.segments(), 21.0);
        (ack.acked, ack.delivered) = (0, MSS);
        rig.cc.on_ack(&mut rig.w, &ack);
        assert_eq!(rig.segments(), 21.0);
    }
}
