//! Frames that arrive before their departure time. They are delivered at that time, when a queueing
//! discipline such as fq would have sent them.
//!
//! Any local program may set departure times (SO_TXTIME needs no privilege), and none may fill the room for
//! others. When it is full, the last frame to depart makes room and arrives at once. So whoever wants to hold
//! places that others need has to send at their pace, not once in a while. Sockets and ports cost nothing, so
//! a part for each sender would not do. A flow with more than its part makes room for all others, though.

use std::cmp::Reverse;
use std::hash::{BuildHasher, RandomState};
use weir_core::base::heap::{Heap, NOWHERE};
use weir_core::flow::Key;
use weir_core::frame::{Frame, Frames};
use weir_core::node::Port;
use weir_core::time::Time;
use weir_core::wire;

/// Most frames that wait.
const ROOM: usize = 4096;
/// Frames of a flow that do not make room for all others.
const PART: u16 = (ROOM / 8) as u16;
/// Counters of waiting frames, by the hash of their flow.
const FLOWS: usize = 1024;

type Arrival = (Time, Port, Frame);
/// Order in which frames make room, the last one first: those beyond their flow's part, and then by time.
/// Frames of the same time are in order of their numbers.
type Rank = (bool, Time, u64);

#[derive(Debug)]
struct Waiting {
    at: Time,
    port: Port,
    frame: Frame,
    flow: usize,
}

/// Frames that wait for their departure time; see the [module documentation](self).
#[derive(Debug)]
pub(super) struct Early {
    waiting: Vec<Option<Waiting>>,
    free: Vec<u32>,
    soonest: Heap<(Time, u64)>,
    last: Heap<Reverse<Rank>>,
    /// Places in both heaps.
    places: [Vec<u32>; 2],
    of_flows: Vec<u16>,
    hasher: RandomState,
    kept: u64,
}

impl Early {
    /// Makes room for frames if whole frames are taken; ACKs have no departure time.
    pub(super) fn new(takes_frames: bool) -> Early {
        let room = if takes_frames { ROOM } else { 0 };
        Early {
            waiting: (0..room).map(|_| None).collect(),
            free: (0..room as u32).rev().collect(),
            soonest: Heap::new(room),
            last: Heap::new(room),
            places: [vec![NOWHERE; room], vec![NOWHERE; room]],
            of_flows: vec![0; FLOWS],
            hasher: RandomState::new(),
            kept: 0,
        }
    }

    /// Keeps the frames of an inbox that arrive after `now`. The inbox is sorted by time. If there is no room
    /// or if the pool is half empty, the last one of those that wait and of the new ones arrives now.
    pub(super) fn keep(&mut self, frames: &Frames, now: Time, inbox: &mut Vec<Arrival>) {
        let from = inbox.partition_point(|(at, _, _)| *at <= now);
        let scarce = frames.free_chunks() < frames.chunks() / 2;
        let room = if scarce { 0 } else { self.free.len() };
        let to = inbox.len().min(from + room);
        for arrival in inbox.drain(from..to) {
            let flow = self.flow(frames, &arrival.2);
            self.put(arrival, flow);
        }
        for arrival in &mut inbox[from..] {
            let flow = self.flow(frames, &arrival.2);
            let rank = self.rank(arrival.0, flow);
            if let Some(last) = self.last.first().filter(|last| rank < last.key.0) {
                let Some(Waiting { port, frame, .. }) = self.take(last.id) else { continue };
                self.put(std::mem::replace(arrival, (now, port, frame)), flow);
            }
            arrival.0 = now;
        }
    }

    /// Returns the counter of a frame's flow. Frames without readable addresses are one flow.
    fn flow(&self, frames: &Frames, frame: &Frame) -> usize {
        let bytes = frames.bytes(frame);
        let packet = wire::any_packet(bytes, frame.len()).ok();
        let key = packet.map(|packet| Key::of_packet(bytes, &packet));
        self.hasher.hash_one(key) as usize % FLOWS
    }

    fn rank(&self, at: Time, flow: usize) -> Rank {
        (self.of_flows[flow] >= PART, at, self.kept)
    }

    /// Keeps a frame, for which there is room.
    fn put(&mut self, (at, port, frame): Arrival, flow: usize) {
        let Some(id) = self.free.pop() else { return };
        let rank = self.rank(at, flow);
        let [soonest, last] = &mut self.places;
        self.soonest.set(soonest, id, Some((at, self.kept)));
        self.last.set(last, id, Some(Reverse(rank)));
        self.waiting[id as usize] = Some(Waiting { at, port, frame, flow });
        self.of_flows[flow] += 1;
        self.kept += 1;
    }

    fn take(&mut self, id: u32) -> Option<Waiting> {
        let [soonest, last] = &mut self.places;
        self.soonest.set(soonest, id, None);
        self.last.set(last, id, None);
        let waiting = self.waiting[id as usize].take()?;
        self.of_flows[waiting.flow] -= 1;
        self.free.push(id);
        Some(waiting)
    }

    /// Moves the frames that arrive until `now` into an inbox.
    pub(super) fn release(&mut self, now: Time, inbox: &mut Vec<Arrival>) {
        while let Some(first) = self.soonest.first().filter(|first| first.key.0 <= now) {
            inbox.extend(self.take(first.id).map(|Waiting { at, port, frame, .. }| (at, port, frame)));
        }
    }

