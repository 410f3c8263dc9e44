//! Traces: files with the behaviour of a path over time. Each is read once for a process and kept.
//!
//! Each line may end in a comment, which begins with `#`. Faults name file and line.

#[cfg(test)]
mod tests;

use super::Draft;
use crate::experiment::config::decimal::whole;
use crate::experiment::config::diag::{Fault, Source};
use crate::experiment::config::units;
use crate::experiment::config::value::FromValue;
use core::num::NonZeroU64;
use std::path::Path;
use std::sync::Mutex;
use toml::de::DeValue;
use weir_core::link::{Loss, LossTrace, Opportunities, RateTrace, Rates};
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// Most frames or delivery opportunities of a trace.
const MOST: usize = 100_000_000;

/// Traces read so far; equal traces are stored once.
struct Kept<T>(Mutex<Vec<T>>);

static LOSSES: Kept<LossTrace> = Kept(Mutex::new(Vec::new()));
static RATES: Kept<RateTrace> = Kept(Mutex::new(Vec::new()));

impl<T: Copy> Kept<T> {
    /// Returns the equal trace among those read, or stores this one.
    fn keep(&self, is: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> T {
        let mut kept = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match kept.iter().find(|one| is(one)) {
            Some(one) => *one,
            None => {
                kept.push(make());
                kept[kept.len() - 1]
            }
        }
    }
}

fn leak<T>(values: Vec<T>) -> &'static [T] {
    Vec::leak(values)
}

/// Reads the file that a value names, in `directory` if its path is relative.
fn source(value: &DeValue, directory: Option<&Path>) -> Result<Source, Fault> {
    let path = directory.unwrap_or(Path::new("")).join(String::from_value(value)?);
    Source::read_list(&path).map_err(Fault::bare)
}

/// Returns the absolute path of a file, by which any process finds it.
fn absolute(source: &Source) -> String {
    let path = std::path::absolute(&source.name);
    path.map_or(source.name.clone(), |path| path.display().to_string())
}

/// Returns the lines with content, each with its number.
fn lines(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    fn said(line: &str) -> &str {
        line.split('#').next().unwrap_or("").trim()
    }
    (1..).zip(source.text.lines().map(said)).filter(|(_, line)| !line.is_empty())
}

fn wrong(source: &Source, line: usize, what: impl std::fmt::Display, help: &str) -> Fault {
    Fault::new(format!("{}:{line}: {what}", source.name), help)
}

fn empty(source: &Source, help: &str) -> Fault {
    Fault::new(format!("{}: nothing is in it", source.name), help)
}

const ZERO_ONE: &str =
    "each 0 is a frame that passes, each 1 one that is lost; after the last the trace begins anew";

/// Reads a file of 0 and 1.
pub(super) fn losses(value: &DeValue, directory: Option<&Path>) -> Result<LossTrace, Fault> {
    let source = source(value, directory)?;
    let (mut lost, mut count) = (Vec::new(), 0u64);
    for (line, text) in lines(&source) {
        for c in text.chars().filter(|c| !c.is_whitespace() && *c != ',') {
            match c {
                '0' => (),
                '1' => lost.push(count),
                c => return Err(wrong(&source, line, format_args!("`{c}` is neither 0 nor 1"), ZERO_ONE)),
            }
            count += 1;
        }
    }
    let period = NonZeroU64::new(count).ok_or_else(|| empty(&source, ZERO_ONE))?;
    Ok(kept_losses(&source, lost, Some(period)))
}

const FRAMES: &str = "numbers of frames in order, the first is 1, and ranges: 7 12 20-25";

