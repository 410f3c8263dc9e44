//! The virtual queue of a flow: the queue that it would have if it alone were served at its fair share of the
//! class.
//!
//! A hook does the arithmetic and never delays a packet (phantom queues: Alizadeh et al., 2012; the generic
//! cell rate algorithm: ITU-T I.371). Traffic below the fair share always finds the queue empty.
//!
//! A flow whose ACKs are controlled has one for what its sender sends beyond what it was permitted: repeated
//! data, or data beyond its window. The gateway writes how much the sender may send, the hooks how much
//! passed. What is permitted enters the queue too while something beyond it waits there: together they have
//! no more than the share.

use super::due::{charge, fits, unit};
use crate::time::{Duration, Time};
use crate::wire::Seq;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Depth of the queue of what was not permitted, in nanoseconds.
const DEPTH: u64 = 50_000_000;

/// Repeated data is charged as it passes, and its receiver never gets it a second time. It is forgotten with
/// so many times as much that is permitted.
const FORGETS: u32 = 16;

/// Virtual queue of a flow, and its sender's account. It is one line of memory that hooks and gateway share.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct VirtualQueue {
    /// Time at which the queue runs empty, in nanoseconds of the hooks' clock. The hooks write it.
    due: AtomicU64,
    /// Payload that passed and was permitted, from some number on. The hooks write it.
    passed: AtomicU32,
    /// Payload that came and was not permitted, whether or not it passed, from some number on. The hooks
    /// write it.
    beyond: AtomicU32,
    /// Payload that the sender was permitted, in the numbers of `passed`. The gateway writes it.
    permitted: AtomicU32,
    /// Payload of `beyond` that the gateway has accounted for. The gateway writes it.
    settled: AtomicU32,
    /// Right edge up to which the sender was permitted, where it is known. The gateway writes it.
    edge: AtomicU32,
    /// Time at which the flow was taken up, in units of 2^23 ns. The gateway writes it.
    begun: AtomicU32,
    /// Time at which data of the flow came last, in those units. The hooks write it.
    seen: AtomicU32,
    spare: AtomicU32,
    spares: [AtomicU64; 3],
}

impl VirtualQueue {
    /// The record is another flow's, whose sender may not send anything yet.
    pub fn begin(&self) {
        self.due.store(0, Relaxed);
        self.restart(0);
    }

    /// The flow is taken up: nothing of its data has been seen.
    pub fn take_up(&self, now: Time) {
        self.begun.store(unit(now.as_nanos()), Relaxed);
    }

    /// Returns whether the flow was taken up so long ago, as far as units of 8.4 ms tell.
    pub fn is_older_than(&self, time: Duration, now: Time) -> bool {
        unit(now.as_nanos()).wrapping_sub(self.begun.load(Relaxed)) > unit(time.as_nanos())
    }

    /// Data of the flow comes.
    pub fn see(&self, now: Time) {
        let now = unit(now.as_nanos());
        if self.seen.load(Relaxed) != now {
            self.seen.store(now, Relaxed);
        }
    }

    /// Returns whether data of the flow has come since it was taken up.
    pub fn has_data(&self) -> bool {
        self.seen.load(Relaxed).wrapping_sub(self.begun.load(Relaxed)) as i32 >= 0
    }

    /// The sender may send `bytes` more from here on, whatever it was permitted before.
    pub fn restart(&self, bytes: u32) {
        self.settled.store(self.beyond.load(Relaxed), Relaxed);
        self.permitted.store(self.passed.load(Relaxed).wrapping_add(bytes), Relaxed);
    }

    /// The sender may send `bytes` more, and has no more than `most` left.
    pub fn permit(&self, bytes: u32, most: u32) {
        let left = self.permitted.load(Relaxed).wrapping_sub(self.passed.load(Relaxed)) as i32;
        let over = left.saturating_add_unsigned(bytes).saturating_sub_unsigned(most).max(0) as u32;
        // Otherwise who is acknowledged without having sent anything might send all of it at once.
        self.permitted.fetch_add(bytes.wrapping_sub(over), Relaxed);
        self.settle(bytes / FORGETS);
    }

    /// The sender may send up to the right edge `to`, of which it has sent `sent` bytes more than was known,
    /// and has no more than `most` left. What its receiver lets its window grow by is permitted with it.
    pub fn permit_to(&self, to: Seq, sent: u32, most: u32) {
        let moved = to.beyond(Seq(self.edge.load(Relaxed)));
        if moved > 0 {
            self.edge.store(to.0, Relaxed);
        }
        self.permit(moved.saturating_sub(sent), most);
    }

    /// The sender may send `bytes` more from here on, up to the right edge `to`.
    pub fn restart_at(&self, bytes: u32, to: Seq) {
        self.edge.store(to.0, Relaxed);
        self.restart(bytes);
    }

