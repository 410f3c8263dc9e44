//! An endpoint of a connection: opening and closing it (RFC 9293 §3.5, §3.6), and between them the two halves,
//! [`Sender`] and `Receiver`.
//!
//! Left out: simultaneous open, urgent data, PAWS, and resets in answer to segments of unknown connections.

use super::config::TcpConfig;
use super::receiver::{Echo, Receiver};
use super::segment::{Header, Segment, SynOptions, ECT0, TIMESTAMPS_LEN};
use super::sender::{Arrived, Sender};
use super::timers::Expired;
use super::transmit::Outgoing;
use std::net::SocketAddrV4;
use weir_core::frame::{Frame, Frames};
use weir_core::time::{Duration, Time};
use weir_core::wire::{Flags, Timestamps};

/// Time-out of the first SYN (RFC 6298 §2.1).
const SYN_TIMEOUT: Duration = Duration::from_secs(1);
/// SYNs sent again before giving up (Linux: `tcp_syn_retries`).
const SYN_RETRIES: u32 = 6;
/// How long an end that closed first answers what comes late (Linux: TCP_TIMEWAIT_LEN).
const TIME_WAIT: Duration = Duration::from_secs(60);
/// Segment size of a peer that names none (RFC 9293 §3.7.1).
const DEFAULT_MSS: u16 = 536;

/// Where a connection is in its life. The states after FIN follow from what its halves know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waits for a SYN.
    Listen,
    /// Has sent one.
    SynSent,
    /// Has answered one.
    SynReceived,
    /// Data may flow, until both ends have closed.
    Established,
    /// Closed first, and answers what comes late.
    TimeWait,
    /// Over.
    Closed,
}

/// What an event did to the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Payload bytes newly in order.
    pub bytes: u64,
    /// The peer has closed and all it sent is here.
    pub finished: bool,
    /// A sample of the round-trip time of data.
    pub rtt: Option<Duration>,
}

#[derive(Debug, Default)]
struct Handshake {
    /// When the SYN is sent again.
    at: Option<Time>,
    first_sent: Option<Time>,
    retries: u32,
    /// A SYN leaves with the next poll.
    due: bool,
    /// So does the ACK that completes the handshake.
    ack_due: bool,
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Connection {
    config: TcpConfig,
    header: Header,
    state: State,
    iss: u32,
    /// Own window scale, and the peer's.
    shifts: (u8, u8),
    timestamps: bool,
    sack: bool,
    ecn: bool,
    handshake: Handshake,
    tx: Sender,
    rx: Option<Receiver>,
    /// Added to the time in milliseconds to make timestamps.
    clock: u32,
    /// An empty segment below the window leaves with the next poll.
    probe_due: bool,
    /// This end closed before it knew that the peer had.
    closed_first: bool,
    time_wait: Option<Time>,
    failure: Option<&'static str>,
}

impl Connection {
    /// An endpoint that waits for a SYN. `macs` are its own and the next hop's; `random` makes the initial sequence
    /// number and the origin of its timestamps.
    pub fn new(
        config: TcpConfig,
        macs: ([u8; 6], [u8; 6]),
        local: SocketAddrV4,
        remote: SocketAddrV4,
        random: u64,
    ) -> Connection {
        let mss = u32::from(config.mss);
        let mut config = config;
        config.cc_options.paced = config.pacing;
        config.cc_options.seed = random;
        Connection {
            header: Header::new(macs, local, remote),
            state: State::Listen,
            iss: random as u32,
            shifts: (scale(config.receive_window), 0),
            timestamps: config.timestamps,
            sack: config.recovery.uses_sack(),
            ecn: false,
            handshake: Handshake::default(),
            tx: Sender::new(&config, mss),
            rx: None,
            clock: (random >> 32) as u32,
            probe_due: false,
            closed_first: false,
            time_wait: None,
            failure: None,
            config,
        }
    }

    /// Where it is.
    pub fn state(&self) -> State {
        self.state
    }
    /// Its sending half.
    pub fn sender(&self) -> &Sender {
        &self.tx
    }
    /// Why it failed, if it did.
    pub fn failure(&self) -> Option<&'static str> {
        self.failure
    }
    /// Payload bytes of a full segment.
    pub fn mss(&self) -> u32 {
        self.tx.window().mss
    }
    /// Stream offset of the next byte that was never sent.
    pub fn sent(&self) -> u64 {
        self.tx.board.nxt()
    }

    /// Opens it.
    pub fn open(&mut self) {
        self.state = State::SynSent;
        self.handshake.due = true;
    }

    /// The application has written up to stream offset `limit`; `close` says that nothing follows.
    pub fn write(&mut self, limit: u64, close: bool) {
        if close && self.tx.fin.is_none() {
            self.closed_first = !self.rx.as_ref().is_some_and(Receiver::finished);
        }
        self.tx.write(limit, close);
    }

