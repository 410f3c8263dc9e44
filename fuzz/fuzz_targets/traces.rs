//! Traces of rates, delivery opportunities and losses: what is wrong is said with its line, what is accepted
//! is described.
//!
//! Input: a trace. `cargo +nightly fuzz run traces`
#![no_main]

use libfuzzer_sys::{fuzz_target, Corpus};
use std::path::PathBuf;
use weir::experiment::config::{wan, Source};

/// Keys that name a trace.
const KEYS: [&str; 4] = ["rate_trace", "delivery_trace", "loss_trace", "loss_frames"];

fuzz_target!(|data: &[u8]| -> Corpus {
    let path: PathBuf = std::env::temp_dir().join(format!("weir-fuzz-trace-{}", std::process::id()));
    std::fs::write(&path, data).expect("a place for the trace");
    let mut accepted = false;
    for key in KEYS {
        let text = format!("[ports]\nlan = \"a\"\nwan = \"b\"\n[path.wan.out]\n{key} = {path:?}\n");
        match wan::parse(&Source::new("fuzz.toml", text)) {
            Ok(_) => accepted = true,
            Err(errors) => assert!(!errors.to_string().is_empty()),
        }
    }
    if accepted {
        Corpus::Keep
    } else {
        Corpus::Reject
    }
});
