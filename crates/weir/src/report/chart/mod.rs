//! Results as files: series as CSV, and charts of them as SVG or PDF.
//!
//! - `data`: converts series into points;
//! - `draw`: draws points;
//! - `pdf`: the page that it draws on beside SVG;
//! - `figure`: charts for papers, of one run or several;
//! - `swept`: charts of the runs of a sweep.

mod data;
mod draw;
mod figure;
mod pdf;
mod swept;

pub use draw::Size;
pub use figure::Figure;
pub use swept::swept;

use crate::experiment::plan::Plan;
use crate::result::metric::Recorded;
use crate::result::unit::Unit;
use crate::result::{describe, FlowResult, Interval, RunResult, Series, RECEIVED};
use data::Point;
use draw::{Chart, Curve, Mark, Panel, Shape};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use weir_core::stats::quantile;
use weir_core::time::Duration;

/// Most curves of a group that are drawn singly; larger groups show their mean and range.
const MOST_CURVES: usize = 16;
/// Upper end of the plot, in multiples of the highest target.
const ABOVE_TARGET: f64 = 1.5;

/// Chart of curves that do not come from a run.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// Headline.
    pub title: String,
    /// Notes for the reader, line by line.
    pub notes: Vec<String>,
    /// Name and unit of the horizontal axis, which goes from 0 to `until`.
    pub across: String,
    /// Name and unit of the vertical axis, which goes from 0 to `high`.
    pub up: String,
    /// End of the horizontal axis.
    pub until: f64,
    /// End of the vertical axis.
    pub high: f64,
    /// Curves by name.
    pub curves: Vec<(String, Vec<(f64, f64)>)>,
}

/// Draws the chart as an SVG document.
pub fn lines(of: &Lines) -> Result<String, String> {
    let line = |(colour, (_, points)): (usize, &(String, Vec<Point>))| {
        let shape = Shape::Line(points.clone());
        Curve { colour, among: 1, shape }
    };
    let panel = Panel {
        label: of.up.clone(),
        height: 340,
        high: of.high,
        curves: of.curves.iter().enumerate().map(line).collect(),
        ..Panel::default()
    };
    draw::svg(&Chart {
        title: of.title.clone(),
        notes: of.notes.clone(),
        legend: of.curves.iter().map(|c| c.0.clone()).collect(),
        panels: vec![panel],
        until: of.until,
        across: of.across.clone(),
        ..Chart::default()
    })
}

/// Chart of values at named positions.
#[derive(Clone, Debug, Default)]
pub struct Positions {
    /// Name of the horizontal axis.
    pub across: String,
    /// Name and unit of the vertical axis, which begins at 0 or at the lowest value below it.
    pub up: String,
    /// Names of the positions.
    pub names: Vec<String>,
    /// Names of the colours.
    pub legend: Vec<String>,
    /// Values by colour and mark.
    pub values: Vec<Values>,
}

/// Values of one colour and one mark.
#[derive(Clone, Debug)]
pub struct Values {
    /// Number of the colour.
    pub colour: usize,
    /// Mark of the values.
    pub of: Kind,
    /// Lowest, mean and highest value at each position.
    pub values: Vec<Option<[f64; 3]>>,
}

/// Kind of values, which decides their mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Values to compare with: broad bars.
    Reference,
    /// Values of another scheme: empty squares.
    Other,
    /// Values that the chart is about: circles with lines between them.
    Own,
    /// Values of the lab: triangles.
    Lab,
    /// Values of a sweep: a mark and dashes of its own for each colour, and a band over the ranges.
    Swept,
}

/// Draws values at named positions as an SVG document.
pub fn positions(of: &Positions) -> Result<String, String> {
    draw::svg(&positioned(of))
}

