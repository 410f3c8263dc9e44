//! Sending half of a connection: the reaction to ACKs.
//!
//! The stream is payload and, at its end, the FIN, which counts as one byte.
//!
//! - `transmit`: choice of the next segment, use of the window; `pacing`: its earliest time;
//!   `delivery`: delivery rate; `records`: segment records for a congestion control that asks for them;
//! - `repair`: finding and repairing losses; `duplicates`: the same without SACK; `prr`: the window
//!   meanwhile; `losses`: loss state;
//! - `dsack`: conclusions from reports of segments that arrived twice; `frto`: spurious time-outs;
//! - `timers`: the timers; `expire`: their setting and expiry;
//! - `scoreboard`: data in flight, SACKed and lost; `rtt`: the round-trip time and the time-out.

mod delivery;
mod dsack;
mod duplicates;
mod expire;
mod frto;
mod losses;
mod pacing;
mod prr;
mod records;
mod repair;
mod rtt;
mod scoreboard;
mod timers;
mod transmit;

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
use transmit::{Spare, Usage};
use weir_core::time::{Duration, Time};

/// Acknowledgement in stream offsets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrived<'a> {
    /// SND.UNA: everything below is acknowledged.
    pub una: u64,
    /// Right edge of the advertised window.
    pub edge: u64,
    /// SACK blocks within the data in flight.
    pub blocks: &'a [(u64, u64)],
    /// Range that arrived twice, as the first block reported (RFC 2883).
    pub duplicate: Option<(u64, u64)>,
    /// ECE is set.
    pub ece: bool,
    /// True without payload, SYN and FIN.
    pub pure: bool,
    /// Latest time at which the segment with the echoed timestamp can have been sent.
    pub echoed: Option<Time>,
    /// Time since then by the clock of timestamps.
    pub echo_age: Option<Duration>,
}

impl Arrived<'_> {
    /// Returns whether the ACK has no SACK option.
    fn tells_nothing(&self) -> bool {
        self.blocks.is_empty() && self.duplicate.is_none()
    }
}

/// Sending half of a connection. The fields that a purely receiving end touches come first, then those of
/// each ACK.
#[derive(Debug)]
#[repr(C)]
pub struct Sender {
    /// End of the data written by the application, including the FIN.
    pub(super) limit: u64,
    /// Right edge of the peer's window.
    pub(super) edge: u64,
    /// Earliest time of the next segment by pacing.
    pace_at: Time,
    /// Segments left of a burst (segmentation offload).
    burst: u32,
    waits_for_pace: bool,
    phase: Phase,
    pub(super) recovery: Recovery,
    /// True if the next retransmission leaves regardless of the window (RFC 5681 §3.2 step 3).
    fast: bool,
    /// True if a tail loss probe leaves next, regardless of the window.
    probing: bool,
    /// True if the next new segment is the second of a pair that leaves together. Linux hands segments down
    /// in pairs at least (`tcp_min_tso_segs`), with segmentation offload and without, and marks the last of
    /// them (`__tcp_transmit_skb`).
    paired: bool,
    /// ECN is in use.
    pub(super) ecn: bool,
    /// True if the next new segment carries CWR.
    cwr: bool,
    /// True if segments have left at this instant, and if new data was among them.
    sending: bool,
    sent_new: bool,
    /// True if the window stopped a segment from leaving in this window of data.
    used_up: bool,
    pub(super) board: Scoreboard,
    spare: Spare,
    pub(super) timers: Timers,
    pub(super) window: Window,
    pub(super) cc: Box<dyn CongestionControl>,
    usage: Usage,
    delivery: Delivery,
    pub(super) rtt: RttEstimator,
    /// Stream offset of the FIN; [`u64::MAX`] before the application has closed.
    pub(super) fin: u64,
    /// Time of the last data; [`Time::MAX`] if never.
    last_sent: Time,
    undo: Option<Box<Undo>>,
    /// Segment records, for a congestion control that wants them.
    records: Option<Box<Records>>,
    pacer: Pacer,
    losses: Option<Box<Losses>>,
}

