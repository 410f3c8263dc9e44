//! The verdict on the tests, each of which has a second chance.

use std::fmt;
use std::panic::catch_unwind;
use std::time::Instant;

/// How tests went.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Tests that were right, in their first run or their second.
    pub passed: usize,
    /// Tests that failed in their first run, and so had a second one.
    pub again: Vec<&'static str>,
    /// Those that failed twice.
    pub failed: Vec<&'static str>,
}

impl Verdict {
    /// Runs tests one by one with `succeeds`, one that fails once more.
    pub fn of(
        tests: impl Iterator<Item = (&'static str, fn())>,
        mut succeeds: impl FnMut(&str, fn()) -> bool,
    ) -> Verdict {
        let mut verdict = Verdict::default();
        for (name, test) in tests {
            match succeeds(name, test) || {
                verdict.again.push(name);
                succeeds(name, test)
            } {
                true => verdict.passed += 1,
                false => verdict.failed.push(name),
            }
        }
        verdict
    }
}

/// Runs a test. A namespace that it leaves behind when it fails is removed by `Drop`.
pub fn succeeds(name: &str, test: fn()) -> bool {
    let started = Instant::now();
    let passed = catch_unwind(test).is_ok();
    let word = if passed { "ok" } else { "FAILED" };
    println!("test {name} ... {word} ({:.1} s)", started.elapsed().as_secs_f64());
    passed
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { passed, again, failed } = self;
        writeln!(f, "{passed} passed, {} failed, {} had a second run", failed.len(), again.len())?;
        for name in again {
            writeln!(f, "NEEDED A SECOND RUN: {name}")?;
        }
        for name in failed {
            writeln!(f, "FAILED TWICE: {name}")?;
        }
        Ok(())
    }
}

/// The one test of this file: who has a second run, and who is counted as what.
pub const ALL: &[(&str, fn())] =
    &[("a_test_that_fails_has_one_more_run", a_test_that_fails_has_one_more_run)];

fn a_test_that_fails_has_one_more_run() {
    let mut runs = Vec::new();
    let tests = ["good", "late", "bad"].map(|name| (name, (|| ()) as fn()));
    let verdict = Verdict::of(tests.into_iter(), |name, _| {
        runs.push(name.to_string());
        name == "good" || name == "late" && runs.len() == 3
    });
    assert_eq!(runs, ["good", "late", "late", "bad", "bad"]);
    assert_eq!(verdict, Verdict { passed: 2, again: vec!["late", "bad"], failed: vec!["bad"] });
    let said = "2 passed, 1 failed, 2 had a second run\nNEEDED A SECOND RUN: late\nNEEDED A SECOND RUN: bad\nFAILED TWICE: bad\n";
    assert_eq!(verdict.to_string(), said);
}
