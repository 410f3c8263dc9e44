//! Test rig: a sender that consists of a congestion control only, over an arithmetic path.
//!
//! The path is a drop-tail queue of bytes in front of a rate, a constant delay, a receiver that acknowledges
//! every n-th segment, and losses. Nothing is reordered, so an ACK tells the sender at once which segments
//! are lost. The sender has endless data, reports everything by [`Ack`] and keeps no window of its own. On
//! congestion it sets the window to the threshold (one segment after a time-out).

mod path;

pub use path::{Losses, Path};

use super::{by_name, Ack, Congestion, CongestionControl, Departure, Options, Phase, RateSample, Window};
use path::{Flying, Sent};
use std::collections::{BTreeSet, VecDeque};
use weir_core::rng::Rng;
use weir_core::time::{Duration, Time};

pub const MSS: u64 = 1000;

/// Builds an ACK of one segment for a sender that its window limits: no loss, no mark, no sample, and all
/// other numbers 0.
pub fn ack_of_a_segment(now: Time) -> Ack {
    Ack {
        now,
        acked: MSS,
        delivered: MSS,
        growth_limit: u64::MAX,
        total_delivered: 0,
        lost: 0,
        prior_in_flight: 0,
        in_flight: 0,
        una: 0,
        nxt: 0,
        rtt: None,
        srtt: Duration::ZERO,
        min_rtt: Duration::ZERO,
        cwnd_limited: true,
        ece: false,
        phase: Phase::Open,
        gap: Duration::ZERO,
        sample: None,
    }
}

#[derive(Debug)]
pub struct Rig {
    pub cc: Box<dyn CongestionControl>,
    pub w: Window,
    pub path: Path,
    pub now: Time,
    pub phase: Phase,
    pub in_flight: u64,
    pub una: u64,
    pub nxt: u64,
    pub delivered: u64,
    /// Total bytes lost, and reductions of the window.
    pub lost: u64,
    pub reductions: u64,
    pub srtt: Duration,
    pub min_rtt: Duration,
    /// Last ACK that the algorithm was given.
    pub last: Option<Ack>,
    outstanding: VecDeque<Sent>,
    again: VecDeque<u64>,
    recovery_end: u64,
    next_send: Time,
    last_sent: Time,
    first_sent: Time,
    delivered_at: Time,
    // Path and receiver.
    transmissions: u64,
    rng: Rng,
    free_at: Time,
    arriving: usize,
    sent_before: u64,
    expected: u64,
    early: BTreeSet<u64>,
    unacked: u32,
    ece: bool,
    ack_by: Option<Time>,
    acks: VecDeque<Flying>,
}

impl Rig {
    pub fn new(name: &str, options: &Options, path: Path) -> Rig {
        let mut cc = by_name(name).expect("a known algorithm").with(options);
        let mut w = Window { cwnd: 10 * MSS, ssthresh: u64::MAX, mss: MSS as u32 };
        cc.on_established(&mut w, Time::ZERO, Some(path.rtt));
        Rig {
            cc,
            w,
            path,
            now: Time::ZERO,
            phase: Phase::Open,
            in_flight: 0,
            una: 0,
            nxt: 0,
            delivered: 0,
            lost: 0,
            reductions: 0,
            srtt: path.rtt,
            min_rtt: path.rtt,
            last: None,
            outstanding: VecDeque::new(),
            again: VecDeque::new(),
            recovery_end: 0,
            next_send: Time::ZERO,
            last_sent: Time::ZERO,
            first_sent: Time::ZERO,
            delivered_at: Time::ZERO,
            transmissions: 0,
            rng: Rng::new(options.seed),
            free_at: Time::ZERO,
            arriving: 0,
            sent_before: 0,
            expected: 0,
            early: BTreeSet::new(),
            unacked: 0,
            ece: false,
            ack_by: None,
            acks: VecDeque::new(),
        }
    }

    /// Returns the window in segments, for comparison with formulas.
    pub fn segments(&self) -> f64 {
        self.w.cwnd as f64 / MSS as f64
    }

    /// Returns the bits per second at which the algorithm would space segments now.
    pub fn pacing(&mut self) -> Option<f64> {
        let segment = Departure {
            now: self.now,
            start: self.nxt,
            len: 1 << 30,
            again: false,
            in_flight: 0,
            room: u64::MAX,
        };
        let gap = self.cc.on_send(&mut self.w, &segment)?;
        Some(f64::from(segment.len) * 8.0 / gap.as_secs_f64())
    }

    /// Runs to `end`; calls `seen` after each ACK.
    pub fn run(&mut self, end: Time, mut seen: impl FnMut(&mut Rig)) {
        loop {
            self.send();
            let (at, event) = self.next_event();
            if at > end {
                self.now = end;
                return;
            }
            self.now = at;
            match event {
                Event::Arrival => self.receive(),
                Event::DelayedAck => self.acknowledge(),
                Event::Ack => {
                    self.take_ack();
                    seen(self);
                }
                Event::Send => {}
                Event::Timeout => self.time_out(),
            }
        }
    }

    /// Returns the time average of the window in segments from now to `end`.
    pub fn average(&mut self, end: Time) -> f64 {
        let (from, mut at, mut sum) = (self.now, self.now, 0.0);
        let mut window = self.segments();
        self.run(end, |r| {
            sum += window * r.now.since(at).as_secs_f64();
            (at, window) = (r.now, r.segments());
        });
        sum += window * end.since(at).as_secs_f64();
        sum / end.since(from).as_secs_f64()
    }

