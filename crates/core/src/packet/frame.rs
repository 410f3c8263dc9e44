//! Frames: small handles on chunks of a pool.
//!
//! Inline, the kernel receives into the pool's chunks and sends from them. A frame is never copied between
//! receive and transmit. In virtual time the pool is ordinary memory and chunks hold headers only: the
//! payload is just a length. A giant segment lies in several chunks, each linked to the next in a table
//! beside the pool. It is handed on and given back as a whole.
//!
//! A frame leaves in one of three ways, and each is counted. It is transmitted (the driver takes the handle),
//! dropped with a reason, or absorbed (its information lives on in a flow's record).
//!
//! In virtual time a frame may be a **draft**: its headers are not written yet, and no bytes are present. Its
//! chunk keeps the values of the headers in the maker's own form. They are written when a node has to read
//! them ([`Node::takes_drafts`](crate::node::Node::takes_drafts) returns true for nodes that do not).
//!
//! A frame that waits or flies is [parked](Frames::park) in the pool. A [`List`] of waiting frames takes 12
//! bytes. The links between its frames lie beside the chunks, one cache line each.

mod charge;
mod list;
mod pool;
#[cfg(test)]
mod tests;

pub(crate) use charge::link_header;
pub use charge::Charge;
pub use list::{Head, List, Parked, Waiting};
pub use pool::Frames;

use crate::base::time::Time;

/// No chunk: the end of a chain.
pub const NO_CHUNK: u32 = u32::MAX;

/// State of a frame's transport checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Checksum {
    /// State before verification.
    #[default]
    Unknown,
    /// Complete and valid: a rewrite updates it incrementally (RFC 1624).
    Valid,
    /// Only the pseudo-header is summed (virtual devices). To be computed in full before the frame leaves.
    Partial,
    /// Complete and wrong, or missing. Such frames are forwarded untouched and never change flow state.
    Invalid,
}

/// A frame: a handle on one chunk of a [`Frames`] pool. Not `Clone`: its owner gives it up by transmitting,
/// dropping or absorbing it.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a frame is transmitted, dropped with a reason, or absorbed"]
pub struct Frame {
    chunk: u32,
    next: u32,
    len: u32,
    offset: u16,
    head: u16,
    /// Bytes of the chunk in which its maker keeps the values of its headers. 0 when they are written.
    draft: u16,
    /// Payload bytes of each segment when this frame stands for several. 0 for one segment.
    pub gso_size: u16,
    /// State of the transport checksum.
    pub checksum: Checksum,
    /// Request to update the frame on departure: it is an ACK without payload whose sequence number, TSval
    /// and window become the current ones ([`Slot::stamp`](crate::tcp::steer::Slot::stamp)). Every other
    /// frame leaves as it is. On an arriving frame: a hook has counted it among those that it took
    /// ([`Slot::take`](crate::tcp::steer::Slot::take)).
    pub restamp: bool,
    /// Number of its flow at the receiver, which has given it to the frame's maker. [`Frame::NO_HINT`] if it
    /// is not known. It is used for prefetching only. Of a frame whose flow has
    /// [spilled](crate::tcp::steer::Spill), the number of its queue.
    pub hint: u16,
    /// Time of reception, stamped as near to the wire as the port can.
    pub received: Time,
}

// Without padding, copies are made in whole words. A read of one word need not wait for all of them to be
// written.
const _: () = assert!(size_of::<Frame>() == 32);

impl Frame {
    /// See [`Frame::hint`].
    pub const NO_HINT: u16 = u16::MAX;

    /// Returns a frame of `len` bytes. The first `head` of them lie in a chunk, from `offset` on.
    #[inline]
    fn in_chunk(chunk: u32, offset: usize, head: usize, len: usize, received: Time) -> Frame {
        Frame {
            chunk,
            next: NO_CHUNK,
            len: len as u32,
            offset: offset as u16,
            head: head as u16,
            draft: 0,
            gso_size: 0,
            checksum: Checksum::Unknown,
            restamp: false,
            hint: Frame::NO_HINT,
            received,
        }
    }

    /// Returns the placeholder of an empty place.
    #[inline]
    pub(crate) fn nothing() -> Frame {
        Frame::in_chunk(NO_CHUNK, 0, 0, 0, Time::ZERO)
    }

    /// Moves the frame out of a place, which is free from then on.
    #[inline(always)]
    pub(crate) fn lift(&self) -> Frame {
        Frame { ..*self }
    }

    /// Returns the offset of the first byte in the chunk.
    pub fn offset(&self) -> usize {
        self.offset as usize
    }
    /// Returns the bytes present in the head chunk, from the Ethernet header on.
    pub fn head_len(&self) -> usize {
        self.head as usize
    }
    /// Returns the length of the frame in bytes from the Ethernet header on, without FCS. It is larger than
    /// [`Frame::head_len`] when the payload is absent or chained.
    pub fn len(&self) -> usize {
        self.len as usize
    }
    /// Cuts a frame in one chunk to its first `len` bytes. Panics if it is chained, or if fewer are present.
    #[inline]
    pub(crate) fn cut(&mut self, len: usize) {
        assert!(len <= self.head_len() && !self.is_chained());
        (self.head, self.len) = (len as u16, len as u32);
    }
    /// Returns whether the frame lies in several chunks.
    pub fn is_chained(&self) -> bool {
        self.next != NO_CHUNK
    }
    /// Returns whether its headers are still to be written. No bytes are present then.
    pub fn is_draft(&self) -> bool {
        self.draft != 0
    }
    /// Returns true for a frame of no bytes, which no port delivers.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Returns the number of packets on the wire: 1, or more for a giant segment whose headers are
    /// `header_len` bytes. Charges and counters count these.
    pub fn segments(&self, header_len: usize) -> u32 {
        let payload = self.len().saturating_sub(header_len) as u32;
        match self.gso_size {
            0 => 1,
            size => payload.div_ceil(size as u32).max(1),
        }
    }
}
