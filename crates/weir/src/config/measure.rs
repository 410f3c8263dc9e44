//! `[[expect]]` and `[[reference.row]]`: what is measured from a result, and with what it is compared.

use super::bins::{positive_time, time};
use super::catalogue::{self, in_unit, unit_of, Kind, Unit};
use super::reader::{Scalar, Section};
use super::units::{Decimal, Fault};
use crate::plan::{Aggregate, Expect, Measure, Metric, Op, Plan, ReferenceRow, Subject, Target, Tolerance};
use crate::result::World;
use weir_core::time::Duration;

/// Keys that say when, or over how long, something is measured.
const TIMES: [&str; 5] = ["from", "until", "every", "window", "at"];

/// Reads what is measured: `what`, and the times that its metric has a meaning for.
fn measure(s: &Section, plan: &Plan) -> Option<(Measure, Unit)> {
    s.need("what", "\"flow.*.goodput_bps\"");
    let found = s.get::<String>("what").and_then(|text| match catalogue::split(&text, plan) {
        Ok((subject, metric)) => Some((text, subject, metric)),
        Err(fault) => {
            s.fault("what", fault);
            None
        }
    });
    let Some((what, subject, metric)) = found else {
        for key in TIMES {
            s.get::<Duration>(key);
        }
        return None;
    };
    if subject == Subject::Gateway && metric == "cpu_s" {
        s.note_value(World::Lab, "what", Fault::bare("in the sim world a gateway takes no processor time"));
    }
    let unit = unit_of(&metric);
    let (metric, from, until) = match catalogue::kind_of(&subject, &metric) {
        Kind::Binned(length) => binned(s, &metric, length, plan)?,
        Kind::Series => series(s, metric, plan),
        Kind::Field => {
            meaningful(s, &metric, &[]);
            (Metric::Field(metric.split('.').map(str::to_string).collect()), Duration::ZERO, None)
        }
    };
    Some((Measure { what, subject, metric, from, until }, unit))
}

/// Refuses times that a metric has no use for.
fn meaningful(s: &Section, metric: &str, keys: &[&str]) {
    for key in TIMES.into_iter().filter(|key| s.has(key) && !keys.contains(key)) {
        let help = match key {
            "every" | "window" => {
                "`every` is for `interval_bps`, `window` for `max_bps` and `min_bps`".to_string()
            }
            "at" => format!("`at` is for columns of `series`: {}", catalogue::all_columns()),
            _ if s.has("at") => "`at` is one moment; leave one of the two out".to_string(),
            _ => format!(
                "only {} of flows are recorded over time, and what `series` names",
                catalogue::binned_metrics()
            ),
        };
        s.key_fault(key, Fault::new(format!("`{key}` has no meaning for `{metric}`"), help));
    }
}

/// `from`, `until` and the length of a metric that is computed from bins.
fn binned(
    s: &Section,
    metric: &str,
    length: Option<&'static str>,
    plan: &Plan,
) -> Option<(Metric, Duration, Option<Duration>)> {
    let length_key = length.as_slice();
    meaningful(s, metric, &[&["from", "until"], length_key].concat());
    let (from, until) = (time(s, "from"), time(s, "until"));
    let length = length.and_then(|key| {
        s.need(key, "\"2s\"");
        positive_time(s, key)
    });
    let end = until.unwrap_or(plan.duration);
    let begin = from.unwrap_or_default();
    if ends_well(s, begin, end, plan) {
        if let (Some(key), Some(length)) = (length_key.first(), length.filter(|l| *l > end - begin)) {
            s.fault(key, Fault::bare(format!("not one of {length} fits between {begin} and {end}")));
        }
    }
    let metric = match metric {
        "interval_bps" => Metric::Intervals(length?),
        "max_bps" => Metric::MaxOver(length?),
        "min_bps" => Metric::MinOver(length?),
        _ => Metric::Goodput,
    };
    Some((metric, begin, until))
}

/// `at`, or `from` and `until`, of a column of a series. They need not fall on bins.
fn series(s: &Section, column: String, plan: &Plan) -> (Metric, Duration, Option<Duration>) {
    let keys: &[&str] = if s.has("at") { &["at"] } else { &["from", "until"] };
    meaningful(s, &column, keys);
    let at = s.get::<Duration>("at");
    let (from, until) = match at {
        None => (s.get::<Duration>("from").unwrap_or_default(), s.get::<Duration>("until")),
        Some(_) => (Duration::ZERO, None),
    };
    match at {
        Some(at) if at > plan.duration => {
            s.fault("at", Fault::bare(format!("{at} is after the end, {}", plan.duration)));
        }
        _ => {
            ends_well(s, from, until.unwrap_or(plan.duration), plan);
        }
    }
    (Metric::Series { column, at }, from, until)
}

