//! The pool that frames live in.

mod make;

use super::list::{Parked, Place};
use super::{Frame, NO_CHUNK};
use crate::cache::prefetch;
use crate::stats::{DropReason, Drops, Ledger};
use crate::time::Time;

/// The memory behind a pool.
enum Memory {
    Owned(Vec<u8>),
    Mapped(&'static mut [u8]),
}

/// Bytes of a cache line.
const LINE: usize = 64;

impl Memory {
    /// So many bytes from the first whole cache line on, which are zero.
    fn owned(len: usize) -> Memory {
        Memory::Owned(vec![0; len + LINE])
    }
    /// Where chunks begin.
    fn origin(&self) -> usize {
        match self {
            Memory::Owned(m) => m.as_ptr().align_offset(LINE).min(LINE),
            Memory::Mapped(_) => 0,
        }
    }
    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Memory::Owned(m) => m,
            Memory::Mapped(m) => m,
        }
    }
    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Memory::Owned(m) => m,
            Memory::Mapped(m) => m,
        }
    }
}

/// A pool of equal chunks and the door through which every frame enters and leaves.
///
/// Part of it is reserved for frames that nodes make themselves (generated ACKs): receiving never
/// takes the last [`Frames::reserve`] chunks.
pub struct Frames {
    memory: Memory,
    /// Where the first chunk begins: of a pool's own memory, with a cache line.
    origin: usize,
    chunk_size: usize,
    free: Vec<u32>,
    /// The chunk after each one, of frames that lie in several; empty until there is one.
    links: Vec<u32>,
    /// Where frames are parked, by their first chunks.
    pub(super) places: Vec<Place>,
    reserve: usize,
    chunks: usize,
    growing: bool,
    copied_in: u64,
    copied_out: u64,
    made: u64,
    absorbed: u64,
    drops: Drops,
    exhausted: u64,
}

const SMALLEST_CHUNK: usize = 128;

/// Chunks that a growing pool starts with.
const FIRST_CHUNKS: usize = 1024;
/// A growing pool ends here: chunk numbers are 32 bits.
const MOST_CHUNKS: usize = 1 << 31;

impl Frames {
    /// A pool of `chunks` chunks of `chunk_size` bytes in ordinary memory, `reserve` of them kept
    /// for frames made by nodes. Panics if a chunk is smaller than 128 bytes or larger than 65,535.
    pub fn new(chunks: usize, chunk_size: usize, reserve: usize) -> Frames {
        let memory = Memory::owned(chunks * chunk_size);
        Frames::with_memory(memory, chunk_size, reserve).with_places()
    }

    /// A pool in ordinary memory that is never exhausted: it starts with 1,024 chunks and grows by half when none
    /// is free. Frames keep their chunks. For virtual time, where nothing bounds the frames in
    /// flight. Sizes as for [`Frames::new`].
    pub fn growing(chunk_size: usize) -> Frames {
        let memory = Memory::owned(FIRST_CHUNKS * chunk_size);
        let mut pool = Frames::with_memory(memory, chunk_size, 0);
        pool.growing = true;
        pool
    }

    /// A pool over memory that a driver mapped. Sizes as for [`Frames::new`].
    pub fn mapped(memory: &'static mut [u8], chunk_size: usize, reserve: usize) -> Frames {
        Frames::with_memory(Memory::Mapped(memory), chunk_size, reserve).with_places()
    }

    fn with_memory(memory: Memory, chunk_size: usize, reserve: usize) -> Frames {
        assert!((SMALLEST_CHUNK..=65_535).contains(&chunk_size), "chunk size {chunk_size}");
        let origin = memory.origin();
        let chunks = (memory.bytes().len() - origin) / chunk_size;
        Frames {
            memory,
            origin,
            chunk_size,
            free: (0..chunks as u32).rev().collect(),
            links: Vec::new(),
            places: Vec::new(),
            reserve: reserve.min(chunks),
            chunks,
            growing: false,
            copied_in: 0,
            copied_out: 0,
            made: 0,
            absorbed: 0,
            drops: Drops::default(),
            exhausted: 0,
        }
    }

    /// With a place for each chunk.
    fn with_places(mut self) -> Frames {
        self.places.resize_with(self.chunks, Place::default);
        self
    }

    /// Keeps a frame at the place of its first chunk. A growing pool makes places as frames are parked.
    #[inline]
    pub fn park(&mut self, frame: Frame) -> Parked {
        let chunk = frame.chunk;
        if chunk as usize >= self.places.len() {
            self.places.resize_with(self.chunks, Place::default);
        }
        self.places[chunk as usize].frame = Some(frame);
        Parked(chunk)
    }

    /// Gives a parked frame back. Panics if it was parked in another pool.
    #[inline]
    pub fn unpark(&mut self, parked: Parked) -> Frame {
        self.places[parked.0 as usize].frame.take().expect("a frame that is parked here")
    }

    /// A frame that stays parked. Panics if it was parked in another pool.
    pub fn parked(&self, parked: &Parked) -> &Frame {
        self.places[parked.0 as usize].frame.as_ref().expect("a frame that is parked here")
    }

