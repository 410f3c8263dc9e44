//! Shares computed by hand, timelines to the nanosecond, and invariants under random input.

use super::*;
use crate::frame::{Charge, Frames, Waiting};
use crate::node::Cx;
use crate::queue::{self, Kind, QueueLimit};
use crate::rate::Rate;
use crate::time::{Duration, Time};
use proptest::prelude::*;

/// Bytes of a full frame.
const FULL: u64 = 1500;

fn mbit(n: u64) -> Option<Rate> {
    Some(Rate::mbit(n))
}

fn top(rate: Option<Rate>) -> Spec {
    Spec { rate, ..Spec::of(None) }
}

fn leaf(parent: usize, rate: Option<Rate>) -> Spec {
    let fifo = queue::Config { limit: QueueLimit::Packets(1000), kind: Kind::Fifo, tins: None };
    Spec { rate, queue: Some(fifo), ..Spec::of(Some(parent)) }
}

struct Bench {
    tree: Tree,
    frames: Frames,
    /// By class, the bytes of the frames that replace those that leave. 0 for none.
    refill: Vec<u64>,
    /// Time, class and bytes of each frame that left.
    sent: Vec<(Time, usize, u64)>,
}

impl Bench {
    fn new(specs: &[Spec]) -> Bench {
        let tree = Tree::new(specs).expect("a sound tree");
        Bench { tree, frames: Frames::growing(128), refill: vec![0; specs.len()], sent: Vec::new() }
    }

    /// Replaces the tree by another with as many classes, each with its former state.
    fn replace(&mut self, specs: &[Spec]) {
        let mut old = core::mem::replace(&mut self.tree, Tree::new(specs).expect("a sound tree"));
        let now = old.now();
        self.tree.follow(now);
        for class in 0..specs.len() {
            self.tree.adopt(&mut Cx { now, frames: &mut self.frames }, class, &mut old, class);
        }
        self.tree.resume(&self.frames);
    }

    fn push(&mut self, class: usize, bytes: u64) {
        let now = self.tree.now();
        let frame = self.frames.receive_copy(&[0; 60], 60, now).unwrap();
        let frame = self.frames.park(frame);
        let charge = Charge { packets: 1, bytes };
        let mut cx = Cx { now, frames: &mut self.frames };
        self.tree.push(&mut cx, class, Waiting { frame, charge, since: now });
    }

    /// Keeps the class backlogged from now on, with frames of `bytes` bytes. 0 ends it.
    fn backlog(&mut self, class: usize, bytes: u64) {
        self.refill[class] = bytes;
        if bytes > 0 {
            (0..3).for_each(|_| self.push(class, bytes));
        }
    }

    fn run_until(&mut self, end: Time) {
        while self.tree.due().is_some_and(|due| due <= end) {
            self.tree.advance(&self.frames, end);
            while let Some(popped) = self.tree.pop(&mut Cx { now: end, frames: &mut self.frames }) {
                assert_eq!(popped.at, self.tree.now());
                self.sent.push((popped.at, popped.class, popped.waiting.charge.bytes));
                let frame = self.frames.unpark(popped.waiting.frame);
                self.frames.transmitted(frame);
                match self.refill[popped.class] {
                    0 => {}
                    bytes => self.push(popped.class, bytes),
                }
            }
        }
        self.tree.advance(&self.frames, end);
    }

    /// Bytes of a class that left from `from` on and before `until`.
    fn bytes(&self, class: usize, from: Time, until: Time) -> u64 {
        let in_time = self.sent.iter().filter(|(at, c, _)| *c == class && (from..until).contains(at));
        in_time.map(|(.., bytes)| bytes).sum()
    }
}

fn sec(n: u64) -> Time {
    Time::from_secs(n)
}

/// Returns the bytes that each class sends in the tenth second, all backlogged with full frames, as kilobits.
fn shares(specs: &[Spec]) -> Vec<u64> {
    let mut b = Bench::new(specs);
    for class in (0..specs.len()).filter(|&i| specs[i].queue.is_some()) {
        b.backlog(class, FULL);
    }
    b.run_until(sec(10));
    (0..specs.len()).map(|class| (b.bytes(class, sec(9), sec(10)) * 8 + 6000) / 12_000).collect()
}

/// Returns the full frames that each class sends in a second at its rate, in units of 12 kb/s.
fn frames_of(mbit: f64) -> u64 {
    (mbit * 1000.0 / 12.0).round() as u64
}

fn assert_near(got: &[u64], want: &[f64]) {
    let near = |(&got, &want): (&u64, &f64)| got.abs_diff(frames_of(want)) <= 1;
    let want_frames: Vec<u64> = want.iter().map(|&w| frames_of(w)).collect();
    assert!(got.iter().zip(want).all(near), "{got:?} frames, expected {want_frames:?}");
}

