//! Nodes that break the contract, each of which the rig must detect.

use super::*;

/// Sends each frame `delay` after its arrival, stamped `skew` later than due.
struct Later {
    delay: Duration,
    skew: Duration,
    queue: VecDeque<(Time, Frame)>,
}

impl Node for Later {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, _: Port, frame: Frame) {
        self.queue.push_back((cx.now + self.delay, frame));
    }
    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        let &(due, _) = self.queue.front()?;
        if due > cx.now || !writable.contains(Port(1)) {
            return None;
        }
        self.queue.pop_front().map(|(at, frame)| Transmit { port: Port(1), at: at + self.skew, frame })
    }
    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        self.queue.front().filter(|_| writable.contains(Port(1))).map(|q| q.0)
    }
}

fn later(skew: u64) -> Rig<Later> {
    let (delay, skew) = (Duration::from_nanos(10), Duration::from_nanos(skew));
    Rig::new(Later { delay, skew, queue: VecDeque::new() })
}

fn ns(ns: u64) -> Time {
    Time::from_nanos(ns)
}

#[test]
fn stamps_do_not_depend_on_when_the_driver_wakes() {
    let q = Duration::from_nanos(64);
    for wake in [Wake::Exact, Wake::Late(q), Wake::Lazy(q)] {
        let mut rig = later(0).wake(wake);
        rig.at(ns(5)).inject(Port(0), &[1; 60]).at(ns(3)).inject(Port(0), &[2; 60]);
        let sent = rig.run_until(ns(1000));
        let got: Vec<_> = sent.iter().map(|s| (s.at, s.bytes[0])).collect();
        assert_eq!(got, [(ns(13), 2), (ns(15), 1)]);
        rig.finish();
    }
}

#[test]
fn a_closed_port_keeps_its_frames_and_their_stamps() {
    let mut rig = later(0);
    rig.close(Port(1), ns(0), ns(100)).at(ns(5)).inject(Port(0), &[1; 60]);
    assert_eq!(rig.run_until(ns(99)).len(), 0);
    assert_eq!(rig.held(), 1);
    assert_eq!(rig.run_until(ns(100))[0].at, ns(15));
    rig.finish();
}

#[test]
#[should_panic(expected = "later than now")]
fn a_stamp_in_the_future_is_caught() {
    later(1).inject(Port(0), &[1; 60]).run_until(ns(100));
}

#[test]
#[should_panic(expected = "frames held at the end")]
fn a_held_frame_is_caught() {
    let mut rig = later(0);
    rig.inject(Port(0), &[1; 60]).run_until(ns(9));
    rig.finish();
}
