//! What a segment costs in a hook to which nothing has to be done: `cargo test --release -p weir-io --lib cost -- --ignored --nocapture`.

use super::rig::*;
use super::rows::{next, IN, OUT};
use crate::bpf::{named, Acks, AcksOptions, Hook};
use libbpf_rs::ProgramInput;
use weir_core::gateway::Verdict;
use weir_core::steer::slot_flag::SCALED;

const REPEAT: u32 = 1_000_000;
const TURNS: usize = 9;

/// Nanoseconds that a hook takes for the same frame again and again: the least of some turns.
fn cost(acks: &Acks, hook: Hook, frame: &[u8]) -> u128 {
    let name = if hook == IN { "acks_ingress" } else { "acks_egress" };
    let once = |_| {
        let input = ProgramInput { data_in: Some(frame), repeat: REPEAT, ..ProgramInput::default() };
        let output = named(acks.object(), name).test_run(input).unwrap();
        assert_eq!(output.return_value, PASS);
        output.duration.as_nanos()
    };
    (0..TURNS).map(once).min().unwrap()
}

#[test]
#[ignore = "a measurement"]
fn of_segments_that_pass() {
    if !privileged() {
        return;
    }
    let rig = Rig::new(AcksOptions { flows: 4096, shape_out: false, ..options() });
    rig.control(key4(0, 0), 0, SCALED);
    rig.control(key6(0, 0), 1, SCALED);
    for (segment, name) in [(v4(), "IPv4"), (v6(), "IPv6")] {
        let other = segment.clone().ports(5002, 80);
        let ports = if name == "IPv4" { (A.into(), B.into()) } else { (A6.into(), B6.into()) };
        let key = flow_key((ports.0, 5002), (ports.1, 80), 0, 0);
        rig.acks.apply(&[Verdict::Pass { ack_key: key }]).unwrap();
        let rows = [
            ("payload, unconfigured direction's hook", OUT, next(segment.clone()).payload(1400)),
            ("pure ACK, unconfigured direction's hook", OUT, next(segment.clone())),
            ("payload of a flow that passes", IN, next(other.clone()).payload(1400)),
            ("pure ACK of a flow that passes", IN, next(other)),
            ("payload of a controlled flow", IN, next(segment).payload(1400)),
        ];
        for (what, hook, segment) in rows {
            println!("{name}: {what:<42} {:>4} ns", cost(&rig.acks, hook, &segment.build()));
        }
    }
    println!("{:<48} {:>4} ns", "not IP", cost(&rig.acks, OUT, &weir_core::wire::build::arp(A, B)));
}
