//! DCTCP (RFC 8257): Reno with a reduction after a mark that is proportional to the share of marked bytes.
//!
//! Losses and time-outs halve the window as in Reno (§3.5), and growth is Reno's. The ACK that ends a window
//! of data updates the estimate of the share. A reduction by the same ACK comes first and uses the earlier
//! estimate, which differs by a sixteenth at most.

use super::reno::Reno;
use super::{Ack, Congestion, CongestionControl, Options, Window};
use weir_core::time::{Duration, Time};

/// Alpha = 1 in fixed point.
const ONE: u64 = 1 << 20;
/// g = 1/16 (RFC 8257 §4.2).
const SHIFT_G: u32 = 4;

/// DCTCP sender.
#[derive(Clone, Debug)]
pub struct Dctcp {
    reno: Reno,
    /// Estimate of the share of bytes marked, in units of 1/[`ONE`]. It is 1 before the first update, so that
    /// a flow reacts to its first mark like Reno.
    alpha: u64,
    bytes_acked: u64,
    bytes_marked: u64,
    /// Stream offset at the end of the observed window of data.
    window_end: u64,
}

impl Dctcp {
    /// Creates DCTCP with these options.
    pub fn new(options: &Options) -> Dctcp {
        Dctcp { reno: Reno::new(options), alpha: ONE, bytes_acked: 0, bytes_marked: 0, window_end: 0 }
    }

    /// Constructor for [`super::CONTROLS`].
    pub(super) fn make(options: &Options) -> Box<dyn CongestionControl> {
        Box::new(Dctcp::new(options))
    }

    /// Begins congestion avoidance, with `share` of 1024 marked so far and all data before `nxt` counted.
    pub(super) fn begin_at(&mut self, share: u32, nxt: u64) {
        self.alpha = u64::from(share) * ONE / 1024;
        self.window_end = nxt;
        (self.bytes_acked, self.bytes_marked) = (0, 0);
    }

    /// Returns the marked share in 1024ths.
    pub(super) const fn share(&self) -> u32 {
        (self.alpha * 1024 / ONE) as u32
    }

    /// Updates the estimate (RFC 8257 §3.3, steps 1 to 8). SACK does not count.
    fn observe(&mut self, ack: &Ack) {
        self.bytes_acked += ack.acked;
        if ack.ece {
            self.bytes_marked += ack.acked;
        }
        if ack.una <= self.window_end {
            return;
        }
        let share = u128::from(self.bytes_marked) * u128::from(ONE) / u128::from(self.bytes_acked.max(1));
        self.alpha = self.alpha - (self.alpha >> SHIFT_G) + (share as u64 >> SHIFT_G);
        self.window_end = ack.nxt;
        (self.bytes_acked, self.bytes_marked) = (0, 0);
    }
}

impl CongestionControl for Dctcp {
    fn on_ack(&mut self, w: &mut Window, ack: &Ack) {
        self.observe(ack);
        self.reno.on_ack(w, ack);
    }

    fn on_congestion(&mut self, w: &mut Window, now: Time, in_flight: u64, congestion: Congestion) {
        self.reno.on_congestion(w, now, in_flight, congestion);
        if congestion == Congestion::Ecn {
            // cwnd (1 - alpha / 2), step 9.
            let cut = u128::from(w.cwnd) * u128::from(self.alpha) / u128::from(2 * ONE);
            w.ssthresh = (w.cwnd - cut as u64).max(2 * u64::from(w.mss));
        }
    }

    fn on_restart(&mut self, w: &mut Window, now: Time, idle: Duration, by_application: bool) {
        self.reno.on_restart(w, now, idle, by_application);
    }

