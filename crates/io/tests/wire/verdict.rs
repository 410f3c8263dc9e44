//! The verdict on the tests, each of which has a second chance. What fails while a hypervisor gives the
//! processors to others says nothing.

use std::fmt;
use std::io::Write;
use std::panic::catch_unwind;
use std::time::Instant;
use weir_io::sys::ticks::Ticks;

/// Failures on a machine that had time, after which a test has failed.
const FAILURES: usize = 2;
/// Runs that the machine had no time for, after which a test has failed.
const INCONCLUSIVE: usize = 3;

/// Outcomes of all tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Tests of which a run was right.
    pub passed: usize,
    /// Tests that failed in their first run, and so had another.
    pub again: Vec<&'static str>,
    /// Tests that failed [`FAILURES`] times.
    pub failed: Vec<&'static str>,
    /// Tests of which [`INCONCLUSIVE`] runs could not be judged; they count as failed, too.
    pub unjudged: Vec<&'static str>,
    /// Runs of all tests that could not be judged.
    pub inconclusive: usize,
}

/// Outcome of one run of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    Passed,
    Failed,
    /// Inconclusive: the machine was overloaded during this run.
    Starved,
}

impl Verdict {
    /// Runs tests one by one with `run`, and again while they fail and have not failed for good.
    pub fn of(
        tests: impl Iterator<Item = (&'static str, fn())>,
        mut run: impl FnMut(&str, fn()) -> Run,
    ) -> Verdict {
        let mut verdict = Verdict::default();
        for (name, test) in tests {
            verdict.judge(name, || run(name, test));
        }
        verdict
    }

    fn judge(&mut self, name: &'static str, mut run: impl FnMut() -> Run) {
        let (mut failures, mut starved) = (0, 0);
        while failures < FAILURES && starved < INCONCLUSIVE {
            match run() {
                Run::Passed => {
                    self.passed += 1;
                    return;
                }
                Run::Failed => failures += 1,
                Run::Starved => {
                    starved += 1;
                    self.inconclusive += 1;
                }
            }
            if failures + starved == 1 {
                self.again.push(name);
            }
        }
        match failures == FAILURES {
            true => self.failed.push(name),
            false => self.unjudged.push(name),
        }
    }

    /// Adds a line for each run that could not be judged to the file that `INCONCLUSIVE` names, if it does.
    pub fn count_inconclusive(&self) {
        let Some(path) = std::env::var_os("INCONCLUSIVE") else { return };
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let lines = "a test on the wire\n".repeat(self.inconclusive);
        file.and_then(|mut f| f.write_all(lines.as_bytes())).expect("the file that INCONCLUSIVE names");
    }

    /// Returns whether no test failed, and each was judged.
    pub fn is_good(&self) -> bool {
        self.failed.is_empty() && self.unjudged.is_empty()
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
        let Verdict { passed, again, failed, unjudged, inconclusive } = self;
        let [failures, second] = [failed.len() + unjudged.len(), again.len()];
        writeln!(
            f,
            "{passed} passed, {failures} failed, {second} ran again, {inconclusive} runs inconclusive"
        )?;
        for name in again {
            writeln!(f, "RAN AGAIN: {name}")?;
        }
        for name in failed {
            writeln!(f, "FAILED TWICE: {name}")?;
        }
        for name in unjudged {
            writeln!(f, "INCONCLUSIVE THREE TIMES: {name}: the machine was overloaded")?;
        }
        Ok(())
    }
}

/// The one test of this file: which tests run again, and what counts as what.
pub const ALL: &[(&str, fn())] =
    &[("a_test_that_fails_runs_again_until_it_is_judged", a_test_that_fails_runs_again_until_it_is_judged)];

fn a_test_that_fails_runs_again_until_it_is_judged() {
    let mut runs = Vec::new();
    let tests = ["good", "late", "bad", "mixed", "starved"].map(|name| (name, (|| ()) as fn()));
    let verdict = Verdict::of(tests.into_iter(), |name, _| {
        runs.push(name.to_string());
        let nth = runs.iter().filter(|n| *n == name).count();
        match (name, nth) {
            ("good", _) | ("late", 2) => Run::Passed,
            ("starved", _) | ("mixed", 2) => Run::Starved,
            _ => Run::Failed,
        }
    });
    let each = |name| runs.iter().filter(|n| *n == name).count();
    assert_eq!(["good", "late", "bad", "mixed", "starved"].map(each), [1, 2, 2, 3, 3]);
    let again = vec!["late", "bad", "mixed", "starved"];
    let (failed, unjudged) = (vec!["bad", "mixed"], vec!["starved"]);
    assert!(!verdict.is_good());
    assert_eq!(verdict, Verdict { passed: 2, again, failed, unjudged, inconclusive: 4 });
}
