//! Claims that a third party makes in the name of a connection's end, which no end gets. They must not stop
//! the connection.

use super::*;
use crate::cc;
use crate::host::{Endpoint, EndpointId, Host, HostConfig, Source, WIRE};
use crate::tcp::TcpConfig;
use crate::world::{NodeId, World};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::Arc;
use weir_core::ack::AckControl;
use weir_core::gateway::ClassConfig;
use weir_core::link::{self, Link};
use weir_core::rate::Rate;
use weir_core::time::Duration;
use weir_core::wire::build::SegmentBuilder;

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
const PORTS: (u16, u16) = (10_000, 5_001);
/// TTL of forged segments, which end behind the gateway.
pub(super) const FEW_HOPS: u8 = 3;

/// Forwards frames at once, but for those whose TTL ends here.
#[derive(Default)]
struct Hop(VecDeque<(Time, Frame)>);

impl Hop {
    const IN: Port = Port(0);
    const OUT: Port = Port(1);
}

impl Node for Hop {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, _: Port, frame: Frame) {
        // The TTL is the ninth byte of the header behind 14 bytes of Ethernet.
        match cx.frames.bytes(&frame)[22] {
            FEW_HOPS => cx.drop(frame, DropReason::RandomLoss),
            _ => self.0.push_back((cx.now, frame)),
        }
    }
    fn poll_transmit(&mut self, _: &mut Cx<'_>, _: PortSet) -> Option<Transmit> {
        self.0.pop_front().map(|(at, frame)| Transmit { port: Hop::OUT, at, frame })
    }
    fn next_deadline(&self, _: PortSet) -> Option<Time> {
        self.0.front().map(|(at, _)| *at)
    }
}

/// An upload, a third party at its client, and what it has seen of it.
pub(super) struct Attacked {
    pub(super) world: World,
    pub(super) gateway: NodeId,
    server: NodeId,
    end: EndpointId,
    /// Number behind the last data sent, and the acknowledgement that it carried.
    next: Arc<AtomicU32>,
    acks: Arc<AtomicU32>,
}

impl Attacked {
    pub(super) fn new(cc: &str, rtt: Duration, policy: AckControl) -> Attacked {
        let mut world = World::new();
        let host = |mac, next_hop| {
            Host::new(HostConfig { mac: [mac; 6], next_hop: [next_hop; 6], seed: u64::from(mac) })
        };
        let (client, server) = (world.add(host(2, 4)), world.add(host(4, 2)));
        let classes = vec![ClassConfig::controlled("out", Direction::Out, policy)];
        let gateway = world.add(Steered::new(Config { classes, ..Config::default() }));
        let hop = world.add(Hop::default());
        let delay = Duration::from_nanos(rtt.as_nanos() / 2);
        let line = link::Config { rate: Some(Rate::mbit(1_000)), delay, ..link::Config::default() };
        let links = [0, 1].map(|_| world.add(Link::new(line)));
        world.wire((client, WIRE), (gateway, LAN));
        world.wire((gateway, WAN), (hop, Hop::IN));
        world.wire((hop, Hop::OUT), (links[0], Link::IN));
        world.wire((links[0], Link::OUT), (server, WIRE));
        world.wire((server, WIRE), (links[1], Link::IN));
        world.wire((links[1], Link::OUT), (gateway, WAN));
        world.wire((gateway, LAN), (client, WIRE));
        let at = SocketAddrV4::new;
        let (local, remote) = (at(CLIENT, PORTS.0), at(SERVER, PORTS.1));
        let end = |opens, local, remote| Endpoint {
            opens,
            local,
            remote,
            start: Time::ZERO,
            tcp: Arc::new(TcpConfig::new(cc::by_name(cc).unwrap())),
            source: opens.then_some(Source { bytes: None, until: Time::MAX, rate: None, bursts: None }),
            bin: Duration::from_millis(100),
            until: Time::MAX,
            trace: false,
        };
        world.get_mut::<Host>(client).unwrap().add(end(true, local, remote));
        let end = world.get_mut::<Host>(server).unwrap().add(end(false, remote, local));
        let (next, acks) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (sent, acked) = (Arc::clone(&next), Arc::clone(&acks));
        let see = move |_, head: &[u8], len: usize| {
            let packet = wire::packet(head, len).unwrap();
            let tcp = wire::tcp(head, &packet).unwrap();
            if tcp.payload_len > 0 {
                sent.store(tcp.seq.plus(tcp.payload_len).0, Relaxed);
                acked.store(tcp.ack.0, Relaxed);
            }
        };
        world.capture((client, WIRE), Box::new(see));
        Attacked { world, gateway, server, end, next, acks }
    }

    /// Sends a FIN in the client's name, `ahead` bytes behind its last data, which no receiver gets.
    fn fin(&mut self, ahead: u32) {
        let segment = SegmentBuilder::v4(CLIENT, SERVER).ports(PORTS.0, PORTS.1).ttl(FEW_HOPS);
        let (seq, ack) = (self.next.load(Relaxed).wrapping_add(ahead), self.acks.load(Relaxed));
        let frame = segment.seq(seq).ack(ack).flags(Flags::FIN | Flags::ACK).build();
        self.world.hand_in((self.gateway, LAN), &frame, frame.len());
    }

    /// Runs for this many microseconds, and returns the bytes that the server has got in all.
    pub(super) fn run(&mut self, us: u64) -> u64 {
        let until = self.world.now() + Duration::from_micros(us);
        self.world.run_until(until);
        self.world.get::<Host>(self.server).unwrap().report(self.end).received
    }
}

/// Bytes of 5 Mbit/s in 200 ms.
const EACH: u64 = 125_000;

/// Verifies that FINs ahead of the data, each further than the last, neither stop an upload nor free it. The
/// first may free what is held, 20,000 bytes at most, once.
#[test]
fn fins_that_nobody_gets_neither_stop_nor_free_a_connection() {
    let rate = Rate::mbit(5);
    for (name, policy) in [("share", AckControl::ack_share(rate)), ("shaper", AckControl::ack_shaper(rate))] {
        for cc in ["cubic", "bbr"] {
            for (rtt_us, begins_us) in [(100, 1_500_000), (1_000, 1_537_000), (20_000, 1_611_000)] {
                let mut attacked = Attacked::new(cc, Duration::from_micros(rtt_us), policy);
                let mut before = attacked.run(begins_us);
                for n in 0..10 {
                    attacked.fin(20_000);
                    let after = attacked.run(200_000);
                    let got = after - before;
                    let within = EACH * 8 / 10..=EACH * 12 / 10 + 20_000;
                    assert!(within.contains(&got), "{name} {cc} {rtt_us} us, {n}: {got} bytes");
                    before = after;
                }
            }
        }
    }
}