    fn wants_dctcp_ecn(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::rig::{ack_of_a_segment, Path, Rig, MSS};
    use super::*;
    use weir_core::rate::Rate;

    fn share(d: &Dctcp) -> f64 {
        d.alpha as f64 / ONE as f64
    }

    /// Acknowledges one window of data of ten segments, the last `marked` of them with ECE. SND.NXT stays at
    /// the end of the window until then.
    fn window(d: &mut Dctcp, marked: u64) {
        let start = d.window_end;
        for i in 1..=10 {
            d.observe(&Ack {
                una: if i < 10 { start } else { start + 1 },
                nxt: start + 10 * MSS,
                ece: i > 10 - marked,
                ..ack_of_a_segment(Time::ZERO)
            });
        }
    }

    #[test]
    fn the_estimate_is_a_moving_average_of_sixteenths() {
        let mut d = Dctcp::new(&Options::default());
        // alpha' = 15/16 alpha + M / 16, from 1.
        let mut want = 1.0;
        for (marked, m) in [(0, 0.0), (0, 0.0), (5, 0.5), (10, 1.0), (1, 0.1), (10, 1.0)] {
            window(&mut d, marked);
            want = want * 15.0 / 16.0 + m / 16.0;
            assert!((share(&d) - want).abs() < 1e-5, "{} for {want}", share(&d));
        }
        // All marked for ever gives 1. None marked gives 0, within the resolution of the fixed point.
        (0..500).for_each(|_| window(&mut d, 10));
        assert!(share(&d) > 0.9999);
        (0..500).for_each(|_| window(&mut d, 0));
        assert!(share(&d) < 2e-5);
    }

    #[test]
    fn marks_reduce_by_half_of_the_share_and_losses_by_half() {
        let mut d = Dctcp::new(&Options::default());
        for (alpha, congestion, ssthresh) in [
            (ONE, Congestion::Ecn, 50_000),
            (ONE / 2, Congestion::Ecn, 75_000),
            (ONE / 8, Congestion::Ecn, 93_750),
            (ONE / 8, Congestion::Loss, 50_000),
            (ONE / 8, Congestion::Timeout, 50_000),
        ] {
            let mut w = Window { cwnd: 100 * MSS, ssthresh: u64::MAX, mss: MSS as u32 };
            d.alpha = alpha;
            d.on_congestion(&mut w, Time::ZERO, 100 * MSS, congestion);
            assert_eq!(w.ssthresh, ssthresh, "{alpha} {congestion:?}");
        }
        let mut w = Window { cwnd: 2 * MSS, ssthresh: u64::MAX, mss: MSS as u32 };
        d.on_congestion(&mut w, Time::ZERO, 2 * MSS, Congestion::Ecn);
        assert_eq!(w.ssthresh, 2 * MSS);
    }

    #[test]
    fn the_queue_stays_at_the_threshold() {
        // Alizadeh et al. 2010 §3.3, one flow: W* = C RTT + K = 250 + 60, alpha = sqrt(2 / W*), and the queue
        // is between K + 1 - A and K + 1 with A = sqrt(2 W*) / 2. The rig adds to both sides: no growth in
        // the round of a reduction, and a burst when the window opens.
        let path =
            Path { rate: Some(Rate::mbit(100)), mark: 60 * MSS, ..Path::new(Duration::from_millis(20)) };
        let mut rig = Rig::new("dctcp", &Options::default(), path);
        rig.run(Time::from_secs(5), |_| {});
        let (mut low, mut high) = (u64::MAX, 0);
        let before = rig.una;
        rig.run(Time::from_secs(15), |r| {
            low = low.min(r.backlog() / MSS);
            high = high.max(r.backlog() / MSS);
        });
        let amplitude = (2.0f64 * 310.0).sqrt() / 2.0;
        assert!(high <= 60 + 4, "{high}");
        assert!(low as f64 >= 61.0 - amplitude - 4.0, "{low}");
        assert!(((high - low) as f64) > amplitude / 2.0, "{low} {high}");
        // The link is never idle: 10 s of 100 Mb/s.
        assert!((rig.una - before).abs_diff(125_000_000) < 100 * MSS);
        assert_eq!(rig.lost, 0);
    }
}
