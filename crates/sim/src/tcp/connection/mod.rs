//! Endpoint of a connection: opening and closing it (RFC 9293 §3.5, §3.6), and between them the two halves,
//! [`Sender`] and `Receiver`.
//!
//! Left out: simultaneous open, urgent data, PAWS, resets in answer to segments of unknown connections, and
//! the checks of RFC 5961 on resets received.

mod arrive;
mod emit;
mod fast_open;
mod open;
#[cfg(test)]
mod tests;

pub use emit::Exit;

use super::config::TcpConfig;
use super::receiver::Receiver;
use super::segment::{Header, Segment};
use super::sender::{Expired, Sender};
use crate::cache::{prefetch_lines, LINE};
use core::mem::offset_of;
use fast_open::FastOpening;
use std::net::SocketAddrV4;
use std::sync::Arc;
use weir_core::time::{Duration, Time};
use weir_core::wire::Flags;

/// Time-out of the first SYN (RFC 6298 §2.1).
const SYN_TIMEOUT: Duration = Duration::from_secs(1);
/// SYNs sent again before giving up (Linux: `tcp_syn_retries`).
const SYN_RETRIES: u32 = 6;
/// Time for which an end that closed first answers late segments (Linux: TCP_TIMEWAIT_LEN).
const TIME_WAIT: Duration = Duration::from_secs(60);
/// Segment size of a peer that names none (RFC 9293 §3.7.1).
const DEFAULT_MSS: u16 = 536;

/// State of a connection. The halves hold the states after FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waits for a SYN.
    Listen,
    /// A SYN was sent.
    SynSent,
    /// A SYN was answered.
    SynReceived,
    /// Data may flow, until both ends have closed.
    Established,
    /// This end closed first, and answers late segments.
    TimeWait,
    /// The connection is over.
    Closed,
}

/// Reason why a connection ended before both ends had closed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The SYNs got no answer (RFC 9293 §3.8.3; Linux: after `tcp_syn_retries`).
    NeverOpened,
    /// The segments got no answer any more (RFC 9293 §3.8.3; Linux: after `tcp_retries2`).
    TimedOut,
    /// The peer sent a reset.
    Reset,
}

impl Failure {
    /// Returns whether this end gave up after time-outs without an answer.
    pub const fn gave_up(self) -> bool {
        matches!(self, Failure::NeverOpened | Failure::TimedOut)
    }
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Failure::NeverOpened => "timed out while it was opened",
            Failure::TimedOut => "timed out",
            Failure::Reset => "reset by the peer",
        })
    }
}

/// Effects of an event on the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Payload bytes newly in order.
    pub bytes: u64,
    /// The peer has closed, and all its data has arrived.
    pub finished: bool,
    /// Round-trip time sample of data.
    pub rtt: Option<Duration>,
}

/// Opening and closing of the connection.
#[derive(Debug)]
struct Life {
    /// Time of the next SYN; later, the end of the wait of an end that closed first; [`Time::MAX`] for never.
    at: Time,
    /// Time of the first SYN; [`Time::MAX`] before.
    first_sent: Time,
    retries: u32,
    /// The peer's SYN arrived again, and was answered again.
    asked_again: bool,
    /// A SYN leaves next.
    due: bool,
    /// SACK may be used.
    sack: bool,
    /// This end closed before it learned that the peer had.
    closed_first: bool,
    /// Fast Open state, if it is used.
    fast: Option<Box<FastOpening>>,
}

impl Life {
    fn new(sack: bool) -> Life {
        Life {
            at: Time::MAX,
            first_sent: Time::MAX,
            retries: 0,
            asked_again: false,
            due: false,
            sack,
            closed_first: false,
            fast: None,
        }
    }
}

/// Endpoint. See the [module documentation](self). The fields that every segment touches come first.
#[derive(Debug)]
#[repr(C)]
pub struct Connection {
    config: Arc<TcpConfig>,
    state: State,
    timestamps: bool,
    ecn: bool,
    /// The ACK that completes the handshake leaves next.
    ack_due: bool,
    /// An empty segment below the window leaves next.
    probe_due: bool,
    failure: Option<Failure>,
    /// Window scale of this end, and of the peer.
    shifts: (u8, u8),
    iss: u32,
    /// Offset of timestamps: added to the time in milliseconds.
    clock: u32,
    header: Header,
    rx: Option<Receiver>,
    tx: Sender,
    life: Life,
}

