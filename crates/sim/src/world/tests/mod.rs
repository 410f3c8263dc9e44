mod random;

use super::*;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex};
use weir_core::frame::Frame;
use weir_core::link::{Config, Link};
use weir_core::node::{PortSet, Transmit};
use weir_core::rate::Rate;
use weir_core::time::Duration;
use weir_core::wire::{TCP, UDP};

const WIRE: Port = Port(0);

fn us(n: u64) -> Time {
    Time::from_micros(n)
}

/// Node that returns every frame at once, `left` times in all, and records each arrival and first byte.
#[derive(Default)]
struct Echo {
    left: u32,
    out: VecDeque<(Time, Frame)>,
    came: Vec<(Time, u8)>,
}

impl Echo {
    fn times(left: u32) -> Echo {
        Echo { left, ..Echo::default() }
    }
}

impl Node for Echo {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, _: Port, frame: Frame) {
        self.came.push((cx.now, cx.frames.bytes(&frame)[0]));
        if self.left == 0 {
            return cx.frames.absorb(frame);
        }
        self.left -= 1;
        self.out.push_back((cx.now, frame));
    }
    fn poll_transmit(&mut self, _: &mut Cx<'_>, _: PortSet) -> Option<Transmit> {
        self.out.pop_front().map(|(at, frame)| Transmit { port: WIRE, at, frame })
    }
    fn next_deadline(&self, _: PortSet) -> Option<Time> {
        self.out.front().map(|f| f.0)
    }
}

fn came(world: &World, id: NodeId) -> Vec<(u64, u8)> {
    let came = &world.get::<Echo>(id).unwrap().came;
    came.iter().map(|&(t, tag)| (t.as_nanos() / 1000, tag)).collect()
}

fn delay(us: u64) -> Config {
    Config { delay: Duration::from_micros(us), ..Config::default() }
}

fn mbit(rate: u64, us: u64) -> Config {
    Config { rate: Some(Rate::mbit(rate)), ..delay(us) }
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
    w.hand_in((a, WIRE), &[1; 60], 1514);
    w.hand_in((a, WIRE), &[2; 60], 1514);
    // Frames come out of the first link at 6,200 and 7,400 us. Node b returns one, which arrives at 6,200 +
    // 13,000 us, and node a sends it once more.
    w.run_until(us(7400));
    assert_eq!(came(&w, b), [(6200, 1), (7400, 2)]);
    assert_eq!((w.now(), w.next_deadline(), w.ledger().held()), (us(7400), Some(us(19_200)), 1));
    w.run_until(us(100_000));
    assert_eq!(came(&w, a), [(0, 1), (0, 2), (19_200, 1)]);
    assert_eq!(came(&w, b), [(6200, 1), (7400, 2), (25_400, 1)]);
    assert_eq!((w.now(), w.next_deadline()), (us(100_000), None));
    let ledger = w.finish();
    assert_eq!((ledger.received, ledger.absorbed, ledger.held()), (2, 2, 0));
}

#[test]
fn what_is_due_together_goes_in_the_order_in_which_it_came_up() {
    let mut w = World::new();
    let both = w.add(Link::new(mbit(10, 0)));
    let near: Vec<_> = [30, 10, 20].map(|us| w.add(Link::new(delay(us)))).to_vec();
    let sink = w.add(Echo::default());
    near.iter().for_each(|&n| w.wire((n, Link::OUT), (both, Link::IN)));
    w.wire((both, Link::OUT), (sink, WIRE));
    // All frames come out at 40 us. Their deadlines were set at 10, 20 and 30 us, which is not the order of
    // the nodes.
    for (at, i) in [(10, 0), (20, 2), (30, 1)] {
        w.run_until(us(at));
        w.hand_in((near[i], Link::IN), &[i as u8; 60], 1514);
        w.hand_in((near[i], Link::IN), &[i as u8 + 10; 60], 1514);
    }
    w.run_until(us(100_000));
    let expected = [(1240, 0), (2440, 10), (3640, 2), (4840, 12), (6040, 1), (7240, 11)];
    assert_eq!(came(&w, sink), expected);
}