    /// When it wants to be called without a segment.
    pub fn next_deadline(&self) -> Option<Time> {
        match self.state {
            State::Closed | State::Listen => None,
            State::TimeWait => self.time_wait,
            State::SynSent | State::SynReceived => self.handshake.at,
            State::Established => {
                let ack = self.rx.as_ref().and_then(Receiver::deadline);
                let pace = self.tx.pace_deadline();
                [self.tx.timers.next(), ack, pace].into_iter().flatten().min()
            }
        }
    }

    /// Runs what is due by `now`. Poll afterwards.
    pub fn on_timers(&mut self, now: Time) {
        let due = |t: Option<Time>| t.is_some_and(|t| t <= now);
        match self.state {
            State::TimeWait if due(self.time_wait) => self.state = State::Closed,
            State::SynSent | State::SynReceived if due(self.handshake.at) => self.repeat_syn(),
            State::Established => {
                while let Some(expired) = self.tx.on_timers(now) {
                    match expired {
                        Expired::Repaired => {}
                        Expired::ZeroWindowProbe => self.probe_due = true,
                        Expired::GaveUp => return self.fail("timed out"),
                    }
                }
            }
            _ => {}
        }
    }

    fn repeat_syn(&mut self) {
        self.handshake.at = None;
        if self.handshake.retries >= SYN_RETRIES {
            return self.fail("timed out while it was opened");
        }
        self.handshake.retries += 1;
        self.handshake.due = true;
    }

    fn fail(&mut self, why: &'static str) {
        self.state = State::Closed;
        self.failure = Some(why);
    }

    /// A segment of the peer arrived.
    pub fn on_segment(&mut self, s: &Segment, now: Time) -> Delivered {
        if s.has(Flags::RST) {
            if self.state != State::Listen && self.state != State::Closed {
                self.fail("reset by the peer");
            }
            return Delivered::default();
        }
        match self.state {
            State::Closed => return Delivered::default(),
            State::Listen => {
                if s.has(Flags::SYN) && !s.has(Flags::ACK) {
                    self.accept(s);
                }
                return Delivered::default();
            }
            State::SynSent => {
                if s.has(Flags::SYN.with(Flags::ACK)) && s.ack == self.iss.wrapping_add(1) {
                    self.answered(s, now);
                }
                return Delivered::default();
            }
            State::SynReceived => {
                if s.has(Flags::SYN) {
                    self.handshake.due = true;
                    return Delivered::default();
                }
                if !s.has(Flags::ACK) || s.ack == self.iss {
                    return Delivered::default();
                }
                self.establish(now);
            }
            State::Established | State::TimeWait => {}
        }
        self.exchange(s, now)
    }

    /// A SYN came; it will be answered.
    fn accept(&mut self, s: &Segment) {
        self.agree(s);
        let asks = s.has(Flags::ECE.with(Flags::CWR));
        self.begin(s, asks && self.wants_ecn());
        self.state = State::SynReceived;
        self.handshake.due = true;
    }

    /// The SYN was answered.
    fn answered(&mut self, s: &Segment, now: Time) {
        self.agree(s);
        let agrees = s.has(Flags::ECE) && !s.has(Flags::CWR);
        self.begin(s, agrees && self.wants_ecn());
        self.handshake.ack_due = true;
        // The window of a SYN is not scaled (RFC 7323 §2.2).
        self.tx.edge = u64::from(s.window);
        self.establish(now);
    }

    fn wants_ecn(&self) -> bool {
        self.config.ecn || self.tx.cc.wants_dctcp_ecn()
    }

    /// What both ends can do.
    fn agree(&mut self, s: &Segment) {
        self.timestamps &= s.timestamps.is_some();
        self.sack &= s.syn.sack_permitted;
        self.shifts = s.syn.window_scale.map_or((0, 0), |peer| (self.shifts.0, peer));
        let mut mss = s.syn.mss.unwrap_or(DEFAULT_MSS);
        if self.timestamps {
            mss = mss.saturating_sub(TIMESTAMPS_LEN);
        }
        let mss = u32::from(mss.clamp(1, self.config.mss));
        if mss != self.tx.window.mss {
            self.tx.window.cwnd = u64::from(self.config.initial_window) * u64::from(mss);
            self.tx.window.mss = mss;
        }
        if !self.sack && self.config.recovery.uses_sack() {
            self.tx.recovery = super::config::Recovery::NewReno;
        }
    }

    fn begin(&mut self, s: &Segment, ecn: bool) {
        self.ecn = ecn;
        self.tx.ecn = ecn;
        let echo = match (ecn, self.tx.cc.wants_dctcp_ecn()) {
            (false, _) => Echo::Off,
            (true, false) => Echo::Classic,
            (true, true) => Echo::Dctcp,
        };
        self.rx = Some(Receiver::new(&self.config, s, self.shifts.0, echo, self.sack));
    }

