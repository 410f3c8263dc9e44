//! Charts for papers: time series, distributions, sweeps, fairness, and queue against throughput.

use super::data::{self, Point};
use super::draw::{self, Mark, Size, Spot};
use super::swept::{self, Quantity};
use super::{column, rates, About, Chart, Curve, Panel, Shape};
use crate::result::metric::{Recorded, FLOW, LINK};
use crate::result::unit::Unit;
use crate::result::{FlowResult, LinkResult, RunResult};
use std::collections::BTreeMap;

/// Chart that is drawn in several sizes, as SVG or PDF.
#[derive(Clone, Debug)]
pub struct Figure {
    chart: Chart,
}

impl Figure {
    /// Draws a column of the series of a run over time, or the goodput of its flows (`goodput_bps`). `of`
    /// names the flows, groups and links to draw; empty for all.
    ///
    /// # Errors
    /// Fails if nothing that `of` names has such a column.
    pub fn over_time(run: &RunResult, what: &str, of: &[String]) -> Result<Figure, String> {
        let run = &chosen(run, of);
        let about = About::recorded(run);
        let chart = match what {
            "goodput_bps" => rates(&about, run).map(|chart| {
                let panels = chart.panels.into_iter().take(1).collect();
                Chart { panels, ..chart }
            }),
            _ => column(&about, run, what),
        };
        chart.map(Figure::from).ok_or_else(|| {
            let columns = run.series.values().flat_map(|series| series.columns.keys());
            let mut names: Vec<&str> = columns.map(String::as_str).chain(["goodput_bps"]).collect();
            names.sort_unstable();
            names.dedup();
            format!("no series has `{what}`: there are {}", names.join(", "))
        })
    }

