//! Summary of runs that differ only in their seed.

mod confidence;

pub use confidence::mean;

use crate::result::metric::{Measured, Metric, Values};
use crate::result::{group_names, FlowResult, GroupSummary, Mean, RunResult, Status, Summary};

/// Summarises `runs`; those with the same settings stand together.
pub fn summaries(runs: &[RunResult]) -> Vec<Summary> {
    runs.chunk_by(|a, b| a.settings == b.settings).map(summary).collect()
}

fn summary(runs: &[RunResult]) -> Summary {
    let whole = |r: &&RunResult| r.error.is_none() && r.status != Status::Interrupted;
    let runs: Vec<&RunResult> = runs.iter().filter(whole).collect();
    let names = group_names(runs.iter().copied());
    Summary {
        settings: runs.first().map(|r| r.settings.clone()).unwrap_or_default(),
        seeds: runs.iter().map(|r| r.seed).collect(),
        groups: names.into_iter().filter_map(|name| group(name, &runs)).collect(),
    }
}

/// Summarises a group over the runs; `None` if there are none.
fn group<'a>(name: &str, runs: &[&'a RunResult]) -> Option<GroupSummary> {
    let of_run = |r: &&'a RunResult| r.flows.iter().filter(|f| f.group() == name).collect();
    let samples: Vec<Vec<&FlowResult>> = runs.iter().map(of_run).collect();
    // Each run counts as one value, because the flows of a run are not independent.
    let of_metric = |m: &Metric<FlowResult>| {
        let found = mean(&samples.iter().filter_map(|flows| m.total_of(flows)).collect::<Vec<_>>())?;
        let measured = samples.iter().map(|flows| m.measured(flows)).fold(Measured::default(), Measured::and);
        Some(Mean { measured: Some(measured).filter(|all| !all.is_all()), ..found })
    };
    let counts = || samples.iter().map(|flows| flows.len() as u64);
    let (flows, most) = (counts().min()?, counts().max()?);
    Some(GroupSummary {
        group: name.to_string(),
        flows,
        flows_most: Some(most).filter(|&most| most > flows),
        values: Values::of(of_metric),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Quantiles;

    fn flow(id: &str, goodput_bps: f64, fct_s: Option<f64>) -> FlowResult {
        let rtt_us = Quantiles { p50: 1000, p99: 3000 };
        FlowResult { id: id.into(), goodput_bps, fct_s, retransmits: 2, rtt_us, ..FlowResult::default() }
    }

    fn run(loss: &str, seed: u64, flows: Vec<FlowResult>) -> RunResult {
        RunResult { settings: [("loss".into(), loss.into())].into(), seed, flows, ..RunResult::default() }
    }

    #[test]
    fn a_value_for_each_run() {
        let one =
            run("1%", 7, vec![flow("a.0", 10.0, Some(1.0)), flow("a.1", 30.0, None), flow("b.0", 5.0, None)]);
        let two = run(
            "1%",
            8,
            vec![flow("a.0", 30.0, Some(2.0)), flow("a.1", 30.0, Some(4.0)), flow("b.0", 5.0, None)],
        );
        let all = summaries(&[one, two, run("2%", 7, vec![flow("a.0", 1.0, None)])]);
        assert_eq!(all.len(), 2);
        let s = &all[0];
        assert_eq!((s.settings["loss"].to_string(), s.seeds.as_slice()), ("1%".into(), [7, 8].as_slice()));
        assert_eq!(
            s.groups.iter().map(|g| (g.group.as_str(), g.flows)).collect::<Vec<_>>(),
            [("a", 2), ("b", 1)]
        );
        let a = &s.groups[0];
        // Runs' means are 20 and 30: standard error 5, t with one degree of freedom 12.706.
        let goodput = a.values.get("goodput_bps").unwrap();
        assert_eq!((goodput.n, goodput.mean), (2, 25.0));
        assert!((goodput.ci95.unwrap() - 63.53).abs() < 1e-9);
        let mean = |name: &str| a.values.get(name).map(|m| m.mean);
        assert_eq!(mean("fct_s"), Some(2.0));
        // Of the whole group: 2 flows with 2 each.
        assert_eq!(a.values.get("retransmits"), Some(Mean { n: 2, mean: 4.0, ci95: None, measured: None }));
        assert_eq!((mean("rtt_us.p50"), mean("rtt_us.p99")), (Some(1000.0), Some(3000.0)));
        assert_eq!(s.groups[1].values.get("fct_s"), None);
        let alone = Mean { n: 1, mean: 1.0, ci95: None, measured: None };
        assert_eq!(all[1].groups[0].values.get("goodput_bps"), Some(alone));
    }

    #[test]
    fn runs_without_an_end_do_not_count() {
        let whole = run("1%", 1, vec![flow("a.0", 10.0, None)]);
        let broken = RunResult { error: Some("no".into()), ..run("1%", 2, vec![]) };
        let cut = RunResult { status: Status::Interrupted, ..run("1%", 3, vec![flow("a.0", 99.0, None)]) };
        let s = &summaries(&[broken, whole, cut])[0];
        assert_eq!(
            (s.seeds.as_slice(), s.groups[0].values.get("goodput_bps").unwrap().mean),
            ([1].as_slice(), 10.0)
        );
        assert_eq!(summaries(&[]), []);
    }

    /// Two of three flows had ended, after 1 and 3 s.
    #[test]
    fn means_say_of_how_many_flows_they_are() {
        let under_way = FlowResult { fct_at_least_s: Some(9.0), ..flow("a.1", 1.0, None) };
        let one = run("1%", 1, vec![flow("a.0", 1.0, Some(1.0)), under_way]);
        let s = &summaries(&[one, run("1%", 2, vec![flow("a.0", 1.0, Some(3.0))])])[0];
        let fct = s.groups[0].values.get("fct_s").unwrap();
        assert_eq!((fct.mean, fct.measured), (2.0, Some(Measured { n: 2, of: 3 })));
    }

    /// With drawn arrivals seeds have different numbers of flows, and the first may have none.
    #[test]
    fn groups_of_any_run_are_told() {
        let one = run("1%", 1, vec![flow("b.0", 5.0, None)]);
        let two =
            run("1%", 2, vec![flow("a.0", 30.0, None), flow("a.1", 10.0, None), flow("b.0", 5.0, None)]);
        let s = &summaries(&[one, two])[0];
        let groups: Vec<_> = s.groups.iter().map(|g| (g.group.as_str(), g.flows, g.flows_most)).collect();
        assert_eq!(groups, [("b", 1, None), ("a", 0, Some(2))]);
        assert_eq!(s.groups[1].values.get("goodput_bps").map(|m| (m.n, m.mean)), Some((1, 20.0)));
    }
}
