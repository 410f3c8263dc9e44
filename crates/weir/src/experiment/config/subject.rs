//! Key `what` of a check: a subject of the plan, and a metric of the catalogue that is measured of it.

use super::decimal::Decimal;
use super::diag::{listed, nearest, Fault};
use super::measured;
use super::units;
use crate::experiment::plan::{matches, Field, Plan, Subject};
use crate::result::metric::{Metric, Needs, OverTime, Recorded, CLASS, FLOW, GATEWAY, LINK};
use crate::result::unit::Unit;
use weir_core::stats::DropReason;

const GRAMMAR: &str = "`flow.PATTERN.METRIC`, `class.PATTERN.METRIC`, `link.NAME.METRIC` or `gateway.METRIC`";

/// Value of a subject that `what` names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Named {
    /// Metric; a metric of counts may have the name of one count.
    Field(Field, Option<&'static str>),
    /// Column of a series.
    Series(&'static Recorded),
}

impl Named {
    /// Returns the part of the plan that the measurement needs.
    pub fn needs(self) -> Needs {
        match self {
            Named::Field(Field::Flow(m), _) => m.needs,
            Named::Field(Field::Link(m), _) => m.needs,
            Named::Field(Field::Class(m), _) => m.needs,
            Named::Field(Field::Gateway(m), _) => m.needs,
            Named::Series(column) => column.needs,
        }
    }

    /// Returns the computation over time, if there is one.
    pub fn over_time(self) -> Option<OverTime> {
        match self {
            Named::Field(Field::Flow(m), _) => m.over_time,
            Named::Field(Field::Class(m), _) => m.over_time,
            _ => None,
        }
    }

    /// Returns the unit of the values.
    pub fn unit(self) -> Unit {
        match self {
            Named::Field(field, _) => field.unit(),
            Named::Series(column) => column.unit,
        }
    }
}

/// Values that can be measured of one kind of subject.
struct Kind {
    /// Names, in the order of the catalogue.
    names: Vec<&'static str>,
    /// Names with their meanings, including those of single counts.
    known: Vec<(String, Named)>,
}

impl Kind {
    fn of<T>(metrics: &'static [Metric<T>], field: fn(&'static Metric<T>) -> Field) -> Kind {
        let mut kind = Kind { names: Vec::new(), known: Vec::new() };
        for m in metrics.iter().filter(|m| m.checked) {
            kind.names.push(m.name);
            kind.known.push((m.name.to_string(), Named::Field(field(m), None)));
            for reason in DropReason::ALL.iter().map(|r| r.name()).filter(|_| m.has_names()) {
                kind.known.push((format!("{}.{reason}", m.name), Named::Field(field(m), Some(reason))));
            }
        }
        kind
    }

    /// Adds the columns of series of links, or of flows.
    fn with_series(mut self, of_links: bool) -> Kind {
        for column in Recorded::all(of_links) {
            self.names.push(column.name);
            self.known.push((column.name.to_string(), Named::Series(column)));
        }
        self
    }
}

/// Lists all columns of all series, for messages.
pub(super) fn all_columns() -> String {
    listed(Recorded::all(false).chain(Recorded::all(true)).map(|column| column.name))
}

/// Lists the metrics computed over time, for messages: all, or those whose length is given by `key`.
pub(super) fn over_time(key: Option<&str>) -> String {
    let wanted = |m: &&Metric<_>| m.over_time.is_some_and(|over| key.is_none() || over.key() == key);
    listed(FLOW.iter().filter(wanted).map(|m| m.name))
}

/// Splits a path into subject, metric and the name of the metric. Names in it must be those of the plan.
pub(super) fn split(what: &str, plan: &Plan) -> Result<(Subject, String, Named), Fault> {
    let (subject, metric, named) = split_path(what)?;
    known(&subject, plan)?;
    measured::check(&subject, &metric, named.needs(), plan)?;
    if let Named::Series(column) = named {
        if !plan.series.contains(&column.kind) {
            let names = plan.series.iter().chain([&column.kind]).map(|k| format!("\"{}\"", k.name()));
            let help = format!("record it: series = [{}]", names.collect::<Vec<_>>().join(", "));
            return Err(Fault::new(format!("`{metric}` is not recorded"), help));
        }
    }
    Ok((subject, metric, named))
}

fn split_path(what: &str) -> Result<(Subject, String, Named), Fault> {
    let (kind, rest) = what.split_once('.').unwrap_or((what, ""));
    let (metrics, make): (Kind, fn(String) -> Subject) = match kind {
        "flow" => (Kind::of(FLOW, Field::Flow).with_series(false), Subject::Flow),
        "link" => (Kind::of(LINK, Field::Link).with_series(true), Subject::Link),
        "class" => (Kind::of(CLASS, Field::Class), Subject::Class),
        "gateway" => (Kind::of(GATEWAY, Field::Gateway), |_| Subject::Gateway),
        _ => return Err(Fault::new(format!("\"{what}\" is not something that can be measured"), GRAMMAR)),
    };
    // The path of the gateway has no name in between.
    let alone = kind == "gateway";
    // Names contain dots and so do metrics. The longest metric that ends the path is the right one.
    let ends = |(name, _): &&(String, Named)| match rest.strip_suffix(name.as_str()) {
        Some(before) if alone => before.is_empty(),
        Some(before) => before.len() > 1 && before.ends_with('.'),
        None => false,
    };
    if let Some((name, named)) = metrics.known.iter().filter(ends).max_by_key(|(name, _)| name.len()) {
        let subject = &rest[..rest.len() - name.len()];
        let subject = subject.strip_suffix('.').unwrap_or(subject);
        return Ok((make(subject.to_string()), name.clone(), *named));
    }
    let last = rest.rsplit('.').next().unwrap_or(rest);
    let guess = match nearest(last, metrics.known.iter().map(|(name, _)| name.as_str())) {
        Some(m) => format!("did you mean `{m}`? "),
        None => String::new(),
    };
    Err(Fault::new(
        format!("\"{what}\" does not end with a metric of a {kind}"),
        format!("{guess}metrics of a {kind}: {}", listed(metrics.names)),
    ))
}

/// Parses a value in a unit; a plain number is in the unit itself.
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
        Unit::Share | Unit::Deviation | Unit::Count => {
            Err(Fault::bare(format!("expected a number, found the string \"{text}\"")))
        }
    }
}

/// Refuses a name that the plan does not have: such a check could not pass.
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
