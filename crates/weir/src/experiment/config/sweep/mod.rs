//! Table `[sweep]`: lists of values for parts of the file, by their dotted path. The runs are the product of
//! the lists.
//!
//! Each run is the whole file with its values put in and parsed again. So a value of a sweep must follow the
//! rules of its place, and a message about it points into the list.

pub(super) mod place;

use super::changes;
use super::diag::{Diagnostic, Errors, Fault, Source};
use super::experiment::{self, Experiment};
use super::reader::{parse_toml, Sink};
use super::units;
use crate::result::Setting;
use core::ops::Range;
use place::{place, set};
use std::sync::Arc;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// Paths and their values, as written.
pub type Settings = Vec<(String, String)>;

/// Run of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Settings made by `[sweep]`, by path, in the order of the file; empty without a sweep.
    pub settings: Settings,
    /// Experiment of the run.
    pub experiment: Experiment,
}

/// Most runs of a file.
const MOST_RUNS: usize = 10_000;
/// Most different messages about runs; more would not help the reader.
const MOST_FAULTS: usize = 20;

/// Returns the runs of a file, one without `[sweep]`. The values of the first path change slowest. All errors
/// of the file come at once.
pub fn runs(source: &Source) -> Result<Vec<Run>, Errors> {
    runs_of(source, parse_toml(source)?)
}

/// Returns the runs of a file with changes, which come before `[sweep]`.
pub fn runs_with(source: &Source, changes: &str) -> Result<Vec<Run>, Errors> {
    changes::read(source, changes, runs_of)
}

fn runs_of(source: &Source, mut table: Spanned<DeTable<'_>>) -> Result<Vec<Run>, Errors> {
    let Some((key, sweep)) = table.get_mut().remove_entry("sweep") else {
        let experiment = experiment::from_table(&table, source)?;
        return Ok(vec![Run { settings: Vec::new(), experiment }]);
    };
    let sink = Sink::of(source);
    let axes = axes(&sink, source, key.span(), &sweep);
    check(&sink, &axes, table.get_ref(), key.span());
    if sink.is_empty() {
        let left = changes::places(source, with(&table, &axes, &vec![0; axes.len()]).get_ref());
        for place in
            changes::places(source, table.get_ref()).into_iter().filter(|place| !left.contains(place))
        {
            let help = "leave one of the two out";
            sink.push(place, Fault::new("this value has no effect: `[sweep]` varies it", help));
        }
    }
    let (axes, _) = sink.finish(source, Some(axes))?;
    let mut good = Vec::new();
    let mut bad = Faults::default();
    let total = axes.iter().map(|a| a.values.len()).product();
    let shared = Arc::new(source.clone());
    for number in 0..total {
        let chosen = chosen(&axes, number);
        match experiment::from_table(&with(&table, &axes, &chosen), source) {
            Ok(mut experiment) => {
                experiment.share(&shared);
                good.push(Run { settings: settings(&axes, &chosen), experiment });
            }
            // Errors of a list that the file names have their places there.
            Err(errors) if !errors.are_of(source) => return Err(errors),
            Err(errors) => bad.note(errors, &settings(&axes, &chosen)),
        }
        if bad.list.len() >= MOST_FAULTS {
            break;
        }
    }
    match bad.list.is_empty() {
        true => Ok(good),
        false => Err(bad.finish(source, &axes, total)),
    }
}

/// Path with its list of values.
struct Axis<'a> {
    /// Parts of the path, which dots separate.
    path: Vec<String>,
    /// Place of the path in the file.
    span: Range<usize>,
    /// Values, each with its notation in the file.
    values: Vec<(Spanned<DeValue<'a>>, String)>,
}

impl Axis<'_> {
    fn name(&self) -> String {
        self.path.join(".")
    }
}

/// Value of a list, whatever its notation: `10ms` is `0.01s`.
#[derive(PartialEq)]
enum Value {
    /// Whole number, which may be too large for a setting to be exact.
    Whole(i128),
    Other(Setting),
}

