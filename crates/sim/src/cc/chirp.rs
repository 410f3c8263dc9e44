//! Paced chirping (Misund and Briscoe 2019): chirps instead of slow start. The start is `weir-chirp`, the C
//! core of the kernel's `weir_chirp`. CUBIC follows it, and DCTCP from the first mark on.
//!
//! While chirps are sent, the algorithm owns the window: marks do not reduce it, and a loss does only if the
//! core says so. The kernel's version differs in one point: CUBIC and DCTCP are the simulator's own here.

use super::cubic::Cubic;
use super::dctcp::Dctcp;
use super::{Ack, Congestion, CongestionControl, Departure, Options, Phase, Window};
use weir_chirp::{FlowStart, Phase as Stage, Rules, Seen, Watched};
use weir_core::time::{Duration, Time};

/// Paced chirping with its successors.
#[derive(Debug)]
pub struct Chirp {
    rules: Rules,
    start: FlowStart,
    cubic: Cubic,
    dctcp: Dctcp,
    /// True once a mark was echoed: the path has a queue that marks.
    marks: bool,
    /// True while the sender must not reduce the window. This may outlast the chirps, until the reduction for
    /// a mark received meanwhile is over.
    owns: bool,
    /// Last stage that was acted upon.
    stage: Stage,
    /// Resulting window, in segments.
    window: u32,
}

impl Chirp {
    /// Constructor for [`super::CONTROLS`].
    pub(super) fn make(options: &Options) -> Box<dyn CongestionControl> {
        Box::new(Chirp {
            rules: options.chirp,
            start: FlowStart::new(0, options.chirp),
            cubic: Cubic::new(options),
            dctcp: Dctcp::new(options),
            marks: false,
            owns: true,
            stage: Stage::First,
            window: 0,
        })
    }

    fn chirps(&self) -> bool {
        matches!(self.stage, Stage::First | Stage::Rounds)
    }

    /// Restarts chirping.
    fn begin_again(&mut self, w: &mut Window, in_flight: u64) {
        (self.stage, self.owns) = (Stage::Rounds, true);
        self.open(w, in_flight);
    }

    /// Opens the window for the round's packets.
    fn open(&self, w: &mut Window, in_flight: u64) {
        w.cwnd = in_flight + u64::from(self.start.room()) * u64::from(w.mss);
    }

    /// Hands the window over to congestion avoidance, or corrects it while it is sent for the first time. The
    /// marked share starts from the chirps' marks, at least an eighth, since little is known of it.
    fn hand_over(&mut self, w: &mut Window, nxt: u64) {
        let report = self.start.report();
        self.window = report.window;
        w.cwnd = u64::from(report.window) * u64::from(w.mss);
        // Without an estimate, slow start continues.
        if self.stage == Stage::Done {
            return;
        }
        w.ssthresh = w.cwnd;
        self.cubic.begin_at(w.cwnd);
        self.dctcp.begin_at((4 * report.marked).max(128), nxt);
    }

    /// Handles an ACK during chirps or the handover.
    fn follow(&mut self, w: &mut Window, ack: &Ack) {
        let mends = matches!(ack.phase, Phase::Recovery | Phase::Loss);
        let disorder = mends || ack.lost > 0 || ack.delivered != ack.acked;
        if ack.acked > 0 {
            let in_flight = (ack.in_flight / u64::from(w.mss.max(1))) as u32;
            let seen = Seen { marked: ack.ece, disorder };
            self.start.acked(ack.una as u32, ack.now.as_nanos(), in_flight, seen);
        }
        let chirped = self.chirps();
        self.stage = self.start.phase();
        if self.chirps() {
            self.open(w, ack.in_flight);
        } else if chirped || self.start.report().window != self.window {
            self.hand_over(w, ack.nxt);
        }
    }

    fn watch(&mut self, w: &mut Window, ack: &Ack) {
        let seen = Watched {
            una: ack.una as u32,
            nxt: ack.nxt as u32,
            window: (w.cwnd / u64::from(w.mss.max(1))) as u32,
            share: self.dctcp.share(),
            marked: ack.ece,
            rtt: ack.srtt.as_nanos(),
        };
        if self.start.watch(seen) {
            self.begin_again(w, ack.in_flight);
        }
    }
}

