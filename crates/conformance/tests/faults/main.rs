//! Every case can fail: a node that breaks what the case is about does not pass it.

mod faults;
mod node;

use faults::FAULTS;
use node::Faulty;
use std::collections::BTreeSet;
use weir_conformance::{Form, Subject, Traits, CASES};
use weir_core::gateway::LAN;

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
        let Some((_, fault)) = FAULTS.iter().find(|f| f.0 == case.name) else {
            panic!("{}: no fault makes it fail", case.name);
        };
        let form = Form::new("", LAN, Traits::WIRE, move || Faulty::new(*fault));
        match form.judge(case) {
            Err(why) => println!("{:28} {why}", case.name),
            Ok(()) => passed.push(case.name),
        }
    }
    assert_eq!(passed, [""; 0], "these pass in spite of their fault");
}

#[test]
fn cases_have_names_of_their_own() {
    let names: BTreeSet<&str> = CASES.iter().map(|c| c.name).collect();
    assert_eq!(names.len(), CASES.len());
    let faults: BTreeSet<&str> = FAULTS.iter().map(|f| f.0).collect();
    assert!(faults.is_subset(&names), "{:?}", faults.difference(&names));
}
