//! Charts of a sweep: a metric of each group of flows over the values of a setting.

use super::{draw, file_name, positioned, Chart, Kind, Positions, Values};
use crate::report::summary::mean;
use crate::result::metric::{of_several, Measured, Metric, Tables};
use crate::result::unit::Unit;
use crate::result::{FlowResult, RunResult, Runs, Status};

/// Most lines of a chart. Beyond them a group has one line, with the range over all other settings.
const MOST_LINES: usize = 8;

/// A line of a chart: its name, and the values of runs at each position.
type Line = (String, Vec<Vec<f64>>);

/// Quantity that is drawn over a setting.
pub(super) struct Quantity<'a> {
    /// Name for the axis.
    pub name: &'a str,
    /// Unit.
    pub unit: Unit,
    /// Values of a run, each with the name of its line.
    pub of: &'a dyn Fn(&RunResult) -> Vec<(String, f64)>,
}

/// Returns the values of a metric for each group of flows.
pub(super) fn of_groups(metric: &Metric<FlowResult>, run: &RunResult) -> Vec<(String, f64)> {
    let groups = run.groups().into_iter();
    groups.filter_map(|(name, flows)| Some((name.to_string(), metric.total_of(&flows)?))).collect()
}

/// Draws each metric that tables show over each setting that a sweep changes, except the seed. Values are
/// means over seeds, with their 95 % confidence intervals. `names` are the keys of the settings. Returns file
/// names with SVG documents.
pub fn swept(runs: &Runs, names: &[String]) -> Vec<(String, Result<String, String>)> {
    let runs = complete(&runs.runs);
    let keys: Vec<&str> = names.iter().map(String::as_str).filter(|key| *key != "seed").collect();
    let mut charts = Vec::new();
    for &key in &keys {
        let at = values_of(&runs, key);
        if at.len() < 2 {
            continue;
        }
        let others: Vec<&str> = keys.iter().copied().filter(|other| *other != key).collect();
        for metric in of_several(Tables::All).filter(|m| m.column.is_some()) {
            let of = |run: &RunResult| of_groups(metric, run);
            let quantity = Quantity { name: metric.name, unit: metric.unit, of: &of };
            if let Some(mut chart) = chart(&runs, (key, &at), &others, &quantity) {
                chart.notes.extend(left_out(metric, &runs));
                let name = format!("{}-over-{}.svg", file_name(metric.name), file_name(key));
                charts.push((name, draw::svg(&chart)));
            }
        }
    }
    charts
}

/// Says how many values of a metric are missing in a chart, if any are.
pub(super) fn left_out(metric: &Metric<FlowResult>, runs: &[&RunResult]) -> Option<String> {
    let flows: Vec<&FlowResult> = runs.iter().flat_map(|run| &run.flows).collect();
    let Measured { n, of } = metric.measured(&flows);
    (n < of).then(|| format!("{} of {of} flows are missing: their values are not known", of - n))
}

/// Returns the runs that were made to their end.
pub(super) fn complete(runs: &[RunResult]) -> Vec<&RunResult> {
    runs.iter().filter(|run| run.error.is_none() && run.status != Status::Interrupted).collect()
}

