//! ACK control: deciding *when the acknowledgement number advances* sets the sender's rate, and no
//! data has to wait in the gateway.
//!
//! Every published scheme is a point in one space: *hold* (what is kept of a delayed ACK) ×
//! *release* (what lets the acknowledgement advance) × *window* (what is done to the advertised
//! window). [`PRESETS`] are points of it by name. [`AckControl::published`] is the ACK shaper without buffer
//! (Vanini, Pan, Taheri, Marinshaw 2019, figs 1 and 5): hold the number, release at a rate, keep the window.
//! [`AckControl::ack_shaper`] is the same with what makes it hold its rate: see `docs/ack-shaper.md`. [`CLASS_PRESETS`] are
//! those of Wei et al., TCP rate shaping over edge gateways (the PostACK paper): TCP rate control and PostACK in its forms, for
//! classes whose flows share a rate.

mod echo;
pub mod filter;
mod hold;
mod news;
mod pace;
mod presets;
mod release;
pub mod window;

pub use echo::Echoes;
pub use hold::{Fate, Hold};
pub use news::{Kind, News, ACE_MOST};
pub use pace::{Arrival, Pace, Tick};
pub use presets::{preset, ClassPreset, Leaf, Preset, CLASS_PRESETS, PRESETS};
pub use release::{
    Action, Counts, Meter, NewLaw, Period, RateRelease, Release, Segments, ShareRelease, SlowStart, Turn,
    Turns, Unresponsive, LAWS,
};

use crate::queue::QueueLimit;
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
    /// When ACKs are held at all.
    pub when: When,
}

/// When ACKs are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum When {
    /// Whenever the release says so.
    #[default]
    Always,
    /// While the queue of the flow's class is long: the "in-switch reaction mechanism in combination with early congestion
    /// detection" of the ACK shaper's paper. Otherwise ACKs pass as they come, and the rate is not asked. The class begins to be
    /// congested when more than a threshold waits, and ends to be when no more than half of it does. A flow
    /// begins with a step of credit then, as one that was idle; what is held in the end leaves with its next ACK or release time. The
    /// window is kept: one that is sized would bound the flow all the time.
    Congested {
        /// The threshold, in packets or bytes.
        above: QueueLimit,
    },
}

impl When {
    /// The default threshold: 30 packets.
    pub const CONGESTED: When = When::Congested { above: QueueLimit::Packets(30) };
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

impl Window {
    /// The default bound: 20 ms, or two periods where that is more.
    pub const SIZE: Window = Window::Size { standing_delay: Duration::from_millis(20) };
}