#[test]
fn guarantees_are_kept_to_the_frame() {
    let got = shares(&[top(mbit(12)), leaf(0, mbit(1)), leaf(0, mbit(4)), leaf(0, mbit(7))]);
    assert_near(&got[1..], &[1.0, 4.0, 7.0]);
}

#[test]
fn what_is_left_is_shared_by_weight() {
    // 100 - 10 - 10 = 80 are left, three parts and one.
    let heavy = Spec { weight: 3, ..leaf(0, mbit(10)) };
    assert_near(&shares(&[top(mbit(100)), heavy, leaf(0, mbit(10))])[1..], &[70.0, 30.0]);
    // Without guarantees, the whole link is borrowed.
    let heavy = Spec { weight: 3, ..leaf(0, None) };
    assert_near(&shares(&[top(mbit(100)), heavy, leaf(0, None)])[1..], &[75.0, 25.0]);
}

#[test]
fn priority_borrows_first_and_a_ceiling_ends_it() {
    let first = Spec { ceil: mbit(60), ..leaf(0, mbit(10)) };
    let second = Spec { priority: 1, ..leaf(0, mbit(10)) };
    let third = Spec { priority: 2, weight: 1000, ..leaf(0, mbit(5)) };
    assert_near(&shares(&[top(mbit(100)), first, second, third])[1..], &[60.0, 35.0, 5.0]);
}

#[test]
fn borrowing_goes_up_the_tree() {
    // Two customers of 40 with two services each. The first one's second service and the second one's first
    // are idle.
    let mut specs = vec![top(mbit(100)), Spec { rate: mbit(40), ..Spec::of(Some(0)) }];
    specs.push(Spec { rate: mbit(40), ..Spec::of(Some(0)) });
    specs.extend([leaf(1, mbit(10)), leaf(1, mbit(20)), leaf(2, mbit(10)), leaf(2, mbit(20))]);
    let mut b = Bench::new(&specs);
    b.backlog(3, FULL);
    b.backlog(6, FULL);
    b.run_until(sec(10));
    let share = |class| b.bytes(class, sec(9), sec(10)) * 8 / 12_000;
    assert_near(&[share(3), share(6)], &[50.0, 50.0]);
    // All four get their own rate, then 5 each from their customer's rest, then the link's 20 by customers.
    let got = shares(&specs);
    assert_near(&got[3..], &[20.0, 30.0, 20.0, 30.0]);
    // With three services, customers still share the link's rest equally. HTB would give two thirds to the
    // one with two leaves.
    let three = [specs[0], specs[1], specs[2], specs[3], specs[4], leaf(2, mbit(40))];
    assert_near(&shares(&three)[3..], &[20.0, 30.0, 50.0]);
}

#[test]
fn a_ceiling_within_holds_for_all_below_it() {
    let site = Spec { rate: mbit(20), ceil: mbit(30), ..Spec::of(Some(0)) };
    let got = shares(&[top(mbit(100)), site, leaf(1, mbit(5)), leaf(1, mbit(5)), leaf(0, mbit(10))]);
    assert_near(&got[2..], &[15.0, 15.0, 70.0]);
}

#[test]
fn what_was_borrowed_is_given_back_after_the_frame_that_leaves() {
    // A full frame takes 1.2 ms on the link. The second class has 5 Mb/s: a frame each 2.4 ms.
    let mut b = Bench::new(&[top(mbit(10)), leaf(0, mbit(1)), leaf(0, mbit(5))]);
    b.backlog(1, FULL);
    b.run_until(Time::from_micros(24_500));
    (0..4).for_each(|_| b.push(2, FULL));
    b.run_until(Time::from_micros(34_000));
    let second: Vec<u64> = b.sent.iter().filter(|s| s.1 == 2).map(|s| s.0.as_nanos() / 1000).collect();
    // A frame left at 24.0 ms. The link is free at 25.2 ms. The class is below its rate again at 26.9 and
    // 29.3 ms. At 26.4 ms it is its turn to borrow, and at 28.8 ms the other's.
    assert_eq!(second, [25_200, 26_400, 27_600, 30_000]);
    assert!(b.sent.windows(2).all(|w| w[1].0.since(w[0].0) == Duration::from_micros(1200)), "never idle");
}

#[test]
fn the_first_frame_leaves_at_once_and_the_others_when_paid_for() {
    let mut b = Bench::new(&[top(mbit(8)), leaf(0, mbit(2))]);
    b.run_until(Time::from_millis(7));
    b.push(1, 1000);
    b.push(1, 500);
    b.push(1, 100);
    b.run_until(sec(1));
    // The link is the limit: a byte a microsecond.
    let at: Vec<u64> = b.sent.iter().map(|s| s.0.as_nanos() / 1000).collect();
    assert_eq!(at, [7000, 8000, 8500]);
}

