//! Two endpoints, a fake clock, and a path that is only a delay, without hosts.

use super::*;
use crate::cc;
use crate::tcp::{segment, Recovery};
use std::collections::VecDeque;
use weir_core::frame::Frames;

const DELAY: Duration = Duration::from_millis(10);

/// Two endpoints, and the segments in flight with their arrival times and destinations.
struct Pair {
    ends: [Connection; 2],
    frames: Frames,
    path: VecDeque<(Time, usize, Segment)>,
    /// Bytes delivered at each end.
    got: [u64; 2],
    /// Every n-th segment is lost; 0 for none.
    lose_every: u64,
    /// Number of the segment that is lost, from 1; 0 for none.
    lose: u64,
    /// Every n-th segment that is not lost arrives twice; 0 for none.
    repeat_every: u64,
    sent: u64,
    now: Time,
}

impl Pair {
    /// Creates a pair whose ends number their streams from just below the end of the sequence space.
    fn new(recovery: Recovery, initial: u32) -> Pair {
        let mut pair = Pair::waiting("reno", recovery, initial);
        pair.ends[0].open();
        pair
    }

    /// Creates a pair that has not been opened.
    fn waiting(cc: &str, recovery: Recovery, initial: u32) -> Pair {
        let config = TcpConfig { recovery, ..TcpConfig::new(cc::by_name(cc).unwrap()) };
        let at = |s: &str| -> SocketAddrV4 { s.parse().unwrap() };
        let (a, b) = (at("10.0.0.1:10000"), at("10.0.0.2:5001"));
        let end = |local, remote, random| {
            Connection::new(Arc::new(config.clone()), ([2; 6], [4; 6]), local, remote, random)
        };
        let ends = [end(a, b, u64::from(initial)), end(b, a, u64::from(initial) + 7)];
        let frames = Frames::growing(128);
        Pair {
            ends,
            frames,
            path: VecDeque::new(),
            got: [0; 2],
            lose_every: 0,
            lose: 0,
            repeat_every: 0,
            sent: 0,
            now: Time::ZERO,
        }
    }

    /// Sends the segments that are due at both ends.
    fn flush(&mut self, now: Time) {
        for from in 0..2 {
            let mut left = Vec::new();
            self.ends[from].send(&mut self.frames, now, &mut left);
            for (_, frame) in left {
                let parsed = segment::read(&self.frames, &frame);
                self.frames.absorb(frame);
                self.sent += 1;
                let lost = self.sent == self.lose || self.lose_every > 0 && self.sent % self.lose_every == 0;
                let twice = self.repeat_every > 0 && self.sent % self.repeat_every == 0;
                for _ in 0..usize::from(!lost) << usize::from(twice) {
                    self.path.push_back((now + DELAY, 1 - from, parsed.expect("a segment").1));
                }
            }
        }
    }

    /// Runs until nothing is left to do, but no longer than `end`.
    fn run(&mut self, end: Time) -> Time {
        self.now = Time::ZERO;
        self.run_on(end);
        self.now
    }

