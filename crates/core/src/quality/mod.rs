//! Quality of TCP flows, as far as a box on their path can tell: round-trip times of both sides apart,
//! data that was sent again or came out of order, and the time for which ACKs are held here.
//!
//! One measurement at a time goes around each flow. A hook begins it with a segment of new data (`sight`).
//! The ACK of that data ends the round trip to the receiver. From then until the ACK leaves, it is held here.
//! Data that echoes the ACK's timestamp ends the round trip to the sender. So a flow is charged for one
//! measurement each round trip, whatever its rate, and the three parts add up to what the sender measures.
//!
//! - `sight`: what hooks and gateway both know of a flow's measurement, and the counters of its data;
//! - `flow`: the results of one flow; `sketch`: the distribution of many; `class`: that of a class, with all
//!   below it;
//! - `score`: one number between 0 and 100 for an application.
//!
//! Nothing is measured without a believed segment: data beyond the receiver's right edge, and ACKs that the
//! tracker does not believe, change nothing here. No value is longer than four seconds.

mod class;
mod flow;
mod score;
mod sight;
mod sketch;

pub(crate) use class::Qualities;
pub use class::Quality;
pub use flow::{FlowQuality, Rtt, Side};
pub use score::{score, Latency, Measured, Profile, PROFILES, QUANTILES};
pub(crate) use sight::Answer;
pub use sight::{Data, Repeat, Sight, Told};
pub use sketch::{Sketch, BYTES as SKETCH_BYTES};

use crate::base::time::{Duration, Time};

/// Bytes that the quality of a flow takes: its sight, and its results.
pub const FLOW_BYTES: usize = core::mem::size_of::<Sight>() + core::mem::size_of::<FlowQuality>();

const _: () = assert!(FLOW_BYTES <= 64);

/// The longest time that is measured, in [`units`].
pub const LONGEST: u32 = 1 << 22;

/// `now` in units of 2^10 ns. It wraps after 73 minutes.
pub const fn units(now: Time) -> u32 {
    (now.as_nanos() >> 10) as u32
}

/// A time in [`units`] as a duration.
pub const fn duration(units: u32) -> Duration {
    Duration::from_nanos((units as u64) << 10)
}

/// Time from one moment to another, in [`units`]; `None` if it is longer than [`LONGEST`], or negative.
const fn between(from: u32, to: u32) -> Option<u32> {
    let time = to.wrapping_sub(from);
    if time <= LONGEST {
        Some(time)
    } else {
        None
    }
}
