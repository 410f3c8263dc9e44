//! PostACK: an ACK for each packet that leaves a queue.

mod events;
mod queue;
mod steps;

pub(crate) use events::{Alone, Came, Departure, Next};
pub(crate) use queue::Departures;
pub use steps::Steps;
