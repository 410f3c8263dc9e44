//! Random experiments in virtual time, held to [laws](laws). `RANDOM_EXPERIMENTS=100000` sets their number,
//! and `RANDOM_FROM=N` that of the first:
//!
//! ```text
//! RANDOM_EXPERIMENTS=100000 cargo test --release -p weir --no-default-features --test random -- --nocapture
//! ```

mod edges;
mod generator;
mod laws;
mod manuals;

use generator::{experiment, Draws};
use laws::Outcome;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
use weir_core::rng::Rng;

/// Experiments of an ordinary test.
const FEW: u64 = 200;

/// The experiment of this number.
fn text(number: u64) -> String {
    let mut rng = Rng::new(number);
    let bytes: Vec<u8> = (0..100).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
    experiment(&mut Draws(&bytes))
}

/// Runs an experiment under its laws; a panic breaks one.
fn judge(text: &str) -> Result<Outcome, String> {
    catch_unwind(AssertUnwindSafe(|| laws::hold(text))).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        Err(format!("panic: {}", said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("")))
    })
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |n| n.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// The experiment of this number, with one of its quantities at an edge.
fn at_an_edge(number: u64) -> String {
    let (text, mut rng) = (text(number), Rng::new(!number));
    let all = edges::quantities(&text);
    let mut draw = |most: usize| rng.below(most as u64) as usize;
    let quantity = &all[draw(all.len())];
    edges::replaced(&text, quantity, draw(edges::EACH))
}

#[test]
fn random_experiments_obey_the_laws() {
    let (ran, count) = all_hold(text);
    assert!(count < FEW || ran * 2 > count, "too few of them are experiments that run");
}

/// Most are refused. What is accepted holds whatever its numbers are.
#[test]
fn experiments_with_a_quantity_at_an_edge_obey_the_laws() {
    let (ran, count) = all_hold(at_an_edge);
    assert!(count < FEW || ran * 10 > count, "too few of them are experiments that run");
}

/// Holds the experiments that `text` makes to the laws. Returns how many ran, and of how many.
fn all_hold(text: fn(u64) -> String) -> (u64, u64) {
    let (first, count) = (number("RANDOM_FROM", 0), number("RANDOM_EXPERIMENTS", FEW));
    let next = AtomicU64::new(first);
    let [ran, skipped, refused] = [0; 3].map(AtomicU64::new);
    let broken = Mutex::new(Vec::new());
    let work = || loop {
        let n = next.fetch_add(1, Ordering::Relaxed);
        if n >= first + count {
            return;
        }
        match judge(&text(n)) {
            Ok(Outcome::Ran) => ran.fetch_add(1, Ordering::Relaxed),
            Ok(Outcome::Skipped) => skipped.fetch_add(1, Ordering::Relaxed),
            Ok(Outcome::Refused(why)) => {
                assert!(!why.is_empty(), "experiment {n} is refused without a word");
                if count == 1 {
                    println!("{why}");
                }
                refused.fetch_add(1, Ordering::Relaxed)
            }
            Err(why) => {
                broken.lock().unwrap().push((n, why));
                continue;
            }
        };
    };
    std::thread::scope(|scope| {
        (0..std::thread::available_parallelism().map_or(1, usize::from))
            .for_each(|_| drop(scope.spawn(work)));
    });
    let [ran, skipped, refused] = [ran, skipped, refused].map(AtomicU64::into_inner);
    println!("{count} experiments: {ran} ran, {refused} refused, {skipped} skipped");
    let mut broken = broken.into_inner().unwrap();
    broken.sort();
    let shown: Vec<String> =
        broken.iter().take(3).map(|(n, why)| format!("experiment {n}: {why}\n{}", text(*n))).collect();
    let numbers: Vec<u64> = broken.iter().map(|(n, _)| *n).collect();
    assert!(broken.is_empty(), "{} of {count} break a law {numbers:?}\n{}", broken.len(), shown.join("\n\n"));
    (ran, count)
}