    /// The bytes present of a parked frame, and its length. Panics if it was parked in another pool.
    pub fn parked_bytes(&self, parked: &Parked) -> (&[u8], usize) {
        let frame = self.parked(parked);
        (self.bytes(frame), frame.len())
    }

    /// The bytes present of a parked frame, to be rewritten. Panics if it was parked in another pool.
    pub fn parked_bytes_mut(&mut self, parked: &Parked) -> &mut [u8] {
        let frame = self.places[parked.0 as usize].frame.as_ref().expect("a frame that is parked here");
        let (start, head) = (frame.offset(), frame.head_len());
        &mut self.chunk_mut(parked.0)[start..start + head]
    }

    /// Asks for the lines of what is parked at this chunk, and waits for none.
    pub(super) fn load(&self, chunk: u32) {
        prefetch(&self.places[chunk as usize]);
        prefetch(&self.memory.bytes()[self.at(chunk)]);
    }

    /// Bytes of one chunk.
    pub fn chunk_size(&self) -> usize {
        self.chunk_size
    }
    /// Chunks in the pool, free or not.
    pub fn chunks(&self) -> usize {
        self.chunks
    }
    /// Chunks free now.
    pub fn free_chunks(&self) -> usize {
        self.free.len()
    }
    /// Chunks kept for frames made by nodes.
    pub fn reserve(&self) -> usize {
        self.reserve
    }
    /// Is there no chunk even for a frame made by a node?
    pub fn is_exhausted(&self) -> bool {
        self.free.is_empty() && !self.growing
    }
    /// Frames made by nodes so far.
    pub fn made(&self) -> u64 {
        self.made
    }
    /// Frames absorbed so far.
    pub fn absorbed(&self) -> u64 {
        self.absorbed
    }
    /// Frames dropped so far, by reason.
    pub fn drops(&self) -> &Drops {
        &self.drops
    }
    /// Is less than an eighth of a pool of fixed size free? Then frames that are kept for convenience go.
    pub fn is_scarce(&self) -> bool {
        !self.growing && self.free.len() < self.chunks / 8
    }
    /// How often [`Frames::make`] found the pool exhausted.
    pub fn exhausted(&self) -> u64 {
        self.exhausted
    }

    /// The account of frames that were copied in ([`Frames::receive_copy`]) or made, and copied out
    /// ([`Frames::transmitted`]), dropped or absorbed. In virtual time these are all, and what it says
    /// is held are the chunks in use.
    pub fn ledger(&self) -> Ledger {
        let Frames { copied_in: received, copied_out: sent, made, absorbed, drops, .. } = *self;
        Ledger { received, made, sent, absorbed, drops }
    }

    /// A chunk for a driver to receive into; `None` when only the reserve is left.
    pub fn take_chunk(&mut self) -> Option<u32> {
        if self.free.len() <= self.reserve && !self.grow() {
            return None;
        }
        self.free.pop()
    }

    /// Half as many chunks more, the old ones where they were. False if the pool is of a fixed size.
    #[cold]
    fn grow(&mut self) -> bool {
        let Memory::Owned(memory) = &mut self.memory else { return false };
        if !self.growing || self.chunks >= MOST_CHUNKS {
            return false;
        }
        let chunks = self.chunks + self.chunks / 2;
        memory.resize(chunks * self.chunk_size + LINE, 0);
        let before = self.at(0);
        self.origin = self.memory.origin();
        let used = before..before + self.chunks * self.chunk_size;
        self.memory.bytes_mut().copy_within(used, self.origin);
        self.free.extend((self.chunks as u32..chunks as u32).rev());
        self.chunks = chunks;
        true
    }

    /// Gives back what a frame lies in.
    #[inline]
    fn put_frame(&mut self, frame: Frame) {
        self.put_chunk(frame.chunk);
        if frame.is_chained() {
            self.put_chain(frame.next);
        }
    }

    #[inline(never)]
    fn put_chain(&mut self, mut next: u32) {
        while next != NO_CHUNK {
            self.put_chunk(next);
            next = self.links[next as usize];
        }
    }

    fn put_chunk(&mut self, chunk: u32) {
        debug_assert!((chunk as usize) < self.chunks && self.free.len() < self.chunks);
        self.free.push(chunk);
    }

    /// The frame that a driver received into `chunk` (taken with [`Frames::take_chunk`]):
    /// `head` bytes are present from `offset` on, of a frame `len` bytes long. Panics if the bytes
    /// do not lie within the chunk.
    #[inline]
    pub fn received(&mut self, chunk: u32, offset: usize, head: usize, len: usize, at: Time) -> Frame {
        assert!(offset + head <= self.chunk_size && (chunk as usize) < self.chunks && head <= len);
        Frame::in_chunk(chunk, offset, head, len, at)
    }

    /// The memory of all chunks, one after the other: for a driver that receives into chunks that it has taken.
    pub fn memory_mut(&mut self) -> &mut [u8] {
        &mut self.memory.bytes_mut()[self.origin..]
    }

