//! The quality of flows as a gateway measures it, beside what the senders themselves counted and measured.

use super::*;
use crate::cc;
use crate::host::{Endpoint, EndpointReport, Host, HostConfig, Source, WIRE};
use crate::tcp::TcpConfig;
use crate::world::World;
use std::net::SocketAddrV4;
use std::sync::Arc;
use weir_core::ack::AckControl;
use weir_core::gateway::{ClassConfig, Direction};
use weir_core::link::{self, Link, Loss};
use weir_core::quality::{duration, FlowQuality, Quality, Side, Sight};
use weir_core::rate::Rate;
use weir_core::time::Duration;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// A path: the round trip of each side, what is lost of data behind the gateway, and the sender's timestamps.
#[derive(Clone, Copy)]
struct Path {
    wan: Duration,
    lan: Duration,
    loss: Loss,
    timestamps: bool,
    /// Rate of the flow.
    rate: Rate,
    direction: Direction,
    hooked: bool,
    /// Rate at which the application writes.
    writes: Option<Rate>,
    /// Nothing is to be touched.
    observe: bool,
    /// Classes that share a rate, instead of a rate for each flow.
    shared: bool,
    /// No class controls anything.
    plain: bool,
}

const PATH: Path = Path {
    wan: Duration::from_millis(40),
    lan: Duration::from_millis(10),
    loss: Loss::None,
    timestamps: true,
    rate: Rate::mbit(10),
    direction: Direction::In,
    hooked: true,
    writes: None,
    observe: false,
    shared: false,
    plain: false,
};

/// Findings about the flow.
struct Found {
    sender: EndpointReport,
    flow: FlowQuality,
    repeated: u32,
    reordered: u32,
    class: Quality,
    counted: (u64, u64),
    dropped: u64,
}

/// Runs a download or an upload of one flow for four seconds.
fn run(path: Path) -> Found {
    let inward = path.direction == Direction::In;
    let mut world = World::new();
    let ack = match path.shared {
        true => AckControl::ack_share(path.rate),
        false => AckControl::ack_shaper(path.rate),
    };
    let class = ClassConfig::controlled("all", path.direction, ack);
    let class = ClassConfig { ack: class.ack.filter(|_| !path.plain), ..class };
    let config = Config { classes: vec![class], observe: path.observe, ..Config::default() };
    let gateway = match path.hooked {
        true => world.add(Steered::new(config)),
        false => world.add(Gateway::new(config)),
    };
    let host = |mac, next_hop| {
        Host::new(HostConfig { mac: [mac; 6], next_hop: [next_hop; 6], seed: u64::from(mac) })
    };
    let hosts = [world.add(host(2, 4)), world.add(host(4, 2))];
    // A link for each side and direction; data is lost on its way from the gateway to its receiver.
    for (port, host, rtt, receives) in [(LAN, hosts[0], path.lan, inward), (WAN, hosts[1], path.wan, !inward)]
    {
        let delay = Duration::from_nanos(rtt.as_nanos() / 2);
        let fast = link::Config { rate: Some(Rate::mbit(1_000)), delay, ..link::Config::default() };
        let loss = if receives { path.loss } else { Loss::None };
        let to = world.add(Link::new(link::Config { loss, ..fast }));
        let from = world.add(Link::new(fast));
        world.wire((gateway, port), (to, Link::IN));
        world.wire((to, Link::OUT), (host, WIRE));
        world.wire((host, WIRE), (from, Link::IN));
        world.wire((from, Link::OUT), (gateway, port));
    }
    let at = |a: [u8; 4], port| SocketAddrV4::new(a.into(), port);
    let (client, server) = (at([10, 0, 0, 1], 10_000), at([10, 0, 1, 1], 5_001));
    let mut tcp = TcpConfig::new(cc::by_name("cubic").unwrap());
    tcp.timestamps = path.timestamps;
    let tcp = Arc::new(tcp);
    let source = Source { bytes: None, until: Time::MAX, rate: path.writes, bursts: None };
    let end = |opens, local, remote, sends: bool| Endpoint {
        opens,
        local,
        remote,
        start: Time::ZERO,
        tcp: tcp.clone(),
        source: sends.then_some(source),
        bin: MS(100),
        until: Time::MAX,
        trace: false,
    };
    let ends = [end(true, client, server, !inward), end(false, server, client, inward)];
    let ids = [0, 1].map(|i| world.get_mut::<Host>(hosts[i]).unwrap().add(ends[i].clone()));
    world.run_until(Time::from_millis(4_000));
    let sender = usize::from(inward);
    let report = world.get::<Host>(hosts[sender]).unwrap().report(ids[sender]);
    let node = match path.hooked {
        true => world.get::<Steered>(gateway).unwrap().gateway(),
        false => world.get::<Gateway>(gateway).unwrap(),
    };
    let none = (FlowQuality::default(), &Sight::default());
    let known = node.flows.flows().next().map(|flow| flow.key);
    let (flow, sight) = known.and_then(|key| node.flows.quality_of(&key)).unwrap_or(none);
    let passed = node.flows.bound_of(0).passed();
    Found {
        sender: report,
        flow,
        repeated: sight.repeated(),
        reordered: sight.reordered(),
        class: *node.flows.quality_of_class(0).unwrap(),
        counted: (passed.repeated, passed.reordered),
        dropped: passed.dropped,
    }
}

