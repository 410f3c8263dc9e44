//! Paced chirping (Misund and Briscoe 2019): getting a flow up to speed without a queue.
//!
//! The algorithm is the C in `core/`: integers only, no calls out, loops that end, so that the kernel's
//! verifier accepts it. `weir-io` compiles it into the BPF congestion control. Here it is compiled for this
//! machine, and the simulated sender calls it by [`FlowStart`]. So tests in virtual time test the code that
//! runs in the kernel.
//!
//! Times are nanoseconds of a monotonic clock of the caller; the core reads none. Sequence numbers are the
//! low 32 bits of the stream's, and wrap.
#![deny(unsafe_op_in_unsafe_fn)]

use std::fmt;

/// Differences from the default behaviour. See `core/chirp.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules(u32);

impl Rules {
    /// Everything that proved useful.
    pub const ADAPTIVE: Rules = Rules(0);
    /// A round's chirps are spread over it (paper §II.B), not sent back to back.
    pub const SPREAD: Rules = Rules(1);
    /// Gain and geometry stay 2.
    pub const FIXED: Rules = Rules(2);
    /// The gap at which delay sets in is taken as it was sent, not corrected by the delay that it made.
    pub const PLAIN: Rules = Rules(4);
    /// The first ten packets leave in two bursts, half a round trip apart.
    pub const BURSTS: Rules = Rules(8);
    /// Neither marks nor a standing queue change gain and guard.
    pub const UNMARKED: Rules = Rules(16);
    /// Chirps keep their length where an ACK covers several packets.
    pub const UNSTRETCHED: Rules = Rules(32);
    /// Any loss ends the chirps.
    pub const FRAGILE: Rules = Rules(64);
    /// Chirps do not begin again when marks have ceased (paper §V).
    pub const ONCE: Rules = Rules(128);
    /// Chirps do not begin again after an idle time.
    pub const NO_RESTART: Rules = Rules(256);
    /// Chirps never begin again: both of these.
    pub const NEVER_AGAIN: Rules = Rules(128 | 256);
    /// Rounds are no longer than half a round trip, for a host that sends no single packets later (Linux
    /// above 24 Mbit/s).
    pub const BRIEF: Rules = Rules(512);
    /// Rounds grow by the gain up to the end, even if other flows may begin.
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

/// Progress of a flow's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The initial window is on its way.
    First,
    /// Chirps are being sent.
    Rounds,
    /// The window is known. It is sent at the gaps of the estimate for one round trip.
    Handover,
    /// Congestion avoidance.
    Done,
}

/// State of a flow's start. Times are nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    phase: u32,
    /// Estimated gap between packets that the path has room for.
    pub gap: u32,
    /// Mean deviation of single estimates from it.
    pub deviation: u32,
    /// Smoothed round-trip time.
    pub srtt: u32,
    /// Least round-trip time.
    pub rtt_min: u32,
    /// Growth of rounds, in eighths.
    pub gain: u32,
    /// Share of marked packets, in parts of 256.
    pub marked: u32,
    /// Resulting window in packets; 0 before.
    pub window: u32,
    /// Chirps that gave an estimate.
    pub chirps: u32,
    /// Chirps that gave none, because gaps did not fall or samples were too few.
    pub unusable: u32,
    /// Round trips with chirps.
    pub rounds: u32,
    /// Congestion events with losses.
    pub losses: u32,
}

impl Report {
    /// Progress of the start.
    pub fn phase(&self) -> Phase {
        [Phase::First, Phase::Rounds, Phase::Handover, Phase::Done][self.phase.min(3) as usize]
    }
}

/// Properties of an ACK besides its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// True if it echoes a mark.
    pub marked: bool,
    /// True if packets are lost or out of order: the arrival of the ACK says nothing about the packets that
    /// it acknowledges.
    pub disorder: bool,
}

/// Words of `struct chirp`; a test checks that they suffice.
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

/// Properties of an ACK in congestion avoidance.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    /// Sequence number up to which everything is acknowledged (SND.UNA).
    pub una: u32,
    /// Sequence number of the next new byte (SND.NXT).
    pub nxt: u32,
    /// Congestion window, packets.
    pub window: u32,
    /// Share of packets that are usually marked, in parts of 1024.
    pub share: u32,
    /// True if the ACK echoes a mark.
    pub marked: bool,
    /// Smoothed round-trip time, nanoseconds.
    pub rtt: u64,
}