#[test]
fn voice_waits_for_one_frame_of_the_link_at_most() {
    let voice = Spec { priority: 0, ..leaf(0, Some(Rate::kbit(90))) };
    let bulk = Spec { priority: 1, ..leaf(0, Some(Rate::kbit(910))) };
    let mut b = Bench::new(&[top(mbit(1)), voice, bulk]);
    b.backlog(2, FULL);
    let mut late = Duration::ZERO;
    // 200 bytes every 20 ms are 80 kb/s. They are never less than 17.8 ms apart, which would exceed 90 kb/s.
    for n in 1..500 {
        let at = Time::from_micros(n * 20_000 + n % 7 * 300);
        b.run_until(at);
        b.push(1, 200);
        let before = b.sent.len();
        b.run_until(Time::from_micros((n + 1) * 20_000));
        let left = b.sent[before..].iter().find(|s| s.1 == 1).expect("it left").0;
        late = late.max(left.since(at));
    }
    // 1,500 bytes take 12 ms.
    assert!(late <= Duration::from_millis(12) && late > Duration::from_millis(8), "{late}");
}

#[test]
fn equal_customers_are_late_by_a_frame_of_their_own_and_one_of_the_link() {
    // A hundred classes of 1 Mb/s on 100 Mb/s. All wake at the same time.
    let mut specs = vec![top(mbit(100))];
    specs.extend((0..100).map(|_| leaf(0, mbit(1))));
    let mut b = Bench::new(&specs);
    b.run_until(Time::from_millis(3));
    (1..=100).for_each(|class| b.backlog(class, FULL));
    b.run_until(sec(2));
    for class in 1..=100 {
        let times: Vec<Time> = b.sent.iter().filter(|s| s.1 == class).map(|s| s.0).collect();
        for (n, at) in (0..).zip(&times) {
            // 12 ms for a frame of its own, 0.12 ms for one of the link.
            let latest = Time::from_micros(3_000 + (n + 1) * 12_000 + 120);
            assert!(*at <= latest, "class {class}, frame {n}: {at:?} after {latest:?}");
        }
    }
}

#[test]
fn a_strict_link_never_sends_two_frames_at_once() {
    let mut specs = vec![top(mbit(10))];
    specs.extend((0..20).map(|_| leaf(0, Some(Rate::kbit(500)))));
    let mut b = Bench::new(&specs);
    b.run_until(sec(1));
    (1..=20).for_each(|class| b.backlog(class, FULL));
    b.run_until(sec(2));
    assert!(b.sent.windows(2).all(|w| w[1].0.since(w[0].0) == Duration::from_micros(1200)));
}

#[test]
fn rates_change_live_to_the_bit() {
    let mut b = Bench::new(&[top(mbit(8)), leaf(0, mbit(8))]);
    b.backlog(1, 1000);
    b.run_until(Time::from_micros(10_250));
    // The frame of 10 ms has finished at 11 ms. The debt is 750 bytes, or 1.5 ms at half the rate.
    b.replace(&[top(mbit(4)), leaf(0, mbit(4))]);
    b.run_until(Time::from_millis(20));
    let after: Vec<u64> = b.sent.iter().map(|s| s.0.as_nanos() / 1000).filter(|&t| t > 10_250).collect();
    assert_eq!(after, [11_750, 13_750, 15_750, 17_750, 19_750]);
}

#[test]
fn unsound_trees_are_refused() {
    let refused = |specs: &[Spec]| Tree::new(specs).map(drop).unwrap_err();
    let queue = leaf(0, None).queue;
    assert_eq!(refused(&[Spec { queue, ..Spec::of(None) }]), Unsound::TopWithoutRate(0));
    assert_eq!(refused(&[top(mbit(1))]), Unsound::Empty(0));
    assert_eq!(refused(&[top(mbit(1)), leaf(7, None)]), Unsound::NoParent(1));
    assert_eq!(refused(&[Spec { queue, ..top(mbit(1)) }, leaf(0, None)]), Unsound::ParentQueues(1));
    assert_eq!(refused(&[Spec::of(Some(1)), Spec::of(Some(0))]), Unsound::Depth(0, 32));
    let over = [top(mbit(3)), leaf(0, mbit(1)), leaf(0, mbit(2)), leaf(0, Some(Rate::kbit(1)))];
    assert_eq!(refused(&over), Unsound::Overcommitted(0, 3_001_000, 3_000_000));
    assert!(Tree::new(&over[..3]).is_ok());
    let grouped = [top(mbit(3)), Spec::of(Some(0)), leaf(1, mbit(1))];
    assert_eq!(refused(&grouped), Unsound::Overcommitted(1, 1_000_000, 0));
    assert_eq!(
        refused(&[top(mbit(1)), Spec { ceil: mbit(1), ..leaf(0, mbit(2)) }]),
        Unsound::CeilBelowRate(1)
    );
    let high = Spec { ceil: mbit(2), ..leaf(0, mbit(1)) };
    assert_eq!(refused(&[top(mbit(1)), high]), Unsound::CeilAboveParent(1, Rate::mbit(1)));
    assert_eq!(refused(&[Spec { ceil: mbit(2), queue, ..top(mbit(1)) }]), Unsound::TopCeil(0));
    assert_eq!(refused(&[Spec { weight: 0, queue, ..top(mbit(1)) }]), Unsound::OutOfRange(0));
    assert_eq!(refused(&[Spec { priority: 8, queue, ..top(mbit(1)) }]), Unsound::OutOfRange(0));
}

