//! The sending half of a connection: what ACKs do to it.
//!
//! The stream is payload and, at its end, the FIN, which counts as one byte. What leaves next is decided in
//! `transmit`, losses are repaired in `repair`, timers expire in `timers`.

use super::config::{Recovery, TcpConfig};
use super::prr::Prr;
use super::rtt::RttEstimator;
use super::scoreboard::{Progress, Rack, Scoreboard};
use super::timers::Timers;
use crate::cc::{Ack, Congestion, CongestionControl, Phase, RateSample, Window};
use weir_core::time::{Duration, Time};

/// Duplicate ACKs that mean a loss (RFC 5681 §3.2).
pub(super) const DUP_THRESH: u32 = 3;

/// An acknowledgement in stream offsets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrived<'a> {
    /// Everything below is acknowledged.
    pub una: u64,
    /// Right edge of the advertised window.
    pub edge: u64,
    /// SACK blocks within what is in flight.
    pub blocks: &'a [(u64, u64)],
    /// The first block reported a duplicate (RFC 2883).
    pub duplicate: bool,
    /// ECE is set.
    pub ece: bool,
    /// Without payload, SYN and FIN.
    pub pure: bool,
    /// The latest time at which the segment whose timestamp it echoes can have been sent.
    pub echoed: Option<Time>,
}

/// What a reduction may have to be taken back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    pub(super) cwnd: u64,
    pub(super) ssthresh: u64,
    /// Retransmissions that have not been reported as duplicates.
    pub(super) retransmits: u32,
    /// When the first of them was sent.
    pub(super) first: Option<Time>,
}

/// The delivery rate estimator (draft-cheng-iccrg-delivery-rate-estimation §3).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivery {
    pub(super) bytes: u64,
    pub(super) at: Time,
    pub(super) first_sent: Time,
    /// Samples are application-limited until so much is delivered; 0 if they are not.
    pub(super) app_limited: u64,
}

/// How much of the congestion window is used (as Linux's `tcp_is_cwnd_limited`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Most bytes in flight in this window of data.
    pub(super) most: u64,
    /// The window stopped a segment from leaving.
    pub(super) limited: bool,
    /// Where this window of data ends.
    pub(super) until: u64,
}

/// The sending half of a connection.
#[derive(Debug)]
pub struct Sender {
    pub(super) board: Scoreboard,
    pub(super) rack: Rack,
    pub(super) rtt: RttEstimator,
    pub(super) window: Window,
    pub(super) cc: Box<dyn CongestionControl>,
    /// Right edge of the peer's window.
    pub(super) edge: u64,
    /// End of what the application has written, the FIN included.
    pub(super) limit: u64,
    /// Where the FIN is, once the application has closed.
    pub(super) fin: Option<u64>,
    pub(super) recovery: Recovery,
    pub(super) phase: Phase,
    /// Recovery ends when everything below is acknowledged (RecoveryPoint, `recover`).
    pub(super) recover: u64,
    pub(super) prr: Prr,
    /// The last segment was sent again in vain up to here (RescueRxt).
    pub(super) rescued: u64,
    pub(super) undo: Option<Undo>,
    pub(super) timers: Timers,
    pub(super) delivery: Delivery,
    pub(super) usage: Usage,
    /// The next retransmission leaves whatever the window says (RFC 5681 §3.2 step 3).
    pub(super) fast: bool,
    /// A tail loss probe leaves next, whatever the window says.
    pub(super) probing: bool,
    /// Pacing: nothing leaves before.
    pub(super) pace_at: Time,
    pub(super) waits_for_pace: bool,
    /// Segments left of a burst (segmentation offload).
    pub(super) burst: u32,
    /// ECN is in use.
    pub(super) ecn: bool,
    /// The next new segment says CWR.
    pub(super) cwr: bool,
    /// Bytes below belong to a window of data that has been reduced for a mark.
    pub(super) ecn_end: u64,
    /// When data was sent last.
    pub(super) last_sent: Option<Time>,
    pub(super) retransmits: u64,
    pub(super) rtos: u64,
}

impl Sender {
    /// A sender of segments of `mss` bytes of payload.
    pub fn new(config: &TcpConfig, mss: u32) -> Sender {
        let window = Window {
            cwnd: u64::from(config.initial_window) * u64::from(mss),
            ssthresh: config.initial_ssthresh.unwrap_or(u64::MAX),
            mss,
        };
        Sender {
            board: Scoreboard::new(),
            rack: Rack::default(),
            rtt: RttEstimator::new(config.min_rto, RttEstimator::MAX_RTO),
            window,
            cc: (config.cc)(&config.cc_options),
            edge: 0,
            limit: 0,
            fin: None,
            recovery: config.recovery,
            phase: Phase::Open,
            recover: 0,
            prr: Prr::default(),
            rescued: 0,
            undo: None,
            timers: Timers::default(),
            delivery: Delivery::default(),
            usage: Usage::default(),
            fast: false,
            probing: false,
            pace_at: Time::ZERO,
            waits_for_pace: false,
            burst: 0,
            ecn: false,
            cwr: false,
            ecn_end: 0,
            last_sent: None,
            retransmits: 0,
            rtos: 0,
        }
    }