    /// Draws the distribution of a flow's metric over the flows of all runs, or of a column of series over
    /// time: the share of flows, or of time, that is at most a value. There is a curve for each group of
    /// flows or link and combination of settings.
    ///
    /// # Errors
    /// Fails if no run has values of that name.
    pub fn distribution(runs: &[RunResult], what: &str, of: &[String]) -> Result<Figure, String> {
        let keys = keys(runs);
        let mut curves: Vec<(String, Vec<Weighed>)> = Vec::new();
        for run in swept::complete(runs) {
            let settings: Vec<String> =
                keys.iter().map(|key| format!("{key} = {}", swept::setting(run, key))).collect();
            for (name, values) in weighed(&chosen(run, of), what) {
                let name =
                    std::iter::once(name).chain(settings.iter().cloned()).collect::<Vec<_>>().join(", ");
                match curves.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, all)) => all.extend(values),
                    None => curves.push((name, values)),
                }
            }
        }
        let all = || curves.iter().flat_map(|(_, values)| values).map(|value| value.0);
        let Some(high) = all().reduce(f64::max) else {
            return Err(format!("no values of `{what}`: it is a metric of flows, or a column of `series`"));
        };
        let unit = FLOW.iter().find(|metric| metric.name == what).map(|metric| metric.unit);
        let unit = unit.or(Recorded::named(what).map(|column| column.unit)).unwrap_or(Unit::Count);
        let (factor, unit) = unit.scale(high);
        let until = (high * factor * 1.02).max(1e-9);
        let low = all().fold(high, f64::min) * factor;
        // An axis that begins at 0 wastes half of the plot where all values are large.
        let from = if low > until / 2.0 { low - (until - low) * 0.05 } else { 0.0 };
        let curve = |(colour, (_, values)): (usize, &(String, Vec<Weighed>))| {
            let shape = Shape::Line(cumulated(values, factor, (from, until)));
            Curve { colour, among: 1, shape }
        };
        let of_flows = FLOW.iter().any(|metric| metric.name == what);
        let panel = Panel {
            label: if of_flows { "share of flows, %" } else { "share of time, %" }.to_string(),
            height: 320,
            high: 100.0,
            curves: curves.iter().enumerate().map(curve).collect(),
            ..Panel::default()
        };
        Ok(Figure::from(Chart {
            legend: curves.into_iter().map(|(name, _)| name).collect(),
            panels: vec![panel],
            across: labelled(what, unit),
            from,
            until,
            ..Chart::default()
        }))
    }

    /// Draws a quantity over a setting of a sweep: means over seeds with their 95 % confidence bands. The
    /// quantity is a flow's metric, that of a link (`wan.out.queue_us.p99`), or `fairness`.
    ///
    /// # Errors
    /// Fails if the runs have no such setting or quantity.
    pub fn over_setting(runs: &[RunResult], key: &str, what: &str) -> Result<Figure, String> {
        let all = swept::complete(runs);
        let keys = keys(runs);
        if !keys.iter().any(|known| known == key) {
            return Err(format!("no setting `{key}`: the sweep has {}", keys.join(", ")));
        }
        let at = swept::values_of(&all, key);
        let others: Vec<&str> = keys.iter().map(String::as_str).filter(|other| *other != key).collect();
        let flow = FLOW.iter().find(|metric| metric.name == what);
        let link = LINK.iter().find(|metric| what.ends_with(&format!(".{}", metric.name)));
        let (unit, of): (Unit, Read<'_>) = match (flow, link) {
            (Some(metric), _) => (metric.unit, Box::new(move |run| swept::of_groups(metric, run))),
            (None, Some(metric)) => {
                let name = what[..what.len() - metric.name.len() - 1].to_string();
                let value = move |run: &RunResult| {
                    let links: Vec<&LinkResult> = run.links.iter().filter(|link| link.name == name).collect();
                    let value = metric.total_of(&links).filter(|_| !links.is_empty());
                    value.map(|value| (name.clone(), value)).into_iter().collect()
                };
                (metric.unit, Box::new(value))
            }
            (None, None) if what == "fairness" => {
                let index = |run: &RunResult| jain(run.flows.iter().map(|flow| flow.goodput_bps));
                (
                    Unit::Share,
                    Box::new(move |run| index(run).map(|v| (String::new(), v)).into_iter().collect()),
                )
            }
            (None, None) => return Err(format!("no quantity `{what}`: {WHAT}")),
        };
        let name = unit_free(what);
        let quantity = Quantity { name: &name, unit, of: &of };
        let chart = swept::chart(&all, (key, &at), &others, &quantity);
        let mut chart = chart.ok_or_else(|| format!("no run has `{what}`"))?;
        chart.notes.extend(flow.and_then(|metric| swept::left_out(metric, &all)));
        Ok(Figure::from(chart))
    }

    /// Draws the goodput of a run's flows over time, and Jain's index of their shares in each interval: 1
    /// where all have the same, 1/n where one of n has all (Jain, Chiu, Hawe 1984).
    ///
    /// # Errors
    /// Fails if the run has fewer than two flows at the same time.
    pub fn fairness(run: &RunResult) -> Result<Figure, String> {
        let mut at: BTreeMap<u64, (f64, f64, Vec<f64>)> = BTreeMap::new();
        for interval in run.flows.iter().flat_map(|flow| &flow.intervals) {
            let begin = (interval.t_s * 1e6).round().max(0.0) as u64;
            let all = at.entry(begin).or_insert((interval.t_s, interval.t_s + interval.len_s, Vec::new()));
            all.2.push(interval.bps);
        }
        let several = at.into_values().filter(|(_, _, rates)| rates.len() > 1);
        let index = several.filter_map(|(from, to, rates)| Some((from, to, jain(rates.into_iter())?)));
        let points: Vec<Point> = index.flat_map(|(from, to, v)| [(from, v), (to, v)]).collect();
        if points.is_empty() {
            return Err("fairness is of two flows or more at the same time".to_string());
        }
        let Figure { mut chart } = Figure::over_time(run, "goodput_bps", &[])?;
        let colour = chart.legend.len();
        chart.panels.push(Panel {
            label: "Jain's index".to_string(),
            height: 170,
            high: 1.05,
            curves: vec![Curve { colour, among: 2, shape: Shape::Line(points) }],
            ..Panel::default()
        });
        Ok(Figure::from(chart))
    }

    /// Draws the throughput of a link over the time that half of its frames wait in its queue: a point for
    /// each combination of settings, the mean over seeds with its 95 % confidence intervals. `by` is the
    /// setting that colours stand for; the others are written at the points.
    ///
    /// # Errors
    /// Fails if no run has such a link with a queue, or no such setting.
    pub fn queue(runs: &[RunResult], link: &str, by: Option<&str>) -> Result<Figure, String> {
        let keys = keys(runs);
        if let Some(by) = by.filter(|by| !keys.iter().any(|key| key == by)) {
            return Err(format!("no setting `{by}`: the sweep has {}", keys.join(", ")));
        }
        let by = by.or(keys.first().map(String::as_str));
        let Some(waits) = LINK.iter().find(|metric| metric.name == "queue_us.p50") else {
            return Err("no metric of queues".to_string());
        };
        // By colour, then by name: delays and throughputs.
        let mut groups: Vec<(String, Vec<Named>)> = Vec::new();
        for run in swept::complete(runs) {
            let Some(found) = run.links.iter().find(|one| one.name == link) else { continue };
            let Some(delay) = waits.total_of(&[found]) else { continue };
            let throughput = found.bytes as f64 * 8.0 / run.duration_s.max(1e-9);
            let group = by.map_or(String::new(), |by| format!("{by} = {}", swept::setting(run, by)));
            let rest = keys.iter().filter(|key| Some(key.as_str()) != by);
            let name = rest.map(|key| swept::setting(run, key)).collect::<Vec<_>>().join(", ");
            let place = groups.iter().position(|(known, _)| *known == group).unwrap_or_else(|| {
                groups.push((group, Vec::new()));
                groups.len() - 1
            });
            let points = &mut groups[place].1;
            let point = points.iter().position(|(known, ..)| *known == name).unwrap_or_else(|| {
                points.push((name, Vec::new(), Vec::new()));
                points.len() - 1
            });
            points[point].1.push(delay);
            points[point].2.push(throughput);
        }
        let all = || groups.iter().flat_map(|(_, points)| points);
        let most = |values: &dyn Fn(&Named) -> f64| all().map(values).fold(0.0, f64::max);
        if all().next().is_none() {
            return Err(format!("no run has a link `{link}` with a queue"));
        }
        let highest = |values: &[f64]| swept::spread(values, false).map_or(0.0, |[_, _, high]| high);
        let (delay, throughput) = (most(&|point| highest(&point.1)), most(&|point| highest(&point.2)));
        let (across, across_unit) = Unit::Micros.scale(delay);
        let (up, up_unit) = Unit::Rate.scale(throughput);
        let mut curves = Vec::new();
        for (colour, (_, points)) in groups.iter().enumerate() {
            let spot = |(name, delays, rates): &Named| {
                let [across, up] = [(delays, across), (rates, up)]
                    .map(|(values, factor)| Some(swept::spread(values, false)?.map(|v| v * factor)));
                Some(Spot { across: across?, up: up?, name: name.clone() })
            };
            let spots: Vec<Spot> = points.iter().filter_map(spot).collect();
            let line = Shape::Line(spots.iter().map(|spot| (spot.across[1], spot.up[1])).collect());
            curves.push(Curve { colour, among: 1, shape: line });
            curves.push(Curve { colour, among: 1, shape: Shape::Points(Mark::of(colour), spots) });
        }
        let panel = Panel {
            label: labelled("throughput", up_unit),
            height: 320,
            high: throughput * up * 1.12,
            curves,
            ..Panel::default()
        };
        let names =
            keys.iter().filter(|key| Some(key.as_str()) != by).map(String::as_str).collect::<Vec<_>>();
        let names =
            if names.is_empty() { String::new() } else { format!("; at points: {}", names.join(", ")) };
        Ok(Figure::from(Chart {
            legend: groups.into_iter().map(|(name, _)| name).filter(|name| !name.is_empty()).collect(),
            panels: vec![panel],
            across: labelled("median queue", across_unit) + &names,
            until: (delay * across * 1.15).max(1e-9),
            ..Chart::default()
        }))
    }

    /// Returns the figure with another headline; empty for none.
    pub fn titled(mut self, title: &str) -> Figure {
        self.chart.title = title.to_string();
        self
    }

    /// Draws it as an SVG document.
    ///
    /// # Errors
    /// Fails if the drawing library does.
    pub fn svg(&self, size: Size) -> Result<String, String> {
        draw::svg(&self.sized(size))
    }

    /// Draws it as a PDF document of one page, which is as large as the figure.
    ///
    /// # Errors
    /// Fails if the drawing library does.
    pub fn pdf(&self, size: Size) -> Result<Vec<u8>, String> {
        draw::pdf(&self.sized(size))
    }

    /// Returns the chart in a size. Notes for the reader are for screens; a paper has its caption.
    fn sized(&self, size: Size) -> Chart {
        let notes = if size == Size::Screen { self.chart.notes.clone() } else { Vec::new() };
        Chart { size, notes, ..self.chart.clone() }
    }
}

