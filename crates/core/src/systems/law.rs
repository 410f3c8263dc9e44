//! The interface of a law of release, and what the laws have in common.

use crate::flow::LawState;
use crate::packet::{Counts, Segments};
use crate::rate::Rate;
use crate::steer::FlowLimit;
use crate::time::{Duration, Time};

/// Interface of a law to the gateway. A new law is a file with an implementation, a variant of
/// [`Release`](crate::ack::Release) and its row in `each`. If configurations name it, it also has a row in
/// [`LAWS`](crate::ack::LAWS).
pub(crate) trait Law {
    /// See [`Release::name`](crate::ack::Release::name).
    fn name(&self) -> &'static str;
    /// See [`Release::rate`](crate::ack::Release::rate).
    fn rate(&self) -> Rate;
    /// See [`Release::flow_rate`](crate::ack::Release::flow_rate).
    fn flow_rate(&self) -> Option<Rate> {
        Some(self.rate())
    }
    /// See [`Release::catch_up`](crate::ack::Release::catch_up).
    fn catch_up(&self) -> Duration {
        Duration::from_millis(100)
    }
    /// See [`Release::depth`](crate::ack::Release::depth).
    fn depth(&self) -> u32 {
        0
    }
    /// See [`Release::begin`](crate::ack::Release::begin).
    fn begin(&self, segments: &Segments, from_syn: bool, now: Time) -> LawState;
    /// See [`Release::retune`](crate::ack::Release::retune).
    fn retune(&self, _state: &mut LawState, _segments: &Segments, _sized: bool) {}
    /// See [`Release::tick`](crate::ack::Release::tick).
    #[inline(always)]
    fn tick(&self, _state: &mut LawState, _rtt: Duration, _mss: u16, _held: u32) -> Tick {
        Tick { release: 0, entered_slow_start: false }
    }
    /// See [`Release::free`](crate::ack::Release::free).
    fn free(&self, _state: &LawState, _now: Time, _within: Duration, _rtt: Duration) -> u32 {
        0
    }
    /// See [`Release::counts`](crate::ack::Release::counts).
    fn counts(&self) -> Counts {
        Counts::Payload
    }
    /// See [`Release::set_counts`](crate::ack::Release::set_counts).
    fn set_counts(&mut self, _counts: Counts) {}
    /// See [`Release::flow_limit`](crate::ack::Release::flow_limit).
    fn flow_limit(&self, _ahead: Duration) -> Option<FlowLimit> {
        None
    }
    /// See [`Release::set_unresponsive`](crate::ack::Release::set_unresponsive).
    fn set_unresponsive(&mut self, _unresponsive: Unresponsive) {}
    /// See [`Release::is_bounded_by_window`](crate::ack::Release::is_bounded_by_window).
    fn is_bounded_by_window(&self) -> bool {
        false
    }
}

/// Outcome of one release time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// Bytes to acknowledge now.
    pub release: u32,
    /// Slow start has just been detected.
    pub entered_slow_start: bool,
}

/// The treatment of traffic that ACKs cannot slow: datagrams, and TCP that is not controlled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum Unresponsive {
    /// Clamps it to the class's rate, or a tenth less where the class has TCP. All traffic of the class
    /// together has a [bound](crate::steer::Bound).
    #[default]
    Bound,
    /// `Bound` with a bucket of 20 ms.
    Police,
    /// Counts it and charges it to the class. Nothing is dropped.
    Count,
    /// Holds each flow to its fair share of the class's rate, by a [virtual queue](crate::steer::FlowQueues)
    /// of this depth, as time at the share.
    Fair {
        /// Depth of the queue.
        burst: Duration,
    },
    /// Holds each flow to its fair share of the class's rate. What exceeds it waits in a queue of the flow,
    /// which takes turns with the flows of the class whose ACKs are controlled.
    Queue,
}

/// Longest wait in the queue of a flow that has spilled, and depth of its virtual queue where it cannot
/// spill, as time at its fair share.
pub(crate) const QUEUED: Duration = Duration::from_millis(50);
/// Time at its fair share that a flow may be ahead before it spills.
const AHEAD: Duration = Duration::from_millis(5);

impl Unresponsive {
    /// `Fair` with queues as deep as usual.
    pub const FAIR: Unresponsive = Unresponsive::Fair { burst: Duration::from_millis(100) };

    /// Returns the depth of each flow's virtual queue, as time at its fair share. `None`: it has none.
    pub const fn depth(self) -> Option<Duration> {
        match self {
            Unresponsive::Fair { burst } => Some(burst),
            Unresponsive::Queue => Some(QUEUED),
            _ => None,
        }
    }

    /// Returns the time at its fair share that waits in a flow's virtual queue when the flow spills. `None`:
    /// no flow does.
    pub const fn spills(self) -> Option<Duration> {
        match self {
            Unresponsive::Queue => Some(AHEAD),
            _ => None,
        }
    }

    /// Returns the burst of all flows that may pass at once, as time at the rate. `None`: it has no bound of
    /// its own.
    pub const fn burst(self) -> Option<Duration> {
        match self {
            Unresponsive::Bound => Some(Duration::from_millis(40)),
            Unresponsive::Police => Some(Duration::from_millis(20)),
            Unresponsive::Count | Unresponsive::Fair { .. } | Unresponsive::Queue => None,
        }
    }
}
