//! Tables `[[expect]]` and `[[reference.row]]`: measures of a result, and the values that they are compared
//! with.

use super::bins::{positive_time, time};
use super::decimal::Decimal;
use super::diag::{listed, nearest, Fault};
use super::reader::{FromValue, Scalar, Section, Size};
use super::subject::{self, in_unit, Named};
use crate::experiment::plan::{
    Aggregate, Expect, Field, Measure, Of, Op, Plan, Quantity, ReferenceRow, Subject, Target, Tolerance,
};
use crate::result::metric::{Needs, OverTime, Recorded};
use crate::result::unit::Unit;
use crate::result::{Backend, Basis};
use weir_core::time::Duration;

/// Keys for the time or the length of a measurement.
const TIMES: [&str; 5] = ["from", "until", "every", "window", "at"];

/// Reads a measure: `what`, and the times that have a meaning for its metric.
fn measure(s: &Section, plan: &Plan) -> Option<(Measure, Unit)> {
    s.need("what", "\"flow.*.goodput_bps\"");
    measure_by(s, "what", plan)
}

/// Reads the measure that a key names.
fn measure_by(s: &Section, key: &'static str, plan: &Plan) -> Option<(Measure, Unit)> {
    let found = s.get::<String>(key).and_then(|text| match subject::split(&text, plan) {
        Ok(found) => Some((text, found)),
        Err(fault) => {
            s.fault(key, fault);
            None
        }
    });
    let Some((what, (subject, metric, named))) = found else {
        for key in TIMES {
            s.get::<Duration>(key);
        }
        s.has("sizes");
        return None;
    };
    if named.needs() == Needs::Lab {
        s.note_value(
            Backend::Lab,
            key,
            Fault::bare("in the sim world a gateway takes no processor time, and its engine is never away"),
        );
    }
    let sizes = if s.has("sizes") { sizes(s, &subject) } else { None };
    let (quantity, from, until) = match (named, named.over_time()) {
        (_, Some(over)) => goodput(s, &metric, over, plan)?,
        (Named::Series(column), _) => series(s, column, plan),
        (Named::Field(field, count), _) => {
            meaningful(s, &metric, &[]);
            (Quantity::Field { field, count }, Duration::ZERO, None)
        }
    };
    Some((Measure { what, subject, quantity, sizes, from, until }, named.unit()))
}

/// Reads `sizes`, the smallest and the largest number of bytes of a flow.
fn sizes(s: &Section, subject: &Subject) -> Option<(u64, u64)> {
    const EXAMPLE: &str = "[\"10kB\", \"100kB\"]";
    let found = s.list("sizes", EXAMPLE, |v| Size::from_value(v).map(|Size(n)| n))?;
    if !matches!(subject, Subject::Flow(_)) {
        s.key_fault("sizes", Fault::bare("`sizes` has no meaning for what is no flow"));
    }
    match found.as_slice() {
        &[min, max] if min <= max => Some((min, max)),
        _ => {
            let help = format!("for example: sizes = {EXAMPLE}");
            s.fault_in("sizes", Fault::new("not the smallest and the largest size of a flow", help));
            None
        }
    }
}

/// Refuses times that have no meaning for the metric.
fn meaningful(s: &Section, metric: &str, keys: &[&str]) {
    for key in TIMES.into_iter().filter(|key| s.has(key) && !keys.contains(key)) {
        let help = match key {
            "every" | "window" => {
                let [every, window] = ["every", "window"].map(|key| subject::over_time(Some(key)));
                format!("`every` is for {every}, `window` for {window}")
            }
            "at" => format!("`at` is for columns of `series`: {}", subject::all_columns()),
            _ if s.has("at") => "`at` is one moment; leave one of the two out".to_string(),
            _ => format!(
                "only {} of flows are recorded over time, and what `series` names",
                subject::over_time(None)
            ),
        };
        s.key_fault(key, Fault::new(format!("`{key}` has no meaning for `{metric}`"), help));
    }
}

/// Reads `from`, `until` and the length of a metric that is computed over time.
fn goodput(
    s: &Section,
    metric: &str,
    over: OverTime,
    plan: &Plan,
) -> Option<(Quantity, Duration, Option<Duration>)> {
    let key = over.key();
    meaningful(s, metric, &[&["from", "until"], key.as_slice()].concat());
    let (from, until) = (time(s, "from"), time(s, "until"));
    let length = key.and_then(|key| {
        s.need(key, "\"2s\"");
        positive_time(s, key)
    });
    let end = until.unwrap_or(plan.duration);
    let begin = from.unwrap_or_default();
    if ends_well(s, begin, end, plan) {
        if let (Some(key), Some(length)) = (key, length.filter(|l| *l > end - begin)) {
            s.fault(key, Fault::bare(format!("not one of {length} fits between {begin} and {end}")));
        }
    }
    let length = if key.is_some() { length? } else { end.saturating_sub(begin) };
    Some((Quantity::Goodput { over, length }, begin, until))
}