impl From<Chart> for Figure {
    fn from(chart: Chart) -> Figure {
        Figure { chart: Chart { title: String::new(), ..chart } }
    }
}

/// Quantities that a sweep is drawn by, for messages.
const WHAT: &str = "it is a metric of flows, one of a link (`wan.out.queue_us.p99`), or `fairness`";

/// Function that reads the values of a run, each with the name of its line.
type Read<'a> = Box<dyn Fn(&RunResult) -> Vec<(String, f64)> + 'a>;

/// Value and its weight.
type Weighed = (f64, f64);

/// Name of a point, its delays and its throughputs.
type Named = (String, Vec<f64>, Vec<f64>);

/// Returns the settings that a sweep changes, but the seed.
fn keys(runs: &[RunResult]) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for key in runs.iter().flat_map(|run| run.settings.keys()) {
        if key != "seed" && !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    keys
}

/// Returns a run with only those flows and links whose names or groups are in `of`; with all if that is
/// empty.
fn chosen(run: &RunResult, of: &[String]) -> RunResult {
    let mut run = run.clone();
    if !of.is_empty() {
        run.flows.retain(|flow| of.iter().any(|name| name == &flow.id || name == flow.group()));
        run.links.retain(|link| of.contains(&link.name));
    }
    run
}

/// Returns Jain's index of some shares; `None` without any.
fn jain(shares: impl Iterator<Item = f64>) -> Option<f64> {
    let (n, sum, squares) =
        shares.fold((0.0, 0.0, 0.0), |(n, sum, squares), v| (n + 1.0, sum + v, squares + v * v));
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

/// Returns the values of each group of flows or link: those of a metric count once each, those of a column as
/// long as they hold.
fn weighed(run: &RunResult, what: &str) -> Vec<(String, Vec<Weighed>)> {
    if let Some(metric) = FLOW.iter().find(|metric| metric.name == what) {
        let of = |flows: Vec<&FlowResult>| flows.iter().filter_map(|flow| metric.total_of(&[flow])).collect();
        let groups = run.groups().into_iter().map(|(name, flows)| (name.to_string(), of(flows)));
        return groups
            .map(|(name, values): (_, Vec<f64>)| (name, values.iter().map(|v| (*v, 1.0)).collect()))
            .collect();
    }
    let flows = run.flows.iter().map(|flow| (flow.group(), flow.id.as_str()));
    let links = run.links.iter().map(|link| (link.name.as_str(), link.name.as_str()));
    let mut all: Vec<(String, Vec<Weighed>)> = Vec::new();
    for (name, id) in flows.chain(links) {
        let Some((times, values)) = run.column(id, what) else { continue };
        let ends = times.iter().skip(1).copied().chain([run.duration_s]);
        let held = times.iter().zip(ends).zip(values).map(|((from, to), v)| (*v, (to - from).max(0.0)));
        let held = held.filter(|(v, _)| !v.is_nan());
        match all.iter_mut().find(|(known, _)| known == name) {
            Some((_, values)) => values.extend(held),
            None => all.push((name.to_string(), held.collect())),
        }
    }
    all
}

/// Returns the share in percent of weights whose value is at most a value, as corners between the ends of the
/// axis.
fn cumulated(values: &[Weighed], factor: f64, (from, until): (f64, f64)) -> Vec<Point> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: f64 = sorted.iter().map(|(_, weight)| weight).sum();
    let mut sum = 0.0;
    let points = sorted.iter().map(|(v, weight)| {
        sum += weight;
        (v * factor, 100.0 * sum / all.max(1e-12))
    });
    let points: Vec<Point> = std::iter::once((from, 0.0)).chain(points).chain([(until, 100.0)]).collect();
    // Steps that are narrower than a pixel are drawn as one.
    data::held(&data::thinned(&points, (until - from) / 800.0))
}

