//! Paced chirping (Misund and Briscoe 2019): getting a flow up to speed without a queue.
//!
//! The algorithm is the C in `core/`: integers only, no calls out, loops that end, so that the kernel's verifier accepts it.
//! `weir-io` compiles it into the BPF congestion control; here it is compiled for this machine, and [`FlowStart`] is what
//! the simulated sender calls. What is tested in virtual time is what runs in the kernel.
//!
//! Times are nanoseconds of a monotonic clock that the caller has; the core reads none. Sequence numbers are the low 32 bits of
//! the stream's, and wrap.
#![deny(unsafe_op_in_unsafe_fn)]

use std::fmt;

/// In how far it differs from what it does by default. See `core/chirp.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules(u32);

impl Rules {
    /// Everything that was found to be of use.
    pub const ADAPTIVE: Rules = Rules(0);
    /// A round's chirps are spread over it (paper §II.B), not sent one behind the other.
    pub const SPREAD: Rules = Rules(1);
    /// Gain and geometry stay 2.
    pub const FIXED: Rules = Rules(2);
    /// Where delay sets in is taken as the gap that was sent, not corrected by how much delay it made.
    pub const PLAIN: Rules = Rules(4);
    /// The first ten packets leave in two bursts, half a round trip apart.
    pub const BURSTS: Rules = Rules(8);
    /// Neither marks nor a queue that stands change gain and guard.
    pub const UNMARKED: Rules = Rules(16);
    /// Chirps are as ever where an ACK covers several packets.
    pub const UNSTRETCHED: Rules = Rules(32);
    /// Any loss ends it.
    pub const FRAGILE: Rules = Rules(64);
    /// It does not begin again when marks have ceased (paper §V).
    pub const ONCE: Rules = Rules(128);
    /// It does not begin again after an idle time.
    pub const NO_RESTART: Rules = Rules(256);
    /// It does not begin again at all: both of these.
    pub const NEVER_AGAIN: Rules = Rules(128 | 256);
    /// Rounds are no longer than half a round trip, for a host that sends no single packets later (Linux above 24 Mbit/s).
    pub const BRIEF: Rules = Rules(512);
    /// Rounds grow by the gain up to the end, whoever else may begin.
    pub const HASTY: Rules = Rules(1024);
    /// The algorithm as it was published: all of these but [`Rules::BRIEF`].
    pub const PUBLISHED: Rules = Rules(511 | 1024);

    /// Every choice of an experiment, by name.
    pub const ALL: [(&'static str, Rules); 14] = [
        ("adaptive", Rules::ADAPTIVE),
        ("published", Rules::PUBLISHED),
        ("spread", Rules::SPREAD),
        ("fixed", Rules::FIXED),
        ("plain", Rules::PLAIN),
        ("bursts", Rules::BURSTS),
        ("unmarked", Rules::UNMARKED),
        ("unstretched", Rules::UNSTRETCHED),
        ("fragile", Rules::FRAGILE),
        ("once", Rules::ONCE),
        ("no-restart", Rules::NO_RESTART),
        ("never-again", Rules::NEVER_AGAIN),
        ("brief", Rules::BRIEF),
        ("hasty", Rules::HASTY),
    ];
}

/// How far a flow's start has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The initial window is on its way.
    First,
    /// Chirps are.
    Rounds,
    /// The window is known, and for one round trip it is sent at the gaps of the estimate.
    Handover,
    /// Congestion avoidance.
    Done,
}

/// What is known of a flow's start. Times are nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    phase: u32,
    /// The gap between packets that the path has room for, as estimated.
    pub gap: u32,
    /// Mean deviation of single estimates from it.
    pub deviation: u32,
    /// Smoothed round-trip time.
    pub srtt: u32,
    /// Least round-trip time.
    pub rtt_min: u32,
    /// By how much rounds grow, in eighths.
    pub gain: u32,
    /// Share of packets that were marked, of 256.
    pub marked: u32,
    /// The window that came out, in packets; 0 before.
    pub window: u32,
    /// Chirps that gave an estimate.
    pub chirps: u32,
    /// Chirps that did not: gaps that did not fall, or too few samples.
    pub unusable: u32,
    /// Round trips with chirps.
    pub rounds: u32,
    /// Congestion events with losses.
    pub losses: u32,
}

impl Report {
    /// How far it has come.
    pub fn phase(&self) -> Phase {
        [Phase::First, Phase::Rounds, Phase::Handover, Phase::Done][self.phase.min(3) as usize]
    }
}

/// What an ACK says besides its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// It echoes a mark.
    pub marked: bool,
    /// Something is lost or out of order: when the ACK came says nothing about the packets that it acknowledges.
    pub disorder: bool,
}

/// Words that `struct chirp` takes; a test holds it to that.
const WORDS: usize = 1024;

#[repr(C, align(8))]
struct Raw([u64; WORDS]);

