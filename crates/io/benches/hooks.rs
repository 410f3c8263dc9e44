//! Nanoseconds that the hooks of `acks` steering take for a segment to which nothing has to be done, as root.
//! The headers are in the cache.

#![allow(missing_docs)] // of functions that criterion's macros make

use criterion::{criterion_group, criterion_main, Criterion};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weir_core::flow::Key;
use weir_core::gateway::Verdict;
use weir_core::steer::slot_flag::SCALED;
use weir_core::time::Duration;
use weir_core::wire::build::{arp, SegmentBuilder};
use weir_core::wire::TCP;
use weir_io::bpf::{Acks, AcksOptions, Hook};
use weir_io::sys::clock;

const SRC: (Ipv4Addr, Ipv6Addr) = (Ipv4Addr::new(8, 0, 0, 1), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
const DST: (Ipv4Addr, Ipv6Addr) = (Ipv4Addr::new(10, 0, 0, 2), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));
/// Source ports of a flow that is controlled, and of one that passes; the other port is 80.
const CONTROLLED: u16 = 5001;
const PASSES: u16 = 5002;

/// The next segment of a flow: everything of it is at 1000 so far.
fn segment(v6: bool, port: u16) -> SegmentBuilder {
    let to = if v6 { SegmentBuilder::v6(SRC.1, DST.1) } else { SegmentBuilder::v4(SRC.0, DST.0) };
    to.ports(port, 80).seq(1000).ack(1000).window(100).ts(1000, 7)
}

fn key(v6: bool, port: u16) -> Key {
    let of = |(four, six): (Ipv4Addr, Ipv6Addr)| if v6 { IpAddr::from(six) } else { IpAddr::from(four) };
    Key::new(TCP, (of(SRC), port).into(), (of(DST), 80).into())
}

/// Hooks that control the ACKs that come in, and know both flows. Their engine has beaten, and will have for
/// an hour.
fn hooks() -> Acks {
    let acks = Acks::load(&AcksOptions { shape_out: false, ..AcksOptions::new(4096) })
        .expect("programs load, as root");
    acks.hooks_of(0).beat(clock::now() + Duration::from_secs(3600));
    for (v6, slot) in [(false, 0), (true, 1)] {
        let tag = slot + 1;
        acks.slots()[slot as usize].open(
            tag,
            SCALED,
            1000,
            1000,
            1000,
            1400,
            1400,
            100,
            weir_core::steer::ticks(clock::now()),
        );
        let verdicts = [
            Verdict::Shape { ack_key: key(v6, CONTROLLED), slot, tag },
            Verdict::Pass { ack_key: key(v6, PASSES) },
        ];
        acks.apply(&verdicts).expect("verdicts");
    }
    acks
}

fn costs(c: &mut Criterion) {
    let acks = hooks();
    let mut of = |what: &str, hook, frame: Vec<u8>| {
        c.bench_function(what, |b| {
            b.iter_custom(|times| {
                let times = times.min(u64::from(u32::MAX));
                let each = acks.time(hook, &frame, times as u32).expect("a test run");
                std::time::Duration::from_nanos(each.as_nanos() * times)
            })
        });
    };
    let (out, inward) = (Hook::Egress, Hook::Ingress);
    for (v6, ip) in [(false, "IPv4"), (true, "IPv6")] {
        let (controlled, passes) = (segment(v6, CONTROLLED), segment(v6, PASSES));
        let payload = |segment: &SegmentBuilder| segment.clone().payload(1400).build();
        of(&format!("{ip}, payload in a direction that is not configured"), out, payload(&controlled));
        of(&format!("{ip}, pure ACK in a direction that is not configured"), out, controlled.clone().build());
        of(&format!("{ip}, payload of a flow that passes"), inward, payload(&passes));
        of(&format!("{ip}, pure ACK of a flow that passes"), inward, passes.build());
        of(&format!("{ip}, payload of a controlled flow"), inward, payload(&controlled));
    }
    of("not IP", out, arp(SRC.0, DST.0));
}

criterion_group!(benches, costs);
criterion_main!(benches);
