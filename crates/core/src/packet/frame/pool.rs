//! The pool of frames.

mod make;

use super::list::{Parked, Place};
use super::{Frame, NO_CHUNK};
use crate::base::prefetch;
use crate::base::stats::{DropReason, Drops, Ledger};
use crate::base::time::Time;

/// The memory behind a pool.
enum Memory {
    Owned(Vec<u8>),
    Mapped(&'static mut [u8]),
}

/// Bytes of a cache line.
const LINE: usize = 64;

impl Memory {
    /// Returns `len` zero bytes from the first whole cache line on.
    fn owned(len: usize) -> Memory {
        Memory::Owned(vec![0; len + LINE])
    }
    /// Returns the offset of the first chunk.
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

/// A pool of equal chunks. Every frame enters and leaves through it.
///
/// Part of it is reserved for frames that nodes make themselves (generated ACKs): receiving never takes the
/// last [`Frames::reserve`] chunks.
pub struct Frames {
    memory: Memory,
    /// Offset of the first chunk. In a pool's own memory it is aligned to a cache line.
    origin: usize,
    chunk_size: usize,
    free: Vec<u32>,
    /// Next chunk of each one, for chained frames. Empty until there is one.
    links: Vec<u32>,
    /// Places of parked frames, by their first chunks.
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
/// Most chunks of a growing pool: chunk numbers are 32 bits.
const MOST_CHUNKS: usize = 1 << 31;

impl Frames {
    /// Returns a pool of `chunks` chunks of `chunk_size` bytes in ordinary memory, `reserve` of them kept for
    /// frames made by nodes. Panics if a chunk is smaller than 128 bytes or larger than 65,535.
    pub fn new(chunks: usize, chunk_size: usize, reserve: usize) -> Frames {
        let memory = Memory::owned(chunks * chunk_size);
        Frames::with_memory(memory, chunk_size, reserve).with_places()
    }

    /// Returns a pool in ordinary memory that is never exhausted. It starts with 1,024 chunks and grows by
    /// half when none is free. Frames keep their chunks. It is meant for virtual time, where the frames in
    /// flight have no bound. Sizes are as for [`Frames::new`].
    pub fn growing(chunk_size: usize) -> Frames {
        let memory = Memory::owned(FIRST_CHUNKS * chunk_size);
        let mut pool = Frames::with_memory(memory, chunk_size, 0);
        pool.growing = true;
        pool
    }

    /// Returns a pool over memory that a driver has mapped. Sizes are as for [`Frames::new`].
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

    /// Adds a place for each chunk.
    fn with_places(mut self) -> Frames {
        self.places.resize_with(self.chunks, Place::default);
        self
    }

    /// Parks a frame at the place of its first chunk. A growing pool makes places as frames are parked.
    #[inline]
    pub fn park(&mut self, frame: Frame) -> Parked {
        let chunk = frame.chunk;
        if chunk as usize >= self.places.len() {
            self.places.resize_with(self.chunks, Place::default);
        }
        self.places[chunk as usize].frame = Some(frame);
        Parked(chunk)
    }

    /// Returns a parked frame and frees its place. Panics if it was parked in another pool.
    #[inline]
    pub fn unpark(&mut self, parked: Parked) -> Frame {
        self.places[parked.0 as usize].frame.take().expect("a frame that is parked here")
    }

    /// Returns a reference to a frame that stays parked. Panics if it was parked in another pool.
    pub fn parked(&self, parked: &Parked) -> &Frame {
        self.places[parked.0 as usize].frame.as_ref().expect("a frame that is parked here")
    }

    /// Returns the bytes present of a parked frame, and its length. Panics if it was parked in another pool.
    pub fn parked_bytes(&self, parked: &Parked) -> (&[u8], usize) {
        let frame = self.parked(parked);
        (self.bytes(frame), frame.len())
    }

    /// Returns the bytes present of a parked frame, to be rewritten. Panics if it was parked in another pool.
    pub fn parked_bytes_mut(&mut self, parked: &Parked) -> &mut [u8] {
        let frame = self.places[parked.0 as usize].frame.as_ref().expect("a frame that is parked here");
        let (start, head) = (frame.offset(), frame.head_len());
        &mut self.chunk_mut(parked.0)[start..start + head]
    }

    /// Prefetches the cache lines of the frame that is parked at this chunk.
    pub(super) fn load(&self, chunk: u32) {
        prefetch(&self.places[chunk as usize]);
        prefetch(&self.memory.bytes()[self.at(chunk)]);
    }

    /// Returns the bytes of one chunk.
    pub fn chunk_size(&self) -> usize {
        self.chunk_size
    }
    /// Returns the number of chunks in the pool, free or not.
    pub fn chunks(&self) -> usize {
        self.chunks
    }
    /// Returns the number of free chunks.
    pub fn free_chunks(&self) -> usize {
        self.free.len()
    }
    /// Returns the bytes of the chunks in use, whatever lies in them. It looks through the whole pool.
    pub fn used(&self) -> impl Iterator<Item = &[u8]> {
        let mut used = vec![true; self.chunks];
        self.free.iter().for_each(|&chunk| used[chunk as usize] = false);
        let chunks = self.memory.bytes()[self.origin..].chunks_exact(self.chunk_size);
        chunks.zip(used).filter_map(|(chunk, used)| used.then_some(chunk))
    }
    /// Returns the number of chunks kept for frames made by nodes.
    pub fn reserve(&self) -> usize {
        self.reserve
    }
    /// Returns whether no chunk is left even for a frame made by a node.
    pub fn is_exhausted(&self) -> bool {
        self.free.is_empty() && !self.growing
    }
    /// Returns the number of frames made by nodes so far.
    pub fn made(&self) -> u64 {
        self.made
    }
    /// Returns the number of frames absorbed so far.
    pub fn absorbed(&self) -> u64 {
        self.absorbed
    }
    /// Returns the frames dropped so far, by reason.
    pub fn drops(&self) -> &Drops {
        &self.drops
    }
    /// Returns whether one more frame may be kept for convenience beside `kept` others for the same purpose:
    /// in a pool of fixed size these are fewer than a quarter of the chunks that are free, or a 64th where
    /// less than an eighth of all are. The more is kept, the less each purpose may keep, so that none takes
    /// the pool from the others (Choudhury and Hahne 1998).
    pub fn may_keep(&self, kept: u32) -> bool {
        let free = self.free.len();
        let part = if free < self.chunks / 8 { 64 } else { 4 };
        self.growing || (kept as usize) < free / part
    }
    /// Returns the number of times that [`Frames::make`] found the pool exhausted.
    pub fn exhausted(&self) -> u64 {
        self.exhausted
    }