#[test]
fn deadlines_come_before_nodes_that_were_handed_frames_at_the_same_time() {
    let mut w = World::new();
    let [first, second] = [0, 1].map(|_| w.add(Link::new(delay(10))));
    let between = w.add(Link::new(delay(0)));
    let sink = w.add(Echo::default());
    w.wire((first, Link::OUT), (between, Link::IN));
    w.wire((between, Link::OUT), (sink, WIRE));
    w.wire((second, Link::OUT), (sink, WIRE));
    w.hand_in((first, Link::IN), &[1; 60], 60);
    w.hand_in((second, Link::IN), &[2; 60], 60);
    w.run_until(us(10));
    // The second link's deadline was known before the frame was handed to the middle one.
    assert_eq!(came(&w, sink), [(10, 2), (10, 1)]);
}

#[test]
fn a_far_deadline_is_put_on_the_agenda_once() {
    /// Node with two timers: every 10 us, and after a second.
    struct Timers(u64);
    impl Node for Timers {
        fn handle_frame(&mut self, cx: &mut Cx<'_>, _: Port, frame: Frame) {
            self.0 = cx.now.as_nanos() / 10_000;
            cx.frames.absorb(frame);
        }
        fn poll_transmit(&mut self, cx: &mut Cx<'_>, _: PortSet) -> Option<Transmit> {
            self.0 = cx.now.as_nanos() / 10_000;
            None
        }
        fn next_deadline(&self, _: PortSet) -> Option<Time> {
            // The near timer is stopped every second time.
            let near = (self.0 % 2 == 0).then(|| us(10 * (self.0 + 1)));
            Some(near.unwrap_or(Time::from_secs(1)))
        }
    }
    let mut w = World::new();
    let timers = w.add(Timers(0));
    for n in 1..1000 {
        w.run_until(us(10 * n));
        w.hand_in((timers, WIRE), &[0; 60], 60);
    }
    // There are 500 near events and a far one.
    assert_eq!(w.seq, 501);
}

#[test]
fn frames_for_nowhere_are_dropped() {
    let mut w = World::new();
    let link = w.add(Link::new(delay(10)));
    w.hand_in((link, Link::IN), &[1; 60], 60);
    w.hand_in((link, Port(200)), &[1; 60], 60);
    w.run_until(us(10));
    assert_eq!(w.ledger().drops.get(DropReason::NotWired), 2);
    assert_eq!(w.frames().free_chunks(), w.frames().chunks());
}

#[test]
fn what_is_held_at_the_end_is_accounted_for() {
    let mut w = World::new();
    let link = w.add(Link::new(delay(10)));
    (0..3).for_each(|_| w.hand_in((link, Link::IN), &[1; 60], 60));
    w.run_until(us(9));
    let ledger = w.finish();
    assert_eq!((ledger.received, ledger.drops.get(DropReason::Shutdown), ledger.held()), (3, 3, 0));
}

/// Returns the head of an IPv4 packet to `to`.
fn packet(to: Ipv4Addr, tag: u8) -> [u8; 34] {
    let mut head = [tag; 34];
    head[12..15].copy_from_slice(&[8, 0, 0x45]);
    head[30..].copy_from_slice(&to.octets());
    head
}