impl CongestionControl for Chirp {
    fn on_established(&mut self, _w: &mut Window, _now: Time, rtt: Option<Duration>) {
        self.start = FlowStart::new(rtt.unwrap_or_default().as_nanos(), self.rules);
    }

    fn on_ack(&mut self, w: &mut Window, ack: &Ack) {
        self.marks |= ack.ece;
        if self.stage != Stage::Done {
            self.follow(w, ack);
        }
        if self.chirps() {
            return;
        }
        if self.owns {
            // The window stays until the reduction that a mark began is over.
            self.owns = self.stage == Stage::Handover || ack.phase.reduces();
            return;
        }
        if !self.marks {
            self.cubic.on_ack(w, ack);
            return;
        }
        self.dctcp.on_ack(w, ack);
        if ack.phase == Phase::Open && self.stage == Stage::Done {
            self.watch(w, ack);
        }
    }

    fn on_congestion(&mut self, w: &mut Window, now: Time, in_flight: u64, congestion: Congestion) {
        self.marks |= congestion == Congestion::Ecn;
        // Until the window found by chirps has been sent once, the queue that it leaves corrects it; marks do
        // not.
        if self.stage == Stage::Handover && congestion == Congestion::Ecn {
            return;
        }
        if !self.chirps() {
            self.owns = false;
            match self.marks {
                true => self.dctcp.on_congestion(w, now, in_flight, congestion),
                false => self.cubic.on_congestion(w, now, in_flight, congestion),
            }
            return;
        }
        let mss = u64::from(w.mss.max(1));
        match congestion {
            Congestion::Ecn => {}
            Congestion::Loss if self.start.lost((in_flight / mss) as u32) => {}
            Congestion::Loss => {
                (self.stage, self.owns) = (Stage::Done, false);
                w.ssthresh = u64::from(self.start.report().window) * mss;
                self.cubic.begin_at(w.ssthresh);
            }
            Congestion::Timeout => {
                self.start.stop();
                (self.stage, self.owns) = (Stage::Done, false);
                w.ssthresh = (in_flight / 2).max(2 * mss);
            }
        }
    }

    fn on_undo(&mut self, w: &mut Window, now: Time) {
        if !self.chirps() {
            self.cubic.on_undo(w, now);
        }
    }

    fn on_restart(&mut self, w: &mut Window, now: Time, idle: Duration, by_application: bool) {
        if self.start.restart(idle.as_nanos()) {
            self.begin_again(w, 0);
            return;
        }
        self.cubic.on_restart(w, now, idle, by_application);
        self.dctcp.on_restart(w, now, idle, by_application);
    }

    fn on_send(&mut self, w: &mut Window, segment: &Departure) -> Option<Duration> {
        if self.stage == Stage::Done {
            return None;
        }
        let gap = self.start.gap();
        if !segment.again {
            let end = (segment.start + u64::from(segment.len)) as u32;
            self.start.sent(end, segment.now.as_nanos());
            if segment.room < u64::from(w.mss) {
                self.start.closed();
            }
            if self.chirps() {
                self.open(w, segment.in_flight);
            }
        }
        Some(Duration::from_nanos(gap))
    }

    fn most_at_once(&self) -> u32 {
        match self.stage {
            Stage::Done => u32::MAX,
            _ => 1,
        }
    }

    fn owns_recovery(&self) -> bool {
        self.owns
    }

