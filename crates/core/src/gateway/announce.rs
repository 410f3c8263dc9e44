//! Loading what is kept of flows before it is needed.
//!
//! Of a million flows next to nothing is in the processor's caches. Each look-up would wait for one line of memory after
//! the other; of a batch the lines of all flows are asked for at once, which takes hardly longer than those of one.
//! A line is loaded by reading it. What is found in one line says which the next is, so there are several passes over a batch: the
//! index, the flows, their neighbours in the order of activity.

use super::{millis, Gateway};
use crate::flow::Key;
use crate::frame::{Frame, Frames};
use crate::node::Port;
use crate::time::Time;
use core::hint::black_box;
use core::sync::atomic::Ordering::Relaxed;

/// Frames that are looked at together: what is loaded for them is still there when they come.
pub(super) const TOGETHER: usize = 64;
/// Timers looked at, at most: as many ACKs leave as come, or some more, so twice as many as there are frames.
const TIMERS: usize = 512;
/// Below so many flows everything stays in the caches.
const FEW: u32 = 4096;

impl Gateway {
    /// Loads what is kept of the flows whose frames are about to come, and of those whose releases are due before the last
    /// of them.
    pub(super) fn load(&self, frames: &Frames, coming: &[(Time, Port, Frame)]) {
        let Some((last, ..)) = coming.last().filter(|_| self.table.len() > FEW) else { return };
        let last_ms = millis(*last);
        for batch in coming.chunks(TOGETHER) {
            let mut hashes = [None; TOGETHER];
            for (hash, (.., frame)) in hashes.iter_mut().zip(batch) {
                *hash = Key::glimpse(frames.bytes(frame)).map(|key| self.table.hash(&key));
                black_box(hash.map(|hash| self.table.guess(hash)));
            }
            let flows = hashes.map(|hash| hash.and_then(|hash| self.table.guess(hash)));
            flows.into_iter().flatten().for_each(|i| self.touch(i));
            flows.into_iter().flatten().for_each(|i| self.table.load_order(i, last_ms));
        }
        let flows = self.table.capacity();
        self.timers.soon(*last, TIMERS.min(2 * coming.len()), |i| {
            if i < flows {
                self.touch(i);
            }
        });
    }

    /// Loads the lines of a flow.
    fn touch(&self, i: u32) {
        let r = &self.table[i];
        black_box((r.flags, r.pace.due, r.key.src[0], r.doubt, self.slots[i].tx.load(Relaxed)));
    }
}
