//! Loading what is kept of flows before it is needed.
//!
//! Of a million flows next to nothing is in the processor's caches. Each look-up would wait for one line of
//! memory after the other; of a batch the lines of all flows are asked for at once, which takes hardly longer
//! than those of one. What is found in one line says which the next is, so there are several passes over a
//! batch: the index, the flows, their neighbours in the order of activity. Between two lines that a pass asks
//! for lies as little as possible: what the processor works on at a time is bounded.

use super::flows::millis;
use super::flows::slots::Slots;
use crate::base::{prefetch, Timers};
use crate::flow::{FlowId, Key, Table};
use crate::frame::{Frame, Frames};
use crate::node::Port;
use crate::time::Time;

/// Frames that are looked at together: what is loaded for them is still there when they come.
pub(super) const TOGETHER: usize = 64;
/// Timers looked at, at most: as many ACKs leave as come, or some more, so twice as many as there are frames.
const TIMERS: usize = 512;
/// Below this many flows everything stays in the caches.
const FEW: u32 = 4096;

/// Numbers, at most [`TOGETHER`].
struct Few<N> {
    numbers: [N; TOGETHER],
    len: usize,
}

impl<N: Copy + Default> Few<N> {
    fn of(numbers: impl Iterator<Item = N>) -> Few<N> {
        let mut few = Few { numbers: [N::default(); TOGETHER], len: 0 };
        for (place, number) in few.numbers.iter_mut().zip(numbers) {
            *place = number;
            few.len += 1;
        }
        few
    }

    fn iter(&self) -> impl Iterator<Item = N> + '_ {
        self.numbers[..self.len].iter().copied()
    }
}

/// Memory of flows.
pub(super) struct Kept<'a> {
    pub(super) table: &'a Table,
    pub(super) slots: &'a Slots,
    pub(super) timers: &'a Timers<2>,
}

impl Kept<'_> {
    /// Loads what is kept of the flows whose frames are about to come, and of those whose releases are due
    /// before the last of them.
    pub(super) fn load(&self, frames: &Frames, coming: &[(Time, Port, Frame)]) {
        let Some((last, ..)) = coming.last().filter(|_| self.table.len() > FEW) else { return };
        let last_ms = millis(*last);
        for batch in coming.chunks(TOGETHER) {
            let keys = batch.iter().filter_map(|(.., frame)| Key::glimpse(frames.bytes(frame)));
            let hashes = Few::of(keys.map(|key| self.table.hash(&key)));
            hashes.iter().for_each(|hash| self.table.load(hash));
            let flows = Few::of(hashes.iter().filter_map(|hash| self.table.guess(hash)));
            flows.iter().for_each(|i| self.touch(i));
            flows.iter().for_each(|i| self.table.load_order(i, last_ms));
        }
        let flows = self.table.capacity();
        self.timers.soon(*last, TIMERS.min(2 * coming.len()), |i| {
            if i < flows {
                self.touch(FlowId(i));
            }
        });
    }

    /// Asks for the lines of a flow.
    fn touch(&self, i: FlowId) {
        let r = &self.table[i];
        prefetch(&r.flags);
        prefetch(&r.law);
        prefetch(&r.key);
        prefetch(&r.echoes);
        prefetch(&self.slots[i]);
    }
}