    fn wants_dctcp_ecn(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::rig::{Losses, Path, Rig, MSS};
    use super::*;
    use weir_core::rate::Rate;

    /// 100 Mbit/s of payload, 20 ms, segments of 1000 bytes: 80 us each, and 250 fill the path.
    fn hundred() -> Path {
        Path { rate: Some(Rate::mbit(100)), ..Path::new(Duration::from_millis(20)) }
    }

    fn chirp(path: Path) -> Rig {
        Rig::new("chirp", &Options::default(), path)
    }

    #[test]
    fn it_is_as_fast_as_the_link_before_slow_start_and_queues_a_few_segments() {
        let mut rig = chirp(hundred());
        let mut peak = 0;
        rig.run(Time::from_millis(80), |r| peak = peak.max(r.backlog() / MSS));
        let before = rig.una;
        rig.run(Time::from_millis(180), |r| peak = peak.max(r.backlog() / MSS));
        // 100 ms of 100 Mbit/s, within 5 %. Slow start sends 10, 20, 40, 80 and 160 of 250 segments until 100
        // ms.
        assert!(rig.una - before >= 1_187_500, "{}", rig.una - before);
        assert!(peak <= 16, "{peak}");
        assert_eq!(rig.lost, 0);
    }

    #[test]
    fn marks_do_not_end_chirps_and_congestion_avoidance_obeys_them() {
        let mut rig = chirp(Path { mark: 12 * MSS, ..hundred() });
        rig.run(Time::from_secs(1), |_| {});
        let (before, mut most) = (rig.una, 0);
        rig.run(Time::from_secs(4), |r| most = most.max(r.backlog() / MSS));
        // The bound is DCTCP's queue above its threshold: half a window in sqrt(2 W), as in DCTCP's own test.
        assert!(most <= 12 + 4, "{most}");
        assert!(rig.una - before >= 35_000_000, "{}", rig.una - before);
        assert_eq!(rig.lost, 0);
    }

    /// A chirp planned when the previous one has left leaves as planned, without waiting for an ACK.
    #[test]
    fn the_window_opens_when_a_chirp_is_planned() {
        let mut rig = chirp(hundred());
        rig.run(Time::from_millis(45), |_| {});
        let segment = Departure {
            now: rig.now,
            start: rig.nxt,
            len: MSS as u32,
            again: false,
            in_flight: rig.in_flight + MSS,
            room: u64::MAX,
        };
        rig.w.cwnd = 0;
        assert!(rig.cc.on_send(&mut rig.w, &segment).is_some());
        assert!(rig.w.cwnd > segment.in_flight, "{} {}", rig.w.cwnd, segment.in_flight);
    }

    /// During the handover no mark makes the sender reduce the window in proportion. The data in flight is
    /// not yet the window, which would otherwise leave in a burst at the end.
    #[test]
    fn the_handover_owns_the_window() {
        let mut rig = chirp(Path { mark: 12 * MSS, ..hundred() });
        let mut seen = 0;
        rig.run(Time::from_secs(1), |r| {
            if format!("{:?}", r.cc).contains("stage: Handover") {
                seen += 1;
                assert!(r.cc.owns_recovery());
            }
        });
        assert!(seen > 100, "{seen}");
    }

    #[test]
    fn random_losses_do_not_stop_it() {
        let mut rig = chirp(Path { losses: Losses::Every(400), ..hundred() });
        rig.run(Time::from_secs(2), |_| {});
        assert!(rig.una > 2_000_000, "{}", rig.una);
        assert!(rig.reductions > 1);
    }

    #[test]
    fn a_time_out_ends_it() {
        let mut cc = Chirp::make(&Options::default());
        let mut w = Window { cwnd: 10 * MSS, ssthresh: u64::MAX, mss: MSS as u32 };
        cc.on_established(&mut w, Time::ZERO, Some(Duration::from_millis(20)));
        assert!(cc.owns_recovery());
        cc.on_congestion(&mut w, Time::from_secs(1), 10 * MSS, Congestion::Timeout);
        assert!(!cc.owns_recovery());
        assert_eq!(w.ssthresh, 5 * MSS);
    }

    #[test]
    fn it_begins_again_after_an_idle_time_but_not_when_told_not_to() {
        for (rules, again) in [(Rules::ADAPTIVE, true), (Rules::NO_RESTART, false)] {
            let mut rig = Rig::new("chirp", &Options { chirp: rules, ..Options::default() }, hundred());
            rig.run(Time::from_millis(500), |_| {});
            assert!(!rig.cc.owns_recovery());
            rig.cc.on_restart(&mut rig.w, Time::from_secs(1), Duration::from_millis(500), true);
            assert_eq!(rig.cc.owns_recovery(), again, "{rules:?}");
        }
    }
}
