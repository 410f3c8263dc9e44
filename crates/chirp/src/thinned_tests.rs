//! A way back that lets one ACK go at a time and leaves the newest of those that wait, on a path that is
//! arithmetic.

use super::*;

const MS: u64 = 1_000_000;
const PACKET: u32 = 1448;

struct Path {
    /// Time that a packet takes at the bottleneck.
    gap: u64,
    rtt: u64,
    /// Time that an ACK takes on its way back.
    back: u64,
    /// Packets per ACK at the receiver.
    per_ack: u32,
}

/// 100 Mbit/s and 20 ms, and 200 kbit/s for the way back: 66 bytes take 2.64 ms, in which 21.8 packets are
/// delivered.
const SLOW: Path = Path { gap: 121_120, rtt: 20 * MS, back: 2_640_000, per_ack: 2 };

#[derive(Debug)]
struct Run {
    report: Report,
    /// Most packets that waited from the second round on, including the one being sent.
    peak: u64,
    /// Time at which the window was known.
    known: u64,
    most_gain: u32,
}

/// The way back: time at which it is free, and the number that waits for that.
#[derive(Default)]
struct Back {
    free: u64,
    waiting: Option<u32>,
    /// ACKs on their way: their arrivals and numbers.
    coming: std::collections::VecDeque<(u64, u32)>,
}

impl Back {
    /// Makes the receiver acknowledge `number` at `now`.
    fn acknowledge(&mut self, path: &Path, number: u32, now: u64) {
        self.let_go(path, now);
        if self.free > now {
            self.waiting = Some(number);
        } else {
            self.free = now + path.back;
            self.coming.push_back((self.free + path.rtt, number));
        }
    }

    /// Lets the waiting ACK leave when the way is free, until `now`.
    fn let_go(&mut self, path: &Path, now: u64) {
        if let Some(number) = self.waiting.filter(|_| self.free <= now) {
            self.waiting = None;
            self.free += path.back;
            self.coming.push_back((self.free + path.rtt, number));
        }
    }
}

/// Sends without end until the window is known.
fn run(path: &Path, rules: Rules) -> Run {
    let mut flow = FlowStart::new(path.rtt + path.back, rules);
    let mut back = Back::default();
    let mut arriving = std::collections::VecDeque::new();
    let (mut due, mut free, mut nxt, mut unacknowledged) = (0, 0, 0u32, 0);
    let (mut peak, mut most_gain) = (0, 0);
    loop {
        let at = |time: Option<u64>| time.unwrap_or(u64::MAX);
        let may = matches!(flow.phase(), Phase::First | Phase::Rounds) && flow.room() > 0;
        let send = if may { due } else { u64::MAX };
        let arrival = at(arriving.front().map(|&(when, _)| when));
        let go = at(back.waiting.map(|_| back.free));
        let ack = at(back.coming.front().map(|&(when, _)| when));
        let now = send.min(arrival).min(go).min(ack);
        assert!(now < 10_000 * MS, "nothing happens: {:?}", flow.report());
        if now == go {
            back.let_go(path, now);
        } else if now == arrival {
            let (_, number) = arriving.pop_front().unwrap();
            unacknowledged += 1;
            // The last packet under way is acknowledged as well, as by the receiver's timer.
            if unacknowledged >= path.per_ack || arriving.is_empty() {
                unacknowledged = 0;
                back.acknowledge(path, number, now);
            }
        } else if now == ack {
            let (_, una) = back.coming.pop_front().unwrap();
            due = due.max(now);
            flow.acked(una, now, nxt.wrapping_sub(una) / PACKET, Seen::default());
            most_gain = most_gain.max(flow.report().gain);
            if flow.phase() == Phase::Handover {
                return Run { report: flow.report(), peak, known: now, most_gain };
            }
        } else {
            due = now + flow.gap();
            nxt = nxt.wrapping_add(PACKET);
            flow.sent(nxt, now);
            free = free.max(now) + path.gap;
            arriving.push_back((free, nxt));
            if flow.report().rounds > 0 {
                peak = peak.max((free - now).div_ceil(path.gap));
            }
        }
    }
}

/// Slow start's rounds have 10, 20, 40, 80 and 160 packets of the 187 that fill 22.64 ms, and then a queue of
/// another round stands. With trains the queue is 3 ms at most, 25 packets, at any rate. If the wait of ACKs
/// counted as delay of the path, the gap would be three times as long.
#[test]
fn a_slow_way_back_is_no_queue() {
    for path in [SLOW, Path { gap: 12_112, back: 264_000, ..SLOW }] {
        let run = run(&path, Rules::ADAPTIVE);
        assert!(u64::from(run.report.gap).abs_diff(path.gap) <= path.gap / 8, "{run:?}");
        assert!(run.peak <= 25 && run.known <= 11 * (path.rtt + path.back), "{run:?}");
        // Packets that fill the path, and packets delivered between two ACKs.
        let full = (path.rtt + 2 * path.back) / path.gap;
        assert!(u64::from(run.report.window).abs_diff(full) <= full / 8, "{run:?}");
        let unstretched = self::run(&path, Rules::UNSTRETCHED);
        assert!(u64::from(unstretched.report.gap) > 3 * path.gap, "{unstretched:?}");
    }
}

/// A receiver that acknowledges every eighth packet gives all samples that chirps need: none of its ACKs
/// waited for another, and gains above 2 come before slow start.
#[test]
fn a_receiver_that_acknowledges_seldom_is_no_slow_way_back() {
    let run = run(&Path { back: 1_000, per_ack: 8, ..SLOW }, Rules::ADAPTIVE);
    assert!(run.most_gain == 32 && run.known < 5 * 20 * MS, "{run:?}");
    assert!(run.report.gap.abs_diff(121_120) < 121_120 / 20 && run.peak <= 8, "{run:?}");
}
