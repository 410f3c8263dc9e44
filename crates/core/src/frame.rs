//! Frames: small handles on chunks of a pool.
//!
//! Inline the kernel receives into the pool's chunks and sends from them, and a frame is never copied
//! between receive and transmit. In virtual time it is ordinary memory and chunks hold headers
//! only: the payload is just a length. A giant segment lies in several chunks, each linked to the next in a
//! table beside the pool; it is handed on and given back as a whole. A frame leaves in three ways, and each is counted: it is
//! transmitted (the driver takes the handle), dropped with a reason, or absorbed (its information
//! lives on in a flow's record).
//!
//! In virtual time a frame may be a **draft**: its headers are not written yet, and no bytes are present. What its maker would
//! write is kept in its chunk, in the maker's own form, and is written when somebody wants to read it
//! ([`Node::takes_drafts`](crate::node::Node::takes_drafts) says who does not).
//!
//! A frame that waits or flies is [parked](Frames::park) in the pool: a [`List`] of frames that wait takes 12 bytes, and
//! what links one to the next lies beside the chunks, one cache line for each.

mod charge;
mod list;
mod pool;
#[cfg(test)]
mod tests;

pub use charge::Charge;
pub(crate) use charge::{be16, link_header};
pub use list::{Head, List, Parked, Waiting};
pub use pool::Frames;

use crate::time::Time;

/// No chunk: the end of a chain.
pub const NO_CHUNK: u32 = u32::MAX;

/// What is known of a frame's transport checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Checksum {
    /// Not looked at yet.
    #[default]
    Unknown,
    /// Complete and valid: a rewrite updates it incrementally (RFC 1624).
    Valid,
    /// Only the pseudo-header is summed (virtual devices): to be computed in full before the
    /// frame leaves.
    Partial,
    /// Complete and wrong, or there is none to check: forwarded untouched, never fed to flow state.
    Invalid,
}

/// A frame: a handle on one chunk of a [`Frames`] pool. Not `Clone`: whoever has it owns it, and
/// gives it up by transmitting, dropping or absorbing it.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a frame is transmitted, dropped with a reason, or absorbed"]
pub struct Frame {
    chunk: u32,
    next: u32,
    len: u32,
    offset: u16,
    head: u16,
    /// Bytes of the chunk in which its maker keeps what the headers will be; 0 when they are written.
    draft: u16,
    /// Payload bytes of each segment when this frame stands for several; 0 for one segment.
    pub gso_size: u16,
    /// State of the transport checksum.
    pub checksum: Checksum,
    /// An ACK without payload whose sequence number, TSval and window are to be brought up to date where it leaves
    /// ([`Slot::stamp`](crate::steer::Slot::stamp)). Every other frame leaves as it is. Of one that comes in: a hook has counted it
    /// among those that it took ([`Slot::take`](crate::steer::Slot::take)).
    pub restamp: bool,
    /// Which of its flows this belongs to, a number that the receiver has given its maker; [`Frame::NO_HINT`] if it is not known. It says what to
    /// load in advance, and nothing else.
    pub hint: u16,
    /// When the frame was received, stamped as near to the wire as the port can.
    pub received: Time,
}

// Without padding, copies are made in whole words, and what is read of one need not wait for all of them to be written.
const _: () = assert!(size_of::<Frame>() == 32);

impl Frame {
    /// See [`Frame::hint`].
    pub const NO_HINT: u16 = u16::MAX;

    /// A frame of `len` bytes of which `head` lie in a chunk, from `offset` on.
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

    /// What stands for a frame where none is.
    #[inline]
    pub(crate) fn nothing() -> Frame {
        Frame::in_chunk(NO_CHUNK, 0, 0, 0, Time::ZERO)
    }

    /// The frame, out of a place that is free from now on.
    #[inline(always)]
    pub(crate) fn lift(&self) -> Frame {
        Frame { ..*self }
    }

    /// Offset of the first byte in the chunk.
    pub fn offset(&self) -> usize {
        self.offset as usize
    }
    /// Bytes present in the head chunk, from the Ethernet header on.
    pub fn head_len(&self) -> usize {
        self.head as usize
    }
    /// Length of the frame in bytes from the Ethernet header on, without FCS. Larger than
    /// [`Frame::head_len`] when the payload is absent or chained.
    pub fn len(&self) -> usize {
        self.len as usize
    }
    /// Only its first `len` bytes are left of a frame that lies in one chunk. Panics if it does not, or if fewer are present.
    #[inline]
    pub(crate) fn cut(&mut self, len: usize) {
        assert!(len <= self.head_len() && !self.is_chained());
        (self.head, self.len) = (len as u16, len as u32);
    }
    /// Does it lie in more chunks than one?
    pub fn is_chained(&self) -> bool {
        self.next != NO_CHUNK
    }
    /// Are its headers still to be written? No bytes are present then.
    pub fn is_draft(&self) -> bool {
        self.draft != 0
    }
    /// True for a frame of no bytes, which no port delivers.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// How many packets this is on the wire: 1, or more for a giant segment whose headers are
    /// `header_len` bytes. Charges and counters count these.
    pub fn segments(&self, header_len: usize) -> u32 {
        let payload = self.len().saturating_sub(header_len) as u32;
        match self.gso_size {
            0 => 1,
            size => payload.div_ceil(size as u32).max(1),
        }
    }
}
