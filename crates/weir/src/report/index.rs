//! Index of the directories of several runs, as CSV.

use crate::result::metric::{of_several, Measured, Metric, Tables, FLOW};
use crate::result::{FlowResult, RunResult, Runs};
use std::fmt::Write;

/// Builds the index: a line for each run with its directory, settings, seed, status, and the metrics of all
/// its flows together in base units. `names` are the keys of the settings, in the order of the file.
/// Unmeasured values are empty cells. `NAME.n` is the number of flows with a known value, where others have
/// the value too.
pub fn index(runs: &Runs, names: &[String]) -> String {
    // The seed has a column already.
    let names = || names.iter().filter(|name| *name != "seed");
    let metrics = || of_several(Tables::All);
    let heads = ["run".to_string()].into_iter().chain(names().cloned());
    let heads = heads.chain(["seed", "status", "flows"].map(String::from));
    let counted = |m: &&Metric<FlowResult>| m.at_least.is_some();
    let counts = metrics().filter(counted).map(|m| format!("{}.n", m.name));
    let mut out = line(heads.chain(metrics().map(|m| m.name.to_string())).chain(counts));
    for (n, run) in runs.runs.iter().enumerate() {
        let settings = names().map(|name| {
            let setting = run.settings.get(name).and_then(|setting| serde_json::to_value(setting).ok());
            setting.map_or(String::new(), |v| v.as_str().map_or_else(|| v.to_string(), str::to_string))
        });
        let flows: Vec<&FlowResult> = run.flows.iter().collect();
        let values = metrics().map(|m| m.together(&flows).map_or(String::new(), |v| v.to_string()));
        let cells = [format!("{:03}", n + 1)].into_iter().chain(settings);
        let cells = cells.chain([run.seed.to_string(), status(run).to_string(), flows.len().to_string()]);
        let counts = metrics().filter(counted).map(|m| match m.measured(&flows) {
            Measured { of: 0, .. } => String::new(),
            Measured { n, .. } => n.to_string(),
        });
        out += &line(cells.chain(values).chain(counts));
    }
    out
}

/// Builds the table of a run's flows: a line for each with its group, class and congestion control, and all
/// metrics of flows in base units. Unmeasured values are empty cells.
pub fn flows(run: &RunResult) -> String {
    let metrics = || FLOW.iter();
    let heads = ["id", "group", "class", "cc"].map(String::from);
    let mut out = line(heads.into_iter().chain(metrics().map(|m| m.name.to_string())));
    for flow in &run.flows {
        let own = [flow.id.as_str(), flow.group(), &flow.class, &flow.cc].map(str::to_string);
        let values = metrics().map(|m| m.together(&[flow]).map_or(String::new(), |v| v.to_string()));
        out += &line(own.into_iter().chain(values));
    }
    out
}

fn status(run: &RunResult) -> &'static str {
    match run.error {
        Some(_) => "could not run",
        None => run.status.name(),
    }
}

/// Formats a line of CSV (RFC 4180): a cell with a comma, a quote or a line break is quoted.
fn line(cells: impl Iterator<Item = String>) -> String {
    let mut out = String::new();
    for (i, cell) in cells.enumerate() {
        let comma = if i == 0 { "" } else { "," };
        let _ = match cell.contains([',', '"', '\n', '\r']) {
            true => write!(out, "{comma}\"{}\"", cell.replace('"', "\"\"")),
            false => write!(out, "{comma}{cell}"),
        };
    }
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Setting, SCHEMA};

    #[test]
    fn a_line_for_each_flow() {
        // 1,000,000 bytes in a second are 8 Mbit/s.
        let flow = FlowResult { id: "web.0".into(), end_s: 1.0, bytes: 1_000_000, ..FlowResult::default() };
        let text = flows(&RunResult { flows: vec![flow], ..RunResult::default() });
        let rows: Vec<Vec<&str>> = text.lines().map(|row| row.split(',').collect()).collect();
        assert_eq!(rows[0][..4], ["id", "group", "class", "cc"]);
        assert_eq!((rows.len(), &rows[1][..2]), (2, &["web.0", "web"][..]));
        assert_eq!(rows[0].len(), rows[1].len());
        let value = |name: &str| rows[1][rows[0].iter().position(|head| *head == name).unwrap()];
        assert_eq!([value("bytes"), value("goodput_bps"), value("fct_s")], ["1000000", "8000000", ""]);
    }

    #[test]
    fn a_line_for_each_run() {
        let flow = |start_s, end_s| FlowResult { start_s, end_s, bytes: 1_000_000, ..FlowResult::default() };
        let settings = [
            ("flow.a.cc".to_string(), Setting::from("a,b")),
            ("path.wan.rate".to_string(), Setting::number("10Mbit", 1e7)),
        ];
        let made = RunResult {
            settings: settings.into(),
            seed: 7,
            flows: vec![flow(0.0, 1.0), flow(1.0, 2.0)],
            ..RunResult::default()
        };
        let broken = RunResult { error: Some("no".into()), ..RunResult::default() };
        let runs = Runs { schema: SCHEMA, runs: vec![made, broken], summary: vec![] };
        let names = ["path.wan.rate", "flow.a.cc"].map(String::from);
        let want = "\
run,path.wan.rate,flow.a.cc,seed,status,flows,goodput_bps,fct_s,rtt_us.p50,retransmits,rtos,fct_s.n,rtt_us.p50.n
001,10000000,\"a,b\",7,ok,2,8000000,,,0,0,,0
002,,,0,could not run,0,,,,,,,
";
        assert_eq!(index(&runs, &names), want);
    }
}