    fn establish(&mut self, now: Time) {
        self.state = State::Established;
        let Handshake { first_sent, retries, .. } = self.handshake;
        self.handshake.at = None;
        self.handshake.due = false;
        // Karn: a SYN that was repeated gives no sample.
        let rtt = first_sent.filter(|_| retries == 0).map(|sent| now.since(sent));
        match rtt {
            Some(rtt) => self.tx.rtt.sample(rtt),
            None => self.tx.rtt.fall_back(),
        }
        self.tx.cc.on_established(&mut self.tx.window, now, rtt);
    }

    /// A segment of an open connection.
    fn exchange(&mut self, s: &Segment, now: Time) -> Delivered {
        let Some(rx) = &mut self.rx else { return Delivered::default() };
        let mut delivered = Delivered::default();
        if s.has(Flags::SYN) {
            // Our ACK of it was lost.
            rx.acknowledge();
            return delivered;
        }
        if s.payload > 0 || s.has(Flags::FIN) {
            let before = rx.finished();
            let accepted = rx.on_segment(&self.config, s, now);
            delivered.finished = accepted.finished && !before;
            delivered.bytes = accepted.advanced - u64::from(delivered.finished);
        } else if s.seq.wrapping_add(1) == rx.ack() {
            // A probe of the window, or a keep-alive.
            rx.acknowledge();
        }
        if s.has(Flags::ACK) {
            delivered.rtt = self.on_ack(s, now);
        }
        self.close_if_done(now);
        delivered
    }

    fn on_ack(&mut self, s: &Segment, now: Time) -> Option<Duration> {
        let una = self.tx.board.una();
        if self.tx.is_idle() && s.ack == wire_seq(self.iss, una) && s.sack.is_empty() {
            // An end that only receives: its peer's segments acknowledge nothing new.
            self.tx.edge = una + (u64::from(s.window) << self.shifts.1);
            return None;
        }
        let offset = |seq: u32| {
            let distance = seq.wrapping_sub(wire_seq(self.iss, una)) as i32;
            una.checked_add_signed(i64::from(distance))
        };
        let nxt = self.tx.board.nxt();
        let ack = offset(s.ack).filter(|a| (una..=nxt).contains(a))?;
        let mut blocks = [(0, 0); 4];
        let (mut count, mut duplicate) = (0, false);
        for (i, &(left, right)) in s.sack.as_slice().iter().enumerate() {
            let (Some(left), Some(right)) = (offset(left), offset(right)) else { continue };
            let inside = |outer: Option<&(u32, u32)>| {
                outer.is_some_and(|&(l, r)| offset(l) <= Some(left) && offset(r) >= Some(right))
            };
            // RFC 2883 §4: below the ACK, or within the second block.
            if i == 0 && (right <= ack || inside(s.sack.as_slice().get(1))) {
                duplicate = true;
            } else if left < right && right <= nxt && right > ack {
                blocks[count] = (left.max(ack), right);
                count += 1;
            }
        }
        let arrived = Arrived {
            una: ack,
            edge: ack + (u64::from(s.window) << self.shifts.1),
            blocks: &blocks[..count],
            duplicate,
            ece: s.has(Flags::ECE),
            pure: s.payload == 0 && !s.has(Flags::FIN),
            echoed: s.timestamps.map(|t| self.latest(t.echo)),
        };
        self.tx.on_ack(&arrived, now)
    }

    fn close_if_done(&mut self, now: Time) {
        let finished = self.rx.as_ref().is_some_and(Receiver::finished);
        if self.state == State::Established && finished && self.tx.fin_acked() {
            if self.closed_first {
                self.state = State::TimeWait;
                self.time_wait = Some(now + TIME_WAIT);
            } else {
                self.state = State::Closed;
            }
        }
    }

    /// Our clock, as timestamps show it.
    fn stamp(&self, now: Time) -> u32 {
        self.clock.wrapping_add((now.as_nanos() / 1_000_000) as u32)
    }

    /// The latest time at which our clock showed `stamp`.
    fn latest(&self, stamp: u32) -> Time {
        let ms = u64::from(stamp.wrapping_sub(self.clock));
        Time::from_nanos(ms * 1_000_000 + 999_999)
    }

