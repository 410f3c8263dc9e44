//! The ACK shaper at the rates and timers of figs 2, 4 and 6 of "ACK shaper without buffer": gigabits a
//! second and a timer of 1 or 2 us, which releases less than a segment at a time. The sender is a window: it
//! doubles each round trip until it is at its largest ("winmax") and stays there.

use crate::support::{basic_with, numbers, Net};
use std::collections::VecDeque;
use weir_core::ack::{AckControl, Period, SlowStart};
use weir_core::gateway::LAN;
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};

const MSS: u32 = 1460;
/// Round trip beyond the gateway, in nanoseconds.
const RTT: u64 = 100_000;

/// A sender limited by its window, and a receiver that acknowledges every `stretch` segments, and the last
/// one of what came at once.
struct Peers {
    window: u64,
    win_max: u64,
    sent: u64,
    acked: u64,
    /// First time at which the window was at its largest.
    full: Option<u64>,
    stretch: u32,
    /// Acknowledgements of the receiver towards the gateway: when, up to where.
    received: VecDeque<(u64, u64)>,
}

impl Peers {
    fn new(win_max: u64, stretch: u32) -> Peers {
        let window = 10 * u64::from(MSS);
        Peers { window, win_max, sent: 0, acked: 0, full: None, stretch, received: VecDeque::new() }
    }

    /// The sender got an ACK up to `ack` at `at`: slow start adds what was acknowledged.
    fn on_ack(&mut self, world: &mut Net, at: u64, ack: u64) {
        self.window = (self.window + ack - self.acked).min(self.win_max);
        self.acked = ack;
        if self.window == self.win_max {
            self.full.get_or_insert(at);
        }
        self.send(world, at);
    }

    /// Whole segments, as many as the window allows.
    fn send(&mut self, world: &mut Net, at: u64) {
        let segments = (self.acked + self.window - self.sent) / u64::from(MSS);
        for n in 1..=segments {
            self.sent += u64::from(MSS);
            let whole = (self.sent / u64::from(MSS)) % u64::from(self.stretch) == 0;
            if whole || n == segments && self.received.back().is_none_or(|r| r.0 + RTT < at + RTT) {
                self.received.push_back((at + RTT, self.sent));
                world.ack_at(Time::from_nanos(at + RTT), self.sent as u32);
            }
        }
    }

    /// Bytes that arrived from `from` to `until`, in nanoseconds.
    fn arrived(&self, from: u64, until: u64) -> u64 {
        let at = |t: u64| self.received.iter().take_while(|r| r.0 < t).last().map_or(0, |r| r.1);
        at(until) - at(from)
    }
}

fn shaper(gbit: u64, period_us: u64, slow_start: SlowStart) -> AckControl {
    basic_with(|r| {
        r.rate = Rate::mbit(gbit * 1000);
        r.period = Period::Fixed(Duration::from_micros(period_us));
        r.slow_start = slow_start;
    })
}

/// Time at which the sender begins.
const START: u64 = 500_000_000;

/// Plays `ms` milliseconds and returns the peers, and when the gateway held the flow to half its step.
fn play(ack: AckControl, win_max: u64, stretch: u32, ms: u64) -> (Peers, Vec<(u64, bool)>) {
    let mut world = Net::established_over(ack, Duration::from_nanos(RTT));
    let mut peers = Peers::new(win_max, stretch);
    peers.send(&mut world, START);
    let mut halved = Vec::new();
    // Nothing that the sender does comes back within a round trip.
    let slice = RTT / 2;
    for n in 1..=ms * 1_000_000 / slice {
        let now = START + n * slice;
        let sent = world.run(Time::from_nanos(now));
        for (at, ack) in numbers(&sent).into_iter().zip(&sent).filter(|(_, s)| s.port == LAN).map(|(n, _)| n)
        {
            peers.on_ack(&mut world, at.as_nanos(), u64::from(ack));
        }
        let flow = world.rig.node().flows.flows().next().unwrap();
        halved.push((now, flow.slow_start));
    }
    (peers, halved)
}

/// Mean rate of what arrives, in Mb/s.
fn mbit(peers: &Peers, from_us: u64, until_us: u64) -> u64 {
    peers.arrived(START + from_us * 1000, START + until_us * 1000) * 8 / (until_us - from_us)
}

/// fig. 4: "till reach winmax speed potentially 2x the set limit".
#[test]
fn without_a_detector_slow_start_is_twice_as_fast() {
    let (peers, _) = play(shaper(5, 2, SlowStart::Ignore), 2_000_000, 1, 5);
    // Twice the rate needs 2 MB / (10 - 5 Gb/s) = 3.2 ms to reach the largest window.
    let (twice, once) = (mbit(&peers, 1000, 3000), mbit(&peers, 4000, 5000));
    assert!((9_900..=10_100).contains(&twice), "{twice} Mb/s in slow start");
    assert!((4_980..=5_020).contains(&once), "{once} Mb/s with the largest window");
}

/// fig. 6, timers of 1 and 2 us, with an ACK for each segment, for two, and for as many as a receiver merges
/// at most: slow start is held to the rate throughout, and left once, a round trip after it ended.
#[test]
fn slow_start_is_found_with_steps_below_a_segment() {
    for (gbit, period, stretch) in
        [(5, 1, 1), (5, 1, 2), (5, 2, 1), (5, 2, 2), (10, 1, 1), (10, 2, 2), (10, 1, 44)]
    {
        let what = format!("{gbit} Gb/s, {period} us, an ACK per {stretch}");
        // Halved, the window grows by half the rate: 2 MB at 5 Gb/s take 6.4 ms.
        let (peers, halved) = play(shaper(gbit, period, SlowStart::DETECT), 400_000 * gbit, stretch, 9);
        let full = (peers.full.unwrap() - START) / 1000;
        let near = |rate: u64| (gbit * 980..=gbit * 1020).contains(&rate);
        let slow = mbit(&peers, 1000, full);
        assert!(near(slow), "{what}: {slow} Mb/s in slow start");
        let once = mbit(&peers, full + 700, full + 2000);
        assert!(near(once), "{what}: {once} Mb/s behind it");

        let leaves: Vec<u64> =
            halved.windows(2).filter(|w| w[0].1 != w[1].1).map(|w| (w[1].0 - START) / 1000).collect();
        assert!(halved[0].1 && leaves.len() == 1, "{what}: changes at {leaves:?}");
        // A round trip until it shows, three steps of the detector (of 44 segments each, 51 us, at worst),
        // and up to 50 us until the test looks.
        assert!((full..=full + 100 + 3 * 52 + 50).contains(&leaves[0]), "{what}: {full} to {leaves:?} us");
    }
}
