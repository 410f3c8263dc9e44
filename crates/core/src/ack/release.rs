//! The laws of release, which let the acknowledgement advance, and what the gateway asks of them.

use super::{Pace, RateRelease, Segments, ShareRelease, Tick};
use crate::rate::Rate;
use crate::time::{Duration, Time};

/// Turns of a class that are further back are not made up for.
const SHARE_CATCH_UP: Duration = Duration::from_millis(100);

/// What lets the acknowledgement advance. A law is a variant here and a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// A per-flow rate: `ack bytes = rate × period`.
    Rate(RateRelease),
    /// A rate of all flows of a class together, in turns.
    Share(ShareRelease),
}

impl Release {
    /// The rate that each flow is set to, in what the law counts.
    pub const fn flow_rate(&self) -> Option<Rate> {
        match self {
            Release::Rate(law) => Some(law.rate),
            Release::Share(_) => None,
        }
    }

    /// The most that a flow may get, in what the law counts.
    pub const fn rate(&self) -> Rate {
        match self {
            Release::Rate(law) => law.rate,
            Release::Share(law) => law.rate,
        }
    }

    /// The law by which the flows of a class share its rate, if they do.
    pub const fn share(&self) -> Option<&ShareRelease> {
        match self {
            Release::Rate(_) => None,
            Release::Share(law) => Some(law),
        }
    }

    /// Missed release times further back than this are forfeited.
    pub const fn catch_up(&self) -> Duration {
        match self {
            Release::Rate(law) => law.catch_up,
            Release::Share(_) => SHARE_CATCH_UP,
        }
    }

    /// Bytes of credit that a flow keeps while nothing of it is held, if they are more than a step; not 0 for a policer.
    pub fn depth(&self) -> u32 {
        match self {
            Release::Rate(law) => law.depth(),
            Release::Share(_) => 0,
        }
    }

    /// What is kept of a flow that begins at `now`; `from_syn` tells that its sender begins, too.
    pub fn begin(&self, segments: &Segments, from_syn: bool, now: Time) -> Pace {
        match self {
            Release::Rate(law) => law.begin(segments, from_syn, now),
            Release::Share(law) => law.begin(now),
        }
    }

    /// The settings that `pace` followed have become these; `sized` tells that the window is sized. What is scheduled stays
    /// so, and the next release follows them.
    pub fn retune(&self, pace: &mut Pace, segments: &Segments, sized: bool) {
        match self {
            Release::Rate(law) => law.retune(pace, segments, sized),
            Release::Share(_) => {}
        }
    }

    /// A release time has come; see [`Pace::tick`].
    #[inline(always)]
    pub fn tick(&self, pace: &mut Pace, rtt: Duration, mss: u16, held: u32) -> Tick {
        match self {
            Release::Rate(law) => pace.tick(law, rtt, mss, held),
            Release::Share(_) => Tick { release: 0, entered_slow_start: false }, // its flows have no release times
        }
    }

    /// Bytes that may pass unasked before the flow is looked at again; see [`Pace::free`].
    pub fn free(&self, pace: &Pace, now: Time, within: Duration, rtt: Duration) -> u32 {
        match self {
            Release::Rate(_) => pace.free(now, within, rtt),
            Release::Share(_) => 0,
        }
    }

    /// Is the advertised window enough to bound a sender in slow start, if it is sized from its first right edge on?
    pub fn is_bounded_by_window(&self) -> bool {
        match self {
            Release::Rate(law) => law.is_gated(),
            Release::Share(_) => false,
        }
    }
}
