//! Congestion control: algorithms that set the congestion window. One algorithm is one file that implements
//! [`CongestionControl`] and one line in [`CONTROLS`].
//!
//! The sender ([`crate::tcp`]) does everything else. It finds losses, retransmits, restarts after a time-out
//! and keeps the window during recovery (PRR, RFC 6937). Windows are bytes of payload, and times are integer
//! nanoseconds. There is no floating point, so that a run is the same on any machine.
//!
//! Calls come in this order for one ACK: [`CongestionControl::on_congestion`] if it reveals a loss or echoes
//! a mark, then [`CongestionControl::on_delivered`] for the algorithms that want it, then
//! [`CongestionControl::on_ack`].
//!
//! [`CongestionControl::on_send`] sets the time between two segments. So an algorithm may pace, send trains
//! of any shape, or bound its bursts.

mod bbr;
mod bic;
mod chirp;
mod cubic;
mod dctcp;
mod hystart;
mod increase;
mod own;
mod reno;
#[cfg(test)]
mod rig;
mod segments;

pub use own::{names, register, version};
pub use segments::{Delivered, Departure};
pub use weir_chirp::Rules;

use core::fmt;
use weir_core::time::{Duration, Time};

/// Congestion window and threshold of the sender, as the algorithm sets them.
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
    /// Returns whether the window is below the slow-start threshold.
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// Phase of loss recovery.
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
    /// Returns whether the window moves to the slow-start threshold, so that no ACK grows it.
    pub const fn reduces(self) -> bool {
        matches!(self, Phase::Reducing | Phase::Recovery)
    }

    /// Returns whether losses are repaired.
    pub const fn repairs(self) -> bool {
        matches!(self, Phase::Recovery | Phase::Loss)
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
    /// True if the sender had no data to send when that segment left.
    pub app_limited: bool,
    /// True if that segment was a retransmission.
    pub retransmitted: bool,
}

/// Information of one ACK for the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Time of arrival.
    pub now: Time,
    /// Bytes newly acknowledged cumulatively; 0 for a duplicate or a SACK alone.
    pub acked: u64,
    /// Bytes newly known to be delivered: cumulatively, by SACK, or without SACK by a duplicate ACK.
    pub delivered: u64,
    /// Maximum growth of the window in bytes; [`u64::MAX`] if all delivered bytes count.
    pub growth_limit: u64,
    /// Total bytes ever delivered, including these.
    pub total_delivered: u64,
    /// Bytes newly found lost by this ACK.
    pub lost: u64,
    /// Bytes in flight before and after this ACK.
    pub prior_in_flight: u64,
    /// Bytes in flight after this ACK.
    pub in_flight: u64,
    /// Stream offset up to which everything is acknowledged (SND.UNA).
    pub una: u64,
    /// Stream offset of the next new byte (SND.NXT).
    pub nxt: u64,
    /// Round-trip time sample, from the newest acknowledged segment that was never retransmitted (Karn).
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// Smallest round-trip time ever sampled; zero before the first sample.
    pub min_rtt: Duration,
    /// True if the congestion window limited the sender since the last ACK (RFC 9438 §4.2, RFC 2861).
    pub cwnd_limited: bool,
    /// The ACK echoes a mark (ECE).
    pub ece: bool,
    /// Phase of recovery after this ACK.
    pub phase: Phase,
    /// Time from `now` until the gap behind the last segment allows the next one; zero for at once.
    pub gap: Duration,
    /// Delivery rate, if the ACK delivered any data.
    pub sample: Option<RateSample>,
}

impl Ack {
    /// Returns the bytes by which this ACK may grow a window: the delivered bytes, if it advanced the
    /// cumulative acknowledgement. Like in Linux, this is not all of `acked`. Bytes reported before by SACK
    /// or duplicate ACKs do not count again when a hole is filled.
    pub const fn growth(&self) -> u64 {
        match self.acked {
            0 => 0,
            _ if self.delivered > self.growth_limit => self.growth_limit,
            _ => self.delivered,
        }
    }
}

