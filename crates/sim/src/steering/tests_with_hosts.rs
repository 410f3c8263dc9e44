//! Hosts behind a gateway behind its hooks: rates in both directions of one connection, and after the
//! engine's absence.

use super::*;
use crate::cc;
use crate::host::{Endpoint, EndpointId, EndpointReport, Host, HostConfig, Source, WIRE};
use crate::tcp::TcpConfig;
use crate::world::{NodeId, World};
use std::net::SocketAddrV4;
use std::sync::Arc;
use weir_core::ack::AckControl;
use weir_core::gateway::{ClassConfig, Direction};
use weir_core::link::{self, Link, Loss};
use weir_core::rate::Rate;
use weir_core::time::Duration;

pub(super) const MS: fn(u64) -> Duration = Duration::from_millis;

/// A client on the LAN and a server on the WAN, `rtt` apart.
pub(super) struct Rig {
    pub(super) world: World,
    hosts: [NodeId; 2],
    pub(super) gateway: NodeId,
    ends: [EndpointId; 2],
}

fn shaped(mbit: u64) -> Option<AckControl> {
    (mbit > 0).then(|| AckControl::ack_shaper(Rate::mbit(mbit)))
}

impl Rig {
    /// Returns a rig in which the client sends at `out` Mb/s, and the server at `back` Mb/s if that is not 0.
    fn new(cc: &str, rtt: Duration, out: u64, back: u64) -> Rig {
        Rig::over(cc, rtt, [shaped(out), shaped(back)], Loss::None)
    }

    /// Returns a rig with this loss of data. The client sends if there is a policy for outgoing data, the
    /// server if there is one for incoming data.
    pub(super) fn over(cc: &str, rtt: Duration, policies: [Option<AckControl>; 2], loss: Loss) -> Rig {
        let mut world = World::new();
        let sends = policies.map(|policy| policy.is_some());
        let sides = [("out", Direction::Out), ("back", Direction::In)];
        let classes = sides.into_iter().zip(policies).filter_map(|((name, direction), policy)| {
            policy.map(|ack| ClassConfig::controlled(name, direction, ack))
        });
        let classes = classes.collect();
        let host = |mac, next_hop| {
            Host::new(HostConfig { mac: [mac; 6], next_hop: [next_hop; 6], seed: u64::from(mac) })
        };
        let hosts = [world.add(host(2, 4)), world.add(host(4, 2))];
        let gateway = world.add(Steered::new(Config { classes, ..Config::default() }));
        let delay = Duration::from_nanos(rtt.as_nanos() / 2);
        let fast = link::Config { rate: Some(Rate::mbit(1_000)), delay, ..link::Config::default() };
        let lossy = |sends| link::Config { loss: if sends { loss } else { Loss::None }, ..fast };
        let links = sends.map(|sends| world.add(Link::new(lossy(sends))));
        world.wire((hosts[0], WIRE), (gateway, LAN));
        world.wire((gateway, WAN), (links[0], Link::IN));
        world.wire((links[0], Link::OUT), (hosts[1], WIRE));
        world.wire((hosts[1], WIRE), (links[1], Link::IN));
        world.wire((links[1], Link::OUT), (gateway, WAN));
        world.wire((gateway, LAN), (hosts[0], WIRE));
        let (client, server) = ([10, 0, 0, 1], [10, 0, 1, 1]);
        let at = |a: [u8; 4], port| SocketAddrV4::new(a.into(), port);
        let end = |opens, local, remote, sends: bool| Endpoint {
            opens,
            local,
            remote,
            start: Time::ZERO,
            tcp: Arc::new(TcpConfig::new(cc::by_name(cc).unwrap())),
            source: sends.then_some(Source { bytes: None, until: Time::MAX, rate: None, bursts: None }),
            bin: MS(100),
            until: Time::MAX,
            trace: false,
        };
        let (client, server) = (at(client, 10_000), at(server, 5_001));
        let mut add = |i: usize, endpoint| world.get_mut::<Host>(hosts[i]).unwrap().add(endpoint);
        let ends =
            [add(0, end(true, client, server, sends[0])), add(1, end(false, server, client, sends[1]))];
        Rig { world, hosts, gateway, ends }
    }

    pub(super) fn gateway(&mut self) -> &mut Steered {
        self.world.get_mut::<Steered>(self.gateway).unwrap()
    }

    /// Runs the world, and returns the bytes that the server and the client have received.
    pub(super) fn run(&mut self, until_ms: u64) -> [u64; 2] {
        self.world.run_until(Time::from_millis(until_ms));
        [1, 0].map(|i| self.report(i).received)
    }

    /// Returns the report of the client, or of the server.
    pub(super) fn report(&self, i: usize) -> EndpointReport {
        self.world.get::<Host>(self.hosts[i]).unwrap().report(self.ends[i])
    }

    /// Returns the rates of arrival at the server and at the client, in thousandths of a Mb/s.
    pub(super) fn rates(&mut self, from_ms: u64, until_ms: u64) -> [u64; 2] {
        let (before, after) = (self.run(from_ms), self.run(until_ms));
        [0, 1].map(|i| (after[i] - before[i]) * 8 / (until_ms - from_ms))
    }
}

pub(super) fn within(rate: u64, setting_mbit: u64, per_mille: u64) -> bool {
    rate.abs_diff(setting_mbit * 1_000) <= setting_mbit * per_mille
}

#[test]
fn both_directions_of_one_connection_are_at_their_rates() {
    // BBR paces pairs of segments at its estimate of the rate, and does not always compensate its lower gain.
    // Linux falls 3 to 5 % short of 50 Mb/s in the lab.
    for (cc, per_mille) in [("reno", 10), ("cubic", 10), ("bbr", 40)] {
        let mut rig = Rig::new(cc, MS(20), 20, 50);
        // BBR measures its round trip after 10 s, sending almost nothing.
        let [out, back] = rig.rates(4_000, 9_000);
        assert!(within(out, 20, per_mille) && within(back, 50, per_mille), "{cc}: {out} and {back} kb/s");
        assert!(rig.gateway().stats().set_back > 1_000);
    }
}

#[test]
fn the_rate_is_held_from_a_second_after_the_engine_is_back() {
    for cc in ["cubic", "bbr"] {
        for rtt in [4, 100] {
            for killed in [false, true] {
                let mut rig = Rig::new(cc, MS(rtt), 10, 0);
                rig.run(4_000);
                if killed {
                    rig.gateway().kill();
                } else {
                    rig.gateway().hang();
                }
                rig.run(4_100);
                rig.gateway().come_back();
                for second in 0..4 {
                    let from = 5_100 + 1_000 * second;
                    let [rate, _] = rig.rates(from, from + 1_000);
                    assert!(
                        within(rate, 10, 20),
                        "{cc} {rtt} ms, killed {killed}, second {second}: {rate} kb/s"
                    );
                }
            }
        }
    }
}