/// Returns the values of a setting, in the order of the sweep.
pub(super) fn values_of(runs: &[&RunResult], key: &str) -> Vec<String> {
    let mut values = Vec::new();
    for value in runs.iter().map(|run| setting(run, key)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

pub(super) fn setting(run: &RunResult, key: &str) -> String {
    run.settings.get(key).map_or(String::new(), ToString::to_string)
}

/// Makes the chart of a quantity over the setting `key` with the values `at`. `others` are the other
/// settings.
pub(super) fn chart(
    runs: &[&RunResult],
    (key, at): (&str, &[String]),
    others: &[&str],
    quantity: &Quantity<'_>,
) -> Option<Chart> {
    let each = lines(runs, (key, at), others, quantity);
    let pooled = each.len() > MOST_LINES;
    let lines = if pooled { lines(runs, (key, at), &[], quantity) } else { each };
    let all = lines.iter().flat_map(|(_, values)| values.iter().flatten());
    let (factor, unit) =
        quantity.unit.scale(all.copied().reduce(|a, b| if b.abs() > a.abs() { b } else { a })?);
    let shown = |values: &Vec<f64>| spread(values, pooled).map(|all| all.map(|v| v * factor));
    let values = lines.iter().enumerate().map(|(colour, (_, values))| Values {
        colour,
        of: Kind::Swept,
        values: values.iter().map(shown).collect(),
    });
    let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
    Some(positioned(&Positions {
        across: key.to_string(),
        up: format!("{}{unit}", quantity.name),
        names: at.to_vec(),
        values: values.collect(),
        legend: lines.into_iter().map(|(name, _)| name).collect(),
    }))
}

/// Returns the lines of a chart: one for each name of the quantity and combination of the other settings.
fn lines(runs: &[&RunResult], (key, at): (&str, &[String]), others: &[&str], of: &Quantity<'_>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for run in runs {
        let Some(place) = at.iter().position(|value| *value == setting(run, key)) else { continue };
        for (name, value) in (of.of)(run) {
            let settings = others.iter().map(|other| format!("{other} = {}", setting(run, other)));
            let parts = Some(name).into_iter().filter(|name| !name.is_empty()).chain(settings);
            let name = parts.collect::<Vec<_>>().join(", ");
            let known = lines.iter().position(|(line, _)| *line == name);
            let line = known.unwrap_or_else(|| {
                lines.push((name, vec![Vec::new(); at.len()]));
                lines.len() - 1
            });
            lines[line].1[place].push(value);
        }
    }
    lines
}

/// Returns the mean of values between the ends of its confidence interval, or between the lowest and the
/// highest value if they are of different settings.
pub(super) fn spread(values: &[f64], pooled: bool) -> Option<[f64; 3]> {
    let found = mean(values)?;
    let half = found.ci95.unwrap_or(0.0);
    Some(match pooled {
        true => [
            values.iter().copied().fold(f64::INFINITY, f64::min),
            found.mean,
            values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        ],
        false => [found.mean - half, found.mean, found.mean + half],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::SCHEMA;

    fn run(loss: &str, rtt: &str, seed: u64, goodput_bps: f64) -> RunResult {
        let flow = FlowResult { id: "bulk.0".into(), goodput_bps, ..FlowResult::default() };
        let settings = [("loss".into(), loss.into()), ("rtt".into(), rtt.into())].into();
        RunResult { settings, seed, flows: vec![flow], ..RunResult::default() }
    }

    fn sweep(rtts: &[&str]) -> Runs {
        let mut runs = Vec::new();
        for (loss, mbit) in [("1%", 10.0), ("2%", 5.0)] {
            for rtt in rtts {
                runs.extend(
                    [(1, 0.0), (2, 2.0)].map(|(seed, more)| run(loss, rtt, seed, (mbit + more) * 1e6)),
                );
            }
        }
        Runs { schema: SCHEMA, runs, summary: vec![] }
    }

    const NAMES: [&str; 3] = ["loss", "rtt", "seed"];

    #[test]
    fn a_metric_is_drawn_over_each_setting_that_changes() {
        let names = NAMES.map(String::from);
        let charts = swept(&sweep(&["10ms", "20ms"]), &names);
        let files: Vec<&str> = charts.iter().map(|(name, _)| name.as_str()).collect();
        assert!(files.contains(&"goodput_bps-over-loss.svg") && files.contains(&"goodput_bps-over-rtt.svg"));
        assert!(!files.iter().any(|file| file.contains("over-seed")), "{files:?}");
        let svg = charts[0].1.as_ref().expect("it is drawn");
        for text in ["goodput_bps, Mbit/s", "\nloss\n", "\n2%\n", "bulk, rtt = 10ms", "bulk, rtt = 20ms"] {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
        // One value of the round trip has no chart.
        let one = swept(&sweep(&["10ms"]), &names);
        assert!(one.iter().all(|(name, _)| name.contains("over-loss")));
    }

    /// Half of the flows had not ended.
    #[test]
    fn a_chart_says_what_it_leaves_out() {
        let mut runs = sweep(&["10ms"]);
        for (n, flow) in runs.runs.iter_mut().flat_map(|run| &mut run.flows).enumerate() {
            let unknown = n % 2 == 0;
            (flow.fct_s, flow.fct_at_least_s) = ((!unknown).then_some(1.0), unknown.then_some(2.0));
        }
        let charts = swept(&runs, &NAMES.map(String::from));
        let svg = |name: &str| charts.iter().find(|(file, _)| file == name).unwrap().1.clone().unwrap();
        assert!(svg("fct_s-over-loss.svg").contains("2 of 4 flows are missing"));
        assert!(!svg("goodput_bps-over-loss.svg").contains("missing"));
    }

    #[test]
    fn seeds_are_one_value_with_its_interval() {
        let runs = sweep(&["10ms"]);
        let runs: Vec<&RunResult> = runs.runs.iter().collect();
        let at = ["1%", "2%"].map(String::from);
        let metric = of_several(Tables::All).find(|m| m.name == "goodput_bps").expect("it exists");
        let of = |run: &RunResult| of_groups(metric, run);
        let quantity = Quantity { name: metric.name, unit: metric.unit, of: &of };
        let lines = lines(&runs, ("loss", &at), &["rtt"], &quantity);
        assert_eq!(lines, [("bulk, rtt = 10ms".to_string(), vec![vec![10e6, 12e6], vec![5e6, 7e6]])]);
        // Two values 2 apart: a standard error of 1, and 12.706 of them (Student's t with one degree).
        let [low, middle, high] = spread(&lines[0].1[0], false).expect("there are values");
        assert!((middle - 11e6).abs() < 1.0 && (high - middle - 12.706e6).abs() < 1e3);
        assert!((middle - low - 12.706e6).abs() < 1e3);
        assert_eq!(spread(&lines[0].1[0], true), Some([10e6, 11e6, 12e6]));
    }
}
