//! ACK control: deciding *when the acknowledgement number advances* sets the sender's rate, and no
//! data has to wait in the gateway.
//!
//! Every published scheme is a point in one space: *hold* (what is kept of a delayed ACK) ×
//! *release* (what lets the acknowledgement advance) × *window* (what is done to the advertised
//! window). [`AckControl::published`] is the ACK shaper without buffer (Vanini, Pan, Taheri,
//! Marinshaw 2019, figs 1 and 5): hold the number, release at a rate, keep the window.
//! [`AckControl::ack_shaper`] is the same with what makes it hold its rate: see `docs/ack-shaper.md`.

mod echo;
mod pace;
pub mod window;

pub use echo::Echoes;
pub use pace::{Arrival, Pace, Tick};

use crate::rate::Rate;
use crate::time::Duration;

/// One point in the space of ACK control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckControl {
    /// What is kept of a delayed ACK.
    pub hold: Hold,
    /// What lets the acknowledgement advance.
    pub release: Release,
    /// What is done to the advertised window.
    pub window: Window,
}

/// What is kept of a delayed ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Only the last ACK number received and the last one sent: constant memory per flow.
    Number,
}

/// What lets the acknowledgement advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// A per-flow rate: `ack bytes = rate × period`.
    Rate(RateRelease),
}

/// What is done to the advertised window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// It stays what the receiver said.
    Keep,
    /// At most rate × (WAN round-trip time + `standing_delay`), which bounds what is held.
    Size {
        /// How long acknowledged bytes may wait in the gateway; two periods at least.
        standing_delay: Duration,
    },
}

/// Release at a per-flow rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateRelease {
    /// The rate of each flow.
    pub rate: Rate,
    /// What the rate counts.
    pub counts: Counts,
    /// Whose bytes are held at the rate.
    pub meter: Meter,
    /// Time between two releases of a backlogged flow.
    pub period: Period,
    /// Detection of slow start.
    pub slow_start: SlowStart,
    /// Missed release times further back than this are forfeited.
    pub catch_up: Duration,
}

/// What a rate counts, per segment of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Counts {
    /// TCP payload acknowledged: what an application measures.
    #[default]
    Payload,
    /// IP packets: payload, TCP and IP headers.
    Ip,
    /// Ethernet frames: IP packet, Ethernet header with its tags, and FCS.
    Frame,
    /// Frames with preamble (8 bytes) and inter-frame gap (12).
    Wire,
}

/// Whose bytes are held at the rate: a sender whose window grows by so many bytes sends as many more than
/// it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Meter {
    /// What the sender is acknowledged, as in the paper.
    Acked,
    /// What the receiver got: less is acknowledged while the window grows.
    #[default]
    Received,
}

/// Time between two releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Always this long, as the paper's 10 ms timer; steps may be smaller than a segment (figs 6, 7).
    Fixed(Duration),
    /// `clamp(2 MSS / rate, min, max)`; where `max` would make the step smaller than one MSS, the
    /// step is one MSS and the period follows.
    Auto {
        /// Shortest period.
        min: Duration,
        /// Longest period.
        max: Duration,
    },
}

/// Detection of slow start, in which a sender answers each acknowledged byte with up to two: the step
/// is halved while it lasts. The smoothed progress per period, `m = 0.7 m + 0.3 progress`, is compared
/// with the full step (fig. 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStart {
    /// The paper's basic form (figs 4, 8–10): never halve.
    Ignore,
    /// Halve above `enter`, stop below `exit`.
    Detect {
        /// Ratio above which the flow is in slow start, in thousandths (default 1500; paper 2000).
        enter_milli: u32,
        /// Ratio below which slow start is over, in thousandths (default 750; paper 500).
        exit_milli: u32,
        /// Whether a flow seen from its SYN begins halved and the exit waits until a full step has
        /// been held for one WAN round trip and three periods. The paper does neither.
        gated: bool,
    },
}

impl SlowStart {
    /// The default detector: 1.5, 0.75, gated.
    pub const DETECT: SlowStart = SlowStart::Detect { enter_milli: 1500, exit_milli: 750, gated: true };
}

impl Period {
    /// The default: automatic between 500 us, which is less than a giant segment at 1 Gb/s, and 10 ms.
    pub const AUTO: Period = Period::Auto { min: Duration::from_micros(500), max: Duration::from_millis(10) };
}

impl AckControl {
    /// The preset `ack-shaper` with its defaults at `rate`: what the receiver gets is held at the rate, and the
    /// window is sized.
    pub const fn ack_shaper(rate: Rate) -> AckControl {
        AckControl {
            hold: Hold::Number,
            release: Release::Rate(RateRelease {
                rate,
                counts: Counts::Payload,
                meter: Meter::Received,
                period: Period::AUTO,
                slow_start: SlowStart::DETECT,
                catch_up: Duration::from_millis(100),
            }),
            window: Window::SIZE,
        }
    }

    /// The ACK shaper as published: what the sender is acknowledged is held at the rate, and the window stays what
    /// the receiver says. Without a bound a sender's window grows until the gateway holds all of it.
    pub const fn published(rate: Rate) -> AckControl {
        let AckControl { hold, release: Release::Rate(release), .. } = AckControl::ack_shaper(rate);
        let release = Release::Rate(RateRelease { meter: Meter::Acked, ..release });
        AckControl { hold, release, window: Window::Keep }
    }
}

impl Window {
    /// The default bound: 20 ms, or two periods where that is more.
    pub const SIZE: Window = Window::Size { standing_delay: Duration::from_millis(20) };
}