    /// The sender will not send `bytes` that it was permitted.
    pub fn take_back(&self, bytes: u32) {
        self.permitted.store(self.permitted.load(Relaxed).wrapping_sub(bytes), Relaxed);
    }

    /// The sender may have sent `bytes` more than it was permitted. Returns those that a hook has seen.
    pub fn settle(&self, bytes: u32) -> u32 {
        let settled = self.settled.load(Relaxed);
        let seen = bytes.min(self.beyond.load(Relaxed).wrapping_sub(settled));
        self.settled.store(settled.wrapping_add(seen), Relaxed);
        seen
    }

    /// Returns whether anything is left of the sender's permission. A segment that is longer is within it,
    /// too.
    pub(super) fn is_permitted(&self) -> bool {
        self.permitted.load(Relaxed).wrapping_sub(self.passed.load(Relaxed)) as i32 > 0
    }

    /// Counts permitted payload that passes at `now`. In a queue where something waits it takes `time`.
    pub(super) fn pass(&self, payload: u32, time: impl Fn() -> u64, now: u64) {
        self.passed.fetch_add(payload, Relaxed);
        let due = self.due.load(Relaxed);
        if due > now && due - now < DEPTH {
            self.due.fetch_add(time(), Relaxed);
        }
    }

    /// Returns whether there is room for a packet that takes so long to serve.
    pub(super) fn has_room(&self, time: u64, now: u64) -> bool {
        fits(&self.due, DEPTH, time, now)
    }

    /// Counts payload that was not permitted.
    pub(super) fn count_beyond(&self, payload: u32) {
        self.beyond.fetch_add(payload, Relaxed);
    }

    /// Enqueues what takes so long.
    pub(super) fn enqueue(&self, time: u64, now: u64) {
        charge(&self.due, time, now);
    }
}

const _: () = assert!(core::mem::size_of::<VirtualQueue>() == 64);

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 bytes a millisecond.
    const TIME: u64 = 1_000_000;

    #[test]
    fn what_was_not_permitted_has_a_queue_of_50_ms() {
        let queue = VirtualQueue::default();
        let enters = |now| {
            let room = queue.has_room(TIME, now);
            if room {
                queue.enqueue(TIME, now);
            }
            room
        };
        assert_eq!((0..60).filter(|_| enters(TIME)).count(), 50);
        assert!(enters(2 * TIME) && !enters(2 * TIME + TIME / 2));
        // Of packets that take longer, four.
        let slow = VirtualQueue::default();
        let enters = || {
            let room = slow.has_room(100 * TIME, TIME);
            if room {
                slow.enqueue(100 * TIME, TIME);
            }
            room
        };
        assert_eq!((0..9).filter(|_| enters()).count(), 4);
    }

    #[test]
    fn a_sender_may_send_what_it_was_permitted_and_not_sent() {
        let queue = VirtualQueue::default();
        let sends = |payload| {
            let permitted = queue.is_permitted();
            if permitted {
                queue.pass(payload, || TIME, TIME);
            } else {
                queue.count_beyond(payload);
            }
            permitted
        };
        queue.restart(3_000);
        assert_eq!([1_448; 4].map(&sends), [true, true, true, false]);
        // 1,344 bytes are paid first.
        queue.permit(1_344, u32::MAX);
        assert!(!sends(1_448));
        queue.permit(1_448, u32::MAX);
        assert!(sends(1_448) && !sends(1_448));
        // No more than 2,000 bytes are left, whatever is permitted.
        queue.permit(1 << 20, 2_000);
        assert_eq!([1_000; 3].map(&sends), [true, true, false]);
    }

    #[test]
    fn what_is_sent_before_it_is_permitted_is_known() {
        let queue = VirtualQueue::default();
        queue.restart(0);
        queue.count_beyond(1_000);
        assert_eq!([700, 700, 700].map(|bytes| queue.settle(bytes)), [700, 300, 0]);
        // Repeated data is forgotten with 16 times as much that is permitted.
        queue.count_beyond(1_000);
        (0..4).for_each(|_| queue.permit(4_000, u32::MAX));
        assert_eq!(queue.settle(1_000), 0);
    }

    #[test]
    fn what_is_permitted_takes_room_where_something_waits() {
        let queue = VirtualQueue::default();
        queue.pass(1_000, || TIME, TIME);
        assert!(queue.has_room(50 * TIME, TIME));
        queue.enqueue(TIME, TIME);
        (0..20).for_each(|_| queue.pass(1_000, || TIME, TIME));
        let enters = || {
            let room = queue.has_room(TIME, TIME);
            if room {
                queue.enqueue(TIME, TIME);
            }
            room
        };
        assert_eq!((0..60).filter(|_| enters()).count(), 29);
    }
}
