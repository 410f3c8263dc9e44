//! Tables of the flows of a run, or of its groups of flows.

use super::columns::{at_least, column, counts, headings, is_mean, number, rate_unit, shown, RateUnit};
use super::grid::{Column, Grid};
use super::{clean, seconds, Ink, Lines, MOST_FLOWS};
use crate::experiment::plan::Plan;
use crate::result::metric::{Found, Metric, OverTime, Total, FLOW};
use crate::result::unit::Unit;
use crate::result::{Counts, FlowResult, RunResult};
use std::collections::HashSet;
use weir_core::time::Duration;

/// Lists the flows, a line each.
pub(super) fn flows(result: &RunResult, plan: &Plan, ink: Ink) -> Lines {
    let rates = rate_unit(self::rates(result));
    let who = [Column::words("flow"), Column::words("cc"), Column::words("class")];
    let mut grid = Grid::new(columns(who, rates));
    for f in &result.flows {
        let mut cells = vec![clean(&f.id), clean(&f.cc), clean(&f.class)];
        cells.extend(shown(FLOW).map(|(m, _)| match (value(m, f, plan.interval), m.found(f)) {
            (None, Some(Found::AtLeast(v) | Found::Between(v, _))) => at_least(m.unit, v, Some(rates)),
            (value, _) => value.map_or(String::new(), |v| number(m.unit, v, Some(rates))),
        }));
        cells.push(clean(f.pass_reason.as_deref().unwrap_or("")));
        grid.row(cells);
    }
    let mut lines = ink.grid(&grid);
    lines.extend(total(result));
    lines.extend(given_up(result));
    lines.push(format!("min and max are those of whole intervals of {}", plan.interval));
    lines
}

/// Lists the groups, a line each.
pub(super) fn groups(result: &RunResult, plan: &Plan, ink: Ink) -> Lines {
    let rates = rate_unit(self::rates(result));
    let who = ["group", "flows", "cc", "class"].map(|name| {
        if name == "flows" {
            Column::numbers(name, "")
        } else {
            Column::words(name)
        }
    });
    let mut grid = Grid::new(columns(who, rates));
    for (id, flows) in result.groups() {
        let distinct = |of: fn(&FlowResult) -> &str| distinct(flows.iter().map(|f| of(f)));
        let mut cells = vec![clean(id), flows.len().to_string(), distinct(|f| &f.cc), distinct(|f| &f.class)];
        cells.extend(shown(FLOW).map(|(m, _)| of_group(m, &flows, plan.interval, rates)));
        cells.push(counts(&passed(&flows)));
        grid.row(cells);
    }
    let mut lines = ink.grid(&grid);
    lines.extend(total(result));
    lines.extend(given_up(result));
    let of = |wanted: fn(&Metric<FlowResult>) -> bool| headings(FLOW.iter(), wanted);
    lines.push(format!(
        "more than {MOST_FLOWS} flows: one line for each group. {}: min/mean/max of its flows; {}: of the flow furthest",
        of(|m| m.judged.is_some()),
        of(|m| m.total == Total::Furthest)
    ));
    lines.push(format!(
        "from its target; min and max: of all whole intervals of {}; {}: means; {}: sums",
        plan.interval,
        of(|m| m.judged.is_none() && is_mean(m)),
        of(|m| m.total == Total::Sum)
    ));
    lines
}

/// Returns the rates and targets of the flows of a run.
fn rates(result: &RunResult) -> impl Iterator<Item = f64> + '_ {
    result.flows.iter().map(|f| f.goodput_bps.max(f.target_bps.unwrap_or(0) as f64))
}

/// Builds the columns: subject, measured values, and the reason for passing.
fn columns(who: impl IntoIterator<Item = Column>, rates: RateUnit) -> Vec<Column> {
    let measured = shown(FLOW).map(|(m, heading)| column(m, heading, Some(rates)));
    who.into_iter().chain(measured).chain([Column::words("passed")]).collect()
}

/// Returns the value of a metric. For a metric over time, tables show the highest and lowest whole interval;
/// the first and the last interval may be cut.
pub(super) fn value(metric: &Metric<FlowResult>, f: &FlowResult, interval: Duration) -> Option<f64> {
    let whole = interval.as_secs_f64() * 0.999_999;
    let rates = f.intervals.iter().filter(|i| i.len_s >= whole).map(|i| i.bps);
    match (metric.of(f), metric.over_time) {
        (None, Some(OverTime::Highest)) => rates.reduce(f64::max),
        (None, Some(OverTime::Lowest)) => rates.reduce(f64::min),
        (value, _) => value,
    }
}

/// Formats a cell of a group. Depending on the metric it has the total; the smallest, mean and largest of
/// judged values; or the smallest and largest of values that should be equal.
fn of_group(m: &Metric<FlowResult>, flows: &[&FlowResult], interval: Duration, rates: RateUnit) -> String {
    let values: Vec<f64> = flows.iter().filter_map(|f| value(m, f, interval)).collect();
    let several = |totals: &[Total]| {
        let values = totals.iter().filter_map(|total| total.of(&values));
        values.map(|v| number(m.unit, v, Some(rates))).collect::<Vec<_>>().join("/")
    };
    let cell = match m.total {
        _ if values.is_empty() => return String::new(),
        _ if m.judged.is_some() => several(&[Total::Least, Total::Mean, Total::Most]),
        Total::Same if Total::Same.of(&values).is_none() => several(&[Total::Least, Total::Most]),
        total => several(&[total]),
    };
    cell + &m.measured(flows).to_string()
}

/// Counts the flows left alone, by reason.
fn passed(flows: &[&FlowResult]) -> Counts {
    let mut passed = Counts::new();
    for reason in flows.iter().filter_map(|f| f.pass_reason.clone()) {
        *passed.entry(reason).or_default() += 1;
    }
    passed
}

/// Describes the bytes received over the whole run.
fn total(result: &RunResult) -> Option<String> {
    if result.flows.len() < 2 || result.duration_s <= 0.0 {
        return None;
    }
    let bytes: u64 = result.flows.iter().map(|f| f.bytes).sum();
    let bps = Unit::Rate.show(bytes as f64 * 8.0 / result.duration_s);
    Some(format!("all {} flows: {bps} over {} s", result.flows.len(), seconds(result)))
}

/// Describes the connections that were given up: their number, and the first names.
fn given_up(result: &RunResult) -> Option<String> {
    const MOST: usize = 5;
    let names: Vec<String> = result.flows.iter().filter(|f| f.gave_up > 0).map(|f| clean(&f.id)).collect();
    let shown = names[..names.len().min(MOST)].join(", ");
    let more = if names.len() > MOST { ", ..." } else { "" };
    let what = "given up after time-outs without an answer";
    (!names.is_empty())
        .then(|| format!("{what}: {} of {} flows ({shown}{more})", names.len(), result.flows.len()))
}

/// Joins the distinct words of several flows, shortened if there are many: `cubic, reno`.
fn distinct<'a>(words: impl Iterator<Item = &'a str>) -> String {
    const MOST: usize = 4;
    let mut known = HashSet::new();
    let mut seen: Vec<&str> = words.filter(|w| !w.is_empty() && known.insert(*w)).collect();
    let more = seen.len().saturating_sub(MOST);
    seen.truncate(MOST);
    let all = clean(&seen.join(", "));
    if more > 0 {
        format!("{all}, {more} more")
    } else {
        all
    }
}