/// Reason for a reduction of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// Losses found by duplicate ACKs, SACK or RACK; once per recovery.
    Loss,
    /// A mark echoed by the receiver (RFC 3168 §6.1.2); at most once per window of data.
    Ecn,
    /// Expiry of the retransmission timer. Called once for the lost data. Not called again for a time-out in
    /// a recovery that has already reduced the window, nor when the timer backs off.
    Timeout,
}

/// Detector of the end of slow start before a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hystart {
    /// No detector.
    Off,
    /// Detection by delay and by trains of ACKs (Ha and Rhee 2011), as in Linux's CUBIC.
    Classic,
    /// HyStart++ (RFC 9406).
    PlusPlus,
}

/// Variant of CUBIC, where Linux's differs from the RFC. The module of CUBIC lists the differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CubicRules {
    /// RFC 9438.
    #[default]
    Rfc9438,
    /// `tcp_cubic` of Linux.
    Linux,
}

/// Options of a flow's algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Appropriate byte counting (RFC 3465): windows grow by bytes acknowledged. Off, they grow by ACKs, as
    /// RFC 5681 allows and the older papers assume: one segment per ACK in slow start.
    pub abc: bool,
    /// Most segments that one ACK adds in slow start with byte counting (L of RFC 3465 §2.2), at least 1.
    /// After a time-out it is 1 (§2.3). [`u32::MAX`] means no limit, also after a time-out, as in Linux.
    pub abc_limit: u32,
    /// Detector of the end of slow start. `None` selects the algorithm's usual one: HyStart++ for CUBIC by
    /// the RFC, HyStart of 2011 for Linux's, and none for the others.
    pub hystart: Option<Hystart>,
    /// Variant of CUBIC.
    pub cubic: CubicRules,
    /// CUBIC's fast convergence (RFC 9438 §4.7).
    pub fast_convergence: bool,
    /// True if the sender spaces its segments, whatever sets the rate. HyStart++ then does not limit bursts.
    pub paced: bool,
    /// Deviations of paced chirping from its defaults.
    pub chirp: Rules,
    /// Seed of the algorithm's random choices, one per flow: the start of BBR's gain cycle.
    pub seed: u64,
}

impl Default for Options {
    /// Defaults as in Linux: byte counting without a limit.
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

/// Congestion control algorithm.
pub trait CongestionControl: fmt::Debug + Send {
    /// Reports that the connection is set up and may send. `rtt` is the duration of the handshake, if it was
    /// measured.
    fn on_established(&mut self, _w: &mut Window, _now: Time, _rtt: Option<Duration>) {}

    /// Reports an ACK that acknowledged data, cumulatively or by SACK. Called in every phase, since
    /// algorithms may observe ACKs without reacting to them. While the phase [reduces](Phase::reduces) the
    /// sender sets the window itself, unless [`CongestionControl::owns_recovery`].
    fn on_ack(&mut self, w: &mut Window, ack: &Ack);

    /// Reports congestion; sets [`Window::ssthresh`]. `in_flight` is FlightSize (RFC 5681 §3.1). The sender
    /// then brings `cwnd` there (to one segment after a time-out). Algorithms that own recovery set `cwnd` as
    /// well.
    fn on_congestion(&mut self, w: &mut Window, now: Time, in_flight: u64, congestion: Congestion);

    /// Reports an expiry of the retransmission timer, the first one or a later one. Everything lost as a
    /// result is already marked.
    fn on_timeout(&mut self, _w: &mut Window, _now: Time) {}

    /// Reports that recovery is complete. `cwnd` is as the sender left it.
    fn on_recovered(&mut self, _w: &mut Window, _now: Time) {}

    /// Reports that the last reduction was spurious (F-RTO, DSACK, Eifel). The sender has restored
    /// `ssthresh`, and `cwnd` if it was below its earlier value.
    fn on_undo(&mut self, _w: &mut Window, _now: Time) {}

    /// Reports that sending restarts after nothing was in flight for `idle`, however short (RFC 9438 §5.8).
    /// The sender itself reduces a long-unused window (RFC 5681 §4.1), but not for algorithms that own
    /// recovery. `by_application` is true if the application had nothing to send, as the delivery rate counts
    /// it.
    fn on_restart(&mut self, _w: &mut Window, _now: Time, _idle: Duration, _by_application: bool) {}
    /// Reports bytes found lost, by an ACK or by a timer, and again if their retransmission was lost. Called
    /// before any reaction to the loss.
    fn on_lost(&mut self, _bytes: u64) {}

