//! Two hosts over two links, on a fake clock: exact timelines and invariants.

mod dsack;
mod frto;
mod laws;
mod repair;
mod sieve;
mod train;
mod without_sack;

use super::*;
use crate::cc;
use crate::tcp::{Failure, MinRto, Recovery, TcpConfig};
use crate::world::{NodeId, World};
use proptest::prelude::*;
use sieve::{Fate, Sieve};
use std::net::SocketAddrV4;
use std::sync::Arc;
use weir_core::link::{self, Link, Loss};
use weir_core::rate::Rate;
use weir_core::time::Duration;

const MS: fn(u64) -> Duration = Duration::from_millis;
const AT: fn(u64) -> Time = Time::from_millis;

/// A client and a server.
struct Rig {
    world: World,
    client: NodeId,
    server: NodeId,
    links: [NodeId; 2],
    sieves: [NodeId; 2],
    ends: Vec<(EndpointId, EndpointId)>,
}

impl Rig {
    fn new(out: link::Config, back: link::Config) -> Rig {
        Rig::with_sieves(out, back, Sieve::default(), Sieve::default())
    }

    /// Returns a rig with a sieve in front of each link.
    fn with_sieves(out: link::Config, back: link::Config, there: Sieve, here: Sieve) -> Rig {
        let mut world = World::new();
        let host = |mac, next_hop| {
            Host::new(HostConfig { mac: [mac; 6], next_hop: [next_hop; 6], seed: u64::from(mac) })
        };
        let (client, server) = (world.add(host(2, 4)), world.add(host(4, 2)));
        let links = [out, back].map(|config| world.add(Link::new(config)));
        let sieves = [there, here].map(|sieve| world.add(sieve));
        world.wire((client, WIRE), (sieves[0], Sieve::IN));
        world.wire((sieves[0], Sieve::OUT), (links[0], Link::IN));
        world.wire((links[0], Link::OUT), (server, WIRE));
        world.wire((server, WIRE), (sieves[1], Sieve::IN));
        world.wire((sieves[1], Sieve::OUT), (links[1], Link::IN));
        world.wire((links[1], Link::OUT), (client, WIRE));
        Rig { world, client, server, links, sieves, ends: Vec::new() }
    }

    /// Returns the departures of the client's or the server's frames, in order.
    fn departures(&self, n: usize) -> &[Time] {
        &self.world.get::<Sieve>(self.sieves[n]).unwrap().seen
    }

    /// Adds an upload that begins at `start`.
    fn flow(&mut self, tcp: TcpConfig, start: Time, source: Source) {
        let tcp = Arc::new(tcp);
        let n = self.ends.len() as u16;
        let at = |a: [u8; 4], port| SocketAddrV4::new(a.into(), port);
        let (client, server) = (at([10, 0, 0, 1], 10_000 + n), at([10, 0, 0, 2], 5001));
        let end = |opens, local, remote, source| Endpoint {
            opens,
            local,
            remote,
            start,
            tcp: tcp.clone(),
            source,
            bin: MS(10),
            until: Time::MAX,
            trace: true,
        };
        let sender = self.host(self.client).add(end(true, client, server, Some(source)));
        let receiver = self.host(self.server).add(end(false, server, client, None));
        self.ends.push((sender, receiver));
    }

    fn host(&mut self, id: NodeId) -> &mut Host {
        self.world.get_mut::<Host>(id).unwrap()
    }
    fn sender(&self, flow: usize) -> EndpointReport {
        self.world.get::<Host>(self.client).unwrap().report(self.ends[flow].0)
    }
    fn receiver(&self, flow: usize) -> EndpointReport {
        self.world.get::<Host>(self.server).unwrap().report(self.ends[flow].1)
    }
    fn link(&self, i: usize) -> &Link {
        self.world.get::<Link>(self.links[i]).unwrap()
    }
    /// Checks that every frame is accounted for.
    fn check_conservation(&self) {
        let frames = self.world.frames();
        let inside: u64 =
            self.links.iter().map(|&l| self.world.get::<Link>(l).unwrap().ledger().held()).sum();
        assert_eq!(frames.made(), frames.absorbed() + frames.drops().total() + inside);
    }
}

fn tcp(cc: &str) -> TcpConfig {
    TcpConfig::new(cc::by_name(cc).unwrap())
}

/// Returns a sender with segments of 1000 bytes of IP, each acknowledged, and an initial window of one.
fn plain(recovery: Recovery) -> TcpConfig {
    TcpConfig {
        mss: 960,
        timestamps: false,
        initial_window: 1,
        delayed_ack: 1,
        quick_acks: 0,
        push_acks: false,
        recovery,
        ..tcp("reno")
    }
}

fn bytes(n: u64) -> Source {
    Source { bytes: Some(n), until: Time::MAX, rate: None, bursts: None }
}

fn wire(rate_mbit: u64, delay_ms: u64) -> link::Config {
    link::Config { rate: Some(Rate::mbit(rate_mbit)), delay: MS(delay_ms), ..link::Config::default() }
}

