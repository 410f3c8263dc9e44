use super::*;
use weir_core::link::{Config, Link, QueueLimit};
use weir_core::rate::Rate;
use weir_core::time::Duration;

const WIRE: Port = Port(0);

fn us(n: u64) -> Time {
    Time::from_micros(n)
}

/// Sends every frame back at once, `left` times in all, and notes when each came.
#[derive(Default)]
struct Echo {
    left: u32,
    out: VecDeque<(Time, Frame)>,
    came: Vec<Time>,
}

impl Echo {
    fn times(left: u32) -> Echo {
        Echo { left, ..Echo::default() }
    }
}

impl Node for Echo {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, _: Port, frame: Frame) {
        self.came.push(cx.now);
        if self.left == 0 {
            return cx.frames.absorb(frame);
        }
        self.left -= 1;
        self.out.push_back((cx.now, frame));
    }
    fn poll_transmit(&mut self, _: &mut Cx<'_>, _: PortSet) -> Option<Transmit> {
        self.out.pop_front().map(|(at, frame)| Transmit { port: WIRE, at, frame })
    }
    fn next_deadline(&self) -> Option<Time> {
        self.out.front().map(|f| f.0)
    }
}

fn mbit(rate: u64, delay: u64) -> Config {
    Config { rate: Some(Rate::mbit(rate)), delay: Duration::from_micros(delay), ..Config::default() }
}

#[test]
fn two_echoes_over_two_links() {
    let mut w = World::new();
    let (a, b) = (w.add(Echo::times(10)), w.add(Echo::times(1)));
    // 1,500 bytes take 1,200 us at 10 Mbit/s and 6,000 us at 2 Mbit/s.
    let (there, back) = (w.add(Link::new(mbit(10, 5000))), w.add(Link::new(mbit(2, 7000))));
    w.wire((a, WIRE), (there, Link::IN));
    w.wire((there, Link::OUT), (b, WIRE));
    w.wire((b, WIRE), (back, Link::IN));
    w.wire((back, Link::OUT), (a, WIRE));
    w.hand_in((a, WIRE), &[0; 60], 1514);
    w.hand_in((a, WIRE), &[0; 60], 1514);
    // Out of the first link at 6,200 and 7,400; b sends one back, which comes at 6,200 + 13,000; a sends it
    // on once more.
    w.run_until(us(7400));
    assert_eq!(w.get::<Echo>(b).unwrap().came, [us(6200), us(7400)]);
    assert_eq!((w.now(), w.next_deadline(), w.ledger().held()), (us(7400), Some(us(19_200)), 1));
    w.run_until(us(100_000));
    assert_eq!(w.get::<Echo>(a).unwrap().came, [us(0), us(0), us(19_200)]);
    assert_eq!(w.get::<Echo>(b).unwrap().came, [us(6200), us(7400), us(25_400)]);
    assert_eq!((w.next_deadline(), w.ledger().absorbed, w.ledger().held()), (None, 2, 0));
    let _ = QueueLimit::Unlimited;
}