    /// The frame is continued in `chunk` (taken with [`Frames::take_chunk`]), whose first bytes a driver has
    /// filled, after `last`, the chunk of the frame that was chained last. The whole chain is given back with the
    /// frame. Every chunk between the first and the last is full.
    pub fn chain(&mut self, frame: &mut Frame, last: u32, chunk: u32) {
        assert!((chunk as usize) < self.chunks);
        if last == frame.chunk {
            frame.next = chunk;
        }
        self.links.resize(self.chunks.max(self.links.len()), NO_CHUNK);
        (self.links[last as usize], self.links[chunk as usize]) = (chunk, NO_CHUNK);
    }

    /// All bytes present: those of [`Frames::bytes`], and those of the chunks chained to them.
    pub fn parts<'a>(&'a self, frame: &Frame) -> impl Iterator<Item = &'a [u8]> {
        let (mut next, mut left) = (frame.next, frame.len().saturating_sub(frame.head_len()));
        let chained = core::iter::from_fn(move || {
            let start = self.at((next != NO_CHUNK && left > 0).then_some(next)?);
            let len = left.min(self.chunk_size);
            (next, left) = (self.links[next as usize], left - len);
            Some(&self.memory.bytes()[start..start + len])
        });
        core::iter::once(self.bytes(frame)).chain(chained)
    }

    /// Receives a copy of `head` as a frame `len` bytes long: for ports without shared memory and
    /// for tests. `None` when only the reserve is left or `head` exceeds a chunk.
    pub fn receive_copy(&mut self, head: &[u8], len: usize, at: Time) -> Option<Frame> {
        self.receive_copy_behind(&[], head, len, at)
    }

    /// Receives as [`Frames::receive_copy`] does, with a copy of `before` as the frame's
    /// [headroom](Frames::headroom).
    pub fn receive_copy_behind(&mut self, before: &[u8], head: &[u8], len: usize, at: Time) -> Option<Frame> {
        let (offset, end) = (before.len(), before.len() + head.len());
        if end > self.chunk_size {
            return None;
        }
        let chunk = self.take_chunk()?;
        let frame = self.received(chunk, offset, head.len(), len.max(head.len()), at);
        let memory = self.chunk_mut(chunk);
        memory[..offset].copy_from_slice(before);
        memory[offset..end].copy_from_slice(head);
        self.copied_in += 1;
        Some(frame)
    }

    /// The bytes present.
    pub fn bytes(&self, frame: &Frame) -> &[u8] {
        let start = self.at(frame.chunk) + frame.offset();
        &self.memory.bytes()[start..start + frame.head_len()]
    }

    /// What lies before the frame in its first chunk: a driver may keep there what it knows of the frame.
    pub fn headroom(&self, frame: &Frame) -> &[u8] {
        let start = self.at(frame.chunk);
        &self.memory.bytes()[start..start + frame.offset()]
    }

    /// What lies before the frame in its first chunk, to be rewritten.
    pub fn headroom_mut(&mut self, frame: &Frame) -> &mut [u8] {
        &mut self.chunk_mut(frame.chunk)[..frame.offset()]
    }

    /// The bytes present, to be rewritten.
    #[inline(always)]
    pub fn bytes_mut(&mut self, frame: &Frame) -> &mut [u8] {
        let (start, head) = (frame.offset(), frame.head_len());
        &mut self.chunk_mut(frame.chunk)[start..start + head]
    }

    /// The byte at this offset of the frame; `None` if it is not present.
    pub fn byte_mut(&mut self, frame: &Frame, at: usize) -> Option<&mut u8> {
        if at < frame.head_len() {
            return self.bytes_mut(frame).get_mut(at);
        }
        let (mut chunk, mut at) = (frame.next, at - frame.head_len());
        while chunk != NO_CHUNK && at >= self.chunk_size {
            (chunk, at) = (self.links[chunk as usize], at - self.chunk_size);
        }
        (chunk != NO_CHUNK).then(|| &mut self.chunk_mut(chunk)[at])
    }

    /// Where a chunk begins.
    #[inline(always)]
    fn at(&self, chunk: u32) -> usize {
        self.origin + chunk as usize * self.chunk_size
    }

    #[inline(always)]
    fn chunk_mut(&mut self, chunk: u32) -> &mut [u8] {
        let start = self.at(chunk);
        &mut self.memory.bytes_mut()[start..start + self.chunk_size]
    }

    /// The one door for losses.
    pub fn drop(&mut self, frame: Frame, reason: DropReason) {
        self.drops.count(reason);
        self.put_frame(frame);
    }

    /// Ends a frame whose information lives on in a flow's record.
    #[inline]
    pub fn absorb(&mut self, frame: Frame) {
        self.absorbed += 1;
        self.put_frame(frame);
    }

    /// Ends a frame that a driver has copied before it handed it on.
    pub fn consumed(&mut self, frame: Frame) {
        self.put_frame(frame);
    }

    /// Ends a frame that was transmitted: the device has read all of it.
    pub fn transmitted(&mut self, frame: Frame) {
        self.copied_out += 1;
        self.put_frame(frame);
    }
}
