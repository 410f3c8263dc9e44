//! Congestion control: what decides about the congestion window. One algorithm is one file that
//! implements [`CongestionControl`] and one line in [`CONTROLS`].
//!
//! The sender ([`crate::tcp`]) does everything else: it finds losses, retransmits, restarts after a
//! time-out and keeps the window during recovery (PRR, RFC 6937). Windows are bytes of payload, times
//! integer nanoseconds; there is no floating point, so that a run is the same on any machine.
//!
//! Calls come in this order for one ACK: [`CongestionControl::on_congestion`] if it reveals a loss or
//! echoes a mark, then [`CongestionControl::on_delivered`] for those that want it, then [`CongestionControl::on_ack`].
//!
//! [`CongestionControl::on_send`] sets the time between two segments. So an algorithm may pace, send trains of any shape, or
//! bound its bursts.

mod bbr;
mod chirp;
mod cubic;
mod dctcp;
mod hystart;
mod increase;
mod reno;
#[cfg(test)]
mod rig;
mod segments;

pub use segments::{Delivered, Departure};
pub use weir_chirp::Rules;

use core::fmt;
use weir_core::time::{Duration, Time};

/// The sender's windows, as the algorithm sets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window in bytes. The sender keeps it at one segment at least.
    pub cwnd: u64,
    /// Slow-start threshold in bytes; [`u64::MAX`] until the first congestion (RFC 5681 §3.1).
    pub ssthresh: u64,
    /// Payload bytes of a full segment (SMSS without options).
    pub mss: u32,
}

impl Window {
    /// Below the slow-start threshold?
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// Where the sender is in loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No recovery.
    Open,
    /// Reducing the window after a mark, with nothing lost (CWR of Linux).
    Reducing,
    /// Repairing losses found by duplicate ACKs, SACK or RACK.
    Recovery,
    /// Repairing after a retransmission time-out; the window grows by slow start.
    Loss,
}

impl Phase {
    /// Is the window on its way to the slow-start threshold, so that no ACK grows it?
    pub const fn reduces(self) -> bool {
        matches!(self, Phase::Reducing | Phase::Recovery)
    }
}

/// The delivery rate over the flight that an ACK ends (draft-cheng-iccrg-delivery-rate-estimation §3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered over `interval`.
    pub delivered: u64,
    /// The longer of the send and the ACK interval; never zero.
    pub interval: Duration,
    /// Total bytes delivered when the newest delivered segment was sent.
    pub prior_delivered: u64,
    /// Was the sender without data to send, at the time that segment left?
    pub app_limited: bool,
    /// Was that segment a retransmission?
    pub retransmitted: bool,
}

/// What an ACK told the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// When it arrived.
    pub now: Time,
    /// Bytes newly acknowledged cumulatively; 0 for a duplicate or a SACK alone.
    pub acked: u64,
    /// Bytes newly known to be delivered: cumulatively, by SACK, or without SACK by a duplicate ACK.
    pub delivered: u64,
    /// Most bytes that the window may grow by; [`u64::MAX`] if all that was delivered counts.
    pub growth_limit: u64,
    /// All bytes ever delivered, these included.
    pub total_delivered: u64,
    /// Bytes newly found lost by this ACK.
    pub lost: u64,
    /// Bytes in flight before and after this ACK.
    pub prior_in_flight: u64,
    /// See `prior_in_flight`.
    pub in_flight: u64,
    /// Stream offset up to which everything is acknowledged (SND.UNA).
    pub una: u64,
    /// Stream offset of the next new byte (SND.NXT).
    pub nxt: u64,
    /// A sample of the round-trip time, from the newest segment that this ACK acknowledges and that was
    /// never retransmitted (Karn).
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// The smallest round-trip time ever sampled; zero before the first.
    pub min_rtt: Duration,
    /// Did the congestion window limit what was sent since the last ACK (RFC 9438 §4.2, RFC 2861)?
    pub cwnd_limited: bool,
    /// The ACK echoes a mark (ECE).
    pub ece: bool,
    /// Where the sender is in recovery, after this ACK.
    pub phase: Phase,
    /// How long after `now` the next segment may leave by the gap behind the last one; zero for at once.
    pub gap: Duration,
    /// Delivery rate, if the ACK delivered something.
    pub sample: Option<RateSample>,
}

