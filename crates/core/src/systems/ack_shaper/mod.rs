//! The ACK shaper: each flow is acknowledged at a rate of its own. [`RateRelease`] has the settings,
//! and [`Pace`] is the state of a flow.

mod congestion;
mod pace;
mod settings;

pub use congestion::Congestion;
pub use pace::{Arrival, Pace};
pub use settings::{Action, Meter, Period, RateRelease, SlowStart};
