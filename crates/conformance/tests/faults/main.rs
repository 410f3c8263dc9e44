//! Every case can fail: a node that breaks what the case is about does not pass it.

mod faults;
mod node;

use faults::{FAULTS, UNLIMITED};
use node::{Fault, Faulty};
use std::collections::BTreeSet;
use weir_conformance::{Form, Limit, Side, Subject, Traits, Wire, CASES};
use weir_core::gateway::LAN;
use weir_core::rate::Rate;

#[test]
fn a_cable_passes_every_case() {
    let wire = Subject::new("wire", vec![Form::wire()]);
    let failed: Vec<_> = CASES.iter().filter_map(|c| Some((c.name, wire.judge(c).err()?))).collect();
    assert_eq!(failed, []);
}

#[test]
fn every_case_fails_a_node_that_breaks_its_rule() {
    let mut passed = Vec::new();
    for case in &CASES {
        let form = match FAULTS.iter().find(|f| f.0 == case.name) {
            Some((_, fault)) => Form::new("", LAN, Traits::WIRE, move || Faulty::new(*fault)),
            None if UNLIMITED.contains(&case.name) => {
                let limit = Some(Limit::Acknowledged(Rate::mbit(2)));
                let limited = Traits { limit, bounded: true, ..Traits::WIRE };
                Form::new("", LAN, limited, Wire::default)
            }
            None => panic!("{}: no fault makes it fail", case.name),
        };
        match form.judge(case) {
            Err(why) => println!("{:28} {why}", case.name),
            Ok(()) => passed.push(case.name),
        }
    }
    assert_eq!(passed, [""; 0], "these pass in spite of their fault");
}

/// An ACK filter keeps these (RFC 3449 §5.2.1, RFC 5681 §3.2).
#[test]
fn a_filter_that_leaves_out_what_is_needed_fails() {
    let traits = Traits { filters: true, fifo: true, queues: Some(Side::Receiver), ..Traits::WIRE };
    let needed = [
        "three-duplicates",
        "sack",
        "dsack",
        "window-opens",
        "fin-of-sender-retransmitted",
        "accecn-counter",
    ];
    for name in needed {
        let case = CASES.iter().find(|c| c.name == name).unwrap();
        let (_, fault) = FAULTS.iter().find(|f| f.0 == name).unwrap();
        let form = Form::new("", LAN, traits, move || Faulty::new(*fault));
        assert!(form.judge(case).is_err(), "{name}");
    }
}

/// The older one of two ACKs with SACK blocks may go, if the newer one has its blocks.
#[test]
fn a_filter_may_leave_out_what_a_newer_ack_tells() {
    let case = CASES.iter().find(|c| c.name == "sack-amid-held").unwrap();
    let first: Fault = |m, g| {
        let sack = g.seg.as_ref().is_some_and(|s| !s.sack().is_empty());
        m.count += u32::from(sack);
        if sack && m.count == 1 {
            Vec::new()
        } else {
            vec![(0, g.bytes)]
        }
    };
    for filters in [false, true] {
        let traits = Traits { filters, fifo: true, ..Traits::WIRE };
        let form = Form::new("", LAN, traits, move || Faulty::new(first));
        assert_eq!(form.judge(case).is_ok(), filters);
    }
}

#[test]
fn cases_have_names_of_their_own() {
    let names: BTreeSet<&str> = CASES.iter().map(|c| c.name).collect();
    assert_eq!(names.len(), CASES.len());
    let faults: BTreeSet<&str> = FAULTS.iter().map(|f| f.0).collect();
    assert!(faults.is_subset(&names), "{:?}", faults.difference(&names));
}
