//! What a hook costs, by repeated test runs: the least of many, since other work only adds to it. Not a test:
//! `cargo test --release -p weir-io --lib -- --ignored --nocapture cost`.

use super::rig::*;
use crate::bpf::{AcksOptions, Change};
use weir_core::steer::slot_flag::SCALED;
use weir_core::wire::build::arp;
use weir_core::wire::Flags;

const REPEAT: u32 = 10_000;

#[test]
#[ignore = "prints figures"]
fn cost() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(AcksOptions { ring: 1 << 22, ..options() });
    rig.control(key4(0, 0), 0, SCALED);
    rig.control(key6(0, 0), 1, SCALED);
    let passing = crate::bpf::FlowKey::new((A.into(), 1), (B.into(), 80), 0, 0);
    rig.acks.apply(&[Change::Pass { key: passing }]).unwrap();
    let next = |s: weir_core::wire::build::Segment| s.seq(1000).ack(1000).window(100).ts(1000, 7);
    let data = |s| next(s).payload(1400);
    let frames = [
        ("not TCP", false, arp(A, B).to_vec()),
        ("of a flow that passes", false, data(v4().ports(1, 80)).build()),
        ("payload without news", false, data(v4()).build()),
        ("payload without news, IPv6", false, data(v6()).build()),
        ("payload without news, options not aligned", false, data(v4().raw_options(&[1])).build()),
        ("pure ACK, taken", false, next(v4()).build()),
        ("unknown payload, copied", false, data(v4().ports(2, 80)).build()),
        ("SYN, copied", false, v4().flags(Flags::SYN).mss(1460).build()),
        ("made ACK, stamped", true, next(v4()).build()),
        ("made ACK, stamped, IPv6", true, next(v6()).build()),
    ];
    for (what, own, frame) in frames {
        let least = (0..50).map(|_| {
            rig.records();
            rig.time(own, &frame, REPEAT)
        });
        println!("{:>6} ns  {what}", least.min().unwrap().as_nanos());
    }
}