impl Ack {
    /// Bytes by which this ACK may grow a window: what it delivered, if it advanced the cumulative
    /// acknowledgement. Like Linux, not all of `acked`: what SACK or duplicate ACKs told before is not counted
    /// again when a hole is filled.
    pub const fn growth(&self) -> u64 {
        match self.acked {
            0 => 0,
            _ if self.delivered > self.growth_limit => self.growth_limit,
            _ => self.delivered,
        }
    }
}

/// Why the window is to be reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// Losses found by duplicate ACKs, SACK or RACK; once per recovery.
    Loss,
    /// A mark echoed by the receiver (RFC 3168 §6.1.2); at most once per window of data.
    Ecn,
    /// The retransmission timer expired. Called once for what is lost, not again for a time-out in a recovery that has
    /// reduced the window already, nor when the timer backs off.
    Timeout,
}

/// How slow start looks for its end before there is a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hystart {
    /// Not at all.
    Off,
    /// By delay and by trains of ACKs (Ha and Rhee 2011), as Linux's CUBIC does.
    Classic,
    /// HyStart++ (RFC 9406).
    PlusPlus,
}

/// Which CUBIC it is where Linux's differs from the RFC; the module of CUBIC lists the differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CubicRules {
    /// RFC 9438.
    #[default]
    Rfc9438,
    /// `tcp_cubic` of Linux.
    Linux,
}

/// What a flow may set of its algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Appropriate byte counting (RFC 3465): windows grow by bytes acknowledged. Off: by ACKs, as
    /// RFC 5681 allows and the older papers assume: one segment per ACK in slow start.
    pub abc: bool,
    /// Most segments that one ACK adds in slow start with byte counting (L of RFC 3465 §2.2), at least
    /// 1; after a time-out it is 1 (§2.3). [`u32::MAX`] is no limit, then neither, as in Linux.
    pub abc_limit: u32,
    /// How slow start looks for its end. `None` is what is usual for the algorithm: HyStart++ for CUBIC
    /// by the RFC, HyStart of 2011 for Linux's, nothing for the others.
    pub hystart: Option<Hystart>,
    /// Which CUBIC it is.
    pub cubic: CubicRules,
    /// CUBIC's fast convergence (RFC 9438 §4.7).
    pub fast_convergence: bool,
    /// The sender spaces what it sends, whoever sets the rate. HyStart++ then does not limit bursts.
    pub paced: bool,
    /// In how far paced chirping differs from its default.
    pub chirp: Rules,
    /// Seed of what is random in the algorithm, one per flow: where BBR begins its cycle of gains.
    pub seed: u64,
}

impl Default for Options {
    /// As Linux: byte counting without a limit.
    fn default() -> Options {
        Options {
            abc: true,
            abc_limit: u32::MAX,
            hystart: None,
            cubic: CubicRules::default(),
            fast_convergence: true,
            paced: false,
            chirp: Rules::default(),
            seed: 0,
        }
    }
}

/// A congestion control.
pub trait CongestionControl: fmt::Debug + Send {
    /// The connection is set up and may send; `rtt` is what the handshake took, if it was measured.
    fn on_established(&mut self, _w: &mut Window, _now: Time, _rtt: Option<Duration>) {}

    /// An ACK arrived that acknowledged something, cumulatively or by SACK. Called in every phase, since
    /// algorithms observe what they do not react to; while the phase [reduces](Phase::reduces) the sender sets the
    /// window itself, unless [`CongestionControl::owns_recovery`].
    fn on_ack(&mut self, w: &mut Window, ack: &Ack);

    /// Congestion: sets [`Window::ssthresh`]; `in_flight` is FlightSize (RFC 5681 §3.1). The sender
    /// then brings `cwnd` there (to one segment after a time-out). Algorithms that own recovery set
    /// `cwnd` as well.
    fn on_congestion(&mut self, w: &mut Window, now: Time, in_flight: u64, congestion: Congestion);

