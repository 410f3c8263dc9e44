//! Packets: frames with their pool, and the headers on the wire.

pub mod frame;
mod segments;
pub mod wire;

pub use segments::{Counts, Segments};