#[test]
fn a_switch_is_wiring() {
    let mut w = World::new();
    let uplinks = [10, 20].map(|us| w.add(Link::new(delay(us))));
    let hosts: Vec<_> = (0..3000).map(|_| w.add(Echo::default())).collect();
    let address = |n: usize| Ipv4Addr::from_bits(0x0a00_0000 + n as u32);
    let mut routes = Routes::new();
    hosts.iter().enumerate().for_each(|(n, &host)| routes.add(address(n), (host, WIRE)));
    routes.add(address(7), (hosts[8], WIRE)); // instead
    let table = w.routes(routes.clone());
    w.route_by((uplinks[0], Link::OUT), table);
    routes.others((hosts[0], WIRE));
    w.route((uplinks[1], Link::OUT), routes);
    for uplink in uplinks {
        for n in [0, 7, 255, 256, 2999, 3000] {
            w.hand_in((uplink, Link::IN), &packet(address(n), n as u8), 60);
        }
        w.hand_in((uplink, Link::IN), &[1; 34], 60); // not IPv4
        w.hand_in((uplink, Link::IN), &packet(address(5), 1)[..33], 60);
    }
    w.run_until(us(1000));
    assert_eq!(came(&w, hosts[8]), [(10, 7), (20, 7)]);
    assert_eq!(came(&w, hosts[2999]), [(10, 183), (20, 183)]);
    assert_eq!(came(&w, hosts[255]), [(10, 255), (20, 255)]);
    assert_eq!(came(&w, hosts[0]), [(10, 0), (20, 0), (20, 184), (20, 1), (20, 1)]);
    assert_eq!(w.ledger().drops.get(DropReason::NotWired), 3);
    assert_eq!(w.ledger().absorbed, 5 + 8);
}

