//! Operations at random against the laws of [`weir_core::rig::trial`].
//! `TRIAL_OPERATIONS=100000000 cargo test --release -p weir-core --test gateway trial` takes as many as one
//! likes.

use crate::support::Random;
use weir_core::rig::trial::{Trial, OPERATION};

/// Operations of one connection.
const EACH: u64 = 2_000;

#[allow(clippy::disallowed_methods)] // how long a test runs is nothing of the core's
fn operations() -> u64 {
    std::env::var("TRIAL_OPERATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(40_000)
}

#[test]
fn whatever_is_said_the_laws_hold() {
    let mut passed = [0u64; 2];
    for seed in 0..operations().div_ceil(EACH) {
        let mut random = Random(seed);
        let mut trial = Trial::new(seed as u8);
        // Some connections have few kinds of operations, so that some of them come in a row.
        let kinds = random.next() as u16 | 1;
        for _ in 0..EACH {
            let mut op: [u8; OPERATION] = (random.next() as u32).to_le_bytes();
            while kinds >> (op[0] % 16) & 1 == 0 {
                op[0] = random.next() as u8;
            }
            trial.step(&op);
            passed[usize::from(trial.passes().is_some())] += 1;
        }
        trial.finish();
    }
    // Neither state is left out.
    assert!(passed.iter().all(|&n| n > operations() / 100), "{passed:?}");
}