/// Makes the chart of values at named positions.
fn positioned(of: &Positions) -> Chart {
    let finite = |v: &[f64; 3]| v.iter().all(|v| v.is_finite());
    let all = || of.values.iter().flat_map(|v| &v.values).flatten().filter(|v| finite(v));
    let high = all().map(|v| v[2]).fold(0.0, f64::max);
    let low = all().map(|v| v[0]).fold(0.0, f64::min);
    let mut curves = Vec::new();
    for values in &of.values {
        // Marks of different kinds stand beside each other.
        let (mark, aside) = match values.of {
            Kind::Reference => (Mark::Bar, 0.0),
            Kind::Other => (Mark::Square, -0.12),
            Kind::Own => (Mark::Circle, 0.12),
            Kind::Lab => (Mark::Triangle, 0.24),
            Kind::Swept => (Mark::of(values.colour), 0.0),
        };
        let at = |(i, v): (usize, &Option<[f64; 3]>)| {
            let [low, mean, high] = v.filter(finite)?;
            Some(data::Spread { t: i as f64 + 0.5 + aside, low, mean, high })
        };
        let spread: Vec<data::Spread> = values.values.iter().enumerate().filter_map(at).collect();
        if values.of == Kind::Swept {
            curves.push(Curve { colour: values.colour, among: 1, shape: Shape::Band(spread.clone()) });
        }
        if values.of != Kind::Reference && values.of != Kind::Lab {
            let among = if values.of == Kind::Other { 2 } else { 1 };
            let line = Shape::Line(spread.iter().map(|s| (s.t, s.mean)).collect());
            curves.push(Curve { colour: values.colour, among, shape: line });
        }
        curves.push(Curve { colour: values.colour, among: 1, shape: Shape::Marked(mark, spread) });
    }
    let room = (high - low).max(1e-9) * 0.06;
    let panel = Panel {
        label: of.up.clone(),
        height: 300,
        low: if low < 0.0 { low - room } else { 0.0 },
        high: high + room,
        curves,
        ..Panel::default()
    };
    Chart {
        legend: of.legend.clone(),
        panels: vec![panel],
        until: of.names.len().max(1) as f64,
        across: of.across.clone(),
        positions: of.names.clone(),
        ..Chart::default()
    }
}

/// Subject of the charts of a run, and the lengths of time that it was measured over.
#[derive(Clone, Debug)]
struct About {
    title: String,
    bin: Duration,
    interval: Duration,
    duration: Duration,
}

impl About {
    fn planned(plan: &Plan) -> About {
        let Plan { bin, interval, duration, .. } = *plan;
        About { title: plan.title.clone(), bin, interval, duration }
    }

    /// Returns what a result tells without its plan.
    fn recorded(result: &RunResult) -> About {
        let time = |s: f64| Duration::from_nanos((s * 1e9).round().max(0.0) as u64);
        let received = result.series.values().filter(|series| series.columns.contains_key(RECEIVED));
        let bin = received.filter_map(|series| Some(series.t_s.get(1)? - series.t_s.first()?)).next();
        let lengths = result.flows.iter().flat_map(|flow| &flow.intervals).map(|interval| interval.len_s);
        About {
            title: String::new(),
            bin: bin.map_or(Duration::from_millis(1), time),
            interval: lengths.reduce(f64::max).map_or(Duration::from_secs(1), time),
            duration: time(result.duration_s),
        }
    }
}

/// Writes CSV files and charts into `dir`, which is made if needed. `flows.csv` has a row for each flow.
/// Series with the same columns become one table, named by its first column, with a row for each time of each
/// flow or link. `rate.svg` has the goodput of the flows, `<column>.svg` every other column of the series
/// (`cwnd_packets`, `rtt_us`, `held_bytes`, …), and `fct.svg` the distribution of completion times. Returns
/// the paths of the files in this order: CSV, then charts. Errors name the file.
pub fn write(dir: &Path, plan: &Plan, result: &RunResult) -> io::Result<Vec<PathBuf>> {
    let named = |path: &Path, e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
    std::fs::create_dir_all(dir).map_err(|e| named(dir, e))?;
    let mut files = Vec::new();
    let mut put = |name: String, text: String| {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|e| named(&path, e))?;
        files.push(path);
        io::Result::Ok(())
    };
    if !result.flows.is_empty() {
        put("flows.csv".to_string(), super::index::flows(result))?;
    }
    for (name, table) in tables(result) {
        put(format!("{}.csv", file_name(name)), table)?;
    }
    let of = &About::planned(plan);
    let columns: BTreeSet<&String> = result.series.values().flat_map(|s| s.columns.keys()).collect();
    let others = columns.into_iter().filter(|c| *c != RECEIVED);
    let charts = others.filter_map(|c| Some((file_name(c), column(of, result, c)?)));
    let rate = rates(of, result).map(|chart| ("rate".to_string(), chart));
    let completion = completion(of, result).map(|chart| ("fct".to_string(), chart));
    for (name, chart) in rate.into_iter().chain(charts).chain(completion) {
        let text = draw::svg(&chart).map_err(|e| io::Error::other(format!("{name}.svg: {e}")))?;
        put(format!("{name}.svg"), text)?;
    }
    Ok(files)
}

/// Returns a file name that stays in its directory. Names that plans allow stay unchanged.
fn file_name(name: &str) -> String {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let safe: String = name.chars().map(|c| if good(c) { c } else { '_' }).collect();
    match safe.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None => safe,
    }
}

