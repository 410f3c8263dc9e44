//! Classes whose flows share a rate by their ACKs.

mod settings;
mod turn;

pub use settings::{ShareRelease, Turns, Unresponsive};
pub(crate) use turn::Place;
pub use turn::Turn;