    /// Delivers all frames now, and keeps none from now on.
    pub(super) fn close(&mut self, now: Time, inbox: &mut Vec<Arrival>) {
        while let Some(first) = self.soonest.first() {
            inbox.extend(self.take(first.id).map(|Waiting { port, frame, .. }| (now, port, frame)));
        }
        self.free.clear();
    }

    /// Time of the next arrival.
    pub(super) fn next(&self) -> Option<Time> {
        self.soonest.first().map(|first| first.key.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use weir_core::wire::build::SegmentBuilder;

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

    /// Arrivals of a flow to this port, `count` of them, each so many milliseconds later than the one before.
    fn flow(frames: &mut Frames, port: u16, count: u64, first: u64, step: u64) -> Vec<Arrival> {
        let bytes = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).ports(1, port).udp().build();
        let arrival = |n: u64| {
            let at = Time::from_millis(first + n * step);
            (at, Port(0), frames.receive_copy(&bytes, bytes.len(), at).unwrap())
        };
        (0..count).map(arrival).collect()
    }

    /// Keeps arrivals at time 0. Returns the number of each port's frames that arrive at once.
    fn refused(early: &mut Early, frames: &mut Frames, mut arrivals: Vec<Arrival>) -> BTreeMap<u16, usize> {
        early.keep(frames, Time::ZERO, &mut arrivals);
        let mut ports = BTreeMap::new();
        for (at, _, frame) in arrivals {
            assert_eq!(at, Time::ZERO);
            let port = frames.bytes(&frame)[36..38].try_into().unwrap();
            *ports.entry(u16::from_be_bytes(port)).or_default() += 1;
            frames.transmitted(frame);
        }
        ports
    }

    /// A sender 9.9 s ahead fills the room with as many flows as it likes. One that paces its packets over
    /// 100 ms keeps its times; the other one's last frames make room.
    #[test]
    fn far_times_make_room_for_near_ones() {
        for flows in [1, 8, 4096] {
            let (mut frames, mut early) = (Frames::new(3 * ROOM, 128, 0), Early::new(true));
            for port in 0..flows {
                let far = flow(&mut frames, 1000 + port, (ROOM as u16 / flows).into(), 9_900, 0);
                assert!(refused(&mut early, &mut frames, far).is_empty());
            }
            let near = flow(&mut frames, 1, 100, 1, 1);
            let told = refused(&mut early, &mut frames, near);
            assert!(!told.contains_key(&1) && told.values().sum::<usize>() == 100, "{flows}: {told:?}");
            let mut inbox = Vec::new();
            for ms in 1..=100 {
                assert_eq!(early.next(), Some(Time::from_millis(ms)));
                early.release(Time::from_millis(ms), &mut inbox);
            }
            assert_eq!(inbox.len(), 100);
            // Later than all that wait, a flow has room only before what exceeds another one's part.
            let again = flow(&mut frames, 2, 100, 9_900, 0);
            refused(&mut early, &mut frames, again);
            let later = flow(&mut frames, 3, 5, 9_950, 0);
            let gives_way = if flows == 1 { 1000 } else { 3 };
            assert_eq!(refused(&mut early, &mut frames, later), [(gives_way, 5)].into());
            inbox.drain(..).for_each(|(_, _, frame)| frames.transmitted(frame));
            early.close(Time::ZERO, &mut inbox);
            assert_eq!(inbox.len(), ROOM);
        }
    }

    /// One flow that sends much, a little ahead, has an eighth of the room as soon as others want some.
    #[test]
    fn a_flow_has_its_part_of_the_room() {
        let (mut frames, mut early) = (Frames::new(3 * ROOM, 128, 0), Early::new(true));
        let much = flow(&mut frames, 1, ROOM as u64, 50, 0);
        assert!(refused(&mut early, &mut frames, much).is_empty());
        let mut lost = 0;
        for port in 2..20 {
            let told = flow(&mut frames, port, 200, 500, 1);
            let told = refused(&mut early, &mut frames, told);
            assert!(told.keys().all(|port| *port == 1) || lost + 200 > ROOM - ROOM / 8, "{port}: {told:?}");
            lost += told.get(&1).copied().unwrap_or(0);
        }
        assert_eq!(lost, ROOM - ROOM / 8);
    }

    /// Giants that fill half of the pool make room as well.
    #[test]
    fn a_pool_without_room_keeps_near_times() {
        let (mut frames, mut early) = (Frames::new(100, 128, 0), Early::new(true));
        let far = flow(&mut frames, 1, 60, 9_900, 0);
        // Half of the pool was taken before they came to be kept.
        let told = refused(&mut early, &mut frames, far);
        assert_eq!(told, [(1, 60)].into());
        let far = flow(&mut frames, 1, 45, 9_900, 0);
        assert!(refused(&mut early, &mut frames, far).is_empty());
        let near = flow(&mut frames, 2, 10, 1, 1);
        assert_eq!(refused(&mut early, &mut frames, near), [(1, 10)].into());
        assert_eq!(early.next(), Some(Time::from_millis(1)));
    }
}
