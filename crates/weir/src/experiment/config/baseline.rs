//! Table `[baseline]`: variants of an experiment that run beside it, for checks to compare with.
//!
//! Each variant is the whole file with its values put in and parsed again, as for a run of a sweep. It has no
//! checks.

use super::diag::{Errors, Fault, Source};
use super::reader::Sink;
use super::sweep::place::{place, set};
use core::ops::Range;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// Keys of a file that variants lack.
const CHECKS: [&str; 2] = ["expect", "reference"];

/// File in parts: its table without `[baseline]`, and its variants.
pub(super) type Parts<'a> = (Spanned<DeTable<'a>>, Vec<Variant<'a>>);

/// Variant of the file.
pub(super) struct Variant<'a> {
    /// Name in checks.
    pub(super) name: String,
    /// Settings by path, as written.
    pub(super) settings: Vec<(String, String)>,
    /// Table of the variant as a file of its own.
    pub(super) table: Spanned<DeTable<'a>>,
}

/// Takes the variants out of a file; `None` if it has no `[baseline]`.
pub(super) fn split<'a>(table: &Spanned<DeTable<'a>>, source: &Source) -> Result<Option<Parts<'a>>, Errors> {
    if !table.get_ref().contains_key("baseline") {
        return Ok(None);
    }
    let mut rest = table.clone();
    let Some((key, all)) = rest.get_mut().remove_entry("baseline") else { return Ok(None) };
    let sink = Sink::of(source);
    let variants = variants(&sink, source, key.span(), &all, &rest);
    sink.finish(source, Some((rest, variants))).map(|(parts, _)| Some(parts))
}

fn variants<'a>(
    sink: &Sink,
    source: &Source,
    key: Range<usize>,
    all: &Spanned<DeValue<'a>>,
    file: &Spanned<DeTable<'a>>,
) -> Vec<Variant<'a>> {
    let example = "for example: unlimited = { \"path.wan.rate\" = \"1Gbit\" }";
    let Some(all) = all.get_ref().as_table() else {
        sink.push(all.span(), Fault::new("`baseline`: expected a table", example));
        return Vec::new();
    };
    if all.is_empty() {
        sink.push(key, Fault::new("`baseline` names no variant", example));
    }
    let mut variants = Vec::new();
    for (name, values) in all.iter() {
        let mut paths = Vec::new();
        match values.get_ref() {
            DeValue::Table(t) if !t.is_empty() => flatten(&[], t, &mut paths),
            _ => {
                let message =
                    format!("`baseline.{}`: expected a table of what is different in it", name.get_ref());
                sink.push(values.span(), Fault::new(message, example));
            }
        }
        variants.push(variant(sink, source, name.get_ref(), paths, file));
    }
    variants
}

/// Setting: a path in the file, its place, and its value.
type Setting<'a> = (Vec<String>, Range<usize>, Spanned<DeValue<'a>>);

/// Collects the settings of a table. Quoted keys are paths with dots. A table belongs to a path if its key
/// has no dots; otherwise it is a value.
fn flatten<'a>(above: &[String], table: &DeTable<'a>, paths: &mut Vec<Setting<'a>>) {
    for (key, value) in table.iter() {
        let parts = key.get_ref().split('.').map(str::to_string);
        let path: Vec<String> = above.iter().cloned().chain(parts).collect();
        match value.get_ref() {
            DeValue::Table(t) if !key.get_ref().contains('.') => flatten(&path, t, paths),
            _ => paths.push((path, key.span(), value.clone())),
        }
    }
}

fn variant<'a>(
    sink: &Sink,
    source: &Source,
    name: &str,
    paths: Vec<Setting<'a>>,
    file: &Spanned<DeTable<'a>>,
) -> Variant<'a> {
    let mut table = file.clone();
    for key in CHECKS {
        table.get_mut().remove(key);
    }
    let mut settings = Vec::new();
    for (path, span, value) in paths {
        if let Err(fault) = place(table.get_ref(), &path) {
            let message = fault.message.replace("sweep.", &format!("baseline.{name}."));
            sink.push(span, Fault { message, ..fault });
            continue;
        }
        let text = match value.get_ref() {
            DeValue::String(s) => s.to_string(),
            _ => source.text.get(value.span()).unwrap_or_default().to_string(),
        };
        settings.push((path.join("."), text));
        set(table.get_mut(), &path, &span, value);
    }
    Variant { name: name.to_string(), settings, table }
}

#[cfg(test)]
mod tests {
    use crate::experiment::config::{experiment, Source};
    use crate::experiment::plan::{Of, Plan};
    use weir_core::link::Aqm;
    use weir_core::queue::ack_filter::Policy;
    use weir_core::rate::Rate;

    const FILE: &str = r#"
        name = "t"
        duration = "4s"
        flow = [{ id = "a" }]
        path.wan = { rate = "10Mbit", queue = "100p" }
        [baseline]
        fast = { "path.wan.rate" = "20Mbit", flow.a.cc = "reno" }
        filtered = { "path.wan.ack_filter" = { policy = "classical" } }
        [[expect]]
        what = "flow.a.0.goodput_bps"
        of = "baseline.fast"
        op = "at_least"
        target = "40%"
    "#;

    fn plan() -> Plan {
        experiment::parse(&Source::new("t.toml", FILE)).unwrap_or_else(|e| panic!("{e}")).plan
    }

    #[test]
    fn a_variant_is_the_file_with_its_values_and_without_checks() {
        let plan = plan();
        let [fast, filtered] = plan.baselines.as_slice() else { panic!("{:?}", plan.baselines) };
        assert_eq!((fast.name.as_str(), filtered.name.as_str()), ("fast", "filtered"));
        let rate = |p: &Plan| p.path.wan_out.rate;
        assert_eq!([rate(&plan), rate(&fast.plan)], [10, 20].map(|n| Some(Rate::mbit(n))));
        assert_eq!([&plan, &fast.plan].map(|p| p.groups[0].tcp.cc()), ["cubic", "reno"]);
        let Aqm::AckFilter(params) = filtered.plan.path.wan_out.aqm else {
            panic!("{:?}", filtered.plan.path)
        };
        assert_eq!(params.policy, Policy::Classical);
        assert!(fast.plan.expects.is_empty() && fast.plan.baselines.is_empty());
        assert_eq!(plan.expects[0].of, Some(Of::Baseline("fast".into())));
    }

    /// A check with `of = "baseline.…"` counts the bytes of both by the same bins.
    #[test]
    fn bins_are_those_of_all() {
        let file = FILE.replace("op =", "from = \"15ms\"\n        op =");
        let plan = experiment::parse(&Source::new("t.toml", file)).unwrap_or_else(|e| panic!("{e}")).plan;
        let bins: Vec<u64> =
            plan.baselines.iter().map(|b| &b.plan).chain([&plan]).map(|p| p.bin.as_micros()).collect();
        assert_eq!(bins, [5000; 3]);
    }

    #[test]
    fn another_seed_is_that_of_all() {
        let mut plan = plan();
        plan.reseed(7);
        assert!(plan.baselines.iter().all(|b| b.plan.seed == 7));
    }
}
