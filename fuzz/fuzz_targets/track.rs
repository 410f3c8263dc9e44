//! Belief in segments: the operations of `weir_core::rig::trial`, against its laws.
//!
//! Input: the form of the trial, then operations of 4 bytes. `cargo +nightly fuzz run track`;
//! `TRIAL_OPERATIONS=100000000 cargo test --release -p weir-core --test gateway trial` without a fuzzer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_core::rig::trial::{Trial, OPERATION};

fuzz_target!(|data: &[u8]| {
    let Some((&form, data)) = data.split_first() else { return };
    let mut trial = Trial::new(form);
    let (operations, _) = data.as_chunks::<OPERATION>();
    operations.iter().take(512).for_each(|op| trial.step(op));
    trial.finish();
});
