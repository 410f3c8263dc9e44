//! Single-producer, single-consumer rings shared with the kernel (`include/net/xdp_sock.h`, AF_XDP).
//!
//! Indices run freely and wrap at 2³²; an entry's place is its index modulo the size, a power of
//! two. The producer writes entries, then publishes its index with release; the consumer reads the
//! index with acquire, then the entries. Both sides work on private copies of the indices and
//! publish once per batch. Nothing here needs a network interface: any mapping will do.

use crate::sys::mmap::Mapping;
use crate::sys::pod::Pod;
use crate::sys::xsk::Layout;
use std::marker::PhantomData;
use std::sync::atomic::Ordering;

/// `XDP_RING_NEED_WAKEUP`: the other side sleeps until a system call wakes it.
const NEED_WAKEUP: u32 = 1;

#[derive(Debug)]
struct Shared<T> {
    map: Mapping,
    layout: Layout,
    mask: u32,
    entry: PhantomData<T>,
}

impl<T: Pod> Shared<T> {
    /// Panics if `size` is no power of two or the mapping too small for it.
    fn new(map: Mapping, layout: Layout, size: u32) -> Shared<T> {
        assert!(size.is_power_of_two(), "ring of {size}");
        assert!(layout.entries + size as usize * size_of::<T>() <= map.len());
        Shared { map, layout, mask: size - 1, entry: PhantomData }
    }
    fn place(&self, index: u32) -> usize {
        self.layout.entries + (index & self.mask) as usize * size_of::<T>()
    }
    fn size(&self) -> u32 {
        self.mask + 1
    }
    fn producer(&self, order: Ordering) -> u32 {
        self.map.atomic_u32(self.layout.producer).load(order)
    }
    fn consumer(&self, order: Ordering) -> u32 {
        self.map.atomic_u32(self.layout.consumer).load(order)
    }
    fn needs_wakeup(&self) -> bool {
        self.map.atomic_u32(self.layout.flags).load(Ordering::Relaxed) & NEED_WAKEUP != 0
    }
}

/// The side that fills a ring.
#[derive(Debug)]
pub struct Producer<T> {
    ring: Shared<T>,
    /// Next index to write; entries before it and after the published index are not visible yet.
    next: u32,
    /// The consumer's index when it was last looked at.
    consumed: u32,
}

impl<T: Pod> Producer<T> {
    /// The producing side of a ring of `size` entries.
    pub fn new(map: Mapping, layout: Layout, size: u32) -> Producer<T> {
        let ring = Shared::new(map, layout, size);
        let (next, consumed) = (ring.producer(Ordering::Relaxed), ring.consumer(Ordering::Acquire));
        Producer { ring, next, consumed }
    }

    /// Entries that fit now.
    pub fn room(&mut self) -> u32 {
        self.consumed = self.ring.consumer(Ordering::Acquire);
        self.ring.size() - self.next.wrapping_sub(self.consumed)
    }

    /// Entries that the other side has not taken yet, published or not.
    pub fn pending(&mut self) -> u32 {
        self.ring.size() - self.room()
    }

    /// Writes an entry, visible after [`Producer::publish`]. False if the ring is full.
    pub fn push(&mut self, entry: T) -> bool {
        if self.next.wrapping_sub(self.consumed) == self.ring.size() && self.room() == 0 {
            return false;
        }
        let place = self.ring.place(self.next);
        self.ring.map.set(place, entry);
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Shows the other side what was pushed.
    pub fn publish(&mut self) {
        self.ring.map.atomic_u32(self.ring.layout.producer).store(self.next, Ordering::Release);
    }

    /// Takes the newest entry back. Only while the other side cannot be reading: an AF_XDP socket
    /// in copy mode reads its transmit ring within `sendto` alone.
    pub fn take_back(&mut self) -> Option<T> {
        if self.pending() == 0 {
            return None;
        }
        self.next = self.next.wrapping_sub(1);
        self.publish();
        Some(self.ring.map.get(self.ring.place(self.next)))
    }

    /// Must the other side be woken by a system call?
    pub fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }
}

/// The side that empties a ring.
#[derive(Debug)]
pub struct Consumer<T> {
    ring: Shared<T>,
    /// Next index to read.
    next: u32,
    /// The producer's index when it was last looked at.
    produced: u32,
}

