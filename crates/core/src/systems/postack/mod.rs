//! PostACK: an ACK for each packet that leaves a queue.

mod events;
mod steps;

pub(crate) use events::{Alone, Came, Departure, Next};
pub use steps::Steps;