#[test]
fn a_handshake_and_a_transfer_by_hand() {
    // At 8 Mbit/s a segment of 1000 bytes takes 1 ms, plus 10 ms each way. A SYN is 52 bytes of IP without
    // timestamps (MSS, SACK permitted, window scale and padding), 52 us. A pure ACK is 40 bytes, 40 us.
    let mut rig = Rig::new(wire(8, 10), wire(8, 10));
    rig.flow(plain(Recovery::Rack), AT(0), bytes(960 * 3));
    rig.world.run_until(Time::from_secs(1));
    // SYN and SYN-ACK take 2 x (52 us + 10 ms). The ACK of the handshake and the first segment follow back to
    // back.
    let opened = 2 * 10_052_000;
    let first = opened + 40_000 + 1_000_000 + 10_000_000;
    let (s, r) = (rig.sender(0), rig.receiver(0));
    assert_eq!(s.established, Some(Time::from_nanos(opened)));
    assert_eq!(r.established, Some(Time::from_nanos(opened + 40_000 + 10_000_000)));
    // Its ACK opens the window to two segments; the second has the FIN.
    let acked = first + 40_000 + 10_000_000;
    let last = acked + 2 * 1_000_000 + 10_000_000;
    assert_eq!(r.last_received, Some(Time::from_nanos(last)));
    assert_eq!(r.received_all, r.last_received);
    assert_eq!((r.received, s.acked, s.retransmits, s.rtos), (2880, 2880, 0, 0));
    // The client sends SYN, ACK, 3 segments, and the ACK of the FIN.
    assert_eq!((s.segments, s.failure, r.failure), (1 + 1 + 3 + 1, None, None));
    assert!(s.closed.is_some() && r.closed.is_some());
    rig.check_conservation();
}

#[test]
fn slow_start_doubles_every_round_trip() {
    // The round trip is 200 ms. The link is so fast that a window's segments leave together: 1, 2, 4, …
    // segments.
    let mut rig = Rig::new(wire(10_000, 100), wire(10_000, 100));
    rig.flow(
        plain(Recovery::Rack),
        AT(0),
        Source { bytes: None, until: Time::MAX, rate: None, bursts: None },
    );
    rig.world.run_until(AT(1_300));
    // The connection opens at 200 ms. Round n of the window ends at 200 (n + 2) ms and leaves 2^n segments.
    let s = rig.sender(0);
    let at = |ms: u64| s.trace.iter().rfind(|c| c.at < AT(ms)).unwrap().cwnd / 960;
    assert_eq!([390, 590, 790, 990, 1190].map(at), [1, 2, 4, 8, 16]);
}

#[test]
fn delayed_acks_wait_for_the_second_segment_or_the_timer() {
    let config = TcpConfig { delayed_ack: 2, ..plain(Recovery::Rack) };
    let mut rig = Rig::new(wire(10_000, 10), wire(10_000, 10));
    rig.flow(config, AT(0), bytes(960 * 3));
    rig.world.run_until(Time::from_secs(2));
    // The first window is one segment, whose ACK is delayed by 40 ms.
    let s = rig.sender(0);
    let first = s.trace.iter().find(|c| c.acked > 0).unwrap();
    assert_eq!(first.at.as_nanos() / 1_000_000, 20 + 20 + 40);
}

#[test]
fn an_application_limited_flow_keeps_its_rate() {
    let mut rig = Rig::new(wire(100, 10), wire(100, 10));
    let source = Source { bytes: None, until: AT(2_000), rate: Some(Rate::mbit(8)), bursts: None };
    rig.flow(tcp("reno"), AT(0), source);
    rig.world.run_until(Time::from_secs(3));
    let (s, r) = (rig.sender(0), rig.receiver(0));
    // 1 MB/s for 2 s less the handshake, in whole chunks.
    assert!(r.received.abs_diff(1_980_000) <= 1448, "{}", r.received);
    assert_eq!((s.retransmits, r.received_all.is_some()), (0, true));
}

#[test]
fn the_receive_window_is_the_limit() {
    // 10,000 bytes per 20 ms are 500 kB/s, less the time of serialization.
    let config = TcpConfig { receive_window: 9_600, ..plain(Recovery::Rack) };
    let mut rig = Rig::new(wire(10_000, 10), wire(10_000, 10));
    rig.flow(config, AT(0), Source { bytes: None, until: Time::MAX, rate: None, bursts: None });
    rig.world.run_until(Time::from_secs(2));
    let most = rig.sender(0).trace.iter().map(|c| c.in_flight).max();
    assert_eq!(most, Some(9_600));
    let report = rig.receiver(0);
    let in_second = report.bins.iter().skip(100 - report.first_bin).take(100);
    let second: u64 = in_second.map(|&b| u64::from(b)).sum();
    assert!(second.abs_diff(480_000) <= 9_600, "{second}");
}