    /// The next frame that leaves at `now`, if there is one. Call until it says `None`.
    pub fn poll(&mut self, frames: &mut Frames, now: Time) -> Option<Frame> {
        match self.state {
            State::SynSent | State::SynReceived => {
                if !core::mem::take(&mut self.handshake.due) {
                    return None;
                }
                let segment = self.syn(now);
                self.header.emit(frames, &segment, now)
            }
            State::Established => {
                if core::mem::take(&mut self.handshake.ack_due) {
                    return self.emit_ack(frames, now, 0);
                }
                let stamp = self.stamp(now);
                if let Some(out) = self.tx.transmit(&self.config, now) {
                    return self.emit_data(frames, now, stamp, &out);
                }
                if core::mem::take(&mut self.probe_due) {
                    return self.emit_ack(frames, now, 1);
                }
                self.emit_owed(frames, now)
            }
            // The last ACK of an end that closed second was sent before it got here; ours may be owed.
            State::TimeWait | State::Closed => self.emit_owed(frames, now),
            State::Listen => None,
        }
    }

    fn emit_owed(&mut self, frames: &mut Frames, now: Time) -> Option<Frame> {
        if self.failure.is_none() && self.rx.as_ref()?.owes_ack(now) {
            return self.emit_ack(frames, now, 0);
        }
        None
    }

    fn syn(&mut self, now: Time) -> Segment {
        let answers = self.state == State::SynReceived;
        self.handshake.first_sent.get_or_insert(now);
        let wait = SYN_TIMEOUT.saturating_mul(1 << self.handshake.retries);
        self.handshake.at = Some(now + wait);
        let ecn = match (answers, self.wants_ecn()) {
            (false, true) => Flags::ECE.with(Flags::CWR),
            (true, _) if self.ecn => Flags::ECE,
            _ => Flags::NONE,
        };
        let ack = if answers { Flags::ACK } else { Flags::NONE };
        let scales = !answers || self.shifts != (0, 0);
        let overhead = if self.config.timestamps { TIMESTAMPS_LEN } else { 0 };
        Segment {
            seq: self.iss,
            ack: self.rx.as_ref().map_or(0, Receiver::ack),
            flags: Flags::SYN.with(ack).with(ecn),
            window: self.config.receive_window.min(0xffff) as u16,
            timestamps: self.timestamps.then(|| self.timestamp(now)),
            syn: SynOptions {
                mss: Some(self.config.mss.saturating_add(overhead)),
                window_scale: scales.then_some(self.shifts.0),
                sack_permitted: self.sack,
            },
            ..Segment::default()
        }
    }

    fn timestamp(&self, now: Time) -> Timestamps {
        let echo = self.rx.as_ref().map_or(0, Receiver::timestamp_to_echo);
        Timestamps { value: self.stamp(now), echo }
    }

    /// A segment of the stream, with whatever ACK is owed.
    fn emit_data(&mut self, frames: &mut Frames, now: Time, stamp: u32, out: &Outgoing) -> Option<Frame> {
        let mut segment = self.acknowledging(stamp)?;
        segment.seq = wire_seq(self.iss, out.piece.start);
        segment.payload = out.piece.len - u32::from(out.fin);
        if out.fin {
            segment.flags |= Flags::FIN;
        }
        if out.piece.start + u64::from(out.piece.len) >= self.tx.limit {
            segment.flags |= Flags::PSH;
        }
        if out.cwr {
            segment.flags |= Flags::CWR;
        }
        // RFC 3168 §6.1.5: retransmissions are not ECN-capable; those of DCTCP are (RFC 8257 leaves it open).
        if self.ecn && segment.payload > 0 && (!out.again || self.tx.cc.wants_dctcp_ecn()) {
            segment.ecn = ECT0;
        }
        self.header.emit(frames, &segment, now)
    }

    /// A pure ACK, `below` what was sent: 1 makes a probe.
    fn emit_ack(&mut self, frames: &mut Frames, now: Time, below: u32) -> Option<Frame> {
        let mut segment = self.acknowledging(self.stamp(now))?;
        let next = if below > 0 { self.tx.board.una() } else { self.tx.board.nxt() };
        segment.seq = wire_seq(self.iss, next).wrapping_sub(below);
        self.header.emit(frames, &segment, now)
    }

    fn acknowledging(&mut self, stamp: u32) -> Option<Segment> {
        let timestamps = self.timestamps;
        let rx = self.rx.as_mut()?;
        let echo = rx.timestamp_to_echo();
        let ack = rx.take_ack(timestamps);
        Some(Segment {
            ack: ack.ack,
            flags: ack.flags,
            window: rx.window(),
            sack: ack.sack,
            timestamps: timestamps.then_some(Timestamps { value: stamp, echo }),
            ..Segment::default()
        })
    }
}

/// The sequence number of a stream offset: the SYN takes the initial one.
fn wire_seq(iss: u32, offset: u64) -> u32 {
    iss.wrapping_add(1).wrapping_add(offset as u32)
}

/// The smallest window scale with which `window` can be advertised (RFC 7323 §2.3: at most 14).
fn scale(window: u64) -> u8 {
    (0..14).find(|&shift| window >> shift <= 0xffff).unwrap_or(14)
}
