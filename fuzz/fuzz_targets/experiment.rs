//! Random experiments of a few links and flows, run for a simulated second, and held to the laws of
//! `crates/weir/tests/random`.
//!
//! Input: a byte for each choice of the generator. `cargo +nightly fuzz run experiment`
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/weir/tests/random/generator.rs"]
mod generator;
#[path = "../../crates/weir/tests/random/laws.rs"]
mod laws;

fuzz_target!(|data: &[u8]| {
    let text = generator::experiment(&mut generator::Draws(data));
    if let Err(why) = laws::hold(&text) {
        panic!("{why}\n{text}");
    }
});