    /// Returns the account of frames that were copied in ([`Frames::receive_copy`]) or made, and copied out
    /// ([`Frames::transmitted`]), dropped or absorbed. In virtual time these are all frames, and the
    /// account's held frames are the chunks in use.
    pub fn ledger(&self) -> Ledger {
        let Frames { copied_in: received, copied_out: sent, made, absorbed, drops, .. } = *self;
        Ledger { received, made, sent, absorbed, drops }
    }

    /// Returns a chunk for a driver to receive into. `None` when only the reserve is left.
    pub fn take_chunk(&mut self) -> Option<u32> {
        if self.free.len() <= self.reserve && !self.grow() {
            return None;
        }
        self.free.pop()
    }

    /// Adds half as many chunks. The old ones keep their numbers and contents. Returns false if the pool has
    /// a fixed size.
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

    /// Frees the chunks of a frame.
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

    /// Returns the frame that a driver received into `chunk` (taken with [`Frames::take_chunk`]). `head`
    /// bytes are present from `offset` on, of a frame `len` bytes long. Panics if the bytes do not lie within
    /// the chunk.
    #[inline]
    pub fn received(&mut self, chunk: u32, offset: usize, head: usize, len: usize, at: Time) -> Frame {
        assert!(offset + head <= self.chunk_size && (chunk as usize) < self.chunks && head <= len);
        Frame::in_chunk(chunk, offset, head, len, at)
    }

    /// Returns the memory of all chunks in order, for a driver that receives into chunks that it has taken.
    pub fn memory_mut(&mut self) -> &mut [u8] {
        &mut self.memory.bytes_mut()[self.origin..]
    }

    /// Continues the frame in `chunk` (taken with [`Frames::take_chunk`]), whose first bytes a driver has
    /// filled. `last` is the chunk chained before it. The whole chain is given back with the frame. Every
    /// chunk between the first and the last is full.
    pub fn chain(&mut self, frame: &mut Frame, last: u32, chunk: u32) {
        assert!((chunk as usize) < self.chunks);
        if last == frame.chunk {
            frame.next = chunk;
        }
        self.links.resize(self.chunks.max(self.links.len()), NO_CHUNK);
        (self.links[last as usize], self.links[chunk as usize]) = (chunk, NO_CHUNK);
    }

    /// Returns all bytes present: those of [`Frames::bytes`], and those of the chunks chained to them.
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

    /// Receives a copy of `head` as a frame `len` bytes long, for ports without shared memory and for tests.
    /// Returns `None` when only the reserve is left or `head` exceeds a chunk.
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

    /// Returns the bytes present.
    pub fn bytes(&self, frame: &Frame) -> &[u8] {
        let start = self.at(frame.chunk) + frame.offset();
        &self.memory.bytes()[start..start + frame.head_len()]
    }

    /// Returns the bytes before the frame in its first chunk. A driver may keep its data of the frame there.
    pub fn headroom(&self, frame: &Frame) -> &[u8] {
        let start = self.at(frame.chunk);
        &self.memory.bytes()[start..start + frame.offset()]
    }

    /// Returns the bytes before the frame in its first chunk, to be rewritten.
    pub fn headroom_mut(&mut self, frame: &Frame) -> &mut [u8] {
        &mut self.chunk_mut(frame.chunk)[..frame.offset()]
    }

    /// Returns the bytes present, to be rewritten.
    #[inline(always)]
    pub fn bytes_mut(&mut self, frame: &Frame) -> &mut [u8] {
        let (start, head) = (frame.offset(), frame.head_len());
        &mut self.chunk_mut(frame.chunk)[start..start + head]
    }

    /// Returns the byte at this offset of the frame. `None` if it is not present.
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

    /// Returns the offset of a chunk in the memory.
    #[inline(always)]
    fn at(&self, chunk: u32) -> usize {
        self.origin + chunk as usize * self.chunk_size
    }

    #[inline(always)]
    fn chunk_mut(&mut self, chunk: u32) -> &mut [u8] {
        let start = self.at(chunk);
        &mut self.memory.bytes_mut()[start..start + self.chunk_size]
    }

    /// Drops a frame with a reason. All losses go through here.
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

    /// Ends a frame that a driver copied before handing it on.
    pub fn consumed(&mut self, frame: Frame) {
        self.put_frame(frame);
    }

    /// Ends a frame that was transmitted: the device has read all of it.
    pub fn transmitted(&mut self, frame: Frame) {
        self.copied_out += 1;
        self.put_frame(frame);
    }
}
