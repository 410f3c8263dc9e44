//! Frames that nodes make: new ones, copies of others, and drafts, whose headers are still to be written.

use super::{Frames, SMALLEST_CHUNK};
use crate::base::time::Time;
use crate::packet::frame::{Frame, NO_CHUNK};

impl Frames {
    /// Makes a frame of `len` bytes for a node, from the reserve if need be. The bytes are undefined: the
    /// caller writes all of them, or cuts the frame to the written ones. Returns `None` when no chunk is free
    /// (counted) or `len` exceeds a chunk.
    pub fn make(&mut self, len: usize, at: Time) -> Option<Frame> {
        if len > self.chunk_size {
            return None;
        }
        let chunk = self.take_reserved()?;
        Some(self.received(chunk, 0, len, len, at))
    }

    /// Copies a frame's headers: its first `head` bytes, or as many as are present. The copy has the frame's
    /// length and checksum state, and counts as made. A draft's copy is a draft. Returns `None` when no chunk
    /// is free (counted).
    pub fn copy_head(&mut self, frame: &Frame, head: usize, at: Time) -> Option<Frame> {
        let head = head.min(frame.head_len());
        let mut copy = self.make(head, at)?;
        let from = self.at(frame.chunk) + frame.offset();
        let to = self.at(copy.chunk);
        let kept = head.max(usize::from(frame.draft));
        self.memory.bytes_mut().copy_within(from..from + kept, to);
        (copy.len, copy.gso_size, copy.checksum) = (frame.len, frame.gso_size, frame.checksum);
        copy.draft = frame.draft;
        Some(copy)
    }

    /// Copies a frame with all bytes present and those before it in its first chunk. The copy counts as made.
    /// Returns `None` when the pool has too few free chunks (counted).
    pub fn copy(&mut self, frame: &Frame) -> Option<Frame> {
        let chunk = self.take_reserved()?;
        self.copy_chunk(frame.chunk, chunk, frame.offset() + frame.head_len());
        let copy = Frame { chunk, next: NO_CHUNK, ..*frame };
        let Some(copy) = self.copy_chain(frame.next, copy) else {
            self.made -= 1;
            self.exhausted += 1;
            return None;
        };
        Some(copy)
    }

    /// Copies the chain of a frame behind its copy. Gives the copy back if there is no room.
    fn copy_chain(&mut self, mut next: u32, mut copy: Frame) -> Option<Frame> {
        let mut last = copy.chunk;
        while next != NO_CHUNK {
            if self.free.is_empty() && !self.grow() {
                self.put_frame(copy);
                return None;
            }
            let chunk = self.free.pop().expect("one is free");
            self.copy_chunk(next, chunk, self.chunk_size);
            self.chain(&mut copy, last, chunk);
            (last, next) = (chunk, self.links[next as usize]);
        }
        Some(copy)
    }

    fn copy_chunk(&mut self, from: u32, to: u32, len: usize) {
        let (from, to) = (self.at(from), self.at(to));
        self.memory.bytes_mut().copy_within(from..from + len, to);
    }

    /// Makes a frame `len` bytes long for a node: a copy of `head`, with an absent payload. Returns `None`
    /// when no chunk is free (counted) or `head` exceeds a chunk.
    pub fn make_head(&mut self, head: &[u8], len: usize, at: Time) -> Option<Frame> {
        if head.len() > self.chunk_size {
            return None;
        }
        let (frame, bytes) = self.make_headers(head.len(), len.max(head.len()), at)?;
        bytes.copy_from_slice(head);
        Some(frame)
    }

    /// Makes a frame of `len` bytes for a node. Returns it with its first `head` bytes, which the caller
    /// writes. The other bytes are absent. Returns `None` when no chunk is free (counted) or `head` exceeds a
    /// chunk. Panics if `len` is less than `head`.
    #[inline(always)]
    pub fn make_headers(&mut self, head: usize, len: usize, at: Time) -> Option<(Frame, &mut [u8])> {
        assert!(head <= len);
        if head > self.chunk_size {
            return None;
        }
        let chunk = self.take_reserved()?;
        let frame = Frame::in_chunk(chunk, 0, head, len, at);
        Some((frame, &mut self.chunk_mut(chunk)[..head]))
    }

    /// Makes a frame of `len` bytes for a node, whose headers are not written yet. Returns it with `N` bytes,
    /// from 1 to 128, in which the node keeps the values of the headers. Returns `None` when no chunk is free
    /// (counted).
    #[inline]
    pub fn make_draft<const N: usize>(&mut self, len: usize, at: Time) -> Option<(Frame, &mut [u8; N])> {
        const { assert!(N > 0 && N <= SMALLEST_CHUNK) };
        let chunk = self.take_reserved()?;
        let frame = Frame { draft: N as u16, ..self.received(chunk, 0, 0, len, at) };
        let start = self.at(chunk);
        Some((frame, self.memory.bytes_mut()[start..].first_chunk_mut()?))
    }

    /// Returns the bytes that the maker of a draft keeps in it. `None` for a frame whose headers are written.
    #[inline]
    pub fn draft(&self, frame: &Frame) -> Option<&[u8]> {
        let start = self.at(frame.chunk);
        let draft = usize::from(frame.draft);
        (draft > 0).then(|| &self.memory.bytes()[start..start + draft])
    }

    /// Writes the headers of a draft: `head` are the first bytes of its frame. Panics if these are more than
    /// the frame has or exceed a chunk.
    pub fn write_draft(&mut self, frame: &mut Frame, head: &[u8]) {
        assert!(frame.is_draft() && head.len() <= frame.len());
        self.chunk_mut(frame.chunk)[..head.len()].copy_from_slice(head);
        (frame.head, frame.draft) = (head.len() as u16, 0);
    }

    /// Returns a chunk for a frame made by a node.
    #[inline(always)]
    fn take_reserved(&mut self) -> Option<u32> {
        if self.free.is_empty() && !self.grow() {
            self.exhausted += 1;
        }
        let chunk = self.free.pop()?;
        self.made += 1;
        Some(chunk)
    }
}