/// Is there something between `from` and `until`, before the end?
fn ends_well(s: &Section, from: Duration, until: Duration, plan: &Plan) -> bool {
    if until > plan.duration {
        s.fault("until", Fault::bare(format!("{until} is after the end, {}", plan.duration)));
    } else if from >= until {
        let message = format!("{from} is not before {until}, where the measured time ends");
        s.fault(if s.has("from") { "from" } else { "until" }, Fault::bare(message));
    } else {
        return true;
    }
    false
}

/// Reads one `[[expect]]`.
pub(super) fn expect(s: &Section, plan: &Plan) -> Option<Expect> {
    let measured = measure(s, plan);
    let aggregates = [
        ("sum", Aggregate::Sum),
        ("mean", Aggregate::Mean),
        ("min", Aggregate::Min),
        ("max", Aggregate::Max),
    ];
    let each = aggregates.map(|(n, a)| (n, Some(a)));
    let aggregate = s.choice("aggregate", &[&[("each", None)], each.as_slice()].concat(), &[]).flatten();
    s.need("op", "\"within\", \"at_most\", \"at_least\" or \"equals\"");
    let ops = [
        ("within", (Op::Within, false)),
        ("at_most", (Op::AtMost, false)),
        ("at_least", (Op::AtLeast, false)),
        ("equals", (Op::Within, true)),
    ];
    let op = s.choice("op", &ops, &[]);
    s.need("target", "\"10Mbit\"");
    let target = s.get::<Scalar>("target");
    let tolerance = s.get::<Scalar>("tolerance");
    match op {
        Some((Op::Within, false)) => s.need("tolerance", "\"0.5%\""),
        Some((_, true)) if s.has("tolerance") => {
            s.key_fault(
                "tolerance",
                Fault::new("`tolerance` together with op = \"equals\"", "write op = \"within\""),
            );
        }
        _ => (),
    }
    let (measure, unit) = measured?;
    if aggregate == Some(Aggregate::Sum) {
        let (what, help) = match measure.metric {
            Metric::Intervals(_) => (
                "intervals is not a rate",
                "sum `goodput_bps` instead, or check the \"mean\" of the intervals",
            ),
            Metric::Series { at: None, .. } => (
                "all times has no meaning",
                "sum what flows have `at` one time, or check the \"mean\" or the \"max\"",
            ),
            _ => ("", ""),
        };
        if !what.is_empty() {
            s.fault("aggregate", Fault::new(format!("a sum over {what}"), help));
        }
    }
    let target = self::target(s, &measure, unit, aggregate, target?);
    let tolerance = match tolerance {
        None => Some(Tolerance::Absolute(0.0)),
        Some(t) => self::tolerance(s, unit, &t),
    };
    Some(Expect { measure, aggregate, op: op?.0, target: target?, tolerance: tolerance? })
}

fn target(
    s: &Section,
    measure: &Measure,
    unit: Unit,
    aggregate: Option<Aggregate>,
    written: Scalar,
) -> Option<Target> {
    let value = match &written {
        Scalar::Text(t) if t == "flow_rate" => {
            let of_flow = matches!(measure.subject, Subject::Flow(_)) && unit == Unit::Rate;
            if !of_flow || aggregate.is_some() {
                let help = "it is the setting of each flow: for rates of flows without `aggregate`";
                s.fault("target", Fault::new("`flow_rate` is not a target for this", help));
            }
            return Some(Target::FlowRate);
        }
        Scalar::Text(t) => in_unit(t, false, unit),
        Scalar::Number(n) => in_unit(n, true, unit),
    };
    value.map(Target::Value).map_err(|f| s.fault_in("target", f)).ok()
}

fn tolerance(s: &Section, unit: Unit, written: &Scalar) -> Option<Tolerance> {
    let percent = match written {
        Scalar::Text(t) => t.trim().strip_suffix('%'),
        Scalar::Number(_) => None,
    };
    let value = match (percent, written) {
        (Some(p), _) => Decimal::parse(p.trim_end())
            .map(|d| Tolerance::Relative(d.to_f64() / 100.0))
            .ok_or_else(|| Fault::bare(format!("\"{p}%\" is not a percentage"))),
        (None, Scalar::Text(t)) => in_unit(t, false, unit).map(Tolerance::Absolute),
        (None, Scalar::Number(n)) => in_unit(n, true, unit).map(Tolerance::Absolute),
    };
    value.map_err(|f| s.fault_in("tolerance", f)).ok()
}

/// Reads one `[[reference.row]]`.
pub(super) fn row(s: &Section, plan: &Plan) -> Option<ReferenceRow> {
    let name = s.required("name", "\"10M flow, average\"");
    let paper = s.required("paper", "\"10.1 Mbit/s\"");
    let measured = measure(s, plan);
    Some(ReferenceRow { name: name?, paper: paper?, measure: measured?.0 })
}
