//! `[[expect]]` and `[[reference.row]]`: what is measured from a result, and with what it is compared.

use super::diag::{listed, nearest};
use super::reader::{Positive, Scalar, Section};
use super::units::{self, Decimal, Fault};
use crate::expect::matches;
use crate::plan::{Aggregate, Expect, Measure, Metric, Op, Plan, ReferenceRow, Subject, Target, Tolerance};
use weir_core::stats::DropReason;
use weir_core::time::Duration;

/// The unit of a metric: how bounds for it are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Bits per second: `"10Mbit"`.
    Rate,
    /// Microseconds: `"10ms"`.
    Micros,
    /// Seconds: `"1.5s"`.
    Seconds,
    /// Bytes: `"64KiB"`.
    Bytes,
    /// A plain number.
    Plain,
}

/// Metrics of flows that need the bins of received bytes, and the key that gives their length.
const BINNED: [(&str, Option<&str>); 4] = [
    ("goodput_bps", None),
    ("interval_bps", Some("every")),
    ("max_bps", Some("window")),
    ("min_bps", Some("window")),
];
/// Fields of a result's objects that can be checked.
const FLOW: [&str; 9] =
    ["bytes", "retransmits", "rtos", "rtt_us.p50", "rtt_us.p99", "fct_s", "start_s", "end_s", "target_bps"];
const LINK: [&str; 8] =
    ["packets", "bytes", "utilization", "queue_us.p50", "queue_us.p99", "queue_us.max", "marks", "drops"];
const CLASS: [&str; 10] = [
    "target_bps",
    "bps",
    "queue_peak_bytes",
    "queue_peak_packets",
    "held_ack_peak_packets",
    "held_ack_peak_bytes",
    "acks_absorbed",
    "acks_generated",
    "acks_rewritten",
    "drops",
];
const GATEWAY: [&str; 8] = [
    "cpu_s",
    "user_data_bytes",
    "frames.in",
    "frames.made",
    "frames.out",
    "frames.held",
    "frames.absorbed",
    "frames.dropped",
];
/// The links of `[path]` as results name them.
pub const LINKS: [&str; 4] = ["lan.out", "lan.back", "wan.out", "wan.back"];

const GRAMMAR: &str = "`flow.PATTERN.METRIC`, `class.PATTERN.METRIC`, `link.NAME.METRIC` or `gateway.METRIC`";

/// A path taken apart: subject, metric name.
fn split_path(what: &str) -> Result<(Subject, String), Fault> {
    let (kind, rest) = what.split_once('.').unwrap_or((what, ""));
    let binned = BINNED.iter().map(|(n, _)| *n);
    let (known, make): (Vec<&str>, fn(String) -> Subject) = match kind {
        "flow" => (binned.chain(FLOW).collect(), Subject::Flow),
        "link" => (LINK.to_vec(), Subject::Link),
        "class" => (CLASS.to_vec(), Subject::Class),
        "gateway" => (GATEWAY.to_vec(), |_| Subject::Gateway),
        _ => return Err(Fault::new(format!("\"{what}\" is not something that can be measured"), GRAMMAR)),
    };
    let counts = known.iter().filter(|k| matches!(**k, "drops" | "frames.dropped"));
    let reasons = counts.flat_map(|k| DropReason::ALL.map(|r| format!("{k}.{}", r.name())));
    let metrics: Vec<String> = known.iter().map(|k| k.to_string()).chain(reasons).collect();
    if kind == "gateway" {
        if let Some(metric) = metrics.iter().find(|m| *m == rest) {
            return Ok((Subject::Gateway, metric.clone()));
        }
    }
    // Names contain dots and so do metrics: the longest metric that ends the path is meant.
    let ends = |m: &&String| rest.strip_suffix(m.as_str()).is_some_and(|r| r.len() > 1 && r.ends_with('.'));
    if let Some(metric) = metrics.iter().filter(ends).max_by_key(|m| m.len()).filter(|_| kind != "gateway") {
        let name = &rest[..rest.len() - metric.len() - 1];
        return Ok((make(name.to_string()), metric.clone()));
    }
    let last = rest.rsplit('.').next().unwrap_or(rest);
    let guess = match nearest(last, metrics.iter().map(String::as_str)) {
        Some(m) => format!("did you mean `{m}`? "),
        None => String::new(),
    };
    Err(Fault::new(
        format!("\"{what}\" does not end with a metric of a {kind}"),
        format!("{guess}metrics of a {kind}: {}", listed(known.iter().copied())),
    ))
}

fn unit_of(metric: &str) -> Unit {
    let root = metric.split('.').next().unwrap_or(metric);
    match root {
        "bps" => Unit::Rate,
        "cpu_s" | "fct_s" | "start_s" | "end_s" => Unit::Seconds,
        "bytes" => Unit::Bytes,
        r if r.ends_with("_bps") => Unit::Rate,
        r if r.ends_with("_us") => Unit::Micros,
        r if r.ends_with("_bytes") => Unit::Bytes,
        _ => Unit::Plain,
    }
}

