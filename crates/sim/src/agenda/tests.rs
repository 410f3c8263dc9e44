use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn ns(n: u64) -> Time {
    Time::from_nanos(n)
}

/// Both agendas, and a sorted set of (time, sequence, event).
#[derive(Default)]
struct Model {
    heap: Heap,
    wheel: Wheel,
    sorted: BTreeSet<(Time, u64, u32)>,
    seq: u64,
    now: u64,
}

impl Model {
    fn push(&mut self, at: Time, event: u32) {
        let seq = self.book();
        self.push_booked(at, seq, event);
    }

    fn book(&mut self) -> u64 {
        self.seq += 1;
        self.seq - 1
    }

    fn push_booked(&mut self, at: Time, seq: u64, event: u32) {
        self.heap.push(at, seq, event);
        self.wheel.push(at, seq, event);
        self.sorted.insert((at, seq, event));
    }

    fn exchange(&mut self, at: Time, event: u32, until: Time) -> Option<(Time, u32)> {
        let seq = self.book();
        self.sorted.insert((at, seq, event));
        let first = self.sorted.first().filter(|first| first.0 <= until).copied();
        first.iter().for_each(|first| assert!(self.sorted.remove(first)));
        let first = first.map(|(at, _, event)| (at, event));
        assert_eq!(self.heap.exchange(at, seq, event, until), first);
        assert_eq!(self.wheel.exchange(at, seq, event, until), first);
        first
    }

    fn pop(&mut self) -> Option<(Time, u32)> {
        let first = self.sorted.pop_first().map(|(at, _, event)| (at, event));
        assert_eq!(self.heap.peek(), first.map(|f| f.0));
        assert_eq!(self.wheel.peek(), first.map(|f| f.0));
        assert_eq!(self.heap.pop(), first);
        assert_eq!(self.wheel.pop(), first);
        first
    }
}

#[test]
fn by_time_then_as_they_came() {
    let mut agendas: [Box<dyn Agenda>; 2] = [Box::new(Heap::new()), Box::new(Wheel::new())];
    for a in &mut agendas {
        assert_eq!((a.peek(), a.pop()), (None, None));
        for (seq, (at, event)) in (0..).zip([(9, 5), (3, 4), (9, 3), (u64::MAX, 2), (3, 1), (0, EVENTS - 1)])
        {
            a.push(ns(at), seq, event);
        }
        assert_eq!(a.pop_until(ns(2)), Some((ns(0), EVENTS - 1)));
        assert_eq!(a.pop_until(ns(2)), None);
        let rest: Vec<_> = std::iter::from_fn(|| a.pop()).map(|(at, event)| (at.as_nanos(), event)).collect();
        assert_eq!(rest, [(3, 4), (3, 1), (9, 5), (9, 3), (u64::MAX, 2)]);
    }
}

#[test]
fn a_crowd_of_one_time_stays_in_order() {
    let mut m = Model::default();
    (0..1000).for_each(|e| m.push(ns(5_000_000), e));
    (0..500).for_each(|e| m.push(ns(4_000_000 + u64::from(e)), e));
    while m.pop().is_some() {
        if m.seq < 4000 {
            m.push(ns(5_000_000), 7);
        }
    }
    assert_eq!(m.seq, 4000);
}

proptest! {
    /// Tests bursts of events at distances of all magnitudes, more than are sorted at once, with pops in
    /// between.
    #[test]
    fn like_a_sorted_set(
        ops in prop::collection::vec((any::<bool>(), 1usize..300, 0u64..1 << 40, 0u32..41, 0u64..4), 1..40)
    ) {
        let mut m = Model::default();
        for (push, count, far, shift, step) in ops {
            for n in 0..count as u64 {
                if push {
                    m.push(ns(m.now + (far >> shift) + (n * step) % 97), n as u32);
                } else if let Some((at, _)) = m.pop() {
                    m.now = at.as_nanos();
                }
            }
        }
        while m.pop().is_some() {}
    }

    /// Tests the hold model: the number of pending events is constant.
    #[test]
    fn held_like_a_sorted_set(pending in 1u32..400, later in prop::collection::vec((0u64..1 << 34, 0u32..35), 1..50)) {
        let mut m = Model::default();
        (0..pending).for_each(|e| m.push(ns(u64::from(e)), e));
        for n in 0..2000 {
            let (at, event) = m.pop().unwrap();
            let (far, shift) = later[n % later.len()];
            m.push(ns(at.as_nanos() + (far >> shift)), event);
        }
        while m.pop().is_some() {}
    }

    /// Tests events that are pushed while others are popped.
    #[test]
    fn exchanged_like_a_sorted_set(
        pending in 0u32..200, later in prop::collection::vec((0u64..1 << 34, 0u32..35, 0u64..1 << 20), 1..50),
    ) {
        let mut m = Model::default();
        (0..pending).for_each(|e| m.push(ns(u64::from(e / 3)), e));
        for n in 0..2000 {
            let (far, shift, wait) = later[n % later.len()];
            match m.exchange(ns(m.now + (far >> shift)), n as u32, ns(m.now + wait)) {
                Some((at, _)) => m.now = at.as_nanos(),
                None => m.now = m.pop().unwrap().0.as_nanos(),
            }
        }
        while m.pop().is_some() {}
    }

    /// Tests events that are pushed after later ones of the same time.
    #[test]
    fn held_like_a_sorted_set_whatever_is_pushed_first(
        pending in 0u32..200, later in prop::collection::vec((0u64..1 << 34, 0u32..35, 0u32..6), 1..50),
    ) {
        let mut m = Model::default();
        (0..pending).for_each(|e| m.push(ns(u64::from(e / 3)), e));
        for n in 0..1000 {
            let (far, shift, others) = later[n % later.len()];
            let due = ns(m.now + 1 + (far >> shift));
            let seq = m.book();
            (0..others).for_each(|e| m.push(due, e));
            m.push_booked(due, seq, 9);
            for _ in 0..=others {
                m.now = m.pop().unwrap().0.as_nanos();
            }
        }
        while m.pop().is_some() {}
    }
}