    /// Reports a segment that leaves. Returns the minimum time to the next one, exact to the nanosecond; zero
    /// for at once. Windows and the application may delay the next segment further, and this delay is not
    /// made up for. Called for every segment, including retransmissions and probes. `None` leaves the gap to
    /// the sender, which paces, if told to, at Linux's multiple of cwnd / srtt.
    ///
    /// An algorithm that paces returns the time that its rate takes for the bytes of the segment. One that
    /// bounds its bursts returns zero several times and then more.
    fn on_send(&mut self, _w: &mut Window, _segment: &Departure) -> Option<Duration> {
        None
    }

    /// Returns the minimum number of segments handed down together, if the gaps of
    /// [`CongestionControl::on_send`] are those of a rate, paced as in Linux. At least this number leaves
    /// together, or the data of 1/1024 s at the rate if that is more; the gaps follow behind it. There are no
    /// gaps before the tenth segment. After a late segment the next one leaves earlier, by half a gap at
    /// most. `None` keeps every gap.
    fn least_at_once(&self) -> Option<u32> {
        None
    }
    /// Returns the most segments for which segmentation offload may make the sender wait, so that they leave
    /// together. 1 lets each leave as soon as its gap and the window allow.
    fn most_at_once(&self) -> u32 {
        u32::MAX
    }

    /// Returns whether the algorithm wants reports of single segments ([`CongestionControl::on_delivered`]).
    /// Asked once, when the connection is made. No segment records are kept for other algorithms.
    fn wants_records(&self) -> bool {
        false
    }

    /// Reports the segments that an ACK delivered, in stream order, at least one. Called before
    /// [`CongestionControl::on_ack`] for algorithms that [want it](CongestionControl::wants_records). Each
    /// segment is reported once, when it is acknowledged or SACKed as a whole, unless the receiver has
    /// discarded SACKed data (RFC 2018 §8).
    fn on_delivered(&mut self, _w: &mut Window, _ack: &Ack, _segments: &[Delivered]) {}

    /// Returns whether the algorithm sets `cwnd` during recovery too (BBR).
    fn owns_recovery(&self) -> bool {
        false
    }

    /// Returns whether the algorithm needs ECN with a receiver that echoes every mark (DCTCP, RFC 8257).
    fn wants_dctcp_ecn(&self) -> bool {
        false
    }
}

/// Constructor of an algorithm for a flow.
#[derive(Clone, Copy)]
pub struct Make(&'static (dyn Fn(&Options) -> Box<dyn CongestionControl> + Send + Sync));

impl Make {
    /// Creates the constructor that calls this function.
    pub const fn new(make: &'static (dyn Fn(&Options) -> Box<dyn CongestionControl> + Send + Sync)) -> Make {
        Make(make)
    }

    /// Makes the algorithm of a flow.
    pub fn with(&self, options: &Options) -> Box<dyn CongestionControl> {
        (self.0)(options)
    }
}

impl fmt::Debug for Make {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Make(..)")
    }
}

/// Algorithms by the names that Linux gives them; `chirp` is `weir_chirp` there. Programs [add](register)
/// their own.
pub const CONTROLS: &[(&str, Make)] = &[
    ("reno", Make::new(&reno::Reno::make)),
    ("cubic", Make::new(&cubic::Cubic::make)),
    ("dctcp", Make::new(&dctcp::Dctcp::make)),
    ("bbr", Make::new(&bbr::Bbr::make)),
    ("bic", Make::new(&bic::Bic::make)),
    ("chirp", Make::new(&chirp::Chirp::make)),
];

/// Returns the algorithm with this name, or `None`.
pub fn by_name(name: &str) -> Option<Make> {
    let built_in = CONTROLS.iter().find(|(n, _)| *n == name).map(|(_, make)| *make);
    built_in.or_else(|| own::by_name(name))
}
