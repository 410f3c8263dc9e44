//! Memory of the pool for frames to come: chunks that the kernel writes before they are frames.

use super::{CHUNK, HEAD};
use crate::sys::packet::Vnet;
use weir_core::frame::{Frames, NO_CHUNK};

/// Chunks of this many frames, of this many parts each.
#[derive(Debug)]
pub(super) struct Places {
    parts: usize,
    /// Chunks of the parts of each frame.
    chunks: Box<[u32]>,
    /// Number of chunks that each frame misses: the first ones.
    missing: Box<[usize]>,
    /// The first this many may miss some.
    open: usize,
}

/// Memory of a part of a frame, valid until its pool is used again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub frame: usize,
    pub part: usize,
    pub start: *mut u8,
    pub len: usize,
}

impl Places {
    /// None has a chunk yet.
    pub fn new(frames: usize, parts: usize) -> Places {
        let chunks = vec![NO_CHUNK; frames * parts].into_boxed_slice();
        Places { parts, chunks, missing: vec![parts; frames].into_boxed_slice(), open: frames }
    }

    /// Gives frames to come the memory that those before them took along. Returns how many have theirs.
    pub fn refill(&mut self, frames: &mut Frames) -> usize {
        for i in 0..self.open {
            while let Some(part) = self.missing[i].checked_sub(1) {
                let Some(chunk) = frames.take_chunk() else { return i };
                self.chunks[i * self.parts + part] = chunk;
                self.missing[i] = part;
            }
        }
        self.open = 0;
        self.missing.len()
    }

    /// Tells where the parts of the first `count` frames are. All addresses are of one borrow of the pool's
    /// memory, so that a later use of the pool ends them all: they are told again for each call that writes
    /// there.
    pub fn tell(&self, frames: &mut Frames, count: usize, mut each: impl FnMut(Part)) {
        let memory = frames.memory_mut();
        let (base, size) = (memory.as_mut_ptr(), memory.len());
        for (i, chunk) in self.chunks[..count * self.parts].iter().enumerate() {
            let (frame, part) = (i / self.parts, i % self.parts);
            let before = if part == 0 { HEAD - Vnet::LEN } else { 0 };
            let at = *chunk as usize * CHUNK + before;
            assert!(at + CHUNK - before <= size, "a chunk of another pool");
            each(Part { frame, part, start: base.wrapping_add(at), len: CHUNK - before });
        }
    }

    /// The chunks of a frame that has come.
    pub fn chunks(&self, frame: usize) -> &[u32] {
        &self.chunks[frame * self.parts..][..self.parts]
    }

    /// A frame took its first `used` chunks along.
    pub fn took(&mut self, frame: usize, used: usize) {
        self.missing[frame] = used;
        self.open = self.open.max(frame + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::time::Time;

    const FRAMES: usize = 3;
    const PARTS: usize = 2;

    /// Writes each part's memory from its beginning on, as the kernel does.
    fn write(parts: &[Part]) {
        for part in parts {
            // SAFETY: told by `Places::tell`, and the pool has not been used since.
            unsafe { part.start.write_bytes(1 + part.frame as u8, part.len) };
        }
    }

    fn parts(places: &Places, frames: &mut Frames, count: usize) -> Vec<Part> {
        let mut parts = Vec::new();
        places.tell(frames, count, |part| parts.push(part));
        parts
    }

    /// For Miri as well, which finds addresses that an earlier borrow of the pool had.
    #[test]
    fn the_kernel_writes_where_frames_will_be() {
        let mut frames = Frames::mapped(vec![0; 16 * CHUNK].leak(), CHUNK, 0);
        let mut places = Places::new(FRAMES, PARTS);
        for round in 0..4 {
            let count = places.refill(&mut frames);
            assert_eq!(count, FRAMES);
            // The last one's chunks have been there since the first round.
            write(&parts(&places, &mut frames, if round < 3 { 2 } else { count }));
            for i in 0..2 + round / 3 {
                let first = places.chunks(i)[0];
                let frame = frames.received(first, HEAD, CHUNK - HEAD, CHUNK - HEAD, Time::ZERO);
                assert!(frames.bytes(&frame).iter().all(|byte| *byte == 1 + i as u8), "{i} of {round}");
                frames.consumed(frame);
                places.took(i, 1);
            }
        }
    }

    #[test]
    fn a_pool_without_room_gives_what_it_has() {
        let mut frames = Frames::mapped(vec![0; 5 * CHUNK].leak(), CHUNK, 0);
        assert_eq!(Places::new(FRAMES, PARTS).refill(&mut frames), 2);
    }
}