/// The start of a flow.
///
/// [`gap`](FlowStart::gap) is the time that has to pass behind the packet that leaves next.
/// [`sent`](FlowStart::sent) records each packet that has left. At most [`room`](FlowStart::room) further
/// packets leave until others are [acknowledged](FlowStart::acked).
pub struct FlowStart(Box<Raw>);

impl FlowStart {
    /// Creates the start of a connection. Its round-trip time is `rtt` by its handshake, or 0 if that did not
    /// tell.
    pub fn new(rtt: u64, rules: Rules) -> FlowStart {
        let mut raw = Box::new(Raw([0; WORDS]));
        // SAFETY: the function returns a constant.
        let size = unsafe { weir_chirp_size() } as usize;
        assert!(size <= size_of::<Raw>(), "struct chirp has {size} bytes");
        // SAFETY: the structure is not longer than `Raw`, has its alignment, and is all zeroes, as the core
        // demands.
        unsafe { weir_chirp_start(&mut *raw, rtt, rules.0) };
        FlowStart(raw)
    }

    /// Gap behind the packet that leaves next, in nanoseconds.
    pub fn gap(&self) -> u64 {
        // SAFETY: initialised in `new`, as in all calls below. The core accesses nothing else.
        unsafe { weir_chirp_gap(&*self.0) }
    }

    /// Packets that may leave before the next ACK, while the phase is [`Phase::First`] or [`Phase::Rounds`].
    pub fn room(&self) -> u32 {
        // SAFETY: see `gap`.
        unsafe { weir_chirp_room(&*self.0) }
    }

    /// Records that a packet of new data has left at `now`; `end` is the sequence number behind it.
    pub fn sent(&mut self, end: u32, now: u64) {
        // SAFETY: see `gap`.
        unsafe { weir_chirp_sent(&mut *self.0, end, now) }
    }

    /// Records that the receiver has no room for packets beyond those that have left.
    pub fn closed(&mut self) {
        // SAFETY: see `gap`.
        unsafe { weir_chirp_closed(&mut *self.0) }
    }

    /// Records that everything before `una` is acknowledged at `now`, with `in_flight` packets in flight.
    pub fn acked(&mut self, una: u32, now: u64, in_flight: u32, seen: Seen) {
        let flags = u32::from(seen.marked) | u32::from(seen.disorder) << 1;
        // SAFETY: see `gap`.
        unsafe { weir_chirp_acked(&mut *self.0, una, now, in_flight, flags) }
    }

    /// Records a loss with `in_flight` packets in flight. Returns whether chirps go on; otherwise
    /// [`Report::window`] is the window.
    pub fn lost(&mut self, in_flight: u32) -> bool {
        // SAFETY: see `gap`.
        unsafe { weir_chirp_lost(&mut *self.0, in_flight) != 0 }
    }

    /// Ends the chirps after a time-out; the connection goes on without them.
    pub fn stop(&mut self) {
        // SAFETY: see `gap`.
        unsafe { weir_chirp_stop(&mut *self.0) }
    }

    /// Handles the end of an idle time of `idle` nanoseconds. Returns whether chirps begin again.
    pub fn restart(&mut self, idle: u64) -> bool {
        // SAFETY: see `gap`.
        unsafe { weir_chirp_restart(&mut *self.0, idle) != 0 }
    }

    /// Handles an ACK of congestion avoidance with marks. Returns whether chirps begin again, after a long
    /// time without a mark.
    pub fn watch(&mut self, seen: Watched) -> bool {
        let Watched { una, nxt, window, share, marked, rtt } = seen;
        // SAFETY: see `gap`.
        unsafe { weir_chirp_watch(&mut *self.0, una, nxt, window, share, marked.into(), rtt) != 0 }
    }

    /// State of the start.
    pub fn report(&self) -> Report {
        // SAFETY: as for `gap`; the returned structure is declared as in `core/export.c`.
        unsafe { weir_chirp_report(&*self.0) }
    }

    /// Progress of the start.
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
