//! The laws of release, which let the acknowledgement advance, and what the gateway asks of them.

mod rate;
mod share;

pub use rate::{Action, Counts, Meter, Period, RateRelease, Segments, SlowStart};
pub use share::{ShareRelease, Turn, Turns, Unresponsive};

use super::{Pace, Tick};
use crate::rate::Rate;
use crate::time::{Duration, Time};

/// Everything that the gateway asks of a law. A new law is a file with this, a variant of [`Release`] and its row in `each`; where
/// configurations name it, its row in [`LAWS`] too.
trait Law {
    /// See [`Release::name`].
    fn name(&self) -> &'static str;
    /// See [`Release::rate`].
    fn rate(&self) -> Rate;
    /// See [`Release::flow_rate`].
    fn flow_rate(&self) -> Option<Rate> {
        Some(self.rate())
    }
    /// See [`Release::share`].
    fn share(&self) -> Option<&ShareRelease> {
        None
    }
    /// See [`Release::catch_up`].
    fn catch_up(&self) -> Duration {
        Duration::from_millis(100)
    }
    /// See [`Release::depth`].
    fn depth(&self) -> u32 {
        0
    }
    /// See [`Release::begin`].
    fn begin(&self, segments: &Segments, from_syn: bool, now: Time) -> Pace;
    /// See [`Release::retune`].
    fn retune(&self, _pace: &mut Pace, _segments: &Segments, _sized: bool) {}
    /// See [`Release::tick`].
    fn tick(&self, pace: &mut Pace, rtt: Duration, mss: u16, held: u32) -> Tick;
    /// See [`Release::free`].
    fn free(&self, _pace: &Pace, _now: Time, _within: Duration, _rtt: Duration) -> u32 {
        0
    }
    /// See [`Release::is_bounded_by_window`].
    fn is_bounded_by_window(&self) -> bool {
        false
    }
}

/// What lets the acknowledgement advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// A per-flow rate: `ack bytes = rate × period`.
    Rate(RateRelease),
    /// A rate of all flows of a class together, in turns.
    Share(ShareRelease),
}

/// Calls the law, whichever it is.
macro_rules! each {
    ($release:expr, $law:ident => $call:expr) => {
        match $release {
            Release::Rate($law) => $call,
            Release::Share($law) => $call,
        }
    };
}

/// A law with its defaults, for flows of this rate each.
pub type NewLaw = fn(Rate) -> Release;

/// The laws that a configuration names for flows with a rate each. (Flows share the rate of a class without a name for it.)
pub const LAWS: &[(&str, NewLaw)] = &[(RateRelease::NAME, |rate| Release::Rate(RateRelease::new(rate)))];

impl Release {
    /// The name of the law.
    pub fn name(&self) -> &'static str {
        each!(self, law => law.name())
    }

    /// The rate that each flow is set to, in what the law counts.
    pub fn flow_rate(&self) -> Option<Rate> {
        each!(self, law => law.flow_rate())
    }

    /// The most that a flow may get, in what the law counts.
    pub fn rate(&self) -> Rate {
        each!(self, law => law.rate())
    }

    /// The law by which the flows of a class share its rate, if they do.
    pub fn share(&self) -> Option<&ShareRelease> {
        each!(self, law => law.share())
    }

    /// Missed release times further back than this are forfeited.
    pub fn catch_up(&self) -> Duration {
        each!(self, law => law.catch_up())
    }

    /// Bytes of credit that a flow keeps while nothing of it is held, if they are more than a step; not 0 for a policer.
    pub fn depth(&self) -> u32 {
        each!(self, law => law.depth())
    }

    /// What is kept of a flow that begins at `now`; `from_syn` tells that its sender begins, too.
    pub fn begin(&self, segments: &Segments, from_syn: bool, now: Time) -> Pace {
        each!(self, law => law.begin(segments, from_syn, now))
    }

    /// The settings that `pace` followed have become these; `sized` tells that the window is sized. What is scheduled stays
    /// so, and the next release follows them.
    pub fn retune(&self, pace: &mut Pace, segments: &Segments, sized: bool) {
        each!(self, law => law.retune(pace, segments, sized));
    }

    /// A release time has come; see [`Pace::tick`].
    #[inline(always)]
    pub fn tick(&self, pace: &mut Pace, rtt: Duration, mss: u16, held: u32) -> Tick {
        each!(self, law => law.tick(pace, rtt, mss, held))
    }

    /// Bytes that may pass unasked before the flow is looked at again; see [`Pace::free`].
    pub fn free(&self, pace: &Pace, now: Time, within: Duration, rtt: Duration) -> u32 {
        each!(self, law => law.free(pace, now, within, rtt))
    }

    /// Is the advertised window enough to bound a sender in slow start, if it is sized from its first right edge on?
    pub fn is_bounded_by_window(&self) -> bool {
        each!(self, law => law.is_bounded_by_window())
    }
}
