//! Two endpoints, a fake clock, and a path that is only a delay: what a host adds is not in the way.

use super::*;
use crate::cc;
use crate::tcp::{segment, Recovery};
use std::collections::VecDeque;
use weir_core::frame::Frames;

const DELAY: Duration = Duration::from_millis(10);

/// Segments on their way: when they arrive, and at which end.
struct Pair {
    ends: [Connection; 2],
    frames: Frames,
    path: VecDeque<(Time, usize, Segment)>,
    /// Bytes delivered at each end.
    got: [u64; 2],
    /// Every so many segments is lost; 0 for none.
    lose_every: u64,
    sent: u64,
}

impl Pair {
    /// Both ends number their streams from just below the end of the sequence space.
    fn new(recovery: Recovery, initial: u32) -> Pair {
        let config = TcpConfig { recovery, ..TcpConfig::new(cc::by_name("reno").unwrap()) };
        let at = |s: &str| -> SocketAddrV4 { s.parse().unwrap() };
        let (a, b) = (at("10.0.0.1:10000"), at("10.0.0.2:5001"));
        let end = |local, remote, random| {
            Connection::new(Arc::new(config.clone()), ([2; 6], [4; 6]), local, remote, random)
        };
        let mut ends = [end(a, b, u64::from(initial)), end(b, a, u64::from(initial) + 7)];
        ends[0].open();
        let frames = Frames::growing(128);
        Pair { ends, frames, path: VecDeque::new(), got: [0; 2], lose_every: 0, sent: 0 }
    }

    /// What both ends have to send now.
    fn flush(&mut self, now: Time) {
        for from in 0..2 {
            let mut left = Vec::new();
            self.ends[from].send(&mut self.frames, now, |frame| left.push(frame));
            for frame in left {
                let parsed = segment::read(&self.frames, &frame);
                self.frames.absorb(frame);
                self.sent += 1;
                if self.lose_every == 0 || self.sent % self.lose_every != 0 {
                    self.path.push_back((now + DELAY, 1 - from, parsed.expect("a segment").1));
                }
            }
        }
    }

    /// Runs until nothing is left to do, but no longer than `end`.
    fn run(&mut self, end: Time) -> Time {
        let mut now = Time::ZERO;
        loop {
            self.flush(now);
            let timers = self.ends.iter().map(Connection::next_deadline).filter(|&t| t < Time::MAX).min();
            let arrival = self.path.front().map(|p| p.0);
            let Some(next) = [timers, arrival].into_iter().flatten().min().filter(|&t| t <= end) else {
                return now;
            };
            now = next.max(now);
            while self.path.front().is_some_and(|p| p.0 <= now) {
                let Some((_, to, s)) = self.path.pop_front() else { break };
                let delivered = self.ends[to].on_segment(&s, now);
                self.got[to] += delivered.bytes;
            }
            self.ends.iter_mut().for_each(|c| c.on_timers(now));
        }
    }
}

#[test]
fn sequence_numbers_wrap_in_both_directions() {
    for (_, recovery) in Recovery::ALL {
        for lose_every in [0, 13] {
            // The SYN, the first bytes, or some way into the stream sit on the wrap.
            for below in [0, 1, 1000, 60_000] {
                let mut pair = Pair::new(recovery, u32::MAX - below);
                pair.lose_every = lose_every;
                pair.ends[0].write(150_000, true);
                pair.ends[1].write(90_000, true);
                pair.run(Time::from_secs(600));
                assert_eq!(pair.got, [90_000, 150_000], "{recovery:?}, {lose_every}, {below}");
                for end in &pair.ends {
                    assert!(end.failure().is_none() && end.sender().fin_acked());
                    assert!(matches!(end.state(), State::TimeWait | State::Closed), "{:?}", end.state());
                }
            }
        }
    }
}

#[test]
fn a_reset_ends_a_connection() {
    let mut pair = Pair::new(Recovery::Rack, 5);
    pair.run(Time::from_millis(100));
    assert_eq!(pair.ends[0].state(), State::Established);
    let reset = Segment { flags: Flags::RST, ..Segment::default() };
    pair.ends[0].on_segment(&reset, Time::from_millis(100));
    assert_eq!((pair.ends[0].state(), pair.ends[0].failure()), (State::Closed, Some(Failure::Reset)));
    assert_eq!(pair.ends[0].next_deadline(), Time::MAX);
}

#[test]
fn acknowledgements_of_what_was_never_sent_are_ignored() {
    let mut pair = Pair::new(Recovery::Rack, u32::MAX);
    pair.ends[0].write(10_000, false);
    pair.run(Time::from_secs(1));
    let acked = pair.ends[0].sender().acked();
    assert_eq!(acked, 10_000);
    for ahead in [1, 1000, 1 << 30, u32::MAX / 2, u32::MAX] {
        let ack = 0u32.wrapping_add(10_000).wrapping_add(ahead);
        let s = Segment { ack, flags: Flags::ACK, window: 100, ..Segment::default() };
        pair.ends[0].on_segment(&s, Time::from_secs(2));
        assert_eq!(pair.ends[0].sender().acked(), acked, "{ahead}");
    }
}

/// Segments of 1,448 bytes, as what is left of 1,460 beside timestamps, at a peer whose window ends within one. Linux (`tcp_write_xmit`) hands
/// down two at a time; `tcp_mss_split_point` lets the second be what is left of the window, `tcp_snd_wnd_test` no first one.
#[test]
fn part_of_a_segment_leaves_only_behind_a_whole_one() {
    let mut pair = Pair::new(Recovery::Rack, u32::MAX);
    let now = pair.run(Time::from_millis(100));
    let shift = pair.ends[0].shifts.1;
    let mut told = |ack: u32, edge: u32| {
        let s = Segment {
            seq: 7,
            ack,
            flags: Flags::ACK,
            window: ((edge - ack) >> shift) as u16,
            ..Segment::default()
        };
        pair.ends[0].on_segment(&s, now);
        let mut left = Vec::new();
        pair.ends[0].write(1 << 20, false);
        pair.ends[0].send(&mut pair.frames, now, |frame| left.push(frame));
        let read = |frame| {
            let read = segment::read(&pair.frames, &frame).expect("a segment").1.payload;
            pair.frames.absorb(frame);
            read
        };
        left.into_iter().map(read).collect::<Vec<u32>>()
    };
    let edge = (3 * 1448u32).next_multiple_of(1 << shift);
    let part = edge - 3 * 1448;
    assert_eq!(told(0, edge), [1448, 1448, 1448, part]);
    // From a whole window on 1,280 bytes more, and as many again: the first wait, and then a whole one is followed by the rest.
    assert_eq!(told(1280, edge + 1280), [0; 0]);
    assert_eq!(told(2560, edge + 2560), [1448, 2560 - 1448]);
    // A whole one and no more.
    assert_eq!(told(2560, edge + 2560 + 1536), [1448, 1536 - 1448]);
}
