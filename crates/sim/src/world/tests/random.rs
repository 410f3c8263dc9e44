//! Invariants of any world: moving deadlines, and random sources and losses.

use super::*;
use crate::udp::{UdpConfig, UdpSink, UdpSource};
use proptest::prelude::*;
use std::net::SocketAddrV4;
use weir_core::link::{Loss, QueueLimit, Reorder, TRILLION};

/// Node that moves its deadline, and fails if it is not polled at one. After each due poll and each frame,
/// its deadline is the next delay of `plan`.
struct Fickle {
    plan: Vec<Option<u64>>,
    turn: usize,
    due: Option<Time>,
    served: u64,
}

impl Fickle {
    fn change(&mut self, now: Time) {
        let later = self.plan[self.turn % self.plan.len()];
        self.turn += 1;
        self.due = later.map(|ns| now + Duration::from_nanos(ns));
    }
}

impl Node for Fickle {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, _: Port, frame: Frame) {
        cx.frames.absorb(frame);
        self.poll_transmit(cx, PortSet::NONE);
        self.change(cx.now);
    }
    fn poll_transmit(&mut self, cx: &mut Cx<'_>, _: PortSet) -> Option<Transmit> {
        assert!(self.due.is_none_or(|due| due >= cx.now), "due at {:?}, polled at {:?}", self.due, cx.now);
        if self.due == Some(cx.now) {
            self.served += 1;
            self.change(cx.now);
        }
        None
    }
    fn next_deadline(&self, _: PortSet) -> Option<Time> {
        self.due
    }
}

/// Runs sources behind a lossy bottleneck each way, and sinks reached by address. Returns the captured trace,
/// the final account, and the number of steps.
fn busy_world(seed: u64, hosts: usize, until: Time) -> (Vec<(Time, usize)>, Ledger, u64) {
    let mut w = World::new();
    let at = |n: usize| SocketAddrV4::new(Ipv4Addr::from_bits(0x0a01_0000 + n as u32), 9);
    let bottleneck = Config {
        queue: QueueLimit::Packets(10),
        loss: Loss::Random { trillionths: 50_000_000_000 },
        seed,
        ..mbit(10, 3000)
    };
    let bottleneck = w.add(Link::new(bottleneck));
    let mut routes = Routes::new();
    for n in 0..hosts {
        let on = weir_core::dist::Distribution::Uniform { min: 1, max: 20_000_000 };
        let source = w.add(UdpSource::new(UdpConfig {
            mac: [2; 6],
            next_hop: [4; 6],
            local: at(n),
            remote: at(n + hosts),
            rate: Rate::kbit(12_000 / hosts as u64 + 1),
            datagram: 100,
            start: Time::from_nanos(n as u64 * 77_777),
            until: Time::MAX,
            bytes: None,
            on_off: Some((on.clone(), on)),
            dscp: 0,
            seed: seed ^ n as u64,
        }));
        let access = w.add(Link::new(Config { queue: QueueLimit::Packets(3), ..mbit(20, n as u64 % 97) }));
        let sink = w.add(UdpSink::new(at(n + hosts), at(n), Duration::from_millis(1), Time::MAX));
        w.wire((source, WIRE), (access, Link::IN));
        w.wire((access, Link::OUT), (bottleneck, Link::IN));
        routes.add(*at(n + hosts).ip(), (sink, WIRE));
    }
    w.route((bottleneck, Link::OUT), routes);
    let trace = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&trace);
    let see = move |at, bytes: &[u8], len| {
        let sum = bytes.iter().fold(len, |sum, &b| sum * 31 % 1_000_003 + usize::from(b));
        seen.lock().unwrap().push((at, sum));
    };
    w.capture((bottleneck, Link::OUT), Box::new(see));
    w.run_until(until);
    let steps = w.steps();
    let in_use = (w.frames().chunks() - w.frames().free_chunks()) as u64;
    assert_eq!(w.ledger().held(), in_use);
    let ledger = w.finish();
    let trace = std::mem::take(&mut *trace.lock().unwrap());
    (trace, ledger, steps)
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let until = Time::from_millis(500);
    let a = busy_world(1, 40, until);
    assert!(a.0.len() > 100 && a.1.drops.get(DropReason::RandomLoss) > 0, "{:?}", a.1);
    assert_eq!(a, busy_world(1, 40, until));
    assert_ne!(a.0, busy_world(2, 40, until).0);
}

