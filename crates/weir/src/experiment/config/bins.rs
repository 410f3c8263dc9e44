//! Times at which received bytes are counted, and the resulting bins.

use super::diag::Fault;
use super::reader::{Positive, Section};
use crate::experiment::plan::{Plan, MOST_BINS, MOST_INTERVALS};
use crate::result::Backend;
use weir_core::time::Duration;

/// Longest bin by default.
const LONGEST: Duration = Duration::from_millis(10);
/// Longest bin that a file may ask for.
const LONGEST_EVER: Duration = Duration::from_secs(1);
/// Most bins of an experiment.
const MOST: u64 = 10_000_000;

/// Reads a time that bins must divide: whole microseconds, and in the lab whole milliseconds.
pub(super) fn time(s: &Section, key: &'static str) -> Option<Duration> {
    let d = s.parsed(key, whole)?;
    noted(s, key, d)
}

/// Reads a time above zero that bins must divide.
pub(super) fn positive_time(s: &Section, key: &'static str) -> Option<Duration> {
    let d = s.parsed(key, |Positive(d): Positive| whole(d))?;
    noted(s, key, d)
}

fn whole(d: Duration) -> Result<Duration, Fault> {
    if d.as_nanos() % 1_000 == 0 {
        Ok(d)
    } else {
        Err(Fault::bare(format!("{d} is not a whole number of microseconds")))
    }
}

fn noted(s: &Section, key: &'static str, d: Duration) -> Option<Duration> {
    s.note_time(key, d);
    if d.as_nanos() % 1_000_000 != 0 {
        let message = format!("{d} is not a whole number of milliseconds, which the lab world needs");
        s.note_value(Backend::Sim, key, Fault::new(message, "the sim world takes whole microseconds"));
    }
    Some(d)
}

/// Reads `bin`, the greatest length of bins, in whole milliseconds.
pub(super) fn longest_bin(s: &Section) -> Duration {
    let bin = s.parsed("bin", |Positive(d): Positive| match d {
        d if d > LONGEST_EVER => Err(Fault::bare(format!("{d} is longer than {LONGEST_EVER}"))),
        d if d.as_nanos() % 1_000_000 != 0 => {
            Err(Fault::bare(format!("{d} is not a whole number of milliseconds")))
        }
        d => Ok(d),
    });
    bin.unwrap_or(LONGEST)
}

/// Refuses a `sample` of which a series would have more rows than there may be bins.
pub(super) fn not_too_many_rows(s: &Section, sample: Duration, duration: Duration) {
    let rows = duration.as_nanos() / sample.as_nanos();
    if rows > MOST {
        let help = format!("a series has at most {MOST}: choose a longer `sample`, or a shorter `duration`");
        s.fault(
            "sample",
            Fault::new(format!("a `sample` each {sample} makes {rows} rows in {duration}"), help),
        );
    }
}

/// Returns the longest bin of at most `most` that divides every time noted in the file, and `interval`. All
/// times are whole microseconds, so a bin of 1 us always fits. Too many bins are a fault of the time that
/// causes them.
pub(super) fn bin(s: &Section, duration: Duration, interval: Duration, most: Duration) -> Duration {
    let default = if s.has("interval") { Duration::ZERO } else { interval };
    let mut common = gcd(duration.as_micros(), default.as_micros());
    let mut refused = false;
    // The duration comes first, because the others are judged beside it.
    let mut times = s.times();
    times.sort_by_key(|(span, d)| (*d != duration, span.start));
    for (span, d) in times {
        common = gcd(common, d.as_micros());
        let bin = longest(common, most);
        let bins = duration.as_nanos() / bin.as_nanos();
        if bins > MOST && !refused {
            refused = true;
            let message = format!("{d} makes bins of {bin}: {bins} of them in {duration}");
            let help = format!(
                "received bytes are recorded in at most {MOST} bins that divide every time at which they are measured: choose a coarser time, or a shorter `duration`"
            );
            s.fault_at(span, Fault::new(message, help));
        }
    }
    longest(common, most)
}

/// Refuses a plan whose flows have too many intervals or bins in all, as far as the plan tells. The place is
/// that of `interval`, of `bin`, or of the shortest time that makes bins shorter than `most`.
pub(super) fn not_too_many_in_all(s: &Section, plan: &Plan, most: Duration) {
    let intervals = plan.stretches(plan.interval);
    if intervals > MOST_INTERVALS {
        let message =
            format!("{} makes {intervals} intervals, of all flows in {}", plan.interval, plan.duration);
        let help = format!("a result has at most {MOST_INTERVALS}: choose a longer `interval`");
        let key = if s.has("interval") { "interval" } else { "duration" };
        return s.fault(key, Fault::new(message, help));
    }
    let bins = plan.stretches(plan.bin);
    if bins > MOST_BINS {
        let finer = |(_, d): &(_, Duration)| d.as_micros() % most.as_micros().max(1) != 0;
        let finest = s.times().into_iter().filter(finer).min_by_key(|(span, d)| (*d, span.start));
        let message = format!("bins of {}: {bins} of them, of all flows in {}", plan.bin, plan.duration);
        let help = format!(
            "received bytes are recorded in at most {MOST_BINS} bins, which divide every time at which they are measured: choose a longer `bin`, or a coarser time"
        );
        let fault = Fault::new(message, help);
        match finest {
            Some((span, _)) => s.fault_at(span, fault),
            None => s.fault(if s.has("bin") { "bin" } else { "duration" }, fault),
        }
    }
}

/// Returns the longest bin of at most `most` that divides this many microseconds. It is whole milliseconds if
/// these are.
fn longest(micros: u64, most: Duration) -> Duration {
    let step = if micros % 1000 == 0 { 1000 } else { 1 };
    let bin = (1..=most.as_micros() / step).rev().map(|n| n * step).find(|n| micros % n == 0);
    Duration::from_micros(bin.unwrap_or(1))
}

/// Gives a plan and its baselines the same bins, so that a check may compare them: the longest that divide
/// all of theirs.
pub(super) fn shared(plan: &mut Plan) {
    let own = plan.bin.as_micros();
    let micros = plan.baselines.iter().fold(own, |common, b| gcd(common, b.plan.bin.as_micros()));
    let bin = Duration::from_micros(micros);
    plan.bin = bin;
    plan.baselines.iter_mut().for_each(|b| b.plan.bin = bin);
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_divisor_up_to_ten_milliseconds() {
        let us = Duration::from_micros;
        // 1 s: 10 ms; 15 ms: 5 ms; a prime number of microseconds: 1 us; 30 us: itself; 12.5 ms: 6.25 ms.
        for (all, bin) in [(1_000_000, 10_000), (15_000, 5_000), (1_000_003, 1), (30, 30), (12_500, 6_250)] {
            assert_eq!(longest(all, LONGEST), us(bin), "{all}");
        }
        // 1.5 s in bins of 400 ms at most: 375 ms, four of them.
        assert_eq!(longest(1_500_000, us(400_000)), us(375_000));
    }
}