    fn next_event(&self) -> (Time, Event) {
        let mut next = (Time::MAX, Event::Send);
        let mut offer = |at: Option<Time>, event| {
            if let Some(at) = at.filter(|&at| at < next.0) {
                next = (at, event);
            }
        };
        let arrival = self.outstanding.iter().skip(self.arriving).find_map(|s| s.arrives);
        offer(arrival, Event::Arrival);
        offer(self.ack_by, Event::DelayedAck);
        offer(self.acks.front().map(|a| a.at), Event::Ack);
        let room = self.in_flight + MSS <= self.w.cwnd.max(MSS);
        offer(Some(self.next_send).filter(|&at| room && at > self.now), Event::Send);
        let quiet = arrival.is_none() && self.acks.is_empty() && self.ack_by.is_none();
        let rto = (self.srtt + self.srtt).max(Duration::from_millis(200));
        offer(Some((self.last_sent + rto).max(self.now)).filter(|_| quiet && !room), Event::Timeout);
        next
    }

    fn send(&mut self) {
        while self.in_flight + MSS <= self.w.cwnd.max(MSS) && self.next_send <= self.now {
            let again = self.again.pop_front();
            let start = again.unwrap_or(self.nxt);
            if again.is_none() {
                self.nxt += MSS;
            }
            if self.in_flight == 0 {
                (self.first_sent, self.delivered_at) = (self.now, self.now);
            }
            let (arrives, marked) = self.transmit();
            self.outstanding.push_back(Sent {
                start,
                at: self.now,
                arrives,
                marked,
                again: again.is_some(),
                delivered: self.delivered,
                delivered_at: self.delivered_at,
                first_sent: self.first_sent,
            });
            self.in_flight += MSS;
            self.last_sent = self.now;
            let (now, len, in_flight) = (self.now, MSS as u32, self.in_flight);
            let segment = Departure { now, start, len, again: again.is_some(), in_flight, room: u64::MAX };
            if let Some(gap) = self.cc.on_send(&mut self.w, &segment) {
                self.next_send = now + gap;
            }
        }
    }

    fn take_ack(&mut self) {
        let flying = self.acks.pop_front().expect("an ACK is due");
        let prior_in_flight = self.in_flight;
        let (mut delivered, mut lost, mut newest) = (0, 0, None);
        while self.sent_before < flying.through {
            let s = self.outstanding.pop_front().expect("it was sent");
            self.sent_before += 1;
            self.arriving -= 1;
            self.in_flight -= MSS;
            if s.arrives.is_some() {
                delivered += MSS;
                newest = Some(s);
            } else {
                lost += MSS;
                self.again.push_back(s.start);
            }
        }
        self.delivered += delivered;
        self.lost += lost;
        if lost > 0 {
            self.cc.on_lost(lost);
        }
        let rtt = newest.filter(|s| !s.again).map(|s| self.now.since(s.at));
        if let Some(rtt) = rtt {
            self.srtt = Duration::from_nanos((7 * self.srtt.as_nanos() + rtt.as_nanos()) / 8);
            self.min_rtt = self.min_rtt.min(rtt);
        }
        let acked = flying.una - self.una;
        self.una = flying.una;
        self.react(lost > 0, flying.ece);
        let ack = Ack {
            now: self.now,
            acked,
            delivered,
            growth_limit: u64::MAX,
            total_delivered: self.delivered,
            lost,
            prior_in_flight,
            in_flight: self.in_flight,
            una: self.una,
            nxt: self.nxt,
            rtt,
            srtt: self.srtt,
            min_rtt: self.min_rtt,
            cwnd_limited: true,
            ece: flying.ece,
            phase: self.phase,
            gap: self.next_send.since(self.now),
            sample: newest.map(|s| self.sample(s)),
        };
        self.cc.on_ack(&mut self.w, &ack);
        self.last = Some(ack);
    }

    /// Makes a rate sample (draft-cheng-iccrg-delivery-rate-estimation §3.3).
    fn sample(&mut self, s: Sent) -> RateSample {
        let interval = s.at.since(s.first_sent).max(self.now.since(s.delivered_at));
        self.first_sent = s.at;
        self.delivered_at = self.now;
        RateSample {
            delivered: self.delivered - s.delivered,
            interval: interval.max(Duration::from_nanos(1)),
            prior_delivered: s.delivered,
            app_limited: false,
            retransmitted: s.again,
        }
    }

    /// Reacts to losses and marks, and to the end of their repair.
    fn react(&mut self, lost: bool, ece: bool) {
        if self.phase == Phase::Open && (lost || ece) {
            let why = if lost { Congestion::Loss } else { Congestion::Ecn };
            self.cc.on_congestion(&mut self.w, self.now, self.nxt - self.una, why);
            self.phase = if lost { Phase::Recovery } else { Phase::Reducing };
            self.recovery_end = self.nxt;
            self.reductions += 1;
            if !self.cc.owns_recovery() {
                self.w.cwnd = self.w.ssthresh;
            }
        } else if self.phase != Phase::Open && self.una >= self.recovery_end {
            let recovered = self.phase.reduces();
            self.phase = Phase::Open;
            if recovered {
                self.cc.on_recovered(&mut self.w, self.now);
            }
        }
    }

    fn time_out(&mut self) {
        self.cc.on_lost(self.in_flight);
        if self.phase != Phase::Loss {
            self.cc.on_congestion(&mut self.w, self.now, self.nxt - self.una, Congestion::Timeout);
            self.cc.on_timeout(&mut self.w, self.now);
            self.recovery_end = self.nxt;
            self.reductions += 1;
        }
        self.w.cwnd = MSS;
        self.phase = Phase::Loss;
        self.lost += self.in_flight;
        self.sent_before += self.outstanding.len() as u64;
        self.again.extend(self.outstanding.drain(..).map(|s| s.start));
        self.arriving = 0;
        self.in_flight = 0;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Arrival,
    DelayedAck,
    Ack,
    Send,
    Timeout,
}
