//! Every preset keeps its rate whatever is claimed.

use weir_conformance::{subjects, CASES};

#[test]
fn every_preset_keeps_its_rate() {
    let mut failed = Vec::new();
    for case in CASES.iter().filter(|c| c.rule.starts_with("a rate holds")) {
        for subject in subjects() {
            if let Err(why) = subject.judge(case) {
                failed.push(format!("{} {}: {why}", case.name, subject.name));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
