//! Packets: frames with their pool, and the headers on the wire.

pub mod frame;
mod link_layer;
pub(crate) mod pppoe;
mod segments;
pub mod wire;

pub use link_layer::{Cells, LinkLayer};
pub use segments::{Counts, Segments};
