//! The interface of a law of release.

use super::ack_shaper::Tick;
use super::class_rate::ShareRelease;
use crate::flow::LawState;
use crate::packet::Segments;
use crate::rate::Rate;
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
    /// See [`Release::share`](crate::ack::Release::share).
    fn share(&self) -> Option<&ShareRelease> {
        None
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
    /// See [`Release::is_bounded_by_window`](crate::ack::Release::is_bounded_by_window).
    fn is_bounded_by_window(&self) -> bool {
        false
    }
}
