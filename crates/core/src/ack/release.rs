//! The laws of release, which let the acknowledgement advance.

use crate::flow::LawState;
use crate::packet::{Counts, Segments};
use crate::rate::Rate;
use crate::steer::FlowLimit;
use crate::systems::ack_shaper::RateRelease;
use crate::systems::class_rate::ShareRelease;
use crate::systems::{Law, Tick, Unresponsive};
use crate::time::{Duration, Time};

/// Law that lets the acknowledgement advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
        if let Release::Share(law) = self {
            Some(law)
        } else {
            None
        }
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
    pub fn begin(&self, segments: &Segments, from_syn: bool, now: Time) -> LawState {
        each!(self, law => law.begin(segments, from_syn, now))
    }

    /// Applies changed settings to `state`. `sized` tells that the window is sized. A scheduled release
    /// stays, and later ones follow the new settings.
    pub fn retune(&self, state: &mut LawState, segments: &Segments, sized: bool) {
        each!(self, law => law.retune(state, segments, sized));
    }

    /// Carries out a release time, see [`Pace::tick`](super::Pace::tick). A law whose flows have turns
    /// releases nothing by it.
    #[inline(always)]
    pub fn tick(&self, state: &mut LawState, rtt: Duration, mss: u16, held: u32) -> Tick {
        each!(self, law => law.tick(state, rtt, mss, held))
    }

    /// Returns the bytes that may pass unasked before the flow is looked at again, see
    /// [`Pace::free`](super::Pace::free).
    pub fn free(&self, state: &LawState, now: Time, within: Duration, rtt: Duration) -> u32 {
        each!(self, law => law.free(state, now, within, rtt))
    }

    /// Returns the bytes that the rate counts.
    pub fn counts(&self) -> Counts {
        each!(self, law => law.counts())
    }

    /// Returns the terms of the bound that each flow has of its own, if it has one. Where its window is kept,
    /// its sender may be `ahead`.
    pub fn flow_limit(&self, ahead: Duration) -> Option<FlowLimit> {
        each!(self, law => law.flow_limit(ahead))
    }

    /// Changes the bytes that the rate counts.
    pub fn set_counts(&mut self, counts: Counts) {
        each!(self, law => law.set_counts(counts));
    }

    /// Changes the treatment of traffic that ACKs cannot slow.
    pub fn set_unresponsive(&mut self, unresponsive: Unresponsive) {
        each!(self, law => law.set_unresponsive(unresponsive));
    }

    /// Returns whether the advertised window bounds a sender in slow start, if it is sized from its first
    /// right edge on.
    pub fn is_bounded_by_window(&self) -> bool {
        each!(self, law => law.is_bounded_by_window())
    }
}
