//! ACK control: the time at which *the acknowledgement number advances* sets the sender's rate, and no data
//! has to wait in the gateway.
//!
//! Every published scheme is a point in one space: *hold* (the state kept of a delayed ACK) × *release* (the
//! law that lets the acknowledgement advance) × *window* (the treatment of the advertised window).
//!
//! - [`PRESETS`] are named points of this space.
//! - [`AckControl::published`] is the ACK shaper without buffer (Vanini, Pan, Taheri, Marinshaw 2019, figs 1
//!   and 5): hold the number, release at a rate, keep the window.
//! - [`AckControl::ack_shaper`] adds to it the measures that make it hold its rate: see `docs/ack-shaper.md`.
//! - [`CLASS_PRESETS`] are for classes whose flows share a rate. They are TCP rate control and the forms of
//!   PostACK, from Wei et al., TCP rate shaping over edge gateways (the PostACK paper).

mod hold;
mod news;
mod presets;
mod release;
pub mod window;

pub use hold::{Fate, Hold};
pub use news::News;
pub use presets::{preset, ClassPreset, Leaf, Preset, CLASS_PRESETS, PRESETS};
pub use release::{NewLaw, Release, LAWS};

pub use crate::packet::{Counts, Segments};
pub use crate::systems::ack_shaper::{Action, Arrival, Meter, Pace, Period, RateRelease, SlowStart};
pub use crate::systems::class_rate::{ShareRelease, Turn, Turns};
pub use crate::systems::postack::Scheme;
pub use crate::systems::{Tick, Unresponsive};
pub use crate::tcp::{Kind, ACE_MOST};

use crate::flow::{flag, Record};
use crate::queue::QueueLimit;
use crate::time::Duration;

/// One point in the space of ACK control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AckControl {
    /// State kept of a delayed ACK.
    pub hold: Hold,
    /// Law that lets the acknowledgement advance.
    pub release: Release,
    /// Treatment of the advertised window.
    pub window: Window,
    /// Condition under which ACKs are held.
    pub when: When,
}

impl AckControl {
    /// Returns whether ACKs may be held now, of the class with this index if it still has one.
    #[inline(always)]
    pub(crate) fn engages(
        &self,
        congestion: &crate::systems::ack_shaper::Congestion,
        class: Option<u32>,
    ) -> bool {
        self.when == When::Always || class.is_some_and(|class| congestion.is(class as usize))
    }
}

/// Condition under which ACKs are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum When {
    /// No further condition: the release alone decides.
    #[default]
    Always,
    /// While the queue of the flow's class is long: the "in-switch reaction mechanism in combination with
    /// early congestion detection" of the ACK shaper's paper. Otherwise ACKs pass unheld and are not charged
    /// to the rate.
    ///
    /// The class becomes congested when its backlog exceeds the threshold, and stops being so at half of it
    /// (hysteresis). A flow then begins with a step of credit, like one that was idle. ACKs still held when
    /// congestion ends leave with the flow's next ACK or release time. The window is kept: a sized one would
    /// bound the flow all the time.
    Congested {
        /// The threshold, in packets or bytes.
        above: QueueLimit,
    },
}

impl When {
    /// The default threshold: 30 packets.
    pub const CONGESTED: When = When::Congested { above: QueueLimit::Packets(30) };
}

/// Treatment of the advertised window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Window {
    /// Leaves it as the receiver advertised it.
    Keep,
    /// Clamps it to rate × (WAN round-trip time + `standing_delay`), which bounds the held bytes.
    Size {
        /// Time that acknowledged bytes may wait in the gateway. Two periods at least.
        standing_delay: Duration,
    },
}

impl Window {
    /// The default bound: 20 ms, or two periods if that is longer.
    pub const SIZE: Window = Window::Size { standing_delay: Duration::from_millis(20) };
}

/// Flags that say by which kind of law a flow is held and released.
const LAW: u32 = flag::SHARED | flag::STEPS | flag::QUEUED;

impl Record {
    /// Lets the flow be held and released by this policy.
    pub(crate) fn obey(&mut self, policy: &AckControl) {
        self.flags = self.flags & !LAW | law_flags(policy);
    }

    /// Returns whether what is kept of the flow is what such a policy keeps.
    pub(crate) fn obeys(&self, policy: &AckControl) -> bool {
        self.flags & LAW == law_flags(policy)
    }
}

fn law_flags(policy: &AckControl) -> u32 {
    let shared = match policy.release.share() {
        Some(law) if law.is_of_acks() => flag::SHARED | flag::STEPS,
        Some(_) => flag::SHARED,
        None => 0,
    };
    shared | if policy.hold == Hold::Queue { flag::QUEUED } else { 0 }
}
