//! The laws of release, which let the acknowledgement advance, and their interface to the gateway.

mod rate;
mod share;

pub use rate::{Action, Counts, Meter, Period, RateRelease, Segments, SlowStart};
pub use share::{ShareRelease, Turn, Turns, Unresponsive};

use super::{Pace, Tick};
use crate::rate::Rate;
use crate::time::{Duration, Time};

/// Interface of a law to the gateway. A new law is a file with an implementation, a variant of [`Release`]
/// and its row in `each`. If configurations name it, it also has a row in [`LAWS`].
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

/// Law that lets the acknowledgement advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// A per-flow rate: `ack bytes = rate × period`.
    Rate(RateRelease),
    /// A rate that all flows of a class share, in turns.
    Share(ShareRelease),
}

/// Calls the law behind a [`Release`].
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

/// Laws that a configuration names for flows with a rate each. (Flows share the rate of a class without a
/// name for it.)
pub const LAWS: &[(&str, NewLaw)] = &[(RateRelease::NAME, |rate| Release::Rate(RateRelease::new(rate)))];

impl Release {
    /// Returns the name of the law.
    pub fn name(&self) -> &'static str {
        each!(self, law => law.name())
    }

    /// Returns the rate that each flow is set to, in the bytes that the law counts.
    pub fn flow_rate(&self) -> Option<Rate> {
        each!(self, law => law.flow_rate())
    }

    /// Returns the most that a flow may get, in the bytes that the law counts.
    pub fn rate(&self) -> Rate {
        each!(self, law => law.rate())
    }

    /// Returns the law by which the flows of a class share its rate, if they do.
    pub fn share(&self) -> Option<&ShareRelease> {
        each!(self, law => law.share())
    }

    /// Returns the limit of catching up: release times further back than this are forfeited.
    pub fn catch_up(&self) -> Duration {
        each!(self, law => law.catch_up())
    }

    /// Returns the credit in bytes that a flow keeps while it holds nothing, if that is more than a step. 0
    /// unless the law is a policer.
    pub fn depth(&self) -> u32 {
        each!(self, law => law.depth())
    }

    /// Returns the state of a flow that begins at `now`. `from_syn` tells that its sender begins, too.
    pub fn begin(&self, segments: &Segments, from_syn: bool, now: Time) -> Pace {
        each!(self, law => law.begin(segments, from_syn, now))
    }

    /// Applies changed settings to `pace`. `sized` tells that the window is sized. A scheduled release stays,
    /// and later ones follow the new settings.
    pub fn retune(&self, pace: &mut Pace, segments: &Segments, sized: bool) {
        each!(self, law => law.retune(pace, segments, sized));
    }

    /// Carries out a release time, see [`Pace::tick`].
    #[inline(always)]
    pub fn tick(&self, pace: &mut Pace, rtt: Duration, mss: u16, held: u32) -> Tick {
        each!(self, law => law.tick(pace, rtt, mss, held))
    }

    /// Returns the bytes that may pass unasked before the flow is looked at again, see [`Pace::free`].
    pub fn free(&self, pace: &Pace, now: Time, within: Duration, rtt: Duration) -> u32 {
        each!(self, law => law.free(pace, now, within, rtt))
    }

    /// Returns whether the advertised window bounds a sender in slow start, if it is sized from its first
    /// right edge on.
    pub fn is_bounded_by_window(&self) -> bool {
        each!(self, law => law.is_bounded_by_window())
    }
}