/// Formats series as CSV (RFC 4180), those with the same columns as one table. Unknown values are empty
/// cells.
fn tables(result: &RunResult) -> BTreeMap<&str, String> {
    let mut tables: BTreeMap<&str, String> = BTreeMap::new();
    // Tables of other columns with the same first one are told apart by their last.
    let mut of: BTreeMap<Vec<&String>, &str> = BTreeMap::new();
    for (name, series) in &result.series {
        let columns: Vec<&String> = series.columns.keys().collect();
        let Some(first) = columns.first() else { continue };
        let free = columns.iter().map(|column| column.as_str()).find(|column| !tables.contains_key(column));
        let table = *of.entry(columns.clone()).or_insert_with(|| free.unwrap_or(first.as_str()));
        let text = tables.entry(table).or_insert_with(|| {
            let names = columns.iter().map(|name| name.replace([',', '"', '\n', '\r'], "_"));
            format!("of,t_s,{}\n", names.collect::<Vec<_>>().join(","))
        });
        rows(text, &name.replace([',', '"', '\n', '\r'], "_"), series);
    }
    tables
}

fn rows(text: &mut String, name: &str, series: &Series) {
    for (i, t) in series.t_s.iter().enumerate() {
        let _ = write!(text, "{name},{t}");
        for column in series.columns.values() {
            text.push(',');
            if let Some(v) = column.0.get(i).filter(|v| !v.is_nan()) {
                let _ = write!(text, "{v}");
            }
        }
        text.push('\n');
    }
}

/// Curves drawn in one colour: their name and their members, in order of appearance.
type Groups<'a, T> = Vec<(&'a str, Vec<T>)>;

fn grouped<'a, T>(members: impl Iterator<Item = (&'a str, T)>) -> Groups<'a, T> {
    let mut groups: Groups<T> = Vec::new();
    for (name, member) in members {
        match groups.iter_mut().find(|(n, _)| *n == name) {
            Some((_, members)) => members.push(member),
            None => groups.push((name, vec![member])),
        }
    }
    groups
}

fn legend<T>(groups: &Groups<T>) -> Vec<String> {
    let entry = |(name, members): &(&str, Vec<T>)| match members.len() {
        1 => name.to_string(),
        n => format!("{name} ({n} flows)"),
    };
    groups.iter().map(entry).collect()
}

/// Returns the headline: the subject of the experiment and the settings of a sweep.
fn title(about: &About, result: &RunResult) -> String {
    let name = if about.title.is_empty() { &result.experiment } else { &about.title };
    match result.settings.is_empty() {
        true => name.clone(),
        false => format!("{name}: {}", describe(&result.settings)),
    }
}

fn until(about: &About, result: &RunResult) -> f64 {
    result.duration_s.max(about.bin.as_secs_f64()).max(1e-3)
}

/// Returns the curves of a group: each singly, or the range and the mean of a large group.
fn curves(colour: usize, curves: Vec<Vec<Point>>, width: f64) -> Vec<Curve> {
    let among = curves.len();
    if among <= MOST_CURVES {
        return curves.into_iter().map(|c| Curve { colour, among, shape: Shape::Line(c) }).collect();
    }
    let spread = data::spread(&curves, width);
    let mean = Shape::Line(spread.iter().map(|s| (s.t, s.mean)).collect());
    vec![Curve { colour, among: 1, shape: Shape::Band(spread) }, Curve { colour, among: 1, shape: mean }]
}

fn highest(curves: &[Curve]) -> f64 {
    let values = |c: &Curve| match &c.shape {
        Shape::Line(p) | Shape::Broad(p) => p.iter().map(|p| p.1).fold(0.0, f64::max),
        Shape::Band(s) | Shape::Marked(_, s) => s.iter().map(|s| s.high).fold(0.0, f64::max),
        Shape::Points(_, s) => s.iter().map(|s| s.up[2]).fold(0.0, f64::max),
    };
    curves.iter().map(values).fold(0.0, f64::max)
}

/// Multiplies the values of curves.
fn scaled(curve: Curve, factor: f64) -> Curve {
    let points = |p: Vec<Point>| p.into_iter().map(|(t, v)| (t, v * factor)).collect();
    let spread = |s: Vec<data::Spread>| {
        let one = |s: data::Spread| data::Spread {
            t: s.t,
            low: s.low * factor,
            mean: s.mean * factor,
            high: s.high * factor,
        };
        s.into_iter().map(one).collect()
    };
    let shape = match curve.shape {
        Shape::Line(p) => Shape::Line(points(p)),
        Shape::Broad(p) => Shape::Broad(points(p)),
        Shape::Band(s) => Shape::Band(spread(s)),
        Shape::Marked(mark, s) => Shape::Marked(mark, spread(s)),
        points @ Shape::Points(..) => points,
    };
    Curve { shape, ..curve }
}

