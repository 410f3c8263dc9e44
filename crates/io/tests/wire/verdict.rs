//! The verdict on the tests, each of which has a second chance. What fails while a hypervisor gives the processors to others says nothing.

use std::fmt;
use std::panic::catch_unwind;
use std::time::Instant;
use weir_io::sys::ticks::Ticks;

/// How tests went.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Tests that were right, in their first run or their second.
    pub passed: usize,
    /// Tests that failed in their first run, and so had a second one.
    pub again: Vec<&'static str>,
    /// Those that failed twice.
    pub failed: Vec<&'static str>,
    /// Those that failed twice, of which the machine had no time for one run at least.
    pub unjudged: Vec<&'static str>,
}

/// How one run of a test went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    Passed,
    Failed,
    /// It failed, and the machine had no time for it.
    Starved,
}

impl Verdict {
    /// Runs tests one by one with `run`, one that fails once more.
    pub fn of(
        tests: impl Iterator<Item = (&'static str, fn())>,
        mut run: impl FnMut(&str, fn()) -> Run,
    ) -> Verdict {
        let mut verdict = Verdict::default();
        for (name, test) in tests {
            let first = run(name, test);
            if first == Run::Passed {
                verdict.passed += 1;
                continue;
            }
            verdict.again.push(name);
            match (first, run(name, test)) {
                (_, Run::Passed) => verdict.passed += 1,
                (Run::Failed, Run::Failed) => verdict.failed.push(name),
                _ => verdict.unjudged.push(name),
            }
        }
        verdict
    }
}

/// Runs a test. A namespace that it leaves behind when it fails is removed by `Drop`.
pub fn run(name: &str, test: fn()) -> Run {
    let (started, before) = (Instant::now(), Ticks::now());
    let passed = catch_unwind(test).is_ok();
    let stolen = Ticks::now().since(before).stolen_percent();
    let (word, run) = match (passed, stolen < STOLEN_PERCENT) {
        (true, _) => ("ok", Run::Passed),
        (false, true) => ("FAILED", Run::Failed),
        (false, false) => ("FAILED", Run::Starved),
    };
    println!(
        "test {name} ... {word} ({:.1} s, {stolen:.0} % of the processors stolen)",
        started.elapsed().as_secs_f64()
    );
    run
}

/// More of the processors' time than this must not go to others.
const STOLEN_PERCENT: f64 = 5.0;

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { passed, again, failed, unjudged } = self;
        let [failures, second, open] = [failed, again, unjudged].map(Vec::len);
        writeln!(f, "{passed} passed, {failures} failed, {open} not judged, {second} had a second run")?;
        for name in again {
            writeln!(f, "NEEDED A SECOND RUN: {name}")?;
        }
        for name in failed {
            writeln!(f, "FAILED TWICE: {name}")?;
        }
        for name in unjudged {
            writeln!(f, "NOT JUDGED: {name}: the machine had no time")?;
        }
        Ok(())
    }
}

/// The one test of this file: who has a second run, and who is counted as what.
pub const ALL: &[(&str, fn())] =
    &[("a_test_that_fails_has_one_more_run", a_test_that_fails_has_one_more_run)];

fn a_test_that_fails_has_one_more_run() {
    let mut runs = Vec::new();
    let tests = ["good", "late", "bad", "starved"].map(|name| (name, (|| ()) as fn()));
    let verdict = Verdict::of(tests.into_iter(), |name, _| {
        runs.push(name.to_string());
        match name {
            "good" => Run::Passed,
            "late" if runs.len() == 3 => Run::Passed,
            "starved" if runs.len() == 6 => Run::Starved,
            _ => Run::Failed,
        }
    });
    assert_eq!(runs, ["good", "late", "late", "bad", "bad", "starved", "starved"]);
    let again = vec!["late", "bad", "starved"];
    assert_eq!(verdict, Verdict { passed: 2, again, failed: vec!["bad"], unjudged: vec!["starved"] });
    let said = "2 passed, 1 failed, 1 not judged, 3 had a second run\nNEEDED A SECOND RUN: late\nNEEDED A SECOND RUN: bad\n\
                NEEDED A SECOND RUN: starved\nFAILED TWICE: bad\nNOT JUDGED: starved: the machine had no time\n";
    assert_eq!(verdict.to_string(), said);
}