/// Returns the head of a packet from 10.0.0.1:7 to port 9 of 10.0.0.2. Its tag is the last octet of its
/// Ethernet destination.
fn between_ports(protocol: u8, tag: u8) -> [u8; 42] {
    let mut head = [0; 42];
    head[0] = tag;
    head[12..15].copy_from_slice(&[8, 0, 0x45]);
    head[23] = protocol;
    head[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    head[34..38].copy_from_slice(&[0, 7, 0, 9]);
    head
}

#[test]
fn datagrams_of_a_flow_have_a_destination_of_their_own() {
    let mut w = World::new();
    let link = w.add(Link::new(delay(10)));
    let [host, sink, other] = [0, 1, 2].map(|_| w.add(Echo::default()));
    let mut routes = Routes::new();
    let end = |host: u8, port| SocketAddrV4::new([10, 0, 0, host].into(), port);
    routes.add_datagrams((end(1, 7), end(2, 9)), (sink, WIRE));
    routes.add([10, 0, 0, 2].into(), (host, WIRE));
    // 3,000 flows between the same hosts.
    (100..3100).for_each(|port| routes.add_datagrams((end(1, port), end(2, 9)), (other, WIRE)));
    w.route((link, Link::OUT), routes);
    let udp = |tag| between_ports(UDP, tag);
    let with = |tag, at: usize, byte| {
        let mut head = udp(tag);
        head[at] = byte;
        head
    };
    let heads =
        [udp(1), between_ports(TCP, 2), with(3, 35, 8), with(4, 37, 8), with(5, 29, 3), with(6, 14, 0x46)];
    heads.iter().for_each(|head| w.hand_in((link, Link::IN), head, 60));
    // An address has the rest of its flows, and packets that are cut off within their ports.
    w.hand_in((link, Link::IN), &udp(7)[..37], 60);
    w.hand_in((link, Link::IN), &with(8, 33, 3), 60);
    w.hand_in((link, Link::IN), &with(9, 35, 100), 60);
    w.run_until(us(10));
    assert_eq!(came(&w, sink), [(10, 1)]);
    assert_eq!(came(&w, other), [(10, 9)]);
    assert_eq!(came(&w, host), [2, 3, 4, 5, 6, 7].map(|tag| (10, tag)));
    assert_eq!(w.ledger().drops.get(DropReason::NotWired), 1);
}

#[test]
fn captures_see_what_leaves_a_port() {
    let mut w = World::new();
    let (link, echo) = (w.add(Link::new(delay(10))), w.add(Echo::times(9)));
    w.wire((link, Link::OUT), (echo, WIRE));
    let seen = Arc::new(Mutex::new(Vec::new()));
    for (n, from) in [(1, (link, Link::OUT)), (2, (link, Link::OUT)), (3, (echo, WIRE))] {
        let seen = Arc::clone(&seen);
        w.capture(
            from,
            Box::new(move |at, bytes, len| seen.lock().unwrap().push((n, at, bytes.to_vec(), len))),
        );
    }
    w.hand_in((link, Link::IN), &[7; 20], 1514);
    w.run_until(us(100));
    let expected: Vec<_> = [1, 2, 3].map(|n| (n, us(10), vec![7; 20], 1514)).to_vec();
    assert_eq!(*seen.lock().unwrap(), expected);
    let one = Passed { frames: 1, bytes: 1514 };
    assert_eq!((w.passed((link, Link::OUT)), w.passed((link, Link::IN))), (one, Passed::default()));
    assert_eq!(w.ledger().drops.get(DropReason::NotWired), 1, "the echo's port leads nowhere");
}

#[test]
fn nodes_are_reached_by_type_and_polled_when_they_were_changed() {
    let mut w = World::new();
    let source = w.add(Echo::default());
    let sink = w.add(Echo::default());
    w.wire((source, WIRE), (sink, WIRE));
    w.run_until(us(5));
    assert!(w.get::<Link>(source).is_none() && w.get_mut::<Link>(source).is_none());
    w.get_mut::<Echo>(source).unwrap().left = 1;
    w.hand_in((source, WIRE), &[3; 60], 60);
    // The node is polled at once, but not before the world runs.
    assert_eq!((w.next_deadline(), came(&w, sink)), (Some(us(5)), vec![]));
    w.run_until(us(5));
    assert_eq!((w.next_deadline(), came(&w, sink)), (None, vec![(5, 3)]));
}

#[test]
fn a_frame_that_was_due_earlier_comes_when_it_was_due_but_no_node_goes_back_in_time() {
    /// Node that sends each frame as due 5 us earlier.
    struct Late(VecDeque<(Time, Frame)>);
    impl Node for Late {
        fn handle_frame(&mut self, cx: &mut Cx<'_>, _: Port, frame: Frame) {
            self.0.push_back((cx.now.saturating_sub(Duration::from_micros(5)), frame));
        }
        fn poll_transmit(&mut self, _: &mut Cx<'_>, _: PortSet) -> Option<Transmit> {
            self.0.pop_front().map(|(at, frame)| Transmit { port: WIRE, at, frame })
        }
        fn next_deadline(&self, _: PortSet) -> Option<Time> {
            self.0.front().map(|first| first.0)
        }
    }
    let mut w = World::new();
    let (late, sink) = (w.add(Late(VecDeque::new())), w.add(Echo::default()));
    w.wire((late, WIRE), (sink, WIRE));
    w.run_until(us(20));
    w.hand_in((late, WIRE), &[1; 60], 60);
    // A node that was changed is polled.
    w.get_mut::<Echo>(sink);
    w.run_until(us(22));
    w.hand_in((late, WIRE), &[2; 60], 60);
    w.run_until(us(30));
    // The sink was polled at 20 us, so the second frame does not arrive at 17.
    assert_eq!(came(&w, sink), [(15, 1), (20, 2)]);
}

#[test]
fn a_circle_without_delay_does_not_hang() {
    let mut w = World::new();
    let (a, b) = (w.add(Echo::times(u32::MAX)), w.add(Echo::times(u32::MAX)));
    w.wire((a, WIRE), (b, WIRE));
    w.wire((b, WIRE), (a, WIRE));
    // A low limit keeps the echoes' notes from filling the memory.
    w.steps_per_instant = 1000;
    w.run_until(us(2));
    assert_eq!(w.stuck(), None);
    w.hand_in((a, WIRE), &[1; 60], 60);
    w.run_until(us(5));
    assert_eq!((w.stuck(), w.now()), (Some(us(2)), us(2)));
    // It does nothing more.
    w.run_until(us(9));
    assert_eq!(w.now(), us(2));
}

#[test]
fn a_world_can_change_threads() {
    let world = World::new();
    std::thread::spawn(move || drop(world)).join().unwrap();
}