    /// The retransmission timer expired, the first time or again, and everything of which that follows is marked lost.
    fn on_timeout(&mut self, _w: &mut Window, _now: Time) {}

    /// Recovery is complete; `cwnd` is what the sender left it at.
    fn on_recovered(&mut self, _w: &mut Window, _now: Time) {}

    /// The last reduction turned out to be spurious (F-RTO, DSACK, Eifel): the sender has restored `cwnd`, if
    /// it was below, and `ssthresh` to what they were.
    fn on_undo(&mut self, _w: &mut Window, _now: Time) {}

    /// Sending starts again after nothing was in flight for `idle`, however short (RFC 9438 §5.8).
    /// What RFC 5681 §4.1 does to a window that was not used for long is the sender's, and not for
    /// algorithms that own recovery. `by_application`: the application had nothing to send, as the delivery rate counts it.
    fn on_restart(&mut self, _w: &mut Window, _now: Time, _idle: Duration, _by_application: bool) {}
    /// Bytes were found lost, by an ACK or by a timer; again if their retransmission was lost. Called before what follows from it.
    fn on_lost(&mut self, _bytes: u64) {}

    /// A segment leaves: how long after it the next one leaves at the earliest, to the nanosecond; zero for at once. Windows and
    /// the application may make it later, and nothing makes up for that. Asked for every segment, retransmissions and
    /// probes too. `None` leaves it to the sender, which paces, if told to, at Linux's multiple of cwnd / srtt.
    ///
    /// An algorithm that paces returns what its rate takes for the bytes of the segment; one that bounds its bursts, zero so
    /// many times and then more.
    fn on_send(&mut self, _w: &mut Window, _segment: &Departure) -> Option<Duration> {
        None
    }

    /// If the gaps of [`CongestionControl::on_send`] are those of a rate, paced as Linux does it: how many segments are handed down
    /// together at least. Then what 1/1024 s of the rate holds, and no less than that, leaves together and has its gaps behind it; there are none
    /// before the tenth segment; and what left late has the next leave earlier, by half a gap at most. `None`: every gap is kept.
    fn least_at_once(&self) -> Option<u32> {
        None
    }
    /// Most segments that segmentation offload may make the sender wait for, so that they leave together. 1 lets each
    /// leave as soon as its gap and the window allow.
    fn most_at_once(&self) -> u32 {
        u32::MAX
    }

    /// Does it want to be told of single segments ([`CongestionControl::on_delivered`])? Asked once, when the connection is
    /// made. Nothing is kept of segments for algorithms that do not.
    fn wants_records(&self) -> bool {
        false
    }

    /// The segments that an ACK delivered, in stream order, at least one. Called before
    /// [`CongestionControl::on_ack`] for algorithms that [want to know](CongestionControl::wants_records). A segment is told once,
    /// when it is acknowledged or SACKed as a whole, unless the receiver has thrown away what it had SACKed (RFC 2018 §8).
    fn on_delivered(&mut self, _w: &mut Window, _ack: &Ack, _segments: &[Delivered]) {}

    /// Does it keep `cwnd` during recovery too (BBR)?
    fn owns_recovery(&self) -> bool {
        false
    }

    /// Does it need ECN with the receiver echoing every mark (DCTCP, RFC 8257)?
    fn wants_dctcp_ecn(&self) -> bool {
        false
    }
}

/// How an algorithm is made for a flow.
pub type Make = fn(&Options) -> Box<dyn CongestionControl>;

/// Every algorithm by the name that Linux gives it; `chirp` is `weir_chirp` there.
pub const CONTROLS: &[(&str, Make)] = &[
    ("reno", reno::Reno::make),
    ("cubic", cubic::Cubic::make),
    ("dctcp", dctcp::Dctcp::make),
    ("bbr", bbr::Bbr::make),
    ("chirp", chirp::Chirp::make),
];

/// The algorithm of this name; `None` if there is none.
pub fn by_name(name: &str) -> Option<Make> {
    CONTROLS.iter().find(|(n, _)| *n == name).map(|(_, make)| *make)
}