/// Draws goodput over time, and the distance from targets where there are any; `None` without flows.
fn rates(about: &About, result: &RunResult) -> Option<Chart> {
    if result.flows.is_empty() {
        return None;
    }
    let groups = grouped(result.flows.iter().map(|f| (f.group(), f)));
    let window = data::window(about.duration, about.bin);
    let step = data::step(about.interval, about.duration);
    let mut broad = Vec::new();
    let mut fine = Vec::new();
    for (colour, (_, flows)) in groups.iter().enumerate() {
        let points = |f: &&FlowResult| {
            let (first, received) = result.received(f, about.bin)?;
            Some(data::goodput(f, first, received, about.bin, window)).filter(|p| !p.is_empty())
        };
        fine.extend(curves(colour, flows.iter().filter_map(points).collect(), window.as_secs_f64()));
        let steps = Shape::Broad(data::steps(flows.iter().map(|f| f.intervals.as_slice()), step));
        broad.push(Curve { colour, among: 1, shape: steps });
    }
    let all: Vec<Curve> = broad.into_iter().chain(fine).collect();
    let targets: BTreeSet<u64> = result.flows.iter().filter_map(|f| f.target_bps).collect();
    let target = targets.last().map(|t| *t as f64);
    let peak = highest(&all);
    // A burst at the start must not flatten all else.
    let top = target.map_or(peak, |t| peak.clamp(t, ABOVE_TARGET * t)).max(1.0);
    let (factor, unit) = Unit::Rate.scale(top);
    let of = if groups.iter().any(|(_, f)| f.len() > 1) { "mean of the group" } else { "the same" };
    let many = groups.iter().any(|(_, f)| f.len() > MOST_CURVES);
    let thin = if many { "area: all flows of the group" } else { "thin: each flow" };
    let reading = format!("{thin}, {window}; thick: {of}, {step}");
    let mut beyond = Vec::new();
    if peak > top {
        beyond.push(format!("drawn to {}, the highest is {}", Unit::Rate.show(top), Unit::Rate.show(peak)));
    }
    let panel = Panel {
        label: format!("goodput, {unit}"),
        height: 320,
        low: 0.0,
        high: top * factor * 1.06,
        curves: all.into_iter().map(|c| scaled(c, factor)).collect(),
        marks: targets.iter().map(|&t| (t as f64 * factor, Unit::Rate.show(t as f64))).collect(),
    };
    let deviation = deviations(about, &groups);
    if let Some((_, furthest)) = deviation.as_ref().filter(|(d, furthest)| *furthest > d.high) {
        beyond.push(format!("the furthest from its target is {furthest:.1} % off"));
    }
    Some(Chart {
        title: title(about, result),
        notes: [reading, beyond.join("; ")].into_iter().filter(|n| !n.is_empty()).collect(),
        legend: legend(&groups),
        marks: if targets.is_empty() { String::new() } else { "target".to_string() },
        panels: std::iter::once(panel).chain(deviation.map(|(panel, _)| panel)).collect(),
        until: until(about, result),
        ..Chart::default()
    })
}