extern "C" {
    fn weir_chirp_size() -> u32;
    fn weir_chirp_start(c: *mut Raw, rtt: u64, rules: u32);
    fn weir_chirp_gap(c: *const Raw) -> u64;
    fn weir_chirp_room(c: *const Raw) -> u32;
    fn weir_chirp_sent(c: *mut Raw, end: u32, now: u64);
    fn weir_chirp_closed(c: *mut Raw);
    fn weir_chirp_acked(c: *mut Raw, una: u32, now: u64, in_flight: u32, flags: u32);
    fn weir_chirp_lost(c: *mut Raw, in_flight: u32) -> u32;
    fn weir_chirp_stop(c: *mut Raw);
    fn weir_chirp_restart(c: *mut Raw, idle: u64) -> u32;
    fn weir_chirp_watch(
        c: *mut Raw,
        una: u32,
        nxt: u32,
        window: u32,
        share: u32,
        marked: u32,
        rtt: u64,
    ) -> u32;
    fn weir_chirp_report(c: *const Raw) -> Report;
}

/// What an ACK tells in congestion avoidance.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    /// Sequence number up to which everything is acknowledged (SND.UNA).
    pub una: u32,
    /// Sequence number of the next new byte (SND.NXT).
    pub nxt: u32,
    /// Congestion window, packets.
    pub window: u32,
    /// The share of packets that are usually marked, of 1024.
    pub share: u32,
    /// The ACK echoes a mark.
    pub marked: bool,
    /// Smoothed round-trip time, nanoseconds.
    pub rtt: u64,
}

/// The start of a flow.
///
/// Before a packet leaves, [`gap`](FlowStart::gap) is the time that is to pass behind it; when it has left, tell it by
/// [`sent`](FlowStart::sent). Not more than [`room`](FlowStart::room) further packets leave until something is
/// [acknowledged](FlowStart::acked).
pub struct FlowStart(Box<Raw>);

impl FlowStart {
    /// A connection whose round-trip time is `rtt` as far as its handshake told; 0 if it did not.
    pub fn new(rtt: u64, rules: Rules) -> FlowStart {
        let mut raw = Box::new(Raw([0; WORDS]));
        // SAFETY: asks for a constant.
        let size = unsafe { weir_chirp_size() } as usize;
        assert!(size <= size_of::<Raw>(), "struct chirp has {size} bytes");
        // SAFETY: the structure is not longer than `Raw`, is aligned as it, and all zeroes, as the core wants it.
        unsafe { weir_chirp_start(&mut *raw, rtt, rules.0) };
        FlowStart(raw)
    }

    /// The gap to be left behind the packet that leaves next, in nanoseconds.
    pub fn gap(&self) -> u64 {
        // SAFETY: begun in `new`, as in all of the following; the core reads and writes nothing else.
        unsafe { weir_chirp_gap(&*self.0) }
    }

    /// Packets that may leave before the next ACK, while the phase is [`Phase::First`] or [`Phase::Rounds`].
    pub fn room(&self) -> u32 {
        // SAFETY: see `gap`.
        unsafe { weir_chirp_room(&*self.0) }
    }

    /// A packet of new data has left at `now`; `end` is the sequence number behind it.
    pub fn sent(&mut self, end: u32, now: u64) {
        // SAFETY: see `gap`.
        unsafe { weir_chirp_sent(&mut *self.0, end, now) }
    }

    /// The receiver has no room for a packet behind those that have left.
    pub fn closed(&mut self) {
        // SAFETY: see `gap`.
        unsafe { weir_chirp_closed(&mut *self.0) }
    }

    /// Everything before `una` is acknowledged at `now`, and `in_flight` packets are in flight.
    pub fn acked(&mut self, una: u32, now: u64, in_flight: u32, seen: Seen) {
        let flags = u32::from(seen.marked) | u32::from(seen.disorder) << 1;
        // SAFETY: see `gap`.
        unsafe { weir_chirp_acked(&mut *self.0, una, now, in_flight, flags) }
    }

    /// Something was lost, with `in_flight` packets in flight. Returns whether chirps go on; otherwise
    /// [`Report::window`] is the window.
    pub fn lost(&mut self, in_flight: u32) -> bool {
        // SAFETY: see `gap`.
        unsafe { weir_chirp_lost(&mut *self.0, in_flight) != 0 }
    }

    /// A time-out: the connection goes on without it.
    pub fn stop(&mut self) {
        // SAFETY: see `gap`.
        unsafe { weir_chirp_stop(&mut *self.0) }
    }

    /// Sending starts again after `idle` nanoseconds. Returns whether chirps begin again.
    pub fn restart(&mut self, idle: u64) -> bool {
        // SAFETY: see `gap`.
        unsafe { weir_chirp_restart(&mut *self.0, idle) != 0 }
    }

    /// An ACK in congestion avoidance that goes by marks. Returns whether chirps begin again, since there was no mark for long.
    pub fn watch(&mut self, seen: Watched) -> bool {
        let Watched { una, nxt, window, share, marked, rtt } = seen;
        // SAFETY: see `gap`.
        unsafe { weir_chirp_watch(&mut *self.0, una, nxt, window, share, marked.into(), rtt) != 0 }
    }

    /// What is known.
    pub fn report(&self) -> Report {
        // SAFETY: see `gap`; the structure returned is declared as in `core/export.c`.
        unsafe { weir_chirp_report(&*self.0) }
    }

    /// How far it has come.
    pub fn phase(&self) -> Phase {
        self.report().phase()
    }
}

impl fmt::Debug for FlowStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.report().fmt(f)
    }
}

#[cfg(test)]
mod pause_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod thinned_tests;