/// Reads `at`, or `from` and `until`, of a column of a series. They need not fall on bins.
fn series(s: &Section, column: &'static Recorded, plan: &Plan) -> (Quantity, Duration, Option<Duration>) {
    let keys: &[&str] = if s.has("at") { &["at"] } else { &["from", "until"] };
    meaningful(s, column.name, keys);
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
    (Quantity::Series { column, at }, from, until)
}

/// Checks that `until` is later than `from` and not after the end.
fn ends_well(s: &Section, from: Duration, until: Duration, plan: &Plan) -> bool {
    if until > plan.duration {
        s.fault("until", Fault::bare(format!("{until} is after the end, {}", plan.duration)));
    } else if from >= until {
        let message = format!("{from} is not before the end of the measured time, {until}");
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
        ("deviation", Aggregate::Deviation),
        ("p50", Aggregate::Percentile(50)),
        ("p90", Aggregate::Percentile(90)),
        ("p99", Aggregate::Percentile(99)),
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
                Fault::new("`tolerance` cannot be combined with op = \"equals\"", "write op = \"within\""),
            );
        }
        _ => (),
    }
    let basis = s.choice("basis", &Basis::ALL.map(|b| (b.name(), b)), &[]);
    let (measure, unit) = measured?;
    if aggregate == Some(Aggregate::Sum) {
        let (what, help) = match measure.quantity {
            Quantity::Goodput { over: OverTime::Intervals, .. } => (
                "intervals is not a rate",
                "sum `goodput_bps` instead, or check the \"mean\" of the intervals",
            ),
            Quantity::Goodput { over: OverTime::Highest | OverTime::Lowest, .. } => (
                "windows of different times is not a rate",
                "sum `goodput_bps`, which has one window, or check the \"max\" or the \"min\"",
            ),
            Quantity::Field { field: Field::Class(m), .. }
                if m.unit == Unit::Rate && !m.name.ends_with("target_bps") =>
            {
                ("rates of different times is not a rate", "sum `goodput_bps`, which has one window")
            }
            _ if matches!(unit, Unit::Share | Unit::Deviation) => {
                ("shares of different things is not a share", "check the \"mean\" or the \"max\"")
            }
            Quantity::Series { at: None, .. } => (
                "all times has no meaning",
                "sum what flows have `at` one time, or check the \"mean\" or the \"max\"",
            ),
            _ => ("", ""),
        };
        if !what.is_empty() {
            s.fault("aggregate", Fault::new(format!("a sum over {what}"), help));
        }
    }
    let of = if s.has("of") { Some(self::of(s, unit, plan)?) } else { None };
    let target = match &of {
        Some(_) => part(s, &target?),
        None => self::target(s, &measure, unit, aggregate, target?),
    };
    let tolerance = match tolerance {
        None => Some(Tolerance::Absolute(0.0)),
        Some(t) => self::tolerance(s, unit, &t),
    };
    Some(Expect { measure, aggregate, op: op?.0, target: target?, of, tolerance: tolerance?, basis })
}

/// Reads the reference of a relative target: the same measure in a baseline, or another measure of the same
/// unit, at the same times.
fn of(s: &Section, unit: Unit, plan: &Plan) -> Option<Of> {
    let written = s.get::<String>("of")?;
    if let Some(name) = written.strip_prefix("baseline.") {
        if !plan.baselines.iter().any(|b| b.name == name) {
            s.fault("of", no_baseline(name, plan));
            return None;
        }
        return Some(Of::Baseline(name.to_string()));
    }
    let (of, other) = measure_by(s, "of", plan)?;
    if other != unit {
        s.fault("of", Fault::new("it has another unit than `what`", "name a metric of the same kind"));
    }
    Some(Of::Measure(of))
}

fn no_baseline(name: &str, plan: &Plan) -> Fault {
    let names = || plan.baselines.iter().map(|b| b.name.as_str());
    let help = match (nearest(name, names()), names().next()) {
        (Some(n), _) => format!("did you mean `{n}`?"),
        (None, Some(_)) => format!("there is {}", listed(names())),
        (None, None) => format!("write [baseline] with {name} = {{ \"path.wan.rate\" = \"1Gbit\" }}"),
    };
    Fault::new(format!("no baseline is named `{name}`"), help)
}

/// Reads a target that is a part of the value named by `of`.
fn part(s: &Section, written: &Scalar) -> Option<Target> {
    let percent = match written {
        Scalar::Text(t) => t.trim().strip_suffix('%').and_then(|p| Decimal::parse(p.trim_end())),
        Scalar::Number(_) => None,
    };
    if percent.is_none() {
        let fault =
            Fault::new("not a percentage", "with `of` the target is a part of that: target = \"92%\"");
        s.fault_in("target", fault);
    }
    percent.map(|p| Target::Value(p.to_f64() / 100.0))
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