impl Value {
    fn of(value: &DeValue, text: &str) -> Value {
        let whole = value.as_integer().and_then(|n| i128::from_str_radix(n.as_str(), n.radix()).ok());
        whole.map_or_else(|| Value::Other(units::setting(text)), Value::Whole)
    }
}

/// Reads `[sweep]`; the axes are in the order of the file.
fn axes<'a>(sink: &Sink, source: &Source, key: Range<usize>, sweep: &Spanned<DeValue<'a>>) -> Vec<Axis<'a>> {
    let mut axes = Vec::new();
    match sweep.get_ref() {
        DeValue::Table(t) => flatten(sink, source, &[], t, &mut axes),
        _ => {
            let help = "write [sweep] above its keys";
            sink.push(sweep.span(), Fault::new("`sweep`: expected a table", help));
            return axes;
        }
    }
    if axes.is_empty() && sink.is_empty() {
        let help = "for example: \"path.wan.loss\" = [\"0.1%\", \"1%\"]";
        sink.push(key, Fault::new("`sweep` varies nothing", help));
    }
    axes.sort_by_key(|a| a.span.start);
    axes
}

/// Tables are parts of paths, written without quotes; arrays are lists of values.
fn flatten<'a>(
    sink: &Sink,
    source: &Source,
    above: &[String],
    table: &DeTable<'a>,
    axes: &mut Vec<Axis<'a>>,
) {
    for (key, value) in table.iter() {
        let parts = key.get_ref().split('.').map(str::to_string);
        let path: Vec<String> = above.iter().cloned().chain(parts).collect();
        match value.get_ref() {
            DeValue::Table(t) => flatten(sink, source, &path, t, axes),
            DeValue::Array(items) => {
                let text = |item: &Spanned<DeValue>| match item.get_ref() {
                    DeValue::String(s) => s.to_string(),
                    _ => source.text.get(item.span()).unwrap_or_default().to_string(),
                };
                let values = items.iter().map(|item| (item.clone(), text(item))).collect();
                axes.push(Axis { path, span: key.span(), values });
            }
            _ => {
                let message = format!("`sweep.{}`: expected an array of values", path.join("."));
                sink.push(
                    value.span(),
                    Fault::new(message, "one value needs no sweep: write it in its place"),
                );
            }
        }
    }
}

/// Notes faults of the paths and of the lists themselves.
fn check(sink: &Sink, axes: &[Axis], table: &DeTable, key: Range<usize>) {
    for (i, axis) in axes.iter().enumerate() {
        let name = axis.name();
        if axis.values.is_empty() {
            sink.push(
                axis.span.clone(),
                Fault::new(format!("`sweep.{name}`: an empty array"), "no values make no runs: leave it out"),
            );
        }
        if axes[..i].iter().any(|a| a.path == axis.path) {
            sink.push(
                axis.span.clone(),
                Fault::bare(format!("`sweep.{name}`: a second list for the same value")),
            );
        }
        let mut seen: Vec<(Value, &str)> = Vec::new();
        for (value, text) in &axis.values {
            let set = Value::of(value.get_ref(), text);
            let before = seen.iter().find(|(before, _)| *before == set).map(|(_, text)| *text);
            if let Some(before) = before {
                let twice = format!("`sweep.{name}`: the value {text} is there twice");
                let message =
                    if before == text.as_str() { twice } else { format!("{twice}, first as {before}") };
                sink.push(value.span(), Fault::new(message, "its runs would be the same"));
            }
            seen.push((set, text));
        }
        if let Err(fault) = place(table, &axis.path) {
            sink.push(axis.span.clone(), fault);
        }
    }
    let runs = axes.iter().try_fold(1usize, |n, a| n.checked_mul(a.values.len()));
    if runs.is_none_or(|n| n > MOST_RUNS) {
        let factors: Vec<String> = axes.iter().map(|a| a.values.len().to_string()).collect();
        let message = format!("a sweep of {} runs", factors.join(" × "));
        sink.push(key, Fault::bare(format!("{message}, more than {MOST_RUNS}")));
    }
}

