//! The law *rate*: each flow is acknowledged at a rate of its own (ACK shaper, figs 1 and 5). This file has
//! its settings. Its state of a flow is a [`Pace`].

use super::Pace;
use crate::flow::LawState;
use crate::packet::{Counts, Segments};
use crate::rate::Rate;
use crate::steer::FlowLimit;
use crate::systems::{Law, Tick, Unresponsive};
use crate::time::{Duration, Time};

/// Release at a per-flow rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RateRelease {
    /// The rate of each flow.
    pub rate: Rate,
    /// Bytes that the rate counts.
    pub counts: Counts,
    /// Side whose bytes are held at the rate.
    pub meter: Meter,
    /// Time between two releases of a backlogged flow.
    pub period: Period,
    /// Detection of slow start.
    pub slow_start: SlowStart,
    /// Treatment of bursts.
    pub action: Action,
    /// Limit of catching up: release times further back than this are forfeited.
    pub catch_up: Duration,
    /// Treatment of what passes in spite of it all. [`Unresponsive::Count`] lets it pass.
    pub unresponsive: Unresponsive,
}

/// Treatment of bursts ("These techniques may be implemented as a policer or shaper": the paper's last
/// section).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum Action {
    /// Lets a flow that was idle be acknowledged one step at once.
    #[default]
    Shape,
    /// A token bucket at the flow's rate, full at first. Bytes that it covers pass unheld. Bytes beyond it
    /// are held and released at the rate. Over any time no more is acknowledged than the rate carries, the
    /// burst and a step.
    Police {
        /// Depth of the bucket in bytes of payload. At least 1, and a step if that is more.
        burst: u32,
    },
}

impl Action {
    /// The policer's default: a giant segment.
    pub const POLICE: Action = Action::Police { burst: 1 << 16 };
}

/// Side whose bytes are held at the rate. A sender whose window grows sends the growth in addition to the
/// bytes that it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum Meter {
    /// The bytes that the sender is acknowledged, as in the paper.
    Acked,
    /// The bytes that the receiver gets: less is acknowledged while the window grows.
    #[default]
    Received,
}

/// Time between two releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Period {
    /// Always this long, as the paper's 10 ms timer. Steps may be smaller than a segment (figs 6, 7).
    Fixed(Duration),
    /// `clamp(2 MSS / rate, min, max)`. Where `max` would make the step smaller than one MSS, the step is one
    /// MSS and the period follows.
    Auto {
        /// Shortest period.
        min: Duration,
        /// Longest period.
        max: Duration,
    },
}

/// Detection of slow start, in which a sender answers each acknowledged byte with up to two. The step is
/// halved while it lasts. The smoothed progress per period, `m = 0.7 m + 0.3 progress`, is compared with the
/// full step (fig. 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum SlowStart {
    /// The paper's basic form (figs 4, 8–10): never halve.
    Ignore,
    /// Halve above `enter_milli`, stop below `exit_milli`.
    Detect {
        /// Ratio above which the flow is in slow start, in thousandths (default 1500; paper 2000).
        enter_milli: u32,
        /// Ratio below which slow start is over, in thousandths (default 750; paper 500, see
        /// [`SlowStart::PUBLISHED`]).
        exit_milli: u32,
        /// Begins a flow seen from its SYN halved. The exit then waits until a full step has been held for
        /// one WAN round trip and three periods. The paper does neither.
        gated: bool,
    },
}

impl SlowStart {
    /// The default detector: 1.5, 0.75, gated.
    pub const DETECT: SlowStart = SlowStart::Detect { enter_milli: 1500, exit_milli: 750, gated: true };
    /// The detector as published: 2 and 0.5 (fig. 5). A sender at its largest window is acknowledged half
    /// steps and answers with as much, so its average reaches one half and does not fall below. Only noise
    /// ended slow start then. An average within 5 % of one half ends it here.
    pub const PUBLISHED: SlowStart = SlowStart::Detect { enter_milli: 2000, exit_milli: 525, gated: false };
}

impl Period {
    /// The default: automatic between 500 us, which is less than a giant segment at 1 Gb/s, and 10 ms.
    pub const AUTO: Period = Period::Auto { min: Duration::from_micros(500), max: Duration::from_millis(10) };

    /// Returns the time between two releases of a flow that is acknowledged `rate` in segments of `mss`
    /// bytes.
    pub(crate) fn at(self, rate: Rate, mss: u16) -> Duration {
        match self {
            Period::Fixed(d) => d,
            Period::Auto { min, max } => {
                let segment = rate.time_for(u64::from(mss));
                segment.saturating_mul(2).clamp(min, max.max(min)).max(segment)
            }
        }
    }
}

impl RateRelease {
    /// Returns the law at `rate` with its defaults.
    pub const fn new(rate: Rate) -> RateRelease {
        RateRelease {
            rate,
            counts: Counts::Payload,
            meter: Meter::Received,
            period: Period::AUTO,
            slow_start: SlowStart::DETECT,
            action: Action::Shape,
            catch_up: Duration::from_millis(100),
            unresponsive: Unresponsive::Bound,
        }
    }

    /// Returns the credit in bytes that a flow keeps while it holds nothing, if that is more than a step. 0
    /// for a shaper.
    pub(crate) fn depth(&self) -> u32 {
        match self.action {
            Action::Shape => 0,
            Action::Police { burst } => burst,
        }
    }

    /// Returns whether a flow seen from its SYN begins halved.
    pub(crate) fn is_gated(&self) -> bool {
        matches!(self.slow_start, SlowStart::Detect { gated: true, .. })
    }

    /// Returns the payload rate that the rate allows flows of these segments.
    fn payload_rate(&self, segments: &Segments) -> Rate {
        segments.payload_rate(self.rate, self.counts)
    }
}

impl RateRelease {
    /// The name of the law in configurations.
    pub(crate) const NAME: &'static str = "rate";
}

impl Law for RateRelease {
    fn name(&self) -> &'static str {
        RateRelease::NAME
    }
    fn rate(&self) -> Rate {
        self.rate
    }
    fn catch_up(&self) -> Duration {
        self.catch_up
    }
    fn depth(&self) -> u32 {
        RateRelease::depth(self)
    }
    fn begin(&self, segments: &Segments, from_syn: bool, now: Time) -> LawState {
        Pace::new(self, self.payload_rate(segments), segments.payload, from_syn, now).into()
    }
    fn retune(&self, state: &mut LawState, segments: &Segments, sized: bool) {
        state.pace_mut().retune(self, self.payload_rate(segments), segments.payload, sized);
    }
    #[inline(always)]
    fn tick(&self, state: &mut LawState, rtt: Duration, mss: u16, held: u32) -> Tick {
        state.pace_mut().tick(self, rtt, mss, held)
    }
    fn free(&self, state: &LawState, now: Time, within: Duration, rtt: Duration) -> u32 {
        state.pace().free(now, within, rtt)
    }
    fn counts(&self) -> Counts {
        self.counts
    }
    fn set_counts(&mut self, counts: Counts) {
        self.counts = counts;
    }
    fn flow_limit(&self, ahead: Duration) -> Option<FlowLimit> {
        let burst = if let Action::Police { burst } = self.action { burst } else { 0 };
        let limit = FlowLimit { rate: self.rate, ahead, burst };
        (self.unresponsive != Unresponsive::Count).then_some(limit)
    }
    fn set_unresponsive(&mut self, unresponsive: Unresponsive) {
        self.unresponsive = unresponsive;
    }
    fn is_bounded_by_window(&self) -> bool {
        self.is_gated()
    }
}
