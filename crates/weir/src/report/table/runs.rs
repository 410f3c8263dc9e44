//! Tables of several runs: a line for each run, or, with several seeds, for each setting and group of flows.

use super::checks::{outcome, with_units};
use super::columns::{column, headings, is_mean, number, rate_unit, unit, RateUnit};
use super::found::settings;
use super::grid::{Column, Grid};
use super::{clean, found, Ink, Lines};
use crate::experiment::plan::Plan;
use crate::result::metric::{of_several, Tables, Total};
use crate::result::unit::Unit;
use crate::result::{FlowResult, RunResult, Runs, Status};

/// Formats several runs. `names` are the keys that a sweep set, in the order of the file. `plan` is the plan
/// of the first run. `terminal` allows colours.
pub fn runs(runs: &Runs, names: &[String], plan: &Plan, planned: usize, terminal: bool) -> String {
    let ink = Ink { terminal };
    let table = if runs.summary.is_empty() { each(runs, names, ink) } else { means(runs, names, ink) };
    let parts = [
        heading(runs, planned, ink),
        table,
        found::classes(runs, names, ink),
        found::checks(runs, plan, ink),
        found::reference(runs, names, plan, ink),
        faults(runs, names, plan, ink),
    ];
    let text = parts.into_iter().filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n") + "\n");
    text.collect::<Vec<_>>().join("\n")
}

fn heading(runs: &Runs, planned: usize, ink: Ink) -> Lines {
    let name = runs.runs.first().map_or("", |r| r.experiment.as_str());
    let count = |of: fn(&RunResult) -> bool| runs.runs.iter().filter(|r| of(r)).count();
    let ok = count(|r| r.status == Status::Ok);
    let failed = count(|r| r.status == Status::Failed);
    let missing = planned - ok - failed;
    let failed = if failed > 0 { ink.bad(&format!(", {failed} FAILED")) } else { String::new() };
    let missing = if missing > 0 { ink.bad(&format!(", {missing} not finished")) } else { String::new() };
    vec![format!("{}: {planned} runs, {ok} ok{failed}{missing}", ink.bold(&clean(name)))]
}

fn each(runs: &Runs, names: &[String], ink: Ink) -> Lines {
    let flows = || runs.runs.iter().flat_map(|r| &r.flows);
    let rates = rate_unit(flows().map(|f| f.goodput_bps));
    let metrics = || of_several(Tables::All);
    let mut columns: Vec<Column> = names.iter().map(|n| Column::words(clean(n))).collect();
    columns.push(Column::numbers("flows", ""));
    for (m, heading) in metrics().filter_map(|m| Some((m, m.column?))) {
        columns.push(column(m, heading, Some(rates)));
        if m.jointly.is_some() {
            columns.push(Column::numbers("mean", unit(m.unit, Some(rates))));
        }
    }
    columns.push(Column::words("checks"));
    let mut grid = Grid::new(columns);
    for run in &runs.runs {
        let mut cells: Vec<String> = settings(&run.settings, names).collect();
        let flows = run.flows.len();
        cells.push(if flows == 0 { String::new() } else { flows.to_string() });
        for m in metrics() {
            let flows: Vec<&FlowResult> = run.flows.iter().collect();
            let cell = |total: Option<f64>| total.map_or(String::new(), |v| number(m.unit, v, Some(rates)));
            let some = if m.jointly.is_some() { String::new() } else { m.measured(&flows).to_string() };
            cells.push(m.together(&flows).map_or(String::new(), |v| cell(Some(v)) + &some));
            if m.jointly.is_some() {
                cells.push(cell(m.total_of(&flows)));
            }
        }
        cells.push(checks(run));
        grid.row(cells);
    }
    let mut lines = ink.grid(&grid);
    lines.push(format!(
        "{}: bytes of all flows over the time of all; mean, {}: means of the flows; {}: sums",
        headings(metrics(), |m| m.jointly.is_some()),
        headings(metrics(), |m| is_mean(m) && m.jointly.is_none()),
        headings(metrics(), |m| m.total == Total::Sum)
    ));
    lines
}

/// Formats the outcome of a run's checks: `3 of 3 hold`.
fn checks(run: &RunResult) -> String {
    match (&run.error, run.status) {
        (Some(_), _) => "could not run".into(),
        (None, Status::Interrupted) => "interrupted".into(),
        (None, Status::Failed) if run.expects.iter().all(|e| e.ok) => "FAILED".into(),
        (None, _) if run.expects.is_empty() => String::new(),
        _ => format!("{} of {} hold", run.expects.iter().filter(|e| e.ok).count(), run.expects.len()),
    }
}