/// Returns the index of the run's value on each axis; the last axis changes fastest.
fn chosen(axes: &[Axis], mut number: usize) -> Vec<usize> {
    let mut chosen: Vec<usize> = axes
        .iter()
        .rev()
        .map(|a| {
            let i = number % a.values.len();
            number /= a.values.len();
            i
        })
        .collect();
    chosen.reverse();
    chosen
}

fn settings(axes: &[Axis], chosen: &[usize]) -> Settings {
    axes.iter().zip(chosen).map(|(a, &i)| (a.name(), a.values[i].1.clone())).collect()
}

/// Returns the file with the chosen values in their places.
fn with<'a>(file: &Spanned<DeTable<'a>>, axes: &[Axis<'a>], chosen: &[usize]) -> Spanned<DeTable<'a>> {
    let mut file = file.clone();
    for (axis, &i) in axes.iter().zip(chosen) {
        set(file.get_mut(), &axis.path, &axis.span, axis.values[i].0.clone());
    }
    file
}

/// Faults of runs: each fault, the number of its runs, and the settings of the first.
#[derive(Default)]
struct Faults {
    list: Vec<(Diagnostic, usize, Settings)>,
}

impl Faults {
    fn note(&mut self, errors: Errors, settings: &Settings) {
        for fault in errors.into_list() {
            match self.list.iter_mut().find(|(f, ..)| *f == fault) {
                Some((_, n, _)) => *n += 1,
                None => self.list.push((fault, 1, settings.clone())),
            }
        }
    }

    /// Returns the faults as errors of the file. A fault of some runs that is not at a value of the sweep
    /// names the settings.
    fn finish(self, source: &Source, axes: &[Axis], total: usize) -> Errors {
        let swept = |d: &Diagnostic| {
            let mut values = axes.iter().flat_map(|a| &a.values).map(|(v, _)| v.span());
            values.any(|v| v.start <= d.span.start && d.span.end <= v.end)
        };
        let located = self.list.into_iter().map(|(mut d, n, settings)| {
            if n < total && !swept(&d) {
                let settings: Vec<String> = settings.iter().map(|(k, v)| format!("{k} = {v}")).collect();
                d.message = format!("{} (with {})", d.message, settings.join(", "));
            }
            d
        });
        Errors::new(source, located.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::plan::{Length, Op};
    use weir_core::link::Loss;

    const FILE: &str = r#"
        name = "t"
        duration = "4s"
        flow = [{ id = "a", bytes = "1MB" }, { id = "b" }]
        [path]
        wan = { rate = "10Mbit" }
        [[gateway.class]]
        name = "ten"
        ack = { preset = "ack-shaper", flow_rate = "10Mbit" }
        [[expect]]
        what = "flow.a.0.bytes"
        op = "equals"
        target = "1MB"
    "#;

    fn source(sweep: &str) -> Source {
        Source::new("t.toml", format!("{FILE}\n[sweep]\n{sweep}\n"))
    }

    fn runs_of(sweep: &str) -> Vec<Run> {
        runs(&source(sweep)).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Notations of one time, one share and one number of bytes. Whole numbers differ, however large.
    #[test]
    fn a_value_is_there_once_whatever_its_notation() {
        for twice in [
            "'path.rtt' = ['10ms', '20ms', '0.01s']",
            "'path.wan.loss' = ['1%', 0.01]",
            "'path.wan.queue' = ['64KiB', '65536B']",
            "seed = [1000, 1_000]",
        ] {
            let said = runs(&source(twice)).map(|runs| runs.len()).unwrap_err().to_string();
            assert!(said.contains("is there twice, first as"), "{said}");
        }
        assert_eq!(runs_of("seed = [9007199254740992, 9007199254740993]").len(), 2);
        assert_eq!(runs_of("'path.wan.queue' = ['10p', '10kB']").len(), 2);
    }

    #[test]
    fn the_first_path_changes_slowest() {
        // The order is that of the file, not of the alphabet.
        let runs = runs_of("seed = [7, 8]\n'path.wan.loss' = ['0.1%', 0.01]\n'tcp.mss' = [500]");
        let settings: Vec<Vec<&str>> =
            runs.iter().map(|r| r.settings.iter().map(|(_, v)| v.as_str()).collect()).collect();
        assert_eq!(
            settings,
            [["7", "0.1%", "500"], ["7", "0.01", "500"], ["8", "0.1%", "500"], ["8", "0.01", "500"]]
        );
        let keys: Vec<&str> = runs[0].settings.iter().map(|(k, _)| k.as_str()).collect();
        assert_eq!(keys, ["seed", "path.wan.loss", "tcp.mss"]);
        let plan = &runs[3].experiment.plan;
        let Loss::Random { trillionths } = plan.path.wan_out.loss else { panic!("{:?}", plan.path) };
        assert_eq!(
            (plan.seed, trillionths, plan.groups[1].tcp.number("mss")),
            (8, 10_000_000_000, Some(500))
        );
        assert_eq!(plan.gateway.as_ref().map(|g| g.seed), Some(8));
    }

    #[test]
    fn parts_of_arrays_are_named() {
        let runs = runs_of(
            "'flow.a.bytes' = ['2MB']\ngateway.class.ten.ack.flow_rate = ['20Mbit']\n'expect.0.op' = ['at_least']",
        );
        let plan = &runs[0].experiment.plan;
        assert_eq!(plan.groups[0].length, Length::Bytes(2_000_000));
        assert_eq!(plan.groups[1].length, Length::UntilEnd);
        assert_eq!(plan.expects[0].op, Op::AtLeast);
        let text = format!("{:?}", plan.gateway);
        assert!(text.contains("20Mbit") && !text.contains("10Mbit"), "{text}");
    }

    #[test]
    fn a_pattern_names_several_tables() {
        let all = runs_of("'flow.*.bytes' = ['2MB', '3MB']\n'flow.a*.count' = [7]");
        assert_eq!(all.len(), 2);
        let groups = &all[1].experiment.plan.groups;
        assert_eq!(
            [&groups[0], &groups[1]].map(|g| (g.length.clone(), g.count)),
            [(Length::Bytes(3_000_000), 7), (Length::Bytes(3_000_000), 1)]
        );
        let errors = runs(&source("'flow.c*.bytes' = ['2MB']")).unwrap_err();
        assert_eq!(errors.located()[0].message, "no `[[flow]]` is named `c*`");
    }

    #[test]
    fn one_run_without_a_sweep() {
        let source = Source::new("t.toml", FILE);
        let all = runs(&source).unwrap();
        assert_eq!((all.len(), all[0].settings.len()), (1, 0));
        assert_eq!(all[0].experiment, experiment::parse(&source).unwrap());
    }

    /// Reports each fault once: at its value if it is one, else with the settings that lead to it.
    #[test]
    fn faults_of_some_runs_and_of_all() {
        let errors = runs(&source("'flow.b.count' = [1, 0]\n'flow.b.id' = ['b', 'a']")).unwrap_err();
        let lines: Vec<String> = errors.located().iter().map(|e| e.message.clone()).collect();
        assert_eq!(
            lines,
            ["`flow.count`: 0 is not from 1 to 100000", "a second group of flows named \"a\""],
            "{errors}"
        );
        // The class exists for only one of two names.
        let some =
            "'expect.0.what' = ['flow.a.0.bytes', 'class.ten.held_ack_peak_bytes']\n'gateway.class.ten.name' = ['ten', 'x']";
        let errors = runs(&source(some)).unwrap_err();
        assert_eq!(errors.located().len(), 1, "{errors}");
        assert_eq!(errors.located()[0].message, "no class is named `ten`");
        let expects = "'expect.0.target' = ['1MB']\n'duration' = ['4s', '1s']\n'flow.b.start' = ['0s', '2s']";
        let errors = runs(&source(expects)).unwrap_err();
        assert_eq!(
            errors.located()[0].message,
            "flow 0 of the group would start at 2s, not before the end, 1s"
        );
        let late =
            source("'duration' = ['4s', '1s']").text.replace("id = \"b\"", "id = \"b\", start = \"2s\"");
        let errors = runs(&Source::new("t.toml", late)).unwrap_err();
        assert!(errors.located()[0].message.ends_with("the end, 1s (with duration = 1s)"), "{errors}");
    }
}
