//! The sending half of a connection: what ACKs do to it.
//!
//! The stream is payload and, at its end, the FIN, which counts as one byte.
//!
//! - `transmit`: what leaves next; `pacing`: when at the earliest; `usage`: whether the window is used; `delivery`: how fast
//!   data arrive; `records`: what a congestion control may ask to know of it;
//! - `repair`: how losses are found and repaired; `duplicates`: what there is without SACK; `prr`: the window meanwhile;
//!   `losses`: what is kept of them;
//! - `dsack`: what reports of segments that arrived twice are believed to say;
//! - `timers`: which timers there are; `expire`: when they are set, and what they do;
//! - `scoreboard`: what is in flight, SACKed and lost; `rtt`: the round-trip time and the time-out.

mod delivery;
mod dsack;
mod duplicates;
mod expire;
mod losses;
mod pacing;
mod prr;
mod records;
mod repair;
mod rtt;
mod scoreboard;
mod timers;
mod transmit;
mod usage;

pub use timers::Expired;
pub use transmit::Outgoing;

use super::config::{Recovery, TcpConfig};
use crate::cache::LINE;
use crate::cc::{self, Ack, CongestionControl, Phase, Window};
use core::mem::offset_of;
use delivery::Delivery;
use dsack::Undo;
use losses::Losses;
use pacing::Pacer;
use records::Records;
use rtt::RttEstimator;
use scoreboard::{Progress, Scoreboard};
use timers::Timers;
use usage::{Spare, Usage};
use weir_core::time::{Duration, Time};

/// An acknowledgement in stream offsets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrived<'a> {
    /// Everything below is acknowledged.
    pub una: u64,
    /// Right edge of the advertised window.
    pub edge: u64,
    /// SACK blocks within what is in flight.
    pub blocks: &'a [(u64, u64)],
    /// A range that arrived twice, as the first block reported (RFC 2883).
    pub duplicate: Option<(u64, u64)>,
    /// ECE is set.
    pub ece: bool,
    /// Without payload, SYN and FIN.
    pub pure: bool,
    /// The latest time at which the segment whose timestamp it echoes can have been sent.
    pub echoed: Option<Time>,
    /// How long ago that was by the clock of timestamps.
    pub echo_age: Option<Duration>,
}

impl Arrived<'_> {
    /// Has it no SACK option?
    fn tells_nothing(&self) -> bool {
        self.blocks.is_empty() && self.duplicate.is_none()
    }
}

/// The sending half of a connection. What an end touches that only receives comes first, then what each ACK does.
#[derive(Debug)]
#[repr(C)]
pub struct Sender {
    /// End of what the application has written, the FIN included.
    pub(super) limit: u64,
    /// Right edge of the peer's window.
    pub(super) edge: u64,
    /// Pacing: nothing leaves before.
    pace_at: Time,
    /// Segments left of a burst (segmentation offload).
    burst: u32,
    waits_for_pace: bool,
    phase: Phase,
    pub(super) recovery: Recovery,
    /// The next retransmission leaves whatever the window says (RFC 5681 §3.2 step 3).
    fast: bool,
    /// A tail loss probe leaves next, whatever the window says.
    probing: bool,
    /// The next new segment is the second of two that leave together. Linux hands segments down in pairs at least
    /// (`tcp_min_tso_segs`), with segmentation offload and without, and marks the last of them (`__tcp_transmit_skb`).
    paired: bool,
    /// ECN is in use.
    pub(super) ecn: bool,
    /// The next new segment says CWR.
    cwr: bool,
    /// Something has left at this instant, and something new among it.
    sending: bool,
    sent_new: bool,
    /// The window stopped a segment from leaving, in this window of data.
    used_up: bool,
    pub(super) board: Scoreboard,
    spare: Spare,
    pub(super) timers: Timers,
    pub(super) window: Window,
    pub(super) cc: Box<dyn CongestionControl>,
    usage: Usage,
    delivery: Delivery,
    pub(super) rtt: RttEstimator,
    /// Where the FIN is; [`u64::MAX`] before the application has closed.
    pub(super) fin: u64,
    /// When data was sent last; [`Time::MAX`] if never.
    last_sent: Time,
    undo: Option<Box<Undo>>,
    /// For a congestion control that wants them.
    records: Option<Box<Records>>,
    pacer: Pacer,
    losses: Option<Box<Losses>>,
}

impl Sender {
    /// A sender of segments of `mss` bytes of payload. `seed` is for what is random in its congestion control.
    pub fn new(config: &TcpConfig, mss: u32, seed: u64) -> Sender {
        let options = cc::Options { paced: config.pacing, seed, ..config.cc_options };
        let window = Window {
            cwnd: u64::from(config.initial_window) * u64::from(mss),
            ssthresh: config.initial_ssthresh.unwrap_or(u64::MAX),
            mss,
        };
        let cc = (config.cc)(&options);
        let records = cc.wants_records().then(Box::default);
        Sender {
            board: Scoreboard::new(),
            rtt: RttEstimator::new(config.min_rto),
            window,
            cc,
            edge: 0,
            limit: 0,
            fin: u64::MAX,
            recovery: config.recovery,
            phase: Phase::Open,
            losses: None,
            undo: None,
            timers: Timers::default(),
            delivery: Delivery::default(),
            usage: Usage::default(),
            spare: Spare::default(),
            fast: false,
            probing: false,
            pace_at: Time::ZERO,
            pacer: Pacer::default(),
            waits_for_pace: false,
            burst: 0,
            paired: false,
            ecn: false,
            cwr: false,
            sending: false,
            sent_new: false,
            used_up: false,
            last_sent: Time::MAX,
            records,
        }
    }

