//! BBR, version 1, as in Linux (`tcp_bbr.c`; Cardwell et al., "BBR: congestion-based congestion control",
//! CACM 60(2), 2017; draft-cardwell-iccrg-bbr-congestion-control-00).
//!
//! BBR estimates the bottleneck's bandwidth (the largest delivery rate of ten rounds) and the path's delay
//! (the smallest RTT of ten seconds). It paces at the bandwidth and keeps about the product of both in
//! flight. Beyond the draft, it follows Linux: it paces 1 % below the bandwidth, detects a policer
//! ([`policer`]), and allows for lumps of ACKs ([`aggregation`]).
//!
//! Differences from Linux: the flow's seed selects the start of the gain cycle, and times are nanoseconds,
//! not microseconds and jiffies. A mark is ignored, as in Linux.
//!
//! Gains are in 256ths, and bandwidths in bytes per second.

mod aggregation;
mod bandwidth;
#[cfg(test)]
mod path_tests;
mod policer;
mod rtt;
mod state;
#[cfg(test)]
mod step_tests;
mod window;

use super::{Ack, Congestion, CongestionControl, Departure, Options, Phase, Window};
use aggregation::Aggregation;
use bandwidth::{mul_div, per_second, MaxFilter};
use policer::{Observation, Policer};
use weir_core::rate::Rate;
use weir_core::rng::Rng;
use weir_core::time::{Duration, Time};

/// A gain of 1.
const UNIT: u64 = 256;
/// 2 / ln 2: doubles the amount sent each round.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// Inverse of the high gain.
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// Window gain in [`Mode::ProbeBw`], for delayed and lumped ACKs.
const CWND_GAIN: u64 = 2 * UNIT;
/// Pacing gains of one cycle: probe, drain the resulting queue, cruise.
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Index of the probing phase.
const CYCLE_UP: usize = 0;
/// Rounds after which the pipe is full, if the bandwidth grew by less than a quarter in them.
const FULL_ROUNDS: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Doubles the rate until the bandwidth stays the same.
    Startup,
    /// Lasts until the queue of the startup is gone.
    Drain,
    /// Cycles the pacing gain.
    ProbeBw { phase: usize, since: Time },
    /// Keeps almost nothing in flight, to measure the delay without a queue.
    ProbeRtt,
}

/// Counter of rounds by packets: a round ends with the first ACK of a segment sent after it began.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    count: u64,
    /// Total bytes delivered when the round began.
    end: u64,
    /// True if the present ACK began a round.
    started: bool,
}

/// Detector of a full pipe.
#[derive(Clone, Copy, Debug, Default)]
struct Full {
    bw: u64,
    rounds: u32,
    reached: bool,
}

/// BBR sender.
#[derive(Clone, Debug)]
pub struct Bbr {
    mode: Mode,
    round: Round,
    max_bw: MaxFilter,
    full: Full,
    policer: Policer,
    aggregation: Aggregation,
    /// Smallest delay, and the time when it was seen or last probed for.
    min_rtt: Option<Duration>,
    min_rtt_stamp: Time,
    /// Time at which a delay probe may end, once little enough is in flight.
    probe_done: Option<Time>,
    probe_round_done: bool,
    /// Range of delivered totals whose samples are limited by a delay probe: segments sent then saw its small
    /// window.
    probe_limited: Option<(u64, u64)>,
    idle_restart: bool,
    prior_phase: Phase,
    prior_cwnd: u64,
    conservation: bool,
    initial_cwnd: u64,
    pacing: Option<Rate>,
    /// True once the pacing rate came from a measured RTT.
    seen_rtt: bool,
    lost: u64,
    /// Time of the last delivery, and the total bytes delivered.
    delivered_at: Time,
    delivered: u64,
    rng: Rng,
}

impl Bbr {
    /// Creates BBR with these options.
    pub fn new(options: &Options) -> Bbr {
        Bbr {
            mode: Mode::Startup,
            round: Round::default(),
            max_bw: MaxFilter::default(),
            full: Full::default(),
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            min_rtt: None,
            min_rtt_stamp: Time::ZERO,
            probe_done: None,
            probe_round_done: false,
            probe_limited: None,
            idle_restart: false,
            prior_phase: Phase::Open,
            prior_cwnd: 0,
            conservation: false,
            initial_cwnd: 0,
            pacing: None,
            seen_rtt: false,
            lost: 0,
            delivered_at: Time::ZERO,
            delivered: 0,
            rng: Rng::new(options.seed),
        }
    }

    /// Constructor for [`super::CONTROLS`].
    pub(super) fn make(options: &Options) -> Box<dyn CongestionControl> {
        Box::new(Bbr::new(options))
    }

    /// Returns the bandwidth estimate to send at.
    fn bandwidth(&self) -> u64 {
        self.policer.bandwidth().unwrap_or(self.max_bw.max())
    }

