//! SYNs that a budget leaves out, and their answers.

use super::rig::{options, v4, Record, Rig, PASS};
use crate::bpf::abi::Budget;
use crate::bpf::{AcksOptions, Fate, Hook};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::Flags;

/// More than the budget has, and fewer than are kept.
const FLOOD: u16 = 2_000;

fn few() -> AcksOptions {
    AcksOptions { syns: Budget::new(1, 1), ..options() }
}

/// A SYN from A, and its answer.
fn syn(port: u16) -> SegmentBuilder {
    v4().ports(port, 80).seq(70 + u32::from(port)).flags(Flags::SYN).mss(1_400).window_scale(9)
}
fn answer(port: u16) -> SegmentBuilder {
    let answer = SegmentBuilder::v4(super::rig::B, super::rig::A).ports(80, port).seq(5);
    answer.ack(71 + u32::from(port)).flags(Flags::SYN | Flags::ACK).mss(1_400).window_scale(7)
}

fn pass(rig: &Rig, hook: Hook, frame: &[u8]) {
    assert_eq!(rig.hook(hook, frame, 0).0, PASS);
}

fn heads(rig: &mut Rig) -> Vec<Vec<u8>> {
    let passed = |r: Record| {
        assert_eq!(r.fate, Fate::Passed);
        r.head
    };
    rig.records().into_iter().map(passed).collect()
}

#[test]
fn a_syn_beyond_the_budget_is_shown_with_its_answer() {
    let mut rig = Rig::new(few());
    for port in 0..FLOOD {
        pass(&rig, Hook::Egress, &syn(10_000 + port).build());
    }
    let shown = heads(&mut rig).len();
    assert!(shown < 10, "{shown} SYNs within the budget");
    for port in [10_000 + FLOOD - 1, 10_000 + FLOOD / 2] {
        pass(&rig, Hook::Ingress, &answer(port).build());
        assert_eq!(heads(&mut rig), [syn(port).build(), answer(port).build()]);
    }
}

#[test]
fn an_answer_to_something_else_recalls_nothing() {
    let mut rig = Rig::new(few());
    for port in 0..10 {
        pass(&rig, Hook::Egress, &syn(10_000 + port).build());
    }
    heads(&mut rig);
    for other in [answer(10_009).ack(71 + 10_009 + 1_461), answer(10_009).ack(70 + 10_009), answer(10_010)] {
        pass(&rig, Hook::Ingress, &other.build());
        assert_eq!(heads(&mut rig), [other.build()]);
    }
}