    /// Where in it what any segment touches ends.
    pub(super) const FIRST: usize = offset_of!(Sender, board) + Scoreboard::FIRST;

    /// If something is in flight, brings into the cache what an ACK will touch behind that, and the segments.
    #[inline]
    pub fn prefetch_rest(&self) {
        if !self.is_idle() {
            self.board.prefetch_rest(const { (offset_of!(Sender, records) - Sender::FIRST).div_ceil(LINE) });
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
        una.min(self.fin)
    }
    /// Bytes counted as delivered.
    #[cfg(test)]
    pub fn delivered(&self) -> u64 {
        self.delivery.bytes
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
        self.fin < u64::MAX
    }
    /// Has the FIN been acknowledged?
    pub fn fin_acked(&self) -> bool {
        self.board.una() > self.fin
    }
    /// Segments of data sent again, and expirations of the retransmission timer.
    pub fn repairs(&self) -> (u64, u64) {
        (self.losses().retransmits, self.losses().rtos)
    }

    /// The application has written up to stream offset `limit`; `close` says that nothing follows.
    pub fn write(&mut self, limit: u64, close: bool) {
        if !self.closed() {
            // What has left with the SYN was written.
            let limit = limit.max(self.board.nxt());
            if limit > self.limit && self.board.nxt() >= self.limit {
                self.note_app_limited();
            }
            self.limit = limit;
            if close {
                self.fin = limit;
                self.limit = limit + 1;
            }
        }
    }

    /// An ACK arrived. Returns the round-trip time if it gave a sample.
    pub fn on_ack(&mut self, a: &Arrived, now: Time) -> Option<Duration> {
        let prior = self.board.in_flight();
        let moved_edge = a.edge != self.edge;
        self.edge = a.edge;
        let mut progress = Progress::default();
        match self.records {
            None => self.board.on_ack_before(&mut (), a.una, a.blocks, now, &mut progress),
            Some(_) => self.record_ack(a, now, &mut progress),
        }
        let by_echo = a.echo_age.filter(|_| progress.acked > 0);
        let rtt = progress.rtt.or(by_echo);
        if progress.acked > 0 {
            self.timers.backoffs = 0;
        }
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt);
        }
        let repeated = progress.acked == 0 && prior > 0 && a.pure && !moved_edge && a.tells_nothing();
        let before = self.phase;
        if !self.recovery.uses_sack() {
            self.count_deliveries(&mut progress, repeated);
        }
        let sample = self.deliver(&progress, now);
        let lost = self.find_losses(a, &progress, repeated, now);
        self.answer_mark(a, now);
        let ack = Ack {
            now,
            acked: progress.acked,
            delivered: progress.delivered,
            growth_limit: self.growth_limit(before),
            total_delivered: self.delivery.bytes,
            lost,
            prior_in_flight: prior,
            in_flight: self.board.in_flight(),
            una: self.board.una(),
            nxt: self.board.nxt(),
            rtt: progress.rtt_newest.or(by_echo),
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            cwnd_limited: self.cwnd_limited(),
            ece: a.ece,
            phase: self.phase,
            gap: self.pace_at.since(now),
            sample,
        };
        self.follow(&ack);
        self.set_timers(a, &progress, now);
        rtt
    }

    /// Lets the window follow an ACK: the congestion control's business, or PRR's while losses are repaired.
    fn follow(&mut self, ack: &Ack) {
        if self.records.is_some() {
            self.tell(ack);
        }
        self.cc.on_ack(&mut self.window, ack);
        if self.phase.reduces() {
            self.reduce_in_proportion(ack.delivered, ack.acked > 0 && ack.lost == 0);
        }
        self.window.cwnd = self.window.cwnd.max(u64::from(self.window.mss));
    }

    /// As [`Scoreboard::on_ack_before`], where single segments are told of.
    #[inline(never)]
    fn record_ack(&mut self, a: &Arrived, now: Time, progress: &mut Progress) {
        if let Some(records) = &mut self.records {
            self.board.on_ack_before(&mut **records, a.una, a.blocks, now, progress);
        }
    }

    /// Tells a congestion control that wants it of single segments.
    #[inline(never)]
    fn tell(&mut self, ack: &Ack) {
        let Some(records) = &mut self.records else { return };
        match records.delivered() {
            [] => {}
            segments => self.cc.on_delivered(&mut self.window, ack, segments),
        }
        records.forget(self.board.first());
    }

    /// Brings the window closer to the threshold after `delivered` bytes, where PRR does so. `advanced`: the
    /// cumulative ACK advanced and nothing more was found lost.
    fn reduce_in_proportion(&mut self, delivered: u64, advanced: bool) {
        let counts = self.recovery == Recovery::Rack || delivered > 0;
        if !self.uses_prr() || !counts || self.cc.owns_recovery() {
            return;
        }
        let mss = u64::from(self.window.mss);
        let (pipe, ssthresh) = (self.board.in_flight(), self.window.ssthresh);
        self.window.cwnd = self.losses_mut().prr.window(delivered, pipe, ssthresh, mss, advanced);
    }

    fn uses_prr(&self) -> bool {
        self.recovery.is_linux()
    }

    /// A mark reduces the window once per window of data (RFC 3168 §6.1.2).
    fn answer_mark(&mut self, a: &Arrived, now: Time) {
        if self.ecn && a.ece && self.phase == Phase::Open && self.is_beyond_mark() {
            self.reduce(now);
        }
    }

    /// Was something acknowledged that was sent after the last reduction for a mark? Until then the peer has not
    /// seen CWR, and its echo is of the same window of data.
    fn is_beyond_mark(&self) -> bool {
        self.board.una() >= self.losses().reduced
    }
}