/// Two levels below the link: rates and weights of customers, each with services.
fn trees() -> impl Strategy<Value = Vec<Spec>> {
    let service = (1u64..3000, 1u32..20, 0u8..3, prop::bool::ANY);
    let customers = prop::collection::vec(prop::collection::vec(service, 1..4), 1..4);
    (customers, 100u64..5000, prop::bool::ANY).prop_map(|(customers, spare, capped)| {
        let sum = |services: &[(u64, u32, u8, bool)]| services.iter().map(|s| s.0).sum::<u64>();
        let all: u64 = customers.iter().map(|c| sum(c)).sum();
        let mut specs = vec![top(Some(Rate::kbit(all + spare)))];
        for services in &customers {
            let own = sum(services);
            let ceil = capped.then_some(Rate::kbit(own + spare / 2));
            specs.push(Spec { rate: Some(Rate::kbit(own)), ceil, ..Spec::of(Some(0)) });
            let customer = specs.len() - 1;
            for &(rate, weight, priority, guaranteed) in services {
                let rate = guaranteed.then_some(Rate::kbit(rate));
                specs.push(Spec { weight, priority, ..leaf(customer, rate) });
            }
        }
        specs
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A backlogged class gets its rate over any second, within 0.1 % or a full frame of its own and one of
    /// the link. No class exceeds its ceiling by more than a frame. The link is never idle while it may send.
    #[test]
    fn rates_hold_over_any_second(specs in trees(), bytes in prop::collection::vec(64u64..1500, 20), idle in 0usize..20) {
        let mut b = Bench::new(&specs);
        let leaves: Vec<usize> = (0..specs.len()).filter(|&i| specs[i].queue.is_some() && i != idle).collect();
        prop_assume!(!leaves.is_empty());
        leaves.iter().for_each(|&i| b.backlog(i, bytes[i % 20]));
        b.run_until(Time::from_millis(3_500));
        for (i, spec) in specs.iter().enumerate() {
            let below = |leaf: usize| core::iter::successors(Some(leaf), |&l| specs[l].parent).any(|l| l == i);
            let own: Vec<usize> = leaves.iter().copied().filter(|&leaf| below(leaf)).collect();
            for from in [0, 700, 1_300, 2_500].map(Time::from_millis) {
                let sent: u64 = own.iter().map(|&leaf| b.bytes(leaf, from, from + Duration::from_millis(1000))).sum();
                let slack = |rate: Rate| (rate.bps() / 8 / 1000).max(1500) + 1500;
                // Ceilings may leave the link partly idle.
                let used = !own.is_empty() && (i != 0 || specs[1].ceil.is_none());
                if let Some(rate) = spec.rate.filter(|_| used) {
                    prop_assert!(sent + slack(rate) >= rate.bps() / 8, "class {i}: {sent} bytes at {rate}");
                }
                let most = if i == 0 { spec.rate } else { spec.ceil };
                if let Some(most) = most {
                    prop_assert!(sent <= most.bps() / 8 + slack(most), "class {i}: {sent} bytes at {most} at most");
                }
            }
        }
    }

    /// No frame is lost or kept back: every arrival leaves, in the order of its class, for any arrival times.
    #[test]
    fn all_that_comes_leaves(specs in trees(), steps in prop::collection::vec((0usize..20, 1u64..1500, 0u64..3000), 0..200)) {
        let mut b = Bench::new(&specs);
        let leaves: Vec<usize> = (0..specs.len()).filter(|&i| specs[i].queue.is_some()).collect();
        let mut sum = 0;
        for &(class, bytes, wait) in &steps {
            b.push(leaves[class % leaves.len()], bytes);
            sum += bytes;
            let next = b.tree.now() + Duration::from_nanos(wait * 1000);
            b.run_until(next);
        }
        b.run_until(sec(1000));
        prop_assert_eq!(b.sent.iter().map(|s| s.2).sum::<u64>(), sum);
        prop_assert_eq!((b.tree.due(), b.frames.ledger().held()), (None, 0));
        prop_assert!(b.sent.windows(2).all(|w| w[0].0 <= w[1].0));
    }
}