/// Returns the name of an axis with its unit: `rtt_us` in milliseconds is `rtt, ms`.
fn labelled(what: &str, unit: &str) -> String {
    match unit {
        "" => what.replace('_', " "),
        unit => format!("{}, {unit}", unit_free(what)),
    }
}

/// Returns the name of a quantity without its unit: `queue_us.p99` is `queue p99`.
fn unit_free(what: &str) -> String {
    let parts = what.split('.').map(|part| {
        let units = ["_us", "_bps", "_bytes", "_s"];
        units.iter().find_map(|unit| part.strip_suffix(unit)).unwrap_or(part)
    });
    parts.collect::<Vec<_>>().join(" ").replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Column, Interval, Series};

    fn flow(id: &str, rates: &[f64]) -> FlowResult {
        let interval = |(k, bps): (usize, &f64)| Interval { t_s: k as f64, len_s: 1.0, bytes: 0, bps: *bps };
        FlowResult {
            id: id.into(),
            goodput_bps: rates.iter().sum::<f64>() / rates.len() as f64,
            intervals: rates.iter().enumerate().map(interval).collect(),
            end_s: rates.len() as f64,
            ..FlowResult::default()
        }
    }

    fn run(rate: &str, seed: u64, bytes: u64) -> RunResult {
        let columns = BTreeMap::from([("queue_delay_us".to_string(), Column(vec![0.0, 1000.0, 3000.0]))]);
        let series = Series { t_s: vec![0.0, 0.5, 1.5], columns };
        let mut link = LinkResult { name: "wan.out".into(), bytes, ..LinkResult::default() };
        (link.packets, link.queue_us.p50) = (1, 2000);
        RunResult {
            settings: [("rate".into(), rate.into())].into(),
            seed,
            duration_s: 2.0,
            flows: vec![flow("a.0", &[1e6, 3e6]), flow("b.0", &[1e6, 1e6])],
            links: vec![link],
            series: BTreeMap::from([("wan.out".to_string(), series)]),
            ..RunResult::default()
        }
    }

    #[test]
    fn fairness_is_jain_s_index() {
        // (1 + 1)^2 / (2 x 2) and (3 + 1)^2 / (2 x 10).
        assert_eq!(jain([1e6, 1e6].into_iter()), Some(1.0));
        assert_eq!(jain([3e6, 1e6].into_iter()), Some(0.8));
        assert_eq!(jain([0.0, 0.0].into_iter()), None);
        let Figure { chart } = Figure::fairness(&run("1M", 1, 1)).expect("two flows");
        let Shape::Line(points) = &chart.panels[1].curves[0].shape else { panic!("{chart:?}") };
        assert_eq!(points, &[(0.0, 1.0), (1.0, 1.0), (1.0, 0.8), (2.0, 0.8)]);
        let mut alone = run("1M", 1, 1);
        alone.flows.truncate(1);
        assert!(Figure::fairness(&alone).is_err());
    }

    #[test]
    fn values_of_series_count_as_long_as_they_hold() {
        // Of two seconds a quarter at 0, half at 1 ms, and a quarter at 3 ms.
        let found = weighed(&run("1M", 1, 1), "queue_delay_us");
        assert_eq!(found, [("wan.out".to_string(), vec![(0.0, 0.5), (1000.0, 1.0), (3000.0, 0.5)])]);
        let points = cumulated(&found[0].1, 1e-3, (0.0, 4.0));
        let at = |t: f64| points.iter().rev().find(|point| point.0 <= t).map(|point| point.1);
        assert_eq!([at(0.0), at(0.9), at(1.0), at(2.9), at(3.0)], [25.0, 25.0, 75.0, 75.0, 100.0].map(Some));
        let flows = weighed(&run("1M", 1, 1), "goodput_bps");
        assert_eq!(flows[0], ("a".to_string(), vec![(2e6, 1.0)]));
    }

    #[test]
    fn a_point_is_the_mean_of_its_seeds() {
        // 250 and 500 kB in two seconds: 1 and 2 Mbit/s, 1.5 on average.
        let runs = [run("1M", 1, 250_000), run("1M", 2, 500_000), run("2M", 1, 500_000)];
        let Figure { chart } = Figure::queue(&runs, "wan.out", None).expect("it has a queue");
        assert_eq!(chart.legend, ["rate = 1M", "rate = 2M"]);
        let Shape::Points(_, spots) = &chart.panels[0].curves[1].shape else { panic!("{chart:?}") };
        assert!((spots[0].up[1] - 1.5).abs() < 1e-9 && (spots[0].across[1] - 2.0).abs() < 1e-9);
        assert!(Figure::queue(&runs, "lan.out", None).is_err());
        assert!(Figure::queue(&runs, "wan.out", Some("loss")).unwrap_err().contains("the sweep has rate"));
    }

    #[test]
    fn sweeps_are_drawn_by_metrics_links_and_fairness() {
        let runs = [run("1M", 1, 250_000), run("2M", 1, 500_000)];
        for what in ["goodput_bps", "wan.out.queue_us.p50", "fairness"] {
            let figure = Figure::over_setting(&runs, "rate", what).expect(what);
            let svg = figure.svg(Size::Column).expect("it is drawn");
            assert!(svg.contains("\n1M\n") && svg.contains("\n2M\n"), "{svg}");
            assert!(figure.pdf(Size::Page).expect("it is drawn").starts_with(b"%PDF-1.4"));
        }
        assert!(Figure::over_setting(&runs, "rate", "speed").unwrap_err().contains("no quantity `speed`"));
        assert!(Figure::over_setting(&runs, "loss", "goodput_bps").is_err());
    }

    #[test]
    fn only_what_is_named_is_drawn() {
        let figure = Figure::over_time(&run("1M", 1, 1), "goodput_bps", &["b".to_string()]).expect("a flow");
        assert_eq!(figure.chart.legend, ["b"]);
        let refused = Figure::over_time(&run("1M", 1, 1), "cwnd_packets", &[]).unwrap_err();
        assert!(refused.contains("there are goodput_bps, queue_delay_us"), "{refused}");
    }

    #[test]
    fn a_distribution_has_a_curve_for_each_setting() {
        let runs = [run("1M", 1, 1), run("1M", 2, 1), run("2M", 1, 1)];
        let Figure { chart } = Figure::distribution(&runs, "goodput_bps", &["a".to_string()]).expect("flows");
        assert_eq!(chart.legend, ["a, rate = 1M", "a, rate = 2M"]);
        assert_eq!(chart.across, "goodput, Mbit/s");
        assert_eq!(unit_free("wan.out.queue_us.p99"), "wan out queue p99");
        assert!(Figure::distribution(&runs, "speed", &[]).is_err());
    }
}
