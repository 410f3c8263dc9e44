//! Packets: frames with their pool, and the headers on the wire.

pub mod frame;
mod link_layer;
pub mod mark;
pub(crate) mod pppoe;
mod segments;
pub mod wire;

pub use link_layer::{Cells, LinkLayer};
pub use segments::{Counts, Segments};

/// Returns a 16-bit field in network order, if present.
#[inline]
pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    wire::array(bytes, at).map(u16::from_be_bytes)
}