/// A value in a unit: a plain number means the unit itself.
fn in_unit(text: &str, number: bool, unit: Unit) -> Result<f64, Fault> {
    if number {
        return Decimal::parse(text)
            .map(Decimal::to_f64)
            .ok_or_else(|| Fault::bare(format!("{text} is not a number that can be used here")));
    }
    match unit {
        Unit::Rate => units::rate(text).map(|r| r.bps() as f64),
        Unit::Micros => units::duration(text).map(|d| d.as_nanos() as f64 / 1e3),
        Unit::Seconds => units::duration(text).map(|d| d.as_nanos() as f64 / 1e9),
        Unit::Bytes => units::size(text).map(|n| n as f64),
        Unit::Plain => Err(Fault::bare(format!("expected a number, found the string \"{text}\""))),
    }
}

/// A duration of whole milliseconds: bytes are recorded in bins of at least one.
pub(super) fn milliseconds(d: Duration) -> Result<Duration, Fault> {
    if d.as_nanos() % 1_000_000 == 0 {
        Ok(d)
    } else {
        Err(Fault::bare(format!("{d} is not a whole number of milliseconds")))
    }
}

/// The same, above zero.
pub(super) fn positive_milliseconds(Positive(d): Positive) -> Result<Duration, Fault> {
    milliseconds(d)
}

/// Reads what is measured: `what`, `from`, `until`, `every`, `window`. The names in it must be those of
/// the plan.
fn measure(s: &Section, plan: &Plan) -> Option<(Measure, Unit)> {
    s.need("what", "\"flow.*.goodput_bps\"");
    let text = s.get::<String>("what");
    let from = s.parsed("from", milliseconds);
    let until = s.parsed("until", milliseconds);
    let every = s.parsed("every", positive_milliseconds);
    let window = s.parsed("window", positive_milliseconds);
    let text = text?;
    let (subject, metric) = match split_path(&text).and_then(|found| known(&found.0, plan).map(|()| found)) {
        Ok(found) => found,
        Err(fault) => {
            s.fault("what", fault);
            return None;
        }
    };
    let unit = unit_of(&metric);
    let binned = match &subject {
        Subject::Flow(_) => BINNED.iter().find(|(n, _)| *n == metric),
        _ => None,
    };
    let length_key = binned.and_then(|b| b.1);
    for (key, given) in [("every", every), ("window", window)] {
        match (length_key == Some(key), given) {
            (true, None) => s.need(key, "\"2s\""),
            (false, Some(_)) => s.key_fault(
                key,
                Fault::new(
                    format!("`{key}` has no meaning for `{metric}`"),
                    "`every` is for `interval_bps`, `window` for `max_bps` and `min_bps`",
                ),
            ),
            _ => (),
        }
    }
    if binned.is_none() {
        for key in ["from", "until"] {
            if s.has(key) {
                let help = "only `goodput_bps`, `interval_bps`, `max_bps` and `min_bps` of flows are recorded over time";
                s.key_fault(key, Fault::new(format!("`{key}` has no meaning for `{metric}`"), help));
            }
        }
    }
    let length = every.or(window);
    let end = until.unwrap_or(plan.duration);
    let from = from.unwrap_or_default();
    if end > plan.duration {
        s.fault("until", Fault::bare(format!("{end} is after the end, {}", plan.duration)));
    } else if from >= end {
        let message = format!("{from} is not before {end}, where the measured time ends");
        s.fault(if s.has("from") { "from" } else { "until" }, Fault::bare(message));
    } else if length.is_some_and(|l| l > end - from) {
        let message = format!("not one of {} fits between {from} and {end}", length.unwrap_or_default());
        s.fault(if every.is_some() { "every" } else { "window" }, Fault::bare(message));
    }
    let metric = match (metric.as_str(), length) {
        ("goodput_bps", _) => Metric::Goodput,
        ("interval_bps", l) => Metric::Intervals(l?),
        ("max_bps", l) => Metric::MaxOver(l?),
        ("min_bps", l) => Metric::MinOver(l?),
        (field, _) => Metric::Field(field.split('.').map(str::to_string).collect()),
    };
    Some((Measure { what: text, subject, metric, from, until }, unit))
}

/// A name that nothing in the plan has would be a check that cannot pass.
fn known(subject: &Subject, plan: &Plan) -> Result<(), Fault> {
    let none = |kind: &str, pattern: &str, names: Vec<String>| {
        if names.iter().any(|n| matches(pattern, n)) {
            return Ok(());
        }
        let shown: Vec<&str> = names.iter().map(String::as_str).take(8).collect();
        let more = if names.len() > shown.len() { " and more" } else { "" };
        let message = format!("no {kind} is named `{pattern}`");
        Err(Fault::new(message, format!("there is {}{more}", listed(shown))))
    };
    match subject {
        Subject::Flow(p) => none("flow", p, plan.flows().map(|f| f.id).collect()),
        Subject::Link(n) => none("link", n, LINKS.map(str::to_string).to_vec()),
        Subject::Class(p) => {
            let classes = plan.gateway.iter().flat_map(|g| &g.classes);
            none("class", p, classes.map(|c| c.name.clone()).collect())
        }
        Subject::Gateway if plan.gateway.is_none() => {
            Err(Fault::bare("the experiment has no gateway: there is no `[gateway]`"))
        }
        Subject::Gateway => Ok(()),
    }
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
    if aggregate == Some(Aggregate::Sum) && matches!(measure.metric, Metric::Intervals(_)) {
        let help = "sum `goodput_bps` instead, or check the \"mean\" of the intervals";
        s.fault("aggregate", Fault::new("a sum over intervals is not a rate", help));
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
