//! Decisions of a program's discipline, carried out by the queue.

use super::super::tests::{one, Bench};
use super::super::Queue;
use super::*;

/// Two bands, the second first; every third packet that leaves is dropped.
#[derive(Debug, Default)]
struct Script {
    arrivals: Vec<Arrival>,
    left: u32,
}

impl QueueDiscipline for Script {
    fn bands(&self) -> usize {
        2
    }
    fn on_arrival(&mut self, _: Time, _: &Packet, _: &Length<'_>) -> Arrival {
        self.arrivals.remove(0)
    }
    fn next(&self, _: &Length<'_>) -> usize {
        1
    }
    fn on_departure(&mut self, _: Time, _: &Packet, _: &Length<'_>) -> Departure {
        self.left += 1;
        if self.left % 3 == 0 {
            Departure::Drop
        } else {
            Departure::Send
        }
    }
}

fn bench(arrivals: &[Arrival], limit: QueueLimit) -> Bench {
    let rules = Box::new(Script { arrivals: arrivals.to_vec(), left: 0 });
    Bench::new(Queue::Own(Box::new(OwnQueue::with(rules, limit, Rate::mbit(10), 1))))
}

#[test]
fn bands_leave_in_the_order_that_the_discipline_says() {
    use Arrival::Keep;
    let arrivals = [Keep(0), Keep(1), Keep(0), Keep(1), Keep(0)];
    let mut b = bench(&arrivals, QueueLimit::Packets(100));
    for number in 1..=5 {
        assert_eq!(b.push(Time::from_millis(1), number, one(100)), None);
    }
    b.check(5);
    // 2 and 4 are in the first band to leave; the third that would leave is dropped. What `head` says before
    // a drop is that frame, so it is not compared by the bench: it is asked without one.
    let order: Vec<u32> = (0..2).filter_map(|_| b.pop(Time::from_millis(2)).map(|(n, ..)| n)).collect();
    assert_eq!(order, [2, 4]);
    b.check(3);
}

#[test]
fn what_is_dropped_on_arrival_or_finds_no_room_is_counted() {
    use Arrival::{Drop, Keep, Mark};
    // Frames of the bench are no IP packets, so they cannot be marked.
    let mut b = bench(&[Keep(0), Drop, Mark(0), Keep(1)], QueueLimit::Packets(2));
    let at = Time::from_millis(1);
    assert_eq!(b.push(at, 1, one(100)), None);
    assert_eq!(b.push(at, 2, one(100)), Some(DropReason::Aqm));
    assert_eq!(b.push(at, 3, one(100)), Some(DropReason::Aqm));
    assert_eq!(b.push(at, 4, one(100)), None);
    // The discipline is not asked about what finds no room.
    assert_eq!(b.push(at, 5, one(100)), Some(DropReason::QueueFull));
    b.check(2);
}

#[test]
fn an_empty_band_is_no_reason_to_stand_still() {
    let mut b = bench(&[Arrival::Keep(0)], QueueLimit::Unlimited);
    b.push(Time::from_millis(1), 7, one(100));
    assert_eq!(b.pop(Time::from_millis(1)).map(|(n, ..)| n), Some(7));
    b.check(0);
}

#[test]
#[should_panic(expected = "a packet for band 2 of 2")]
fn a_band_that_is_not_there_ends_the_run() {
    bench(&[Arrival::Keep(2)], QueueLimit::Unlimited).push(Time::from_millis(1), 1, one(100));
}

#[test]
fn a_discipline_is_found_by_the_name_that_it_was_added_under() {
    assert_eq!(Own::by_name("queue-test"), None);
    register("queue-test", Some("1"), |_: &Place| Box::new(Script::default())).unwrap();
    let own = Own::by_name("queue-test").unwrap();
    assert_eq!((own.name(), own.version()), ("queue-test", Some("1".into())));
    assert!(names().contains(&"queue-test"));
    let codel = register("codel", None, |_: &Place| Box::new(Script::default()));
    assert_eq!(codel, Err(Refused::Taken("codel".into())));
}
