//! What can be measured: subjects, their metrics, and the units of these.

use super::diag::{listed, nearest};
use super::measured;
use super::units::{self, Decimal, Fault};
use crate::expect::matches;
use crate::plan::{Plan, SeriesKind, Subject};
use weir_core::stats::DropReason;

/// The unit of a metric: how bounds for it are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
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

/// How a metric is found in a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Computed from the bins of received bytes; the key gives the length that it is computed over.
    Binned(Option<&'static str>),
    /// A column of a series.
    Series,
    /// A field of an object.
    Field,
}

/// Metrics of flows that need the bins of received bytes, and the key that gives their length.
const BINNED: [(&str, Option<&str>); 4] = [
    ("goodput_bps", None),
    ("interval_bps", Some("every")),
    ("max_bps", Some("window")),
    ("min_bps", Some("window")),
];
/// Fields of a result's objects that can be checked.
const FLOW: [&str; 17] = [
    "bytes",
    "retransmits",
    "rtos",
    "rtt_us.p50",
    "rtt_us.p99",
    "fct_s",
    "start_s",
    "end_s",
    "target_bps",
    "loss",
    "back.bytes",
    "back.goodput_bps",
    "back.target_bps",
    "exchanges.count",
    "exchanges.latency_us.p50",
    "exchanges.latency_us.p90",
    "exchanges.latency_us.p99",
];
const LINK: [&str; 8] =
    ["packets", "bytes", "utilization", "queue_us.p50", "queue_us.p99", "queue_us.max", "marks", "drops"];
const CLASS: [&str; 7] = [
    "target_bps",
    "bps",
    "held_ack_peak_packets",
    "held_ack_peak_bytes",
    "acks_absorbed",
    "acks_generated",
    "acks_rewritten",
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
const GRAMMAR: &str = "`flow.PATTERN.METRIC`, `class.PATTERN.METRIC`, `link.NAME.METRIC` or `gateway.METRIC`";

/// Columns of series of links, or of flows.
fn columns(of_links: bool) -> impl Iterator<Item = (SeriesKind, &'static str)> {
    let kinds = SeriesKind::ALL.into_iter().map(|(_, kind)| kind).filter(move |k| k.of_links() == of_links);
    kinds.flat_map(|kind| kind.columns().iter().map(move |column| (kind, *column)))
}

/// Every column of every series, for messages.
pub(super) fn all_columns() -> String {
    listed(columns(false).chain(columns(true)).map(|(_, name)| name))
}

/// The metrics computed from bins, for messages.
pub(super) fn binned_metrics() -> String {
    listed(BINNED.iter().map(|(n, _)| *n))
}

/// How a metric of a subject is found.
pub(super) fn kind_of(subject: &Subject, metric: &str) -> Kind {
    let series = |links| columns(links).any(|(_, name)| name == metric);
    match subject {
        Subject::Flow(_) => match BINNED.iter().find(|(name, _)| *name == metric) {
            Some((_, length)) => Kind::Binned(*length),
            None if series(false) => Kind::Series,
            None => Kind::Field,
        },
        Subject::Link(_) if series(true) => Kind::Series,
        Subject::Link(_) | Subject::Class(_) | Subject::Gateway => Kind::Field,
    }
}

/// A path taken apart: subject, metric name. The names in it must be those of the plan.
pub(super) fn split(what: &str, plan: &Plan) -> Result<(Subject, String), Fault> {
    let (subject, metric) = split_path(what)?;
    known(&subject, plan)?;
    measured::check(&subject, &metric, plan)?;
    if kind_of(&subject, &metric) == Kind::Series {
        let of_links = matches!(subject, Subject::Link(_));
        let kind = columns(of_links).find(|(_, name)| *name == metric).map(|(kind, _)| kind);
        if let Some(kind) = kind.filter(|k| !plan.series.contains(k)) {
            let names = plan.series.iter().chain([&kind]).map(|k| format!("\"{}\"", k.name()));
            let help = format!("record it: series = [{}]", names.collect::<Vec<_>>().join(", "));
            return Err(Fault::new(format!("`{metric}` is not recorded"), help));
        }
    }
    Ok((subject, metric))
}

fn split_path(what: &str) -> Result<(Subject, String), Fault> {
    let (kind, rest) = what.split_once('.').unwrap_or((what, ""));
    let binned = BINNED.iter().map(|(n, _)| *n);
    let series = |links| columns(links).map(|(_, name)| name);
    let (known, make): (Vec<&str>, fn(String) -> Subject) = match kind {
        "flow" => (binned.chain(FLOW).chain(series(false)).collect(), Subject::Flow),
        "link" => (LINK.into_iter().chain(series(true)).collect(), Subject::Link),
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
    if let Some(fault) = rest.find('.').and_then(|dot| measured::not_yet(kind, &rest[dot + 1..])) {
        return Err(fault);
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

/// The unit of a metric.
pub(super) fn unit_of(metric: &str) -> Unit {
    let metric = ["back.", "exchanges."].iter().fold(metric, |m, part| m.strip_prefix(part).unwrap_or(m));
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
pub(super) fn in_unit(text: &str, number: bool, unit: Unit) -> Result<f64, Fault> {
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
        Subject::Link(n) => none("link", n, plan.links()),
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