fn means(runs: &Runs, names: &[String], ink: Ink) -> Lines {
    let groups = || runs.summary.iter().flat_map(|s| &s.groups);
    let rates = rate_unit(groups().filter_map(|g| Some(g.values.get("goodput_bps")?.mean)));
    let metrics = || of_several(Tables::All);
    let mut columns: Vec<Column> = names.iter().map(|n| Column::words(clean(n))).collect();
    columns.extend([Column::words("group"), Column::numbers("flows", ""), Column::numbers("seeds", "")]);
    for (m, heading) in metrics().filter_map(|m| Some((m, m.column?))) {
        columns.extend([heading.text, "+-"].map(|text| Column::numbers(text, unit(m.unit, Some(rates)))));
    }
    let mut grid = Grid::new(columns);
    for s in &runs.summary {
        for g in &s.groups {
            let mut cells: Vec<String> = settings(&s.settings, names).collect();
            let flows = g.flows_most.map_or(g.flows.to_string(), |most| format!("{} to {most}", g.flows));
            cells.extend([clean(&g.group), flows, s.seeds.len().to_string()]);
            for (m, mean) in g.values.iter().filter(|(m, _)| m.is_in(Tables::All)) {
                let cell = |v: Option<f64>| v.map_or(String::new(), |v| of_seeds(m.unit, v, rates));
                let some = mean.and_then(|m| m.measured).unwrap_or_default();
                cells.push(mean.map_or(String::new(), |m| format!("{}{some}", cell(Some(m.mean)))));
                cells.push(cell(mean.and_then(|m| m.ci95)));
            }
            grid.row(cells);
        }
    }
    let mut lines = ink.grid(&grid);
    lines.push(
        "means over the seeds, and half the width of their 95 % confidence intervals (Student's t); none where all are the same."
            .into(),
    );
    lines.push(format!(
        "{}: of a flow, the mean of its group; {}: of the whole group",
        headings(metrics(), is_mean),
        headings(metrics(), |m| m.total == Total::Sum)
    ));
    lines
}

/// Formats a mean over seeds; means of counts have a fraction too.
fn of_seeds(unit: Unit, v: f64, rates: RateUnit) -> String {
    match unit {
        Unit::Count => format!("{v:.1}"),
        unit => number(unit, v, Some(rates)),
    }
}

/// Lists the faults of runs, and the connections that were given up.
fn faults(runs: &Runs, names: &[String], plan: &Plan, ink: Ink) -> Lines {
    // Without a summary, seeds are among the settings or all equal.
    let seeds = !runs.summary.is_empty();
    let mut lines = Vec::new();
    for run in &runs.runs {
        let mut which: Vec<String> = names
            .iter()
            .zip(settings(&run.settings, names))
            .map(|(n, v)| format!("{} = {v}", clean(n)))
            .collect();
        if seeds {
            which.push(format!("seed {}", run.seed));
        }
        let which = which.join(", ");
        if let Some(error) = &run.error {
            lines.push(format!("{}  {which}: {}", ink.bad("could not run"), clean(error)));
        }
        let given_up: u64 = run.flows.iter().map(|f| f.gave_up).sum();
        if given_up > 0 {
            lines.push(format!("given up  {which}: {given_up} of {} flows", run.flows.len()));
        }
        for fault in &run.faults {
            lines.push(format!("{}  {which}: {}", ink.bad("FAILED"), clean(fault)));
        }
        for (e, unit) in with_units(run, plan).filter(|(e, _)| !e.ok) {
            let found = outcome(e, unit);
            lines.push(format!("{}  {which}: {}: {found}", ink.bad("FAILED"), clean(&e.what)));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::summary::summaries;
    use crate::result::{ExpectResult, SCHEMA};
    use weir_core::time::Duration;

    fn run(loss: &str, seed: u64, goodput: f64) -> RunResult {
        // Both live for 2 s.
        let flow = |id: &str, bps: f64| FlowResult {
            id: id.into(),
            start_s: 1.0,
            end_s: 3.0,
            bytes: (bps / 4.0) as u64,
            goodput_bps: bps,
            retransmits: 3,
            ..FlowResult::default()
        };
        RunResult {
            experiment: "lossy".into(),
            settings: [("path.wan.loss".into(), loss.into())].into(),
            seed,
            flows: vec![flow("a.0", goodput), flow("a.1", 3.0 * goodput)],
            ..RunResult::default()
        }
    }

    fn names() -> Vec<String> {
        vec!["path.wan.loss".into()]
    }

    #[test]
    fn a_line_for_each_run() {
        let bad = ExpectResult {
            what: "flow.*.rtos = 0".into(),
            found: Some(2.0),
            bound: 0.0,
            at: "sum of 2".into(),
            ..ExpectResult::default()
        };
        let failed = RunResult { status: Status::Failed, expects: vec![bad], ..run("1%", 1, 2e6) };
        let broken = RunResult {
            flows: vec![],
            status: Status::Failed,
            error: Some("no\nway".into()),
            ..run("2%", 1, 0.0)
        };
        let all = Runs { schema: SCHEMA, runs: vec![run("0", 1, 5e6), failed, broken], summary: vec![] };
        let plan = Plan::new("lossy", Duration::from_secs(4));
        let text = super::runs(&all, &names(), &plan, 4, false);
        let want = "\
lossy: 4 runs, 1 ok, 2 FAILED, 1 not finished

path.wan.loss  flows  goodput    mean  retr  rto  checks
                       Mbit/s  Mbit/s
0                  2   20.000  10.000     6    0  -
1%                 2    8.000   4.000     6    0  0 of 1 hold
2%                 -        -       -     -    -  could not run
goodput: bytes of all flows over the time of all; mean, fct and rtt p50: means of the flows; retr and rto: sums

FAILED  path.wan.loss = 1%: flow.*.rtos = 0: found 2 (sum of 2), bound 0
could not run  path.wan.loss = 2%: no?way
";
        assert_eq!(text, want, "{text}");
    }

    #[test]
    fn seeds_have_one_line_with_their_interval() {
        let made = vec![run("1%", 1, 10e6), run("1%", 2, 12e6)];
        let all = Runs { schema: SCHEMA, summary: summaries(&made), runs: made };
        let plan = Plan::new("lossy", Duration::from_secs(4));
        let text = super::runs(&all, &names(), &plan, 2, false);
        // Runs' means 20 and 24 Mbit/s: standard error 2, times 12.706.
        assert!(text.contains("1%             a          2      2   22.000  25.412"), "{text}");
    }
}