/// The round trips of the receiver's and of the sender's side are as far as the links say.
fn is_near(found: u32, rtt: Duration) -> bool {
    duration(found).as_nanos().abs_diff(rtt.as_nanos()) <= 1_000_000
}

#[test]
fn round_trips_of_both_sides_are_those_of_the_links() {
    for direction in [Direction::In, Direction::Out] {
        for hooked in [true, false] {
            // Held by the rate, and passed by grants since the rate does not bind.
            for rate in [Rate::mbit(10), Rate::mbit(900)] {
                let writes = (rate == Rate::mbit(900)).then(|| Rate::mbit(8));
                let found = run(Path { direction, hooked, rate, writes, ..PATH });
                let (receiver, sender) = match direction {
                    Direction::In => (PATH.lan, PATH.wan),
                    Direction::Out => (PATH.wan, PATH.lan),
                };
                let flow = &found.flow;
                let case = format!("{direction:?} {hooked} {rate}: {flow:?}");
                for (side, rtt) in [(Side::Receiver, receiver), (Side::Sender, sender)] {
                    let measured = flow.rtt(side);
                    assert!(is_near(measured.min, rtt), "{side:?} {case}");
                    // An ACK for every second segment waits for that.
                    assert!(measured.smoothed >= measured.min, "{side:?} {case}");
                    assert!(duration(measured.smoothed) < rtt + MS(2), "{side:?} {case}");
                    let [median] = found.class.side(side).quantiles([500_000]);
                    let off = duration(median).as_nanos().abs_diff(rtt.as_nanos());
                    assert!(off <= rtt.as_nanos() / 16 + 1_000_000, "{side:?} {case}");
                    assert!(found.class.side(side).samples() >= 4, "{side:?} {case}");
                }
                let parts = [flow.rtt(Side::Receiver).last, flow.rtt(Side::Sender).last, flow.held()];
                let sum = duration(parts.iter().sum());
                let (median, _) = found.sender.rtt.unwrap();
                let off = sum.as_nanos().abs_diff(median.as_nanos());
                if rate == Rate::mbit(10) {
                    assert!(off <= median.as_nanos() / 10, "{case}: {sum} of {median}");
                }
            }
        }
    }
}

#[test]
fn without_timestamps_the_senders_side_is_known_by_the_handshake() {
    let found = run(Path { timestamps: false, ..PATH });
    assert!(is_near(found.flow.rtt(Side::Receiver).min, PATH.lan), "{:?}", found.flow);
    let sender = found.flow.rtt(Side::Sender);
    assert!(is_near(sender.last, PATH.wan) && sender.last == sender.min, "{:?}", found.flow);
    assert!(is_near(found.flow.set_up(), PATH.wan + PATH.lan), "{:?}", found.flow);
}

#[test]
fn what_is_sent_again_is_counted_as_its_sender_does() {
    for direction in [Direction::In, Direction::Out] {
        for hooked in [true, false] {
            for loss in [Loss::None, Loss::permille(5), Loss::permille(30)] {
                let found = run(Path { direction, hooked, loss, ..PATH });
                let sent = found.sender.retransmits;
                let case = format!("{direction:?} {hooked} {loss:?}");
                assert_eq!((u64::from(found.repeated), found.reordered), (sent, 0), "{case}");
                assert_eq!(found.counted, (sent, 0), "{case}");
                assert_eq!(sent > 0, loss != Loss::None, "{case}");
                // Whatever is lost, the least round trip is that of the path.
                let side = if direction == Direction::In { PATH.lan } else { PATH.wan };
                assert!(is_near(found.flow.rtt(Side::Receiver).min, side), "{case} {:?}", found.flow);
            }
        }
    }
}

/// A flow of 100 Mbit/s beside a rate of 1 Mbit/s: what its sender does is the same to the last segment as
/// where nothing is controlled, so every frame has passed unchanged and at once.
#[test]
fn a_gateway_that_observes_touches_nothing_and_measures() {
    for direction in [Direction::In, Direction::Out] {
        for hooked in [true, false] {
            for shared in [true, false] {
                let loss = Loss::permille(5);
                let path = Path { direction, hooked, shared, loss, rate: Rate::mbit(1), ..PATH };
                let plain = run(Path { plain: true, ..path });
                let found = run(Path { observe: true, ..path });
                let case = format!("{direction:?} {hooked} {shared}: {:?}", found.flow);
                let told = |found: &Found| {
                    let EndpointReport { segments, retransmits, acked, rtt, bins, .. } = &found.sender;
                    (*segments, *retransmits, *acked, *rtt, bins.clone())
                };
                assert_eq!(told(&found), told(&plain), "{case}");
                assert!(found.sender.acked > 4_000_000, "{case}");
                assert_eq!(u64::from(found.repeated), found.sender.retransmits, "{case}");
                let (receiver, sender) = match direction {
                    Direction::In => (PATH.lan, PATH.wan),
                    Direction::Out => (PATH.wan, PATH.lan),
                };
                assert!(is_near(found.flow.rtt(Side::Receiver).min, receiver), "{case}");
                assert!(is_near(found.flow.rtt(Side::Sender).min, sender), "{case}");
                assert!(found.class.side(Side::Sender).samples() > 4, "{case}");
                // Four seconds of 1 Mbit/s are 0.5 MB: most of the rest would have been dropped.
                assert!(found.dropped > 1_000, "{case}: {}", found.dropped);
            }
        }
    }
}