/// Reads a file of numbers of frames, from 1 on.
pub(super) fn frames(value: &DeValue, directory: Option<&Path>) -> Result<LossTrace, Fault> {
    let source = source(value, directory)?;
    let mut lost: Vec<u64> = Vec::new();
    for (line, text) in lines(&source) {
        for word in text.split([' ', '\t', ',']).filter(|word| !word.is_empty()) {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            let number = |text: &str| whole::<u64>(text).filter(|n| *n > 0);
            let range = number(first).zip(number(last)).filter(|(first, last)| first <= last);
            let Some((first, last)) = range else {
                return Err(wrong(&source, line, format_args!("`{word}` is no number of a frame"), FRAMES));
            };
            if lost.last().is_some_and(|before| first <= before + 1) {
                return Err(wrong(
                    &source,
                    line,
                    format_args!("{first} does not come after {}", lost[lost.len() - 1] + 1),
                    FRAMES,
                ));
            }
            if last - first >= (MOST - lost.len()) as u64 {
                return Err(wrong(&source, line, format_args!("more than {MOST} frames are lost"), FRAMES));
            }
            lost.extend(first - 1..last);
        }
    }
    if lost.is_empty() {
        return Err(empty(&source, FRAMES));
    }
    Ok(kept_losses(&source, lost, None))
}

fn kept_losses(source: &Source, lost: Vec<u64>, period: Option<NonZeroU64>) -> LossTrace {
    let name = absolute(source);
    LOSSES.keep(
        |t| t.name == name && t.period == period && t.lost == lost,
        || LossTrace { name: String::leak(name.clone()), lost: leak(lost.clone()), period },
    )
}

/// Returns the trace of losses if it is of this kind: repeating, or numbers of frames.
pub(super) fn lost(draft: &Draft, repeats: bool) -> Option<LossTrace> {
    match draft.link.loss {
        Loss::Trace(trace) => Some(trace).filter(|t| t.period.is_some() == repeats),
        _ => None,
    }
}

/// Describes a trace of losses in words.
pub(super) fn loss_words(trace: LossTrace) -> String {
    let (name, lost) = (file_name(trace.name), trace.lost.len());
    match trace.period {
        Some(period) => format!("loses {lost} of each {period} frames ({name})"),
        None => format!("loses {lost} frames ({name})"),
    }
}

const DELIVERIES: &str = "each line is a time in whole milliseconds at which 1504 bytes can leave; times do not decrease, and the last is above 0";

/// Reads a trace of mahimahi.
pub(super) fn deliveries(value: &DeValue, directory: Option<&Path>) -> Result<RateTrace, Fault> {
    let source = source(value, directory)?;
    let mut at_ms: Vec<u64> = Vec::new();
    for (line, text) in lines(&source) {
        let ms = whole::<u64>(text).filter(|ms| *ms <= 1 << 40);
        let Some(ms) = ms else {
            return Err(wrong(
                &source,
                line,
                format_args!("`{text}` is no time in milliseconds"),
                DELIVERIES,
            ));
        };
        if at_ms.last().is_some_and(|before| *before > ms) {
            return Err(wrong(
                &source,
                line,
                format_args!("{ms} is before {}", at_ms[at_ms.len() - 1]),
                DELIVERIES,
            ));
        }
        at_ms.push(ms);
    }
    match at_ms.last() {
        None => return Err(empty(&source, DELIVERIES)),
        Some(0) => return Err(wrong(&source, at_ms.len(), "the trace lasts no time", DELIVERIES)),
        Some(_) => (),
    }
    let name = absolute(&source);
    Ok(RATES.keep(
        |t| matches!(t, RateTrace::Opportunities(o) if o.name == name && o.at_ms == at_ms),
        || {
            RateTrace::Opportunities(Opportunities {
                name: String::leak(name.clone()),
                at_ms: leak(at_ms.clone()),
            })
        },
    ))
}

const STEPS: &str = "each line is a time and the rate from then on, the first at 0s: \"0s 10Mbit\", \"1.5s 0\" for an outage; \"4s repeat\" begins anew";