    fn pacing_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBw { .. } if self.policer.bandwidth().is_some() => UNIT,
            Mode::ProbeBw { phase, .. } => CYCLE[phase],
            Mode::ProbeRtt => UNIT,
        }
    }

    fn cwnd_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBw { .. } => CWND_GAIN,
            Mode::ProbeRtt => UNIT,
        }
    }

    /// Paces at a gain times 99 % of `bw`. Before the pipe is full the rate only rises.
    fn set_pacing(&mut self, bw: u64, gain: u64) {
        let bits = mul_div(bw, gain * 8 * 99, UNIT * 100);
        let faster = self.pacing.is_none_or(|now| bits > now.bps());
        if self.full.reached || faster {
            self.pacing = Rate::from_bps(bits).or(self.pacing);
        }
    }

    /// Sets the rate before the first sample: the window in one RTT, or in 1 ms if the RTT is unknown.
    fn initial_pacing(&mut self, w: &Window, rtt: Option<Duration>) {
        self.seen_rtt = rtt.is_some();
        self.pacing = None;
        self.set_pacing(per_second(w.cwnd, rtt.unwrap_or(Duration::from_millis(1))), HIGH_GAIN);
    }

    /// Updates rounds, the bandwidth (§4.1.1) and lumps of ACKs. An interval shorter than any round is a
    /// burst of ACKs, not a rate (draft-cheng-iccrg-delivery-rate-estimation §3.3).
    fn update_bandwidth(&mut self, w: &Window, ack: &Ack) {
        self.round.started = false;
        let Some(s) = ack.sample.filter(|s| s.interval >= ack.min_rtt) else { return };
        if s.prior_delivered >= self.round.end {
            self.round.end = ack.total_delivered;
            self.round.count += 1;
            self.round.started = true;
            self.conservation = false;
        }
        let app_limited = s.app_limited || self.limited_by_probe(s.prior_delivered);
        self.look_for_policer(ack.lost > 0, app_limited);
        let bw = per_second(s.delivered, s.interval);
        if !app_limited || bw >= self.max_bw.max() {
            self.max_bw.update(self.round.count, bw);
        }
        let (bw, started) = (self.bandwidth(), self.round.started);
        self.aggregation.update(ack.now, ack.delivered, bw, started, w.cwnd, w.mss);
        self.check_full_pipe(app_limited);
    }

    fn look_for_policer(&mut self, losses: bool, app_limited: bool) {
        let o = self.observation(losses, app_limited);
        if self.policer.observe(&o, matches!(self.mode, Mode::ProbeBw { .. })) {
            self.enter_probe_bw(self.delivered_at);
        }
    }

    fn observation(&self, losses: bool, app_limited: bool) -> Observation {
        Observation {
            now: self.delivered_at,
            round_start: self.round.started,
            losses,
            app_limited,
            delivered: self.delivered,
            lost: self.lost,
        }
    }
}

impl CongestionControl for Bbr {
    fn on_established(&mut self, w: &mut Window, now: Time, rtt: Option<Duration>) {
        self.initial_cwnd = w.cwnd;
        self.min_rtt = rtt;
        self.min_rtt_stamp = now;
        self.aggregation.restart(now);
        self.initial_pacing(w, rtt);
    }

    fn on_ack(&mut self, w: &mut Window, ack: &Ack) {
        if ack.delivered > 0 {
            (self.delivered_at, self.delivered) = (ack.now, ack.total_delivered);
        }
        self.update_bandwidth(w, ack);
        self.update_cycle(w, ack);
        self.check_drain(w, ack);
        self.update_min_rtt(w, ack);
        if !self.seen_rtt && ack.srtt != Duration::ZERO {
            self.initial_pacing(w, Some(ack.srtt));
        }
        self.set_pacing(self.bandwidth(), self.pacing_gain());
        // For BBR, only the repair of losses is recovery.
        let phase = if ack.phase == Phase::Reducing { Phase::Open } else { ack.phase };
        self.set_cwnd(w, ack, phase);
    }

    fn on_lost(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    fn on_congestion(&mut self, w: &mut Window, _now: Time, _in_flight: u64, _why: Congestion) {
        self.save_cwnd(w);
    }

    /// Ends the round (`bbr_set_state`).
    fn on_timeout(&mut self, _w: &mut Window, _now: Time) {
        self.prior_phase = Phase::Loss;
        self.full.bw = 0;
        self.round.started = true;
        self.look_for_policer(true, false);
    }

    fn on_undo(&mut self, _w: &mut Window, _now: Time) {
        // The bandwidth during a spurious recovery says nothing.
        (self.full.bw, self.full.rounds) = (0, 0);
        let o = self.observation(false, false);
        self.policer.reset(&o);
    }

    fn on_restart(&mut self, w: &mut Window, now: Time, _idle: Duration, by_application: bool) {
        if !by_application {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            // §4.3.4.4: pace at the bandwidth exactly.
            Mode::ProbeBw { .. } => self.set_pacing(self.bandwidth(), UNIT),
            Mode::ProbeRtt => self.check_probe_done(w, now),
            _ => {}
        }
    }

    fn on_send(&mut self, _w: &mut Window, segment: &Departure) -> Option<Duration> {
        self.pacing.map(|rate| rate.time_for(u64::from(segment.len)))
    }

    fn least_at_once(&self) -> Option<u32> {
        Some(self.least_burst() as u32)
    }

    fn owns_recovery(&self) -> bool {
        true
    }
}
