//! Result files: what is wrong is said, what is accepted is read back as what it was, and comparing it with
//! itself or showing it never panics.
//!
//! Input: a result file. `make fuzz` begins with one that it makes. `cargo +nightly fuzz run results`
#![no_main]

use libfuzzer_sys::{fuzz_target, Corpus};
use weir::report::compare::{compare, Bounds, ResultFile};
use weir::result::Document;

fuzz_target!(|data: &[u8]| -> Corpus {
    let Ok(text) = core::str::from_utf8(data) else { return Corpus::Reject };
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(why) => {
            assert!(!why.is_empty());
            return Corpus::Reject;
        }
    };
    let runs = document.runs();
    for run in &runs {
        let written = serde_json::to_string(run).expect("a result can be written");
        let again = Document::parse(&written).expect("and read").runs();
        assert_eq!(serde_json::to_string(&again[0]).unwrap(), written);
    }
    let file = |name: &str| ResultFile { name: name.into(), runs: runs.clone() };
    let bounds = Bounds { goodput: Some(0.05), fct: Some(0.1) };
    if let Err(why) = compare(&[file("a.json"), file("b.json")], bounds, true) {
        assert!(!why.is_empty());
    }
    Corpus::Keep
});
