//! Classes whose flows share a rate by their ACKs.

mod settings;

pub use settings::{ShareRelease, Turn, Turns, Unresponsive};
