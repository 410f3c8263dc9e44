//! Timelines of RFC 8289 §5.5, computed by hand, with its target of 5 ms and its interval of 100 ms.

use super::*;
use crate::frame::Charge;
use crate::wire::build::SegmentBuilder;

/// A queue and its frame pool. The time of arrival identifies a frame.
struct Bench {
    codel: Codel,
    frames: Frames,
}

impl Bench {
    fn new(params: Params) -> Bench {
        let codel = Codel::new(params, QueueLimit::Unlimited, Rate::mbit(1));
        Bench { codel, frames: Frames::growing(128) }
    }

    /// Pushes `n` frames of 1,500 bytes with these bits in the ECN field.
    fn push(&mut self, at: Time, n: u32, ecn: u8) {
        self.push_charged(at, n, ecn, Charge { packets: 1, bytes: 1500 });
    }

    /// Pushes `n` frames with this charge each.
    fn push_charged(&mut self, at: Time, n: u32, ecn: u8, charge: Charge) {
        let (head, len) =
            SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).tos(ecn).payload(1448).build_head();
        for _ in 0..n {
            let frame = self.frames.receive_copy(&head, len, at).unwrap();
            let frame = self.frames.park(frame);
            let mut cx = Cx { now: at, frames: &mut self.frames };
            assert_eq!(self.codel.push(&mut cx, Waiting { frame, charge, since: at }), None);
        }
    }

    /// Pops a frame. Returns the number of drops on the way, and the ECN field of the frame that left.
    fn pop(&mut self, now: Time) -> (u64, Option<u8>) {
        let dropped = self.codel.backlog.stats.drops.total();
        let waiting = self.codel.pop(&mut Cx { now, frames: &mut self.frames });
        let ecn = waiting.map(|w| {
            let frame = self.frames.unpark(w.frame);
            let ecn = self.frames.bytes(&frame)[15] & 3;
            self.frames.transmitted(frame);
            ecn
        });
        assert_eq!(self.frames.ledger().held() as usize, self.codel.list.len());
        (self.codel.backlog.stats.drops.total() - dropped, ecn)
    }

    /// Pops a frame every 10 ms from `from` to `to`. Returns the times of the pops that dropped, in ms.
    fn drops(&mut self, from: u64, to: u64) -> Vec<u64> {
        let times = (from..=to).step_by(10);
        times.filter(|&t| self.pop(ms(t)).0 > 0).collect()
    }
}

fn ms(n: u64) -> Time {
    Time::from_millis(n)
}

#[test]
fn the_control_law_in_whole_nanoseconds() {
    let p = Params::default();
    // 100 ms / √n, rounded down.
    for (count, ns) in
        [(1, 100_000_000), (2, 70_710_678), (3, 57_735_026), (4, 50_000_000), (10_000, 1_000_000)]
    {
        let law = Law { count, ..Law::default() };
        assert_eq!(law.law(&p, ms(1)), ms(1) + Duration::from_nanos(ns), "{count}");
    }
}

#[test]
fn drops_follow_the_control_law() {
    let mut b = Bench::new(Params::default());
    b.push(ms(0), 100, 0);
    // At 10 ms the first frame has waited too long. At 110 ms all have done so for an interval: the first
    // drop. The next are due at 210, 280.7, 338.4, 388.4, 433.2, 474.0 and 511.8 ms. They happen at the next
    // departure.
    assert_eq!(b.drops(10, 520), [110, 210, 290, 340, 390, 440, 480, 520]);
    assert_eq!(b.codel.backlog.stats.drops.get(DropReason::Aqm), 8);
}