    /// Congestion window and slow-start threshold.
    pub fn window(&self) -> &Window {
        &self.window
    }
    /// Bytes in flight.
    pub fn in_flight(&self) -> u64 {
        self.board.in_flight()
    }
    /// Everything below is acknowledged: payload bytes, without the FIN.
    pub fn acked(&self) -> u64 {
        let una = self.board.una();
        self.fin.map_or(una, |fin| una.min(fin))
    }
    /// The round-trip time as estimated.
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }
    /// Is there nothing in flight and nothing to send?
    pub fn is_idle(&self) -> bool {
        self.board.is_empty() && self.board.nxt() >= self.limit
    }
    /// Has the application closed?
    pub fn closed(&self) -> bool {
        self.fin.is_some()
    }
    /// Has the FIN been acknowledged?
    pub fn fin_acked(&self) -> bool {
        self.fin.is_some_and(|fin| self.board.una() > fin)
    }
    /// Segments of data sent again, and expirations of the retransmission timer.
    pub fn repairs(&self) -> (u64, u64) {
        (self.retransmits, self.rtos)
    }

    /// The application has written up to stream offset `limit`; `close` says that nothing follows.
    pub fn write(&mut self, limit: u64, close: bool) {
        if self.fin.is_none() {
            if limit > self.limit && self.board.nxt() >= self.limit {
                self.note_app_limited();
            }
            self.limit = limit;
            if close {
                self.fin = Some(limit);
                self.limit = limit + 1;
            }
        }
    }

    /// An ACK arrived. Returns the round-trip time if it gave a sample.
    pub fn on_ack(&mut self, a: &Arrived, now: Time) -> Option<Duration> {
        let prior = self.board.in_flight();
        let moved_edge = a.edge != self.edge;
        self.edge = a.edge;
        let progress = self.board.on_ack(a.una, a.blocks, now);
        if progress.acked > 0 {
            self.timers.backoffs = 0;
            self.rtt.reset_backoff();
        }
        if let Some(rtt) = progress.rtt {
            self.rtt.sample(rtt);
        }
        let sample = self.deliver(&progress, now);
        let repeated =
            progress.acked == 0 && prior > 0 && a.pure && !moved_edge && a.blocks.is_empty() && !a.duplicate;
        let lost = self.find_losses(a, &progress, repeated, now);
        self.answer_mark(a, now);
        let ack = Ack {
            now,
            acked: progress.acked,
            delivered: progress.delivered,
            total_delivered: self.delivery.bytes,
            lost,
            prior_in_flight: prior,
            in_flight: self.board.in_flight(),
            una: self.board.una(),
            nxt: self.board.nxt(),
            rtt: progress.rtt_newest,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            cwnd_limited: self.cwnd_limited(),
            ece: a.ece,
            phase: self.phase,
            sample,
        };
        self.follow(&ack);
        self.set_timers(a, &progress, now);
        progress.rtt
    }

    /// Lets the window follow an ACK: the congestion control's business, or PRR's while losses are repaired.
    fn follow(&mut self, ack: &Ack) {
        self.cc.on_ack(&mut self.window, ack);
        if self.phase == Phase::Recovery && self.uses_prr() && !self.cc.owns_recovery() {
            let advanced = ack.acked > 0 && ack.lost == 0;
            let mss = u64::from(self.window.mss);
            let (pipe, ssthresh) = (ack.in_flight, self.window.ssthresh);
            self.window.cwnd = self.prr.window(ack.delivered, pipe, ssthresh, mss, advanced);
        }
        self.window.cwnd = self.window.cwnd.max(u64::from(self.window.mss));
    }

    pub(super) fn uses_prr(&self) -> bool {
        self.recovery == Recovery::Rack
    }

    /// Accounts what was delivered; the rate that the newest delivered segment's flight had.
    fn deliver(&mut self, progress: &Progress, now: Time) -> Option<RateSample> {
        if progress.delivered == 0 {
            return None;
        }
        let d = &mut self.delivery;
        d.bytes += progress.delivered;
        d.at = now;
        if d.app_limited != 0 && d.bytes > d.app_limited {
            d.app_limited = 0;
        }
        let (sent, retransmitted) = progress.newest?;
        d.first_sent = sent.at;
        let interval = sent.at.since(sent.first_sent).max(now.since(sent.delivered_at));
        // Shorter than any round trip: ACKs came compressed (§3.3).
        if interval < self.rtt.min_rtt() || interval == Duration::ZERO {
            return None;
        }
        Some(RateSample {
            delivered: d.bytes - sent.delivered,
            interval,
            prior_delivered: sent.delivered,
            app_limited: sent.app_limited,
            retransmitted,
        })
    }

    /// A mark reduces the window once per window of data (RFC 3168 §6.1.2).
    fn answer_mark(&mut self, a: &Arrived, now: Time) {
        if !self.ecn || !a.ece || self.board.una() < self.ecn_end || self.phase != Phase::Open {
            return;
        }
        self.ecn_end = self.board.nxt();
        self.cwr = true;
        self.reduce(Congestion::Ecn, now);
    }

    /// Was the window, and nothing else, what kept the sender from sending more?
    fn cwnd_limited(&mut self) -> bool {
        let usage = self.usage;
        let limited = if self.window.in_slow_start() {
            self.window.cwnd < 2 * usage.most.max(self.board.in_flight())
        } else {
            usage.limited
        };
        if self.board.una() >= usage.until {
            self.usage = Usage { most: self.board.in_flight(), limited: false, until: self.board.nxt() };
        }
        limited
    }
}