impl Sender {
    /// Creates a sender of segments of `mss` bytes of payload. `seed` is for the random choices of its
    /// congestion control.
    pub fn new(config: &TcpConfig, mss: u32, seed: u64) -> Sender {
        let options = cc::Options { paced: config.pacing, seed, ..config.cc_options };
        let window = Window {
            cwnd: u64::from(config.initial_window) * u64::from(mss),
            ssthresh: config.initial_ssthresh.unwrap_or(u64::MAX),
            mss,
        };
        let cc = config.cc.with(&options);
        let records = cc.wants_records().then(Box::default);
        Sender {
            board: Scoreboard::new(),
            rtt: RttEstimator::new(config.min_rto).with_clock(config.clock),
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

    /// Offset of the end of the fields that any segment touches.
    pub(super) const FIRST: usize = offset_of!(Sender, board) + Scoreboard::FIRST;

    /// Prefetches the further cache lines that an ACK touches, and the segments, if data is in flight.
    #[inline]
    pub fn prefetch_rest(&self) {
        if !self.is_idle() {
            self.board.prefetch_rest(const { (offset_of!(Sender, records) - Sender::FIRST).div_ceil(LINE) });
        }
    }

    /// Returns the congestion window and slow-start threshold.
    pub fn window(&self) -> &Window {
        &self.window
    }
    /// Returns the bytes in flight.
    pub fn in_flight(&self) -> u64 {
        self.board.in_flight()
    }
    /// Returns the end of the acknowledged payload, without the FIN.
    pub fn acked(&self) -> u64 {
        let una = self.board.una();
        una.min(self.fin)
    }
    /// Returns the bytes counted as delivered.
    #[cfg(test)]
    pub fn delivered(&self) -> u64 {
        self.delivery.bytes
    }
    /// Returns the round-trip time estimator.
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }
    /// Returns whether there is nothing in flight and nothing to send.
    pub fn is_idle(&self) -> bool {
        self.board.is_empty() && self.board.nxt() >= self.limit
    }
    /// Returns whether the application has closed.
    pub fn closed(&self) -> bool {
        self.fin < u64::MAX
    }
    /// Returns whether the FIN has been acknowledged.
    pub fn fin_acked(&self) -> bool {
        self.board.una() > self.fin
    }
    /// Returns the numbers of retransmitted data segments and of expirations of the retransmission timer.
    pub fn repairs(&self) -> (u64, u64) {
        (self.losses().retransmits, self.losses().rtos)
    }

    /// Takes the application's data up to stream offset `limit`. `close` is true if nothing follows.
    pub fn write(&mut self, limit: u64, close: bool) {
        if !self.closed() {
            // Data that has left with the SYN counts as written.
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

    /// Handles an ACK. Returns the round-trip time if it gave a sample.
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

    /// Adjusts the window after an ACK. The congestion control does so, or PRR while losses are repaired.
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

    /// Runs [`Scoreboard::on_ack_before`] with records of single segments.
    #[inline(never)]
    fn record_ack(&mut self, a: &Arrived, now: Time, progress: &mut Progress) {
        if let Some(records) = &mut self.records {
            self.board.on_ack_before(&mut **records, a.una, a.blocks, now, progress);
        }
    }

    /// Reports single segments to a congestion control that wants them.
    #[inline(never)]
    fn tell(&mut self, ack: &Ack) {
        let Some(records) = &mut self.records else { return };
        match records.delivered() {
            [] => {}
            segments => self.cc.on_delivered(&mut self.window, ack, segments),
        }
        records.forget(self.board.first());
    }

    /// Moves the window towards the threshold after `delivered` bytes, if PRR applies. `advanced` is true if
    /// the cumulative ACK advanced and nothing more was found lost.
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

    /// Reduces the window for a mark, once per window of data (RFC 3168 §6.1.2).
    fn answer_mark(&mut self, a: &Arrived, now: Time) {
        if self.ecn && a.ece && self.phase == Phase::Open && self.is_beyond_mark() {
            self.reduce(now);
        }
    }

    /// Returns whether data sent after the last reduction for a mark was acknowledged. Before that the peer
    /// has not seen CWR, and its echo belongs to the same window of data.
    fn is_beyond_mark(&self) -> bool {
        self.board.una() >= self.losses().reduced
    }
}