/// Reads a file of times and rates.
pub(super) fn rates(value: &DeValue, directory: Option<&Path>) -> Result<RateTrace, Fault> {
    let source = source(value, directory)?;
    let (mut steps, mut period): (Vec<(Duration, Option<Rate>)>, _) = (Vec::new(), None);
    for (line, text) in lines(&source) {
        let (time, rate) = step(text).map_err(|what| wrong(&source, line, what, STEPS))?;
        let in_order = steps.last().map_or(time == Duration::ZERO, |(before, _)| *before < time);
        if !in_order || period.is_some() {
            let message = match (steps.is_empty(), period) {
                (true, _) => "the first time is not 0s".to_string(),
                (_, Some(_)) => "there is more behind the end".to_string(),
                _ => format!("{time} is not after the time before it"),
            };
            return Err(wrong(&source, line, message, STEPS));
        }
        match rate {
            Step::Repeat => period = Some(time),
            Step::Rate(rate) => steps.push((time, rate)),
        }
    }
    if steps.iter().all(|(_, rate)| rate.is_none()) {
        return Err(Fault::new(format!("{}: nothing is ever sent", source.name), STEPS));
    }
    let name = absolute(&source);
    Ok(RATES.keep(
        |t| matches!(t, RateTrace::Rates(r) if r.name == name && r.period == period && r.steps == steps),
        || RateTrace::Rates(Rates { name: String::leak(name.clone()), steps: leak(steps.clone()), period }),
    ))
}

/// Event at a time.
enum Step {
    Rate(Option<Rate>),
    Repeat,
}

fn step(text: &str) -> Result<(Duration, Step), String> {
    let (time, rate) = text.split_once([' ', '\t', ',']).ok_or("expected a time and a rate")?;
    let time = units::duration(time).map_err(|fault| fault.message)?;
    match rate.trim() {
        "repeat" => Ok((time, Step::Repeat)),
        "0" => Ok((time, Step::Rate(None))),
        rate => Ok((time, Step::Rate(Some(units::rate(rate).map_err(|fault| fault.message)?)))),
    }
}

/// Puts a trace of rates into the link. Limits in round trips use its average rate. Traces of mahimahi count
/// four bytes more than the IP packet.
pub(super) fn put(
    draft: &mut Draft,
    value: &DeValue,
    read: fn(&DeValue, Option<&Path>) -> Result<RateTrace, Fault>,
) -> Result<(), Fault> {
    let trace = read(value, draft.directory.as_deref())?;
    (draft.link.rate, draft.link.trace) = (Some(trace.mean(draft.run)), Some(trace));
    if let Some(bytes) = overhead(draft.link.trace) {
        draft.link.overhead = bytes;
    }
    Ok(())
}

/// Returns the overhead that a trace implies.
pub(super) fn overhead(trace: Option<RateTrace>) -> Option<u16> {
    matches!(trace, Some(RateTrace::Opportunities(_))).then_some(Opportunities::OVERHEAD)
}

/// Returns the trace of rates, if it is of the kind.
fn of_kind(draft: &Draft, is: fn(&RateTrace) -> bool) -> Option<RateTrace> {
    draft.link.trace.filter(is)
}

/// Describes the trace in words.
pub(super) fn words(draft: &Draft, is: fn(&RateTrace) -> bool) -> Option<String> {
    let (trace, mean) = of_kind(draft, is).zip(draft.link.rate)?;
    Some(format!("{} on average ({})", rounded(mean), file_name(trace.name())))
}

/// Formats an average rate in three digits.
fn rounded(rate: Rate) -> String {
    let bps = rate.bps() as f64;
    match bps {
        _ if bps >= 1e9 => format!("{:.3} Gbit/s", bps / 1e9),
        _ if bps >= 1e6 => format!("{:.3} Mbit/s", bps / 1e6),
        _ => format!("{:.3} kbit/s", bps / 1e3),
    }
}

fn file_name(path: &str) -> std::borrow::Cow<'_, str> {
    Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy())
}