#[test]
fn marks_reduce_the_window_without_losses() {
    let marking = link::Config { mark: Some(link::QueueLimit::Packets(20)), ..wire(10, 10) };
    for cc in ["reno", "cubic", "dctcp"] {
        let mut rig = Rig::new(marking, wire(10, 10));
        rig.flow(
            TcpConfig { ecn: true, ..tcp(cc) },
            AT(0),
            Source { bytes: None, until: Time::MAX, rate: None, bursts: None },
        );
        rig.world.run_until(Time::from_secs(20));
        let (s, stats) = (rig.sender(0), rig.link(0).stats());
        assert_eq!((s.retransmits, stats.drops.total()), (0, 0), "{cc}");
        assert!(stats.marks > 0, "{cc}");
        // Slow start exceeds the threshold once. Afterwards the queue stays near it.
        assert!(stats.queue_delay.p50() < 40_000_000, "{cc}: {}", stats.queue_delay.p50());
        let goodput = rig.receiver(0).received * 8 / 20;
        assert!(goodput > 8_500_000, "{cc}: {goodput}");
    }
}

fn recoveries() -> impl Strategy<Value = Recovery> {
    prop::sample::select(Recovery::ALL.map(|(_, r)| r).to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Verifies that under any losses on either way, every byte arrives once and in order, sequence numbers
    /// wrap, both ends close, and every frame is accounted for.
    #[test]
    fn every_byte_arrives(recovery in recoveries(), cc in prop::sample::select(vec!["reno", "cubic", "dctcp", "bbr"]),
                          size in 1u64..400_000, loss in 0u32..120, back in 0u32..120, seed in any::<u64>(),
                          queue in 4u32..60, delayed_ack in 1u32..4, tso in 1u32..9, pacing in any::<bool>()) {
        let lossy = |permille, seed| link::Config { loss: Loss::permille(permille), seed, ..wire(20, 10) };
        let out = link::Config { queue: link::QueueLimit::Packets(queue), ..lossy(loss, seed) };
        let mut rig = Rig::new(out, lossy(back, seed ^ 1));
        let config = TcpConfig { recovery, delayed_ack, tso_segments: tso, pacing, ..tcp(cc) };
        rig.flow(config, AT(0), bytes(size));
        rig.world.run_until(Time::from_secs(3600));
        let (s, r) = (rig.sender(0), rig.receiver(0));
        if s.failure.is_none() {
            prop_assert_eq!((r.received, s.acked), (size, size));
            prop_assert_eq!(r.bins.iter().map(|&b| u64::from(b)).sum::<u64>(), size);
            prop_assert!(r.received_all.is_some() && s.closed.is_some());
        }
        rig.check_conservation();
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let mut rig = Rig::new(link::Config { loss: Loss::permille(10), ..wire(20, 10) }, wire(20, 10));
        for n in 0..5 {
            rig.flow(
                tcp(["reno", "cubic", "bbr"][n as usize % 3]),
                AT(n * 3),
                Source { bytes: None, until: AT(4_000), rate: None, bursts: None },
            );
        }
        rig.world.run_until(Time::from_secs(5));
        (0..5).map(|n| (rig.sender(n), rig.receiver(n))).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[test]
fn a_lost_retransmission_waits_for_the_time_out_and_no_longer() {
    // RFC 6675 cannot detect that a retransmission was lost. RFC 6298 §5.3 restarts the timer only for newly
    // acknowledged data, so SACKs of later data must not postpone it. A window of hundreds of segments keeps
    // the SACKs coming.
    let config = TcpConfig { recovery: Recovery::Sack, min_rto: MinRto::Total(MS(1000)), ..tcp("reno") };
    let lossy = link::Config { loss: Loss::permille(20), seed: 7, ..wire(8, 25) };
    let mut rig = Rig::new(lossy, wire(8, 25));
    rig.flow(config, AT(0), Source { bytes: None, until: Time::MAX, rate: None, bursts: None });
    rig.world.run_until(Time::from_secs(200));
    assert!(rig.sender(0).rtos > 0);
    // Between two consecutive time-outs a second or two may pass, and four with bad luck.
    let bins = rig.receiver(0).bins;
    let silent = bins.split(|&b| b > 0).map(<[u32]>::len).max();
    assert!(silent < Some(500), "{silent:?} bins of 10 ms");
}

#[test]
fn a_probe_for_a_single_segment_allows_for_its_delayed_ack() {
    // RFC 8985 §7.2: the probe is due after 2 SRTT, plus 200 ms with one segment in flight, but not later
    // than the time-out. The time-out is SRTT + 200 ms here, because the variance is below its minimum. The
    // segment with the FIN is one segment.
    let lossy = link::Config { loss: Loss::every(13).unwrap(), ..wire(100, 10) };
    let mut rig = Rig::new(lossy, wire(100, 10));
    // Frame 13 on the way out is the last: SYN, ACK and eleven segments, of which the last has the FIN.
    rig.flow(TcpConfig { delayed_ack: 1, ..tcp("reno") }, AT(0), bytes(11 * 1448));
    rig.world.run_until(Time::from_secs(5));
    let (s, r) = (rig.sender(0), rig.receiver(0));
    assert_eq!((s.retransmits, s.rtos), (1, 0));
    // The connection opens after 20 ms, and ten segments are acknowledged after 40. Then 220 ms and half a
    // round trip follow.
    let done = r.received_all.unwrap().as_nanos() / 1_000_000;
    assert!((268..=274).contains(&done), "{done} ms");
}
