//! Frames: small handles on chunks of a pool.
//!
//! Inline the kernel receives into the pool's chunks and sends from them, and a frame is never copied
//! between receive and transmit. In virtual time it is ordinary memory and chunks hold headers
//! only: the payload is just a length. A giant segment lies in several chunks, each linked to the next in a
//! table beside the pool; it is handed on and given back as a whole. A frame leaves in three ways, and each is counted: it is
//! transmitted (the driver takes the handle), dropped with a reason, or absorbed (its information
//! lives on in a flow's record).

use crate::stats::{DropReason, Drops, Ledger};
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
    offset: u16,
    head: u16,
    len: u32,
    /// Payload bytes of each segment when this frame stands for several; 0 for one segment.
    pub gso_size: u16,
    /// State of the transport checksum.
    pub checksum: Checksum,
    /// An ACK without payload whose sequence number, TSval and window are to be brought up to date where it leaves
    /// ([`Slot::stamp`](crate::steer::Slot::stamp)). Every other frame leaves as it is.
    pub restamp: bool,
    /// When the frame was received, stamped as near to the wire as the port can.
    pub received: Time,
}

impl Frame {
    /// The chunk that holds the head.
    pub fn chunk(&self) -> u32 {
        self.chunk
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

/// The memory behind a pool.
enum Memory {
    Owned(Vec<u8>),
    Mapped(&'static mut [u8]),
}

impl Memory {
    fn bytes(&self) -> &[u8] {
        match self {
            Memory::Owned(m) => m,
            Memory::Mapped(m) => m,
        }
    }
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
    chunk_size: usize,
    free: Vec<u32>,
    /// The chunk after each one, of frames that lie in several; empty until there is one.
    links: Vec<u32>,
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

/// Chunks that a growing pool starts with.
const FIRST_CHUNKS: usize = 1024;
/// A growing pool ends here: chunk numbers are 32 bits.
const MOST_CHUNKS: usize = 1 << 31;

impl Frames {
    /// A pool of `chunks` chunks of `chunk_size` bytes in ordinary memory, `reserve` of them kept
    /// for frames made by nodes. Panics if a chunk is smaller than 128 bytes or larger than 65,535.
    pub fn new(chunks: usize, chunk_size: usize, reserve: usize) -> Frames {
        let memory = Memory::Owned(vec![0; chunks * chunk_size]);
        Frames::with_memory(memory, chunk_size, reserve)
    }

    /// A pool in ordinary memory that is never exhausted: it starts with 1,024 chunks and doubles when none
    /// is free. Frames keep their chunks. For virtual time, where nothing bounds the frames in
    /// flight. Sizes as for [`Frames::new`].
    pub fn growing(chunk_size: usize) -> Frames {
        let mut pool = Frames::new(FIRST_CHUNKS, chunk_size, 0);
        pool.growing = true;
        pool
    }

    /// A pool over memory that a driver mapped. Sizes as for [`Frames::new`].
    pub fn mapped(memory: &'static mut [u8], chunk_size: usize, reserve: usize) -> Frames {
        Frames::with_memory(Memory::Mapped(memory), chunk_size, reserve)
    }

    fn with_memory(memory: Memory, chunk_size: usize, reserve: usize) -> Frames {
        assert!((128..=65_535).contains(&chunk_size), "chunk size {chunk_size}");
        let chunks = memory.bytes().len() / chunk_size;
        Frames {
            memory,
            chunk_size,
            free: (0..chunks as u32).rev().collect(),
            links: Vec::new(),
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

    /// Twice as many chunks, the old ones where they were. False if the pool is of a fixed size.
    #[cold]
    fn grow(&mut self) -> bool {
        let Memory::Owned(memory) = &mut self.memory else { return false };
        if !self.growing || self.chunks >= MOST_CHUNKS {
            return false;
        }
        let chunks = 2 * self.chunks;
        memory.resize(chunks * self.chunk_size, 0);
        self.free.extend((self.chunks as u32..chunks as u32).rev());
        self.chunks = chunks;
        true
    }

    /// Gives back what a frame lies in.
    fn put_frame(&mut self, frame: Frame) {
        self.put_chunk(frame.chunk);
        self.put_chain(frame.next);
    }

    fn put_chain(&mut self, mut next: u32) {
        while next != NO_CHUNK {
            self.put_chunk(next);
            next = self.links[next as usize];
        }
    }

    /// Gives a chunk back: after its transmission completed, or unused.
    pub fn put_chunk(&mut self, chunk: u32) {
        debug_assert!((chunk as usize) < self.chunks && self.free.len() < self.chunks);
        self.free.push(chunk);
    }

    /// The frame that a driver received into `chunk` (taken with [`Frames::take_chunk`]):
    /// `head` bytes are present from `offset` on, of a frame `len` bytes long. Panics if the bytes
    /// do not lie within the chunk.
    pub fn received(&mut self, chunk: u32, offset: usize, head: usize, len: usize, at: Time) -> Frame {
        assert!(offset + head <= self.chunk_size && (chunk as usize) < self.chunks && head <= len);
        Frame {
            chunk,
            next: NO_CHUNK,
            offset: offset as u16,
            head: head as u16,
            len: len as u32,
            gso_size: 0,
            checksum: Checksum::Unknown,
            restamp: false,
            received: at,
        }
    }

    /// The memory of all chunks, one after the other: for a driver that receives into chunks that it has taken.
    pub fn memory_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
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
            let start = (next != NO_CHUNK && left > 0).then_some(next)? as usize * self.chunk_size;
            let len = left.min(self.chunk_size);
            (next, left) = (self.links[next as usize], left - len);
            Some(&self.memory.bytes()[start..start + len])
        });
        core::iter::once(self.bytes(frame)).chain(chained)
    }

    /// Receives a copy of `head` as a frame `len` bytes long: for ports without shared memory and
    /// for tests. `None` when only the reserve is left or `head` exceeds a chunk.
    pub fn receive_copy(&mut self, head: &[u8], len: usize, at: Time) -> Option<Frame> {
        if head.len() > self.chunk_size {
            return None;
        }
        let chunk = self.take_chunk()?;
        let frame = self.received(chunk, 0, head.len(), len.max(head.len()), at);
        self.chunk_mut(chunk)[..head.len()].copy_from_slice(head);
        self.copied_in += 1;
        Some(frame)
    }

    /// A new frame of `len` zero bytes made by a node, from the reserve if need be. `None`
    /// when no chunk is free (counted) or `len` exceeds a chunk.
    pub fn make(&mut self, len: usize, at: Time) -> Option<Frame> {
        if len > self.chunk_size {
            return None;
        }
        let chunk = self.take_reserved()?;
        self.chunk_mut(chunk)[..len].fill(0);
        Some(self.received(chunk, 0, len, len, at))
    }

    /// A copy of a frame's headers: of its first `head` bytes, or as many as are present. It is as long and has the
    /// same checksum state, and counts as made. `None` when no chunk is free (counted).
    pub fn copy_head(&mut self, frame: &Frame, head: usize, at: Time) -> Option<Frame> {
        let head = head.min(frame.head_len());
        let mut copy = self.make(head, at)?;
        let from = frame.chunk as usize * self.chunk_size + frame.offset();
        let to = copy.chunk as usize * self.chunk_size;
        self.memory.bytes_mut().copy_within(from..from + head, to);
        (copy.len, copy.gso_size, copy.checksum) = (frame.len, frame.gso_size, frame.checksum);
        Some(copy)
    }

    /// A new frame made by a node: a copy of `head`, of a frame `len` bytes long whose payload is absent.
    /// `None` when no chunk is free (counted) or `head` exceeds a chunk.
    pub fn make_head(&mut self, head: &[u8], len: usize, at: Time) -> Option<Frame> {
        if head.len() > self.chunk_size {
            return None;
        }
        let chunk = self.take_reserved()?;
        self.chunk_mut(chunk)[..head.len()].copy_from_slice(head);
        Some(self.received(chunk, 0, head.len(), len.max(head.len()), at))
    }

    /// A chunk for a frame made by a node.
    fn take_reserved(&mut self) -> Option<u32> {
        if self.free.is_empty() && !self.grow() {
            self.exhausted += 1;
        }
        let chunk = self.free.pop()?;
        self.made += 1;
        Some(chunk)
    }

    /// The frame cut to its first `len` bytes. Panics if fewer are present in its first chunk.
    pub fn truncate(&mut self, mut frame: Frame, len: usize) -> Frame {
        assert!(len <= frame.head_len());
        self.put_chain(core::mem::replace(&mut frame.next, NO_CHUNK));
        frame.head = len as u16;
        frame.len = len as u32;
        frame
    }

    /// The bytes present.
    pub fn bytes(&self, frame: &Frame) -> &[u8] {
        let start = frame.chunk as usize * self.chunk_size + frame.offset();
        &self.memory.bytes()[start..start + frame.head_len()]
    }

    /// What lies before the frame in its first chunk: a driver may keep there what it knows of the frame.
    pub fn headroom(&self, frame: &Frame) -> &[u8] {
        let start = frame.chunk as usize * self.chunk_size;
        &self.memory.bytes()[start..start + frame.offset()]
    }

    /// The bytes present, to be rewritten.
    pub fn bytes_mut(&mut self, frame: &Frame) -> &mut [u8] {
        let (start, head) = (frame.offset(), frame.head_len());
        &mut self.chunk_mut(frame.chunk)[start..start + head]
    }

    fn chunk_mut(&mut self, chunk: u32) -> &mut [u8] {
        let start = chunk as usize * self.chunk_size;
        &mut self.memory.bytes_mut()[start..start + self.chunk_size]
    }

    /// The one door for losses.
    pub fn drop(&mut self, frame: Frame, reason: DropReason) {
        self.drops.count(reason);
        self.put_frame(frame);
    }

    /// Ends a frame whose information lives on in a flow's record.
    pub fn absorb(&mut self, frame: Frame) {
        self.absorbed += 1;
        self.put_frame(frame);
    }

    /// Ends a frame that a driver has copied before it handed it on.
    pub fn consumed(&mut self, frame: Frame) {
        self.put_frame(frame);
    }

    /// Ends a frame that was transmitted by copying it out. A driver that hands the chunk itself to
    /// the device keeps [`Frame::chunk`] and calls [`Frames::put_chunk`] on completion instead.
    pub fn transmitted(&mut self, frame: Frame) {
        self.copied_out += 1;
        self.put_frame(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receiving_leaves_the_reserve_to_made_frames() {
        let mut pool = Frames::new(3, 128, 1);
        let a = pool.receive_copy(&[1; 60], 1514, Time::ZERO).unwrap();
        let b = pool.receive_copy(&[2; 60], 60, Time::ZERO).unwrap();
        assert!(pool.receive_copy(&[3; 60], 60, Time::ZERO).is_none());
        let c = pool.make(60, Time::ZERO).unwrap();
        assert!(pool.make(60, Time::ZERO).is_none());
        assert_eq!((pool.made(), pool.exhausted()), (1, 1));
        assert_eq!((a.len(), a.head_len()), (1514, 60));
        assert_eq!(pool.bytes(&b), [2; 60]);
        assert_eq!(pool.bytes(&c), [0; 60]);
        pool.drop(a, DropReason::QueueFull);
        pool.absorb(b);
        pool.transmitted(c);
        assert_eq!(pool.free_chunks(), 3);
        assert_eq!(pool.drops().get(DropReason::QueueFull), 1);
    }

    #[test]
    fn a_giant_segment_counts_as_many() {
        let mut pool = Frames::new(1, 128, 0);
        // 54 bytes of headers and 3 × 1448 + 1 bytes of payload.
        let mut f = pool.receive_copy(&[0; 54], 54 + 3 * 1448 + 1, Time::ZERO).unwrap();
        assert_eq!(f.segments(54), 1);
        f.gso_size = 1448;
        assert_eq!(f.segments(54), 4);
        pool.transmitted(f);
    }

    #[test]
    fn a_copy_of_headers_is_a_frame_of_its_own() {
        let mut pool = Frames::new(3, 128, 0);
        let mut frame = pool.receive_copy(&[7; 60], 1514, Time::ZERO).unwrap();
        (frame.gso_size, frame.checksum) = (1448, Checksum::Valid);
        let short = pool.copy_head(&frame, 20, Time::ZERO).unwrap();
        let whole = pool.copy_head(&frame, 192, Time::ZERO).unwrap();
        assert_eq!(pool.copy_head(&frame, 1, Time::ZERO), None);
        pool.bytes_mut(&frame).fill(9);
        assert_eq!((pool.bytes(&short), pool.bytes(&whole)), (&[7; 20][..], &[7; 60][..]));
        for copy in [short, whole] {
            assert_eq!((copy.len(), copy.gso_size, copy.checksum), (1514, 1448, Checksum::Valid));
            pool.absorb(copy);
        }
        pool.transmitted(frame);
        assert_eq!((pool.made(), pool.exhausted(), pool.ledger().held()), (2, 1, 0));
    }

    #[test]
    fn a_giant_segment_lies_in_chained_chunks() {
        let mut pool = Frames::new(4, 128, 0);
        let chunks = [(); 3].map(|()| pool.take_chunk().unwrap());
        for chunk in chunks {
            let start = chunk as usize * 128;
            pool.memory_mut()[start..start + 128].fill(chunk as u8);
        }
        let mut frame = pool.received(chunks[0], 28, 100, 100 + 128 + 7, Time::ZERO);
        pool.chain(&mut frame, chunks[0], chunks[1]);
        pool.chain(&mut frame, chunks[1], chunks[2]);
        let parts: Vec<(usize, u8)> = pool.parts(&frame).map(|p| (p.len(), p[0])).collect();
        assert_eq!(parts, [(100, chunks[0] as u8), (128, chunks[1] as u8), (7, chunks[2] as u8)]);
        pool.transmitted(frame);
        assert_eq!(pool.free_chunks(), 4);
        // A chunk that was in a chain starts alone again.
        let frame = pool.receive_copy(&[1; 60], 60, Time::ZERO).unwrap();
        assert_eq!(pool.parts(&frame).count(), 1);
        pool.absorb(frame);
    }

    #[test]
    fn a_growing_pool_doubles_and_keeps_what_it_holds() {
        let mut pool = Frames::growing(128);
        let mut frames = Vec::new();
        for n in 0..3000u32 {
            frames.push(pool.receive_copy(&n.to_be_bytes(), 60, Time::ZERO).unwrap());
        }
        for n in 3000..4500u32 {
            frames.push(pool.make_head(&n.to_be_bytes(), 60, Time::ZERO).unwrap());
        }
        for n in 4500..5000u32 {
            let frame = pool.make(4, Time::ZERO).unwrap();
            pool.bytes_mut(&frame).copy_from_slice(&n.to_be_bytes());
            frames.push(frame);
        }
        assert_eq!((pool.chunks(), pool.exhausted()), (8192, 0));
        assert_eq!(pool.ledger().held(), 5000);
        for (n, f) in (0u32..).zip(frames) {
            assert_eq!(pool.bytes(&f), n.to_be_bytes());
            match n % 3 {
                0 => pool.transmitted(f),
                1 => pool.absorb(f),
                _ => pool.drop(f, DropReason::Shutdown),
            }
        }
        let Ledger { received, made, sent, absorbed, drops } = pool.ledger();
        assert_eq!((received, made, sent, absorbed, drops.total()), (3000, 2000, 1667, 1667, 1666));
        assert_eq!((pool.ledger().held(), pool.free_chunks()), (0, 8192));
    }

    #[test]
    fn a_handle_is_small() {
        assert!(core::mem::size_of::<Frame>() <= 32);
    }
}