impl Connection {
    /// Creates an endpoint that waits for a SYN. `macs` are its own address and the next hop's. `random`
    /// makes the initial sequence number and the origin of its timestamps.
    pub fn new(
        config: Arc<TcpConfig>,
        macs: ([u8; 6], [u8; 6]),
        local: SocketAddrV4,
        remote: SocketAddrV4,
        random: u64,
    ) -> Connection {
        let mss = u32::from(config.mss);
        let mut header = Header::new(macs, local, remote);
        header.set_opaque(config.opaque);
        header.set_dscp(config.dscp);
        Connection {
            header,
            state: State::Listen,
            iss: random as u32,
            shifts: (scale(config.receive_window), 0),
            timestamps: config.timestamps,
            ecn: false,
            life: Life::new(config.recovery.uses_sack()),
            tx: Sender::new(&config, mss, random),
            rx: None,
            clock: (random >> 32) as u32,
            ack_due: false,
            probe_due: false,
            failure: None,
            config,
        }
    }

    /// Returns the state.
    pub fn state(&self) -> State {
        self.state
    }
    /// Returns the sending half.
    pub fn sender(&self) -> &Sender {
        &self.tx
    }
    /// Returns the numbers of retransmitted segments and of expirations of the retransmission timer. SYNs
    /// count in both, as in Linux's TCP_INFO.
    pub fn repairs(&self) -> (u64, u64) {
        let (retransmits, rtos) = self.tx.repairs();
        let syns = u64::from(self.life.retries);
        (retransmits + syns, rtos + syns)
    }
    /// Returns the reason of the failure, if the connection failed.
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }
    /// Returns the payload bytes of a full segment.
    pub fn mss(&self) -> u32 {
        self.tx.window().mss
    }
    /// Returns the stream offset of the next byte that was never sent.
    pub fn sent(&self) -> u64 {
        self.tx.board.nxt()
    }

    /// Sets the number of this endpoint on its host.
    pub fn set_number(&mut self, number: u32) {
        self.header.set_number(number);
    }
    /// Sets the number of the peer on the peer's host.
    #[inline]
    pub fn set_peer(&mut self, number: u32) {
        self.header.set_peer(number);
    }

    /// Prefetches the cache lines that any segment touches, and the addresses of the segments in flight.
    #[inline]
    pub fn prefetch(&self) {
        prefetch_lines(&self.config, const { (offset_of!(Connection, tx) + Sender::FIRST).div_ceil(LINE) });
    }

    /// Prefetches the other cache lines that an ACK touches, if this end sends. Call [`Connection::prefetch`]
    /// well before.
    #[inline]
    pub fn prefetch_rest(&self) {
        self.tx.prefetch_rest();
    }

    /// Opens the connection.
    pub fn open(&mut self) {
        self.state = State::SynSent;
        self.life.due = true;
    }

    /// Takes the application's data up to stream offset `limit`. `close` is true if nothing follows.
    pub fn write(&mut self, limit: u64, close: bool) {
        if close && !self.tx.closed() {
            self.life.closed_first = !self.rx.as_ref().is_some_and(Receiver::finished);
        }
        self.tx.write(limit, close);
    }

    /// Returns the time of the next timer; [`Time::MAX`] for never.
    #[inline(always)]
    pub fn next_deadline(&self) -> Time {
        if self.state != State::Established {
            return self.life_deadline();
        }
        let ack = self.rx.as_ref().map_or(Time::MAX, Receiver::deadline);
        if self.tx.rests() {
            debug_assert_eq!(self.tx.timers.next(), Time::MAX, "a timer of nothing");
            return ack;
        }
        self.tx.timers.next().min(ack).min(self.tx.pace_deadline())
    }

    /// Returns the time of the next timer while the connection opens and after it has closed.
    #[inline(never)]
    fn life_deadline(&self) -> Time {
        match self.state {
            State::Closed | State::Listen => Time::MAX,
            _ => self.life.at,
        }
    }

    /// Runs the timers that are due by `now`. Call [`send`](Connection::send) afterwards.
    pub fn on_timers(&mut self, now: Time) {
        match self.state {
            State::TimeWait if self.life.at <= now => self.state = State::Closed,
            State::SynSent | State::SynReceived if self.life.at <= now => self.repeat_syn(),
            State::Established => {
                while let Some(expired) = self.tx.on_timers(now) {
                    match expired {
                        Expired::Repaired => {}
                        Expired::ZeroWindowProbe => self.probe_due = true,
                        Expired::GaveUp => return self.fail(Failure::TimedOut),
                    }
                }
            }
            _ => {}
        }
    }

    fn repeat_syn(&mut self) {
        self.life.at = Time::MAX;
        if self.life.retries >= SYN_RETRIES {
            return self.fail(Failure::NeverOpened);
        }
        self.life.retries += 1;
        self.life.due = true;
    }

    fn fail(&mut self, why: Failure) {
        self.state = State::Closed;
        self.failure = Some(why);
    }

    /// Handles a segment of the peer.
    #[inline(always)]
    pub fn on_segment(&mut self, s: &Segment, now: Time) -> Delivered {
        if self.state == State::Established && !s.flags.intersects(Flags::SYN.with(Flags::RST)) {
            return self.exchange(s, now);
        }
        self.on_any_segment(s, now)
    }

    #[inline(never)]
    fn on_any_segment(&mut self, s: &Segment, now: Time) -> Delivered {
        if s.has(Flags::RST) {
            if self.state != State::Listen && self.state != State::Closed {
                self.fail(Failure::Reset);
            }
            return Delivered::default();
        }
        match self.state {
            State::Closed => return Delivered::default(),
            State::Listen => {
                if s.has(Flags::SYN) && !s.has(Flags::ACK) {
                    return self.accept(s, now);
                }
                return Delivered::default();
            }
            State::SynSent => {
                if s.has(Flags::SYN.with(Flags::ACK)) {
                    if let Some(taken) = self.taken_of_syn(s.ack) {
                        self.answered(s, taken, now);
                    }
                }
                return Delivered::default();
            }
            State::SynReceived => {
                if s.has(Flags::SYN) {
                    self.life.due = true;
                    self.life.asked_again = true;
                    return Delivered::default();
                }
                if !s.has(Flags::ACK) || s.ack == self.iss {
                    return Delivered::default();
                }
                self.establish(now);
            }
            State::Established | State::TimeWait => {}
        }
        if s.has(Flags::SYN) {
            // The ACK of it was lost.
            self.rx.iter_mut().for_each(Receiver::acknowledge);
            return Delivered::default();
        }
        self.exchange(s, now)
    }

    /// Returns our clock, as timestamps show it.
    fn stamp(&self, now: Time) -> u32 {
        self.clock.wrapping_add((now.as_nanos() / 1_000_000) as u32)
    }

    /// Returns the time since our clock showed `stamp`, in whole milliseconds and at least one, as in Linux.
    fn age(&self, now: Time, stamp: u32) -> Duration {
        Duration::from_millis(u64::from(self.stamp(now).wrapping_sub(stamp).max(1)))
    }

    /// Returns the latest time at which our clock showed `stamp`.
    fn latest(&self, stamp: u32) -> Time {
        let ms = u64::from(stamp.wrapping_sub(self.clock));
        Time::from_nanos(ms * 1_000_000 + 999_999)
    }
}

/// Converts a stream offset to a sequence number. The SYN takes the initial one.
fn wire_seq(iss: u32, offset: u64) -> u32 {
    iss.wrapping_add(1).wrapping_add(offset as u32)
}

/// Returns the smallest window scale with which `window` can be advertised (RFC 7323 §2.3: at most 14).
fn scale(window: u64) -> u8 {
    (0..14).find(|&shift| window >> shift <= 0xffff).unwrap_or(14)
}
