//! Thousands of flows whose releases cannot be carried out: their port takes no frame, or the pool has none.
//! No call looks at them one by one, and then all go in their order.

use crate::support::{basic, config, ms};
use weir_core::frame::Frames;
use weir_core::gateway::{Config, Gateway, LAN, WAN};
use weir_core::node::{Cx, Node, PortSet, Transmit};
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;

const FLOWS: u32 = 2_000;

struct ManyFlows {
    gateway: Gateway,
    frames: Frames,
}

impl ManyFlows {
    /// Flows that hold 77,500 bytes at 10 Mb/s: 12,500 are due every 10 ms, of flow `n` next at 11.2 ms and
    /// `n` us.
    fn new() -> ManyFlows {
        let mut world = ManyFlows {
            gateway: Gateway::new(Config { max_flows: FLOWS, ..config(basic()) }),
            frames: Frames::new(256, 256, 64),
        };
        for n in 0..FLOWS {
            for ack in [1_000, 2_000, 3_000, 4_000, 94_000u32] {
                world.ack(Time::from_micros(1_000 + u64::from(n)), n, ack);
            }
        }
        // A gap of 200 us after the last immediate ACK.
        world.step_until(ms(5));
        let holding = world.gateway.flows.flows().filter(|f| f.held_bytes == 77_500).count();
        assert_eq!(holding, FLOWS as usize);
        world
    }

    fn ack(&mut self, now: Time, n: u32, ack: u32) {
        let segment = SegmentBuilder::v4([10, 0, 1, 1], [10, 1, (n >> 8) as u8, n as u8]);
        let bytes = segment.ports(5_001, 40_000).seq(9).ack(ack).build();
        let frame = self.frames.receive_copy(&bytes, bytes.len(), now).unwrap();
        self.gateway.handle_frame(&mut Cx { now, frames: &mut self.frames }, WAN, frame);
        self.poll(now, PortSet::ALL);
    }

    fn step_until(&mut self, end: Time) {
        while let Some(due) = self.gateway.next_deadline(PortSet::ALL).filter(|due| *due <= end) {
            self.poll(due, PortSet::ALL);
        }
    }

    /// Returns the frames that leave: when each was due, and its flow.
    fn poll(&mut self, now: Time, writable: PortSet) -> Vec<(Time, u32)> {
        let mut left = Vec::new();
        let mut cx = Cx { now, frames: &mut self.frames };
        while let Some(Transmit { at, frame, .. }) = self.gateway.poll_transmit(&mut cx, writable) {
            let to = &cx.frames.bytes(&frame)[30..34];
            left.push((at, u32::from(to[2]) << 8 | u32::from(to[3])));
            cx.frames.transmitted(frame);
        }
        left
    }

    /// All that is known of the flows.
    fn state(&self) -> String {
        format!("{:?}", self.gateway.flows.records())
    }
}

/// Until 45.2 ms two releases are made up for, those of 31.2 and 41.2 ms: of all flows in the order in which
/// they were due, the first of each first.
fn check_order(left: &[(Time, u32)]) {
    let flows: Vec<u32> = left.iter().map(|l| l.1).collect();
    let twice: Vec<u32> = (0..FLOWS).chain(0..FLOWS).collect();
    assert_eq!(flows, twice);
    for (k, &(at, n)) in left.iter().enumerate() {
        let due = if k < FLOWS as usize { 31_200 } else { 41_200 };
        assert_eq!(at, Time::from_micros(due + u64::from(n)));
    }
}

#[test]
fn a_shut_port_costs_the_same_for_any_number_of_flows() {
    let mut w = ManyFlows::new();
    let shut = PortSet::ALL.without(LAN);
    assert_eq!(w.poll(ms(5), shut), []);
    let before = w.state();
    for t in 6..45 {
        assert_eq!(w.gateway.next_deadline(shut), None, "what waits for the port has no deadline");
        assert_eq!(w.poll(ms(t), shut), []);
    }
    assert_eq!(w.state(), before, "no flow was touched");
    check_order(&w.poll(ms(45), PortSet::ALL));
    assert_eq!(w.gateway.next_deadline(PortSet::ALL), Some(Time::from_micros(51_200)));
}

#[test]
fn frames_that_come_meanwhile_touch_their_own_flows_only() {
    let mut w = ManyFlows::new();
    let shut = PortSet::ALL.without(LAN);
    w.poll(ms(5), shut);
    for t in (6..45).step_by(5) {
        let bytes = SegmentBuilder::v4([10, 1, 7, 7], [10, 0, 1, 1]).payload(100).build();
        let frame = w.frames.receive_copy(&bytes, bytes.len(), ms(t)).unwrap();
        let before = w.state();
        w.gateway.handle_frame(&mut Cx { now: ms(t), frames: &mut w.frames }, LAN, frame);
        assert_eq!((w.poll(ms(t), shut).len(), w.state() == before), (1, true));
    }
    check_order(&w.poll(ms(45), PortSet::ALL));
}

#[test]
fn an_exhausted_pool_is_looked_at_once_a_millisecond_for_all() {
    let mut w = ManyFlows::new();
    let all: Vec<_> = core::iter::from_fn(|| w.frames.make(64, ms(5))).collect();
    let before = w.state();
    let mut looks = Vec::new();
    let mut now = ms(5);
    while now < Time::from_micros(45_200) {
        assert_eq!(w.poll(now, PortSet::ALL), []);
        now = w.gateway.next_deadline(PortSet::ALL).unwrap();
        looks.push(now);
    }
    assert!(looks.windows(2).all(|w| w[1].since(w[0]) == Duration::from_millis(1)), "{looks:?}");
    assert_eq!((looks[0], w.gateway.flows.stats().pool_exhausted), (Time::from_micros(11_200), 1));
    assert_eq!(w.state(), before, "no flow was touched");
    all.into_iter().for_each(|frame| w.frames.absorb(frame));
    assert_eq!(now, Time::from_micros(45_200));
    check_order(&w.poll(now, PortSet::ALL));
}