    /// Continues until nothing is left to do, but no longer than `end`.
    fn run_on(&mut self, end: Time) {
        let mut now = self.now;
        loop {
            self.flush(now);
            let timers = self.ends.iter().map(Connection::next_deadline).filter(|&t| t < Time::MAX).min();
            let arrival = self.path.front().map(|p| p.0);
            let Some(next) = [timers, arrival].into_iter().flatten().min().filter(|&t| t <= end) else {
                return;
            };
            now = next.max(now);
            self.now = now;
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
            // The SYN, the first bytes, or a later part of the stream sit on the wrap.
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
fn what_is_delivered_is_counted_once() {
    // The first end has only its stream and the FIN to send. No byte counts twice, whatever is lost or
    // duplicated on the path.
    for (_, recovery) in Recovery::ALL {
        for (lose_every, repeat_every) in [(0, 0), (0, 3), (17, 0), (23, 5), (7, 2)] {
            let mut pair = Pair::new(recovery, 5);
            (pair.lose_every, pair.repeat_every) = (lose_every, repeat_every);
            pair.ends[0].write(400_000, true);
            pair.ends[1].write(0, true);
            pair.run(Time::from_secs(600));
            assert!(pair.ends[0].sender().fin_acked(), "{recovery:?} {lose_every} {repeat_every}");
            let counted = pair.ends[0].sender().delivered();
            // Linux forgets the deliveries counted by duplicate ACKs whenever it restarts the count.
            let most = if recovery == Recovery::Linux { 480_000 } else { 400_001 };
            assert!(
                (400_001..=most).contains(&counted),
                "{recovery:?} {lose_every} {repeat_every}: {counted}"
            );
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

/// Segments of 1,448 bytes (1,460 less timestamps) at a peer whose window ends within a segment. Linux
/// (`tcp_write_xmit`) hands down two at a time. `tcp_mss_split_point` lets the second be the rest of the
/// window; `tcp_snd_wnd_test` does not allow this for a first one.
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
        pair.ends[0].send(&mut pair.frames, now, &mut left);
        let read = |(_, frame)| {
            let read = segment::read(&pair.frames, &frame).expect("a segment").1.payload;
            pair.frames.absorb(frame);
            read
        };
        left.into_iter().map(read).collect::<Vec<u32>>()
    };
    let edge = (3 * 1448u32).next_multiple_of(1 << shift);
    let part = edge - 3 * 1448;
    assert_eq!(told(0, edge), [1448, 1448, 1448, part]);
    // 1,280 bytes more after a whole window, and then as many again: the first wait, and then a whole segment
    // is followed by the rest.
    assert_eq!(told(1280, edge + 1280), [0; 0]);
    assert_eq!(told(2560, edge + 2560), [1448, 2560 - 1448]);
    // A single whole segment.
    assert_eq!(told(2560, edge + 2560 + 1536), [1448, 1536 - 1448]);
}

/// Opens a connection with Fast Open: the client has `cookie`, and the server gave `[1; 8]`. Returns the
/// bytes at the server after each time in ms, and the number of segments sent.
fn opened_fast(cc: &str, cookie: Option<[u8; 8]>, bytes: u64, lose: u64, until: [u64; 3]) -> ([u64; 3], u64) {
    let mut sent = 0;
    let got = until.map(|ms| {
        // The stream starts just below the end of the sequence space.
        let mut pair = Pair::waiting(cc, Recovery::Rack, u32::MAX - 100);
        pair.lose = lose;
        pair.ends[0].open_fast(cookie, bytes);
        pair.ends[1].accept_fast([1; 8]);
        let open = |pair: &Pair| pair.ends[0].state() == State::Established;
        let mut now = Time::ZERO;
        // The application writes when the connection is open, as a host's does.
        while !open(&pair) && now < Time::from_millis(ms) {
            now += Duration::from_micros(500);
            pair.run_on(now);
        }
        if open(&pair) {
            pair.ends[0].write(bytes, true);
            pair.ends[1].write(0, true);
        }
        pair.run_on(Time::from_millis(ms));
        assert!(pair.ends.iter().all(|end| end.failure().is_none()));
        sent = pair.sent;
        pair.got[1]
    });
    (got, sent)
}

#[test]
fn a_syn_with_a_cookie_carries_what_a_segment_has_room_for() {
    for cc in ["cubic", "chirp", "bbr", "dctcp"] {
        // The one-way delay is 10 ms. RFC 7413, figure 1: data after half a round trip instead of one and a
        // half.
        assert_eq!(opened_fast(cc, Some([1; 8]), 1000, 0, [9, 11, 100]).0, [0, 1000, 1000], "{cc}");
        // 1460 less 40 bytes of options, then the initial window of ten segments: 15,900 bytes after one and
        // a half round trips.
        assert_eq!(opened_fast(cc, Some([1; 8]), 50_000, 0, [11, 31, 400]).0, [1420, 15_900, 50_000], "{cc}");
        assert_eq!(opened_fast(cc, None, 50_000, 0, [29, 31, 400]).0, [0, 14_480, 50_000], "{cc}");
    }
}

#[test]
fn a_cookie_of_another_server_and_a_lost_syn_cost_nothing_but_the_gain() {
    // The server reports that only the SYN has arrived.
    assert_eq!(opened_fast("cubic", Some([2; 8]), 1000, 0, [29, 31, 100]).0, [0, 1000, 1000]);
    // The SYN is sent again after a second, without data. Its answer would acknowledge the data if it had
    // arrived.
    assert_eq!(opened_fast("cubic", Some([1; 8]), 1000, 1, [1029, 1031, 2000]).0, [0, 1000, 1000]);
    let (got, segments) = opened_fast("cubic", Some([1; 8]), 1000, 2, [11, 1031, 3000]);
    assert_eq!(got, [1000; 3]);
    // SYN, its answer, both again, the ACK, and a FIN and its ACK each way. The data leaves once.
    assert!(segments <= 9, "{segments}");
}