/// Returns the distance of each flow's whole intervals from its target, in percent, and the largest distance.
fn deviations(about: &About, groups: &Groups<&FlowResult>) -> Option<(Panel, f64)> {
    let width = about.interval.as_secs_f64();
    let of_flow = |f: &FlowResult, many: bool| {
        let target = f.target_bps.filter(|t| *t > 0)? as f64;
        let whole = f.intervals.iter().filter(|i| i.len_s >= width * 0.999_999);
        let percent = |i: &Interval| (i.bps - target) / target * 100.0;
        let points: Vec<Point> = if many {
            whole.map(|i| (i.t_s + i.len_s / 2.0, percent(i))).collect()
        } else {
            whole.flat_map(|i| [i.t_s, i.t_s + i.len_s].map(|t| (t, percent(i)))).collect()
        };
        // Intervals that are narrower than a step cannot be told apart.
        let step = data::step(about.interval, about.duration);
        let points = if step > about.interval { data::thinned(&points, step.as_secs_f64()) } else { points };
        Some(points).filter(|p| !p.is_empty())
    };
    let of_group = |flows: &Vec<&FlowResult>| {
        let many = flows.len() > MOST_CURVES;
        flows.iter().filter_map(|f| of_flow(f, many)).collect()
    };
    let all: Vec<Vec<Vec<Point>>> = groups.iter().map(|(_, flows)| of_group(flows)).collect();
    let mut sizes: Vec<f64> = all.iter().flatten().flatten().map(|p| p.1.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let furthest = sizes.last().copied().unwrap_or(0.0);
    // The start-up is far off and may leave the plot.
    let range = (quantile(&sizes, 700_000)? * 1.5).clamp(1.0, 50.0);
    let curves = all.into_iter().enumerate().flat_map(|(i, c)| curves(i, c, width)).collect();
    let panel = Panel {
        label: format!("off target, % ({})", about.interval),
        height: 170,
        low: -range,
        high: range,
        curves,
        marks: vec![(0.0, "target".to_string())],
    };
    Some((panel, furthest))
}

/// Fewest completed flows of a group whose completion times have a distribution.
const FEWEST: usize = 8;

/// Draws the share of each group's flows that had completed within a time, where groups have enough of them.
fn completion(about: &About, result: &RunResult) -> Option<Chart> {
    let groups = grouped(result.flows.iter().map(|f| (f.group(), f)));
    let of_group = |(name, flows): &(&str, Vec<&FlowResult>)| {
        let times: Vec<f64> = flows.iter().filter_map(|f| f.fct_s).collect();
        (times.len() >= FEWEST).then(|| (name.to_string(), times, flows.len()))
    };
    let found: Vec<(String, Vec<f64>, usize)> = groups.iter().filter_map(of_group).collect();
    let until = found.iter().flat_map(|(_, times, _)| times).copied().fold(0.0, f64::max);
    if until <= 0.0 {
        return None;
    }
    let name =
        |(name, times, all): &(String, Vec<f64>, usize)| format!("{name} ({} of {all} flows)", times.len());
    let curve = |(colour, (_, times, all)): (usize, &(String, Vec<f64>, usize))| {
        let shape = Shape::Line(data::cumulated(times, *all, until));
        Curve { colour, among: 1, shape }
    };
    let panel = Panel {
        label: "share of flows, %".to_string(),
        height: 320,
        high: 100.0,
        curves: found.iter().enumerate().map(curve).collect(),
        ..Panel::default()
    };
    Some(Chart {
        title: title(about, result),
        notes: vec!["completed within a time; flows that did not complete are missing at the top".to_string()],
        legend: found.iter().map(name).collect(),
        panels: vec![panel],
        until,
        across: "completion time, s".to_string(),
        ..Chart::default()
    })
}

/// Draws a column of the series over time, with one curve for each flow or link that has it.
fn column(about: &About, result: &RunResult, name: &str) -> Option<Chart> {
    let until = until(about, result);
    let width = until / 200.0;
    let curve = |id: &str| {
        let (t_s, values) = result.column(id, name)?;
        let known = t_s.iter().copied().zip(values.iter().copied()).filter(|(_, v)| !v.is_nan());
        let points: Vec<Point> = known.collect();
        Some(data::held(&data::thinned(&points, width))).filter(|p| !p.is_empty())
    };
    // Flows come first, in the plan's order and in the colours of their groups; links follow.
    let of_flows = result.flows.iter().filter_map(|f| Some((f.group(), curve(&f.id)?)));
    let of_links = result.links.iter().filter_map(|l| Some((l.name.as_str(), curve(&l.name)?)));
    let groups = grouped(of_flows.chain(of_links));
    let legend = legend(&groups);
    let all: Vec<Curve> =
        groups.into_iter().enumerate().flat_map(|(i, (_, c))| curves(i, c, width)).collect();
    if all.is_empty() {
        return None;
    }
    let peak = highest(&all);
    let unit = Recorded::named(name).map_or(Unit::Count, |column| column.unit);
    let (factor, unit) = unit.scale(peak);
    let label = match (name.rsplit_once('_'), unit) {
        (Some((what, of)), "") => format!("{}, {of}", what.replace('_', " ")),
        (Some((what, _)), unit) => format!("{}, {unit}", what.replace('_', " ")),
        (None, _) => name.to_string(),
    };
    let panel = Panel {
        label,
        height: 320,
        low: 0.0,
        high: if peak > 0.0 { peak * factor * 1.06 } else { 1.0 },
        curves: all.into_iter().map(|c| scaled(c, factor)).collect(),
        marks: Vec::new(),
    };
    Some(Chart { title: title(about, result), legend, panels: vec![panel], until, ..Chart::default() })
}

#[cfg(test)]
mod tests;
