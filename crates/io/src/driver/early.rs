//! Frames that arrive before their departure time. They are delivered at that time, when a queueing
//! discipline such as fq would have sent them.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use weir_core::frame::{Frame, Frames};
use weir_core::node::Port;
use weir_core::time::Time;

/// Most frames that wait.
const ROOM: usize = 4096;

type Arrival = (Time, Port, Frame);

#[derive(Debug)]
struct Waiting {
    at: Time,
    /// Order among frames of the same time.
    number: u64,
    port: Port,
    frame: Frame,
}

impl Ord for Waiting {
    /// Orders the earliest frame as the greatest.
    fn cmp(&self, other: &Waiting) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

/// Frames that wait for their departure time; see the [module documentation](self).
#[derive(Debug)]
pub(super) struct Early {
    waiting: BinaryHeap<Waiting>,
    room: usize,
    kept: u64,
}

impl Early {
    /// Makes room for frames if whole frames are taken; ACKs have no departure time.
    pub(super) fn new(takes_frames: bool) -> Early {
        let room = if takes_frames { ROOM } else { 0 };
        Early { waiting: BinaryHeap::with_capacity(room), room, kept: 0 }
    }

    /// Keeps the frames of an inbox that arrive after `now`. The inbox is sorted by time. A frame arrives now
    /// if there is no room for it or if the pool is half empty.
    pub(super) fn keep(&mut self, frames: &Frames, now: Time, inbox: &mut Vec<Arrival>) {
        let from = inbox.partition_point(|(at, _, _)| *at <= now);
        let scarce = frames.free_chunks() < frames.chunks() / 2;
        let room = if scarce { 0 } else { self.room.saturating_sub(self.waiting.len()) };
        let to = inbox.len().min(from + room);
        for (at, port, frame) in inbox.drain(from..to) {
            self.waiting.push(Waiting { at, number: self.kept, port, frame });
            self.kept += 1;
        }
        inbox[from..].iter_mut().for_each(|(at, _, _)| *at = now);
    }

    /// Moves the frames that arrive until `now` into an inbox.
    pub(super) fn release(&mut self, now: Time, inbox: &mut Vec<Arrival>) {
        while self.next().is_some_and(|at| at <= now) {
            let Some(Waiting { at, port, frame, .. }) = self.waiting.pop() else { return };
            inbox.push((at, port, frame));
        }
    }

    /// Delivers all frames now, and keeps none from now on.
    pub(super) fn close(&mut self, now: Time, inbox: &mut Vec<Arrival>) {
        self.room = 0;
        while let Some(Waiting { port, frame, .. }) = self.waiting.pop() {
            inbox.push((now, port, frame));
        }
    }

    /// Time of the next arrival.
    pub(super) fn next(&self) -> Option<Time> {
        self.waiting.peek().map(|waiting| waiting.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(frames: &mut Frames, times: &[u64]) -> Vec<Arrival> {
        let arrival = |(number, at): (usize, &u64)| {
            let at = Time::from_nanos(*at);
            (at, Port(0), frames.receive_copy(&[number as u8; 60], 60, at).unwrap())
        };
        times.iter().enumerate().map(arrival).collect()
    }

    /// Times and first bytes of an inbox, which is empty afterwards.
    fn told(frames: &mut Frames, inbox: &mut Vec<Arrival>) -> Vec<(u64, u8)> {
        let tell = |(at, _, frame): Arrival| {
            let byte = frames.bytes(&frame)[0];
            frames.transmitted(frame);
            (at.as_nanos(), byte)
        };
        inbox.drain(..).map(tell).collect()
    }

    #[test]
    fn frames_arrive_when_they_would_have_left() {
        let (mut frames, mut early) = (Frames::new(16, 128, 0), Early::new(true));
        let mut inbox = arrivals(&mut frames, &[90, 100, 101, 300, 300]);
        early.keep(&frames, Time::from_nanos(100), &mut inbox);
        assert_eq!(told(&mut frames, &mut inbox), [(90, 0), (100, 1)]);
        let mut later = arrivals(&mut frames, &[200]);
        early.keep(&frames, Time::from_nanos(100), &mut later);
        assert_eq!(early.next(), Some(Time::from_nanos(101)));
        early.release(Time::from_nanos(200), &mut inbox);
        assert_eq!(told(&mut frames, &mut inbox), [(101, 2), (200, 0)]);
        early.release(Time::from_nanos(299), &mut inbox);
        assert!(inbox.is_empty());
        early.release(Time::from_nanos(300), &mut inbox);
        assert_eq!(told(&mut frames, &mut inbox), [(300, 3), (300, 4)]);
        assert_eq!((early.next(), frames.free_chunks()), (None, 16));
    }

    #[test]
    fn what_finds_no_room_arrives_at_once() {
        // Half of the pool is taken by the frames themselves.
        let (mut frames, mut early) = (Frames::new(4, 128, 0), Early::new(true));
        let mut inbox = arrivals(&mut frames, &[10, 20, 30]);
        early.keep(&frames, Time::from_nanos(15), &mut inbox);
        assert_eq!(told(&mut frames, &mut inbox), [(10, 0), (15, 1), (15, 2)]);
        let mut inbox = arrivals(&mut frames, &[20]);
        early.keep(&frames, Time::from_nanos(15), &mut inbox);
        assert!(inbox.is_empty());
        // After closing, no frame is kept.
        early.close(Time::from_nanos(16), &mut inbox);
        assert_eq!(told(&mut frames, &mut inbox), [(16, 0)]);
        let mut inbox = arrivals(&mut frames, &[20]);
        early.keep(&frames, Time::from_nanos(17), &mut inbox);
        assert_eq!(told(&mut frames, &mut inbox), [(17, 0)]);
    }
}