#[test]
fn a_full_frame_is_as_large_as_what_comes() {
    // RFC 8289 §5.5: nothing is signalled while `maxpacket` bytes or fewer wait. This holds for any charge of
    // a packet: with the overhead of Ethernet, or of 9,000 bytes. With one packet behind the one that leaves,
    // nothing is dropped; with two, the first drop is at 110 ms.
    for bytes in [1500, 1518, 1538, 9014] {
        assert_eq!(drops_behind(1, Charge { packets: 1, bytes }), [], "{bytes}");
        assert_eq!(drops_behind(2, Charge { packets: 1, bytes }), [110], "{bytes}");
    }
}

/// One giant behind is ten packets, so the queue stands.
#[test]
fn a_giant_is_as_large_as_one_of_its_packets() {
    assert_eq!(drops_behind(1, Charge { packets: 10, bytes: 15_140 }), [110]);
}

/// Returns the times of drops up to 120 ms if this many frames wait behind each that leaves, every 10 ms.
fn drops_behind(behind: u32, charge: Charge) -> Vec<u64> {
    let mut b = Bench::new(Params::default());
    b.push_charged(ms(0), behind, 0, charge);
    let mut dropped = Vec::new();
    for at in (10..=120).step_by(10) {
        b.push_charged(ms(at - 10), 1, 0, charge);
        dropped.extend((b.pop(ms(at)).0 > 0).then_some(at));
    }
    dropped
}

#[test]
fn one_departure_may_owe_several_drops() {
    let mut b = Bench::new(Params::default());
    b.push(ms(0), 100, 0);
    assert_eq!(b.drops(10, 210), [110, 210]);
    // Due at 280.7, 338.4 and 388.4 ms; the fourth at 433.2 is not.
    assert_eq!(b.pop(ms(400)).0, 3);
}

#[test]
fn what_waited_little_ends_it_and_soon_after_it_goes_on_as_fast() {
    let mut b = Bench::new(Params::default());
    b.push(ms(0), 40, 0);
    // 30 departures and 3 drops leave 7 frames.
    assert_eq!(b.drops(10, 300), [110, 210, 290]);
    let left = b.codel.list.len() as u64;
    assert_eq!(left, 7);
    // Nothing is due before 338.4 ms. A frame with only a full frame behind it ends the dropping state.
    (0..left).for_each(|_| assert_eq!(b.pop(ms(301)), (0, Some(0))));
    assert_eq!(b.pop(ms(302)), (0, None));
    // Frames wait too long again from 400 ms on, so for an interval at 500 ms. The count began with 1 and had
    // grown by 2, so it begins with 2. The next drop is due 70.7 ms later, at 570.7 ms, and the third 57.7 ms
    // after that.
    b.push(ms(390), 60, 0);
    assert_eq!(b.drops(400, 640), [500, 580, 630]);
}

#[test]
fn a_full_frame_behind_is_no_standing_queue() {
    // All have waited for 200 ms, longer than target and interval. One or two frames wait behind the one that
    // leaves.
    for (frames, dropped) in [(3, 0), (4, 1)] {
        let mut b = Bench::new(Params::default());
        b.push(ms(0), frames, 0);
        assert_eq!(b.pop(ms(10)), (0, Some(0)));
        assert_eq!(b.pop(ms(200)), (dropped, Some(0)));
    }
}

#[test]
fn capable_packets_are_marked_and_leave() {
    let mut b = Bench::new(Params { ecn: true, ..Params::default() });
    b.push(ms(0), 100, 2);
    let marked: Vec<u64> = (10..=290).step_by(10).filter(|&t| b.pop(ms(t)) == (0, Some(3))).collect();
    assert_eq!((marked, b.codel.backlog.stats.marks), (vec![110, 210, 290], 3));
    // If many signals are due, one departure makes one mark: the law continues from its own times.
    assert_eq!(b.pop(ms(500)), (0, Some(3)));
    assert_eq!(b.pop(ms(500)), (0, Some(3)));
    // Packets that are not ECN-capable are dropped all the same.
    let mut b = Bench::new(Params { ecn: true, ..Params::default() });
    b.push(ms(0), 100, 0);
    assert_eq!(b.drops(10, 290), [110, 210, 290]);
}
