//! Changes to a file by its caller: other values for some of its keys, by their dotted path.
//!
//! They are lines of TOML, `"PATH" = VALUE` each, that stand behind the text of the file. So a change follows
//! the rules of its place, and a message about it shows its line.

use super::diag::{Errors, Source};
use super::reader::{parse_toml, Sink};
use super::sweep::place::{place, set};
use core::ops::Range;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// Table of the changes. No file has a key of this name.
const TABLE: &str = "changed by the caller";

/// Reads a file with changes by `read`.
pub fn read<T>(
    source: &Source,
    changes: &str,
    read: impl FnOnce(&Source, Spanned<DeTable<'_>>) -> Result<T, Errors>,
) -> Result<T, Errors> {
    let own = parse_toml(source)?;
    if changes.trim().is_empty() {
        return read(source, own);
    }
    let text = format!("{}\n[\"{TABLE}\"]\n{changes}", source.text.trim_end());
    let source = &Source::new(source.name.clone(), text);
    let mut table = parse_toml(source)?;
    let sink = Sink::of(source);
    let changes = table.get_mut().remove(TABLE).map(Spanned::into_inner);
    if let Some(DeValue::Table(changes)) = changes {
        for (key, value) in changes {
            let path: Vec<String> = key.get_ref().split('.').map(str::to_string).collect();
            match place(table.get_ref(), &path) {
                Ok(()) => set(table.get_mut(), &path, &key.span(), value),
                Err(mut fault) => {
                    fault.message = fault.message.replace("`sweep.", "`");
                    sink.push(key.span(), fault);
                }
            }
        }
    }
    sink.finish(source, Some(()))?;
    read(source, table)
}

/// Returns the places of the values in a table that changes have put there.
pub(super) fn places(source: &Source, table: &DeTable) -> Vec<Range<usize>> {
    let Some(begin) = source.text.rfind(&format!("[\"{TABLE}\"]")) else { return Vec::new() };
    let mut places = Vec::new();
    table.values().for_each(|value| find(value, begin, &mut places));
    places
}

/// Finds the values that stand behind `begin`.
fn find(value: &Spanned<DeValue>, begin: usize, places: &mut Vec<Range<usize>>) {
    match value.get_ref() {
        DeValue::Table(table) => table.values().for_each(|value| find(value, begin, places)),
        DeValue::Array(items) if value.span().start < begin => {
            items.iter().for_each(|value| find(value, begin, places));
        }
        _ if value.span().start >= begin => places.push(value.span()),
        _ => (),
    }
}

/// Returns the line for an argument `PATH=VALUE`. A value that is none of TOML's is a text, as `20Mbit` is.
/// `None` without `=`.
pub fn line(argument: &str) -> Option<String> {
    let (path, value) = argument.split_once('=')?;
    let (path, value) = (path.trim(), value.trim());
    let is_value = !value.contains('\n') && DeValue::parse(value).is_ok();
    let value = if is_value { value.to_string() } else { toml::Value::from(value).to_string() };
    Some(format!("{} = {value}\n", toml::Value::from(path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::config::experiment::{runs, runs_with};
    use weir_core::time::Duration;

    const FILE: &str = r#"
        name = "t"
        duration = "4s"
        flow = [{ id = "a", bytes = "1MB" }, { id = "b" }]
        [path]
        wan = { rate = "10Mbit" }
    "#;

    #[test]
    fn changes_come_before_the_sweep() {
        let file = Source::new("t.toml", format!("{FILE}\n[sweep]\nseed = [1, 2]\n"));
        let made = runs_with(&file, "duration = \"5s\"\n\"flow.a.bytes\" = \"2MB\"").unwrap();
        let plans = made.iter().map(|run| &run.experiment.plan);
        let plans: Vec<_> = plans.map(|plan| (plan.seed, plan.time())).collect();
        assert_eq!(plans, [1, 2].map(|seed| (seed, Duration::from_secs(5))));
        assert_eq!(made[0].settings, [("seed".to_string(), "1".to_string())]);
        assert_eq!(runs_with(&file, "").unwrap(), runs(&file).unwrap());
    }

    /// A change of a value that the sweep sets would have no effect. A change of several flows has, if the
    /// sweep sets the value of one.
    #[test]
    fn a_change_of_what_the_sweep_varies_is_refused() {
        let said = |sweep: &str, change: &str| {
            let file = Source::new("t.toml", format!("{FILE}\n[sweep]\n{sweep}\n"));
            runs_with(&file, change).map_or_else(|e| e.to_string(), |runs| runs.len().to_string())
        };
        let rates = "\"path.wan.rate\" = [\"1Mbit\", \"2Mbit\"]";
        let text = said(rates, "\"path.wan.rate\" = \"3Mbit\"");
        assert!(
            text.contains("path.wan.rate\" = \"3Mbit\"") && text.contains("`[sweep]` varies it"),
            "{text}"
        );
        assert_eq!(said(rates, "\"path.wan.delay\" = \"3ms\""), "2");
        let all = "\"flow.*.cc\" = [\"reno\", \"cubic\"]";
        assert!(said(all, "\"flow.a.cc\" = \"reno\"").contains("`[sweep]` varies it"));
        assert_eq!(said(&all.replace('*', "a"), "\"flow.*.cc\" = \"newreno\""), "2");
    }

    #[test]
    fn a_wrong_change_is_shown() {
        let said = |changes: &str| runs_with(&Source::new("t.toml", FILE), changes).unwrap_err().to_string();
        let text = said("\"path.wan.rate\" = \"9 furlongs\"");
        assert!(text.starts_with("t.toml:8:") && text.contains("9 furlongs"), "{text}");
        let text = said("\"flow.c.bytes\" = \"1MB\"");
        assert!(text.contains("no `[[flow]]` is named `c`"), "{text}");
        let text = said("durations = \"1s\"");
        assert!(text.contains("`durations`") && text.contains("`duration`"), "{text}");
        let text = said("\"flow.a\" = 1");
        assert!(text.contains("`flow.a` is a table"), "{text}");
    }

    #[test]
    fn arguments_are_lines() {
        let told = |argument| line(argument).unwrap();
        assert_eq!(told("path.wan.rate=20Mbit"), "\"path.wan.rate\" = \"20Mbit\"\n");
        assert_eq!(told("seed = 7"), "\"seed\" = 7\n");
        assert_eq!(told("flow.a.ecn=true"), "\"flow.a.ecn\" = true\n");
        assert_eq!(told("flow.a.cc=[\"cubic\"]"), "\"flow.a.cc\" = [\"cubic\"]\n");
        assert_eq!(line("seed"), None);
    }
}