impl<T: Pod> Consumer<T> {
    /// The consuming side of a ring of `size` entries.
    pub fn new(map: Mapping, layout: Layout, size: u32) -> Consumer<T> {
        let ring = Shared::new(map, layout, size);
        let (next, produced) = (ring.consumer(Ordering::Relaxed), ring.producer(Ordering::Acquire));
        Consumer { ring, next, produced }
    }

    /// Entries that can be taken now.
    pub fn available(&mut self) -> u32 {
        self.produced = self.ring.producer(Ordering::Acquire);
        self.produced.wrapping_sub(self.next)
    }

    /// Takes an entry; its place is given back by [`Consumer::release`].
    pub fn pop(&mut self) -> Option<T> {
        if self.next == self.produced && self.available() == 0 {
            return None;
        }
        let entry = self.ring.map.get(self.ring.place(self.next));
        self.next = self.next.wrapping_add(1);
        Some(entry)
    }

    /// Gives the places of the taken entries back to the other side.
    pub fn release(&mut self) {
        self.ring.map.atomic_u32(self.ring.layout.consumer).store(self.next, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    const LAYOUT: Layout = Layout { producer: 0, consumer: 64, flags: 128, entries: 192 };

    /// Both ends over the same memory, their indices starting at `start`.
    fn pair(size: u32, start: u32) -> (Producer<u64>, Consumer<u64>) {
        use std::os::fd::{AsFd, FromRawFd, OwnedFd};
        // SAFETY: the name is a C string; the result is a new descriptor.
        let fd = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"ring".as_ptr(), 0)) };
        std::fs::File::from(fd.try_clone().unwrap()).set_len(4096).unwrap();
        let map = || Mapping::of_fd(fd.as_fd(), 4096, 0, true).unwrap();
        let first = map();
        first.atomic_u32(0).store(start, Ordering::Relaxed);
        first.atomic_u32(64).store(start, Ordering::Relaxed);
        (Producer::new(first, LAYOUT, size), Consumer::new(map(), LAYOUT, size))
    }

    #[test]
    fn entries_appear_when_published_and_places_when_released() {
        let (mut p, mut c) = pair(2, 0);
        assert!(p.push(1) && p.push(2) && !p.push(3));
        assert_eq!(c.pop(), None);
        p.publish();
        assert_eq!((c.available(), c.pop(), c.pop(), c.pop()), (2, Some(1), Some(2), None));
        assert_eq!((p.room(), p.pending()), (0, 2));
        c.release();
        assert_eq!((p.room(), p.pending()), (2, 0));
    }

    #[test]
    fn the_newest_come_back_first() {
        let (mut p, mut c) = pair(4, u32::MAX);
        assert!(p.push(1) && p.push(2) && p.push(3));
        p.publish();
        assert_eq!(c.pop(), Some(1));
        c.release();
        assert_eq!((p.take_back(), p.take_back(), p.take_back()), (Some(3), Some(2), None));
        assert_eq!((p.room(), c.available()), (4, 0));
    }

    #[test]
    fn wake_up_flag() {
        let (p, c) = pair(2, 0);
        assert!(!p.needs_wakeup());
        c.ring.map.atomic_u32(LAYOUT.flags).store(1, Ordering::Relaxed);
        assert!(p.needs_wakeup());
    }

    /// Random operations against a queue, across the wrap of the indices.
    #[test]
    fn behaves_like_a_queue() {
        let (mut p, mut c) = pair(8, u32::MAX - 100);
        let (mut hidden, mut shown, mut taken) = (VecDeque::new(), VecDeque::new(), 0usize);
        let mut rng = weir_core::rng::Rng::new(7);
        for value in 0..20_000u64 {
            match rng.below(5) {
                0 | 1 => {
                    let fits = hidden.len() + shown.len() + taken < 8;
                    assert_eq!(p.push(value), fits);
                    if fits {
                        hidden.push_back(value);
                    }
                }
                2 => {
                    p.publish();
                    shown.append(&mut hidden);
                }
                3 => {
                    let expected = shown.pop_front();
                    taken += usize::from(expected.is_some());
                    assert_eq!(c.pop(), expected);
                }
                _ => {
                    c.release();
                    taken = 0;
                }
            }
        }
    }
}