#[test]
fn ten_thousand_nodes() {
    let (trace, ledger, _) = busy_world(3, 3_333, Time::from_millis(300));
    assert!(trace.len() > 500 && ledger.absorbed > 500, "{ledger:?}");
}

proptest! {
    /// Verifies that a node is polled at its deadline however that moves, and not much more often.
    #[test]
    fn no_deadline_is_missed(
        plans in prop::collection::vec(prop::collection::vec(prop::option::of(1u64..5000), 1..40), 1..6),
        kicks in prop::collection::vec((0u64..700, 0usize..6), 0..150),
    ) {
        let mut w = World::new();
        let nodes: Vec<_> = plans.iter().map(|plan| {
            w.add(Fickle { plan: plan.clone(), turn: 0, due: None, served: 0 })
        }).collect();
        let mut now = 0;
        for &(later, node) in &kicks {
            now += later;
            w.run_until(Time::from_nanos(now));
            w.hand_in((nodes[node % nodes.len()], WIRE), &[0; 60], 60);
        }
        w.run_until(Time::from_nanos(now));
        let served: u64 = nodes.iter().map(|&n| w.get::<Fickle>(n).unwrap().served).sum();
        let due = |n: &NodeId| w.get::<Fickle>(*n).unwrap().due;
        prop_assert!(nodes.iter().filter_map(due).all(|due| due > w.now() || w.next_deadline() == Some(w.now())));
        // Each node is served once when it is added, twice per frame (handed, polled) and once per deadline.
        prop_assert!(w.steps() <= served + 2 * kicks.len() as u64 + nodes.len() as u64, "{} steps", w.steps());
    }

    /// Verifies in + made = out + held + dropped + absorbed, at any time.
    #[test]
    fn frames_are_neither_lost_nor_doubled(seed in any::<u64>(), hosts in 1usize..60, ms in 1u64..60) {
        let (_, ledger, _) = busy_world(seed, hosts, Time::from_millis(ms));
        prop_assert_eq!(ledger.held(), 0);
        prop_assert!(ledger.made > 0);
    }

    /// Verifies that time never decreases although links continue by themselves. Here the frames of one link
    /// enter another one at once or late.
    #[test]
    fn time_never_goes_back(gaps in prop::collection::vec(0u64..90_000, 1..80), seed in any::<u64>()) {
        let mut w = World::new();
        let reorder = Reorder { trillionths: TRILLION / 2, by: Duration::from_micros(100) };
        let config = [mbit(10, 20), Config { reorder, seed, ..Config::BARE }, Config { reorder, ..Config::BARE }];
        let links = config.map(|config| w.add(Link::new(config)));
        let seen = Arc::new(Mutex::new(Vec::new()));
        for (n, &link) in links.iter().enumerate() {
            let seen = Arc::clone(&seen);
            w.capture((link, Link::OUT), Box::new(move |at, _: &[u8], _| seen.lock().unwrap().push(at)));
            if let Some(&next) = links.get(n + 1) {
                w.wire((link, Link::OUT), (next, Link::IN));
            }
        }
        for gap in &gaps {
            w.run_until(w.now() + Duration::from_nanos(*gap));
            w.hand_in((links[0], Link::IN), &[0; 60], 60);
        }
        w.run_until(Time::from_secs(1));
        let seen = seen.lock().unwrap();
        prop_assert_eq!(seen.len(), 3 * gaps.len());
        prop_assert!(seen.is_sorted(), "{:?}", seen);
    }
}
