//! What runs that differ only in their seed have in common.

use super::confidence::mean;
use crate::result::{FlowResult, GroupSummary, Means, RunResult, Status, Summary};

/// Summaries of `runs`, of which those with the same settings stand together.
pub fn summaries(runs: &[RunResult]) -> Vec<Summary> {
    runs.chunk_by(|a, b| a.settings == b.settings).map(summary).collect()
}

fn summary(runs: &[RunResult]) -> Summary {
    let whole = |r: &&RunResult| r.error.is_none() && r.status != Status::Interrupted;
    let runs: Vec<&RunResult> = runs.iter().filter(whole).collect();
    let names = runs.first().map_or(Vec::new(), |r| r.groups().into_iter().map(|(name, _)| name).collect());
    Summary {
        settings: runs.first().map(|r| r.settings.clone()).unwrap_or_default(),
        seeds: runs.iter().map(|r| r.seed).collect(),
        groups: names.into_iter().filter_map(|name| group(name, &runs)).collect(),
    }
}

/// A group over the runs; `None` if there is none.
fn group(name: &str, runs: &[&RunResult]) -> Option<GroupSummary> {
    let of_run = |r: &&RunResult| r.flows.iter().filter(|f| f.group() == name).cloned().collect();
    let samples: Vec<Vec<FlowResult>> = runs.iter().map(of_run).collect();
    // One value for each run: the flows of a run are not independent of each other.
    let values = |of: &dyn Fn(&[FlowResult]) -> Option<f64>| -> Vec<f64> {
        samples.iter().filter_map(|flows| of(flows)).collect()
    };
    let total = |of: fn(&FlowResult) -> u64| values(&|flows| Some(flows.iter().map(of).sum::<u64>() as f64));
    let rtt = |of: fn(&FlowResult) -> u64| {
        values(&|flows| average(flows.iter().map(of).filter(|&us| us > 0).map(|us| us as f64)))
    };
    Some(GroupSummary {
        group: name.to_string(),
        flows: samples.first()?.len() as u64,
        goodput_bps: mean(&values(&|flows| average(flows.iter().map(|f| f.goodput_bps))))?,
        fct_s: mean(&values(&|flows| average(flows.iter().filter_map(|f| f.fct_s)))),
        retransmits: mean(&total(|f| f.retransmits))?,
        rtos: mean(&total(|f| f.rtos))?,
        rtt_us: mean(&rtt(|f| f.rtt_us.p50))
            .zip(mean(&rtt(|f| f.rtt_us.p99)))
            .map(|(p50, p99)| Means { p50, p99 }),
    })
}

/// The arithmetic mean; `None` of none.
fn average(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.fold((0.0, 0u64), |(sum, n), v| (sum + v, n + 1));
    (n > 0).then(|| sum / n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Mean, Quantiles};

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
        assert_eq!((s.settings["loss"].as_str(), s.seeds.as_slice()), ("1%", [7, 8].as_slice()));
        assert_eq!(
            s.groups.iter().map(|g| (g.group.as_str(), g.flows)).collect::<Vec<_>>(),
            [("a", 2), ("b", 1)]
        );
        let a = &s.groups[0];
        // Runs' means are 20 and 30: standard error 5, t with one degree of freedom 12.706.
        assert_eq!((a.goodput_bps.n, a.goodput_bps.mean), (2, 25.0));
        assert!((a.goodput_bps.ci95.unwrap() - 63.53).abs() < 1e-9);
        assert_eq!(a.fct_s.map(|m| m.mean), Some(2.0));
        assert_eq!(a.retransmits, Mean { n: 2, mean: 4.0, ci95: Some(0.0) });
        assert_eq!(a.rtt_us.map(|m| (m.p50.mean, m.p99.mean)), Some((1000.0, 3000.0)));
        assert_eq!(s.groups[1].fct_s, None);
        assert_eq!(all[1].groups[0].goodput_bps, Mean { n: 1, mean: 1.0, ci95: None });
    }

    #[test]
    fn runs_without_an_end_do_not_count() {
        let whole = run("1%", 1, vec![flow("a.0", 10.0, None)]);
        let broken = RunResult { error: Some("no".into()), ..run("1%", 2, vec![]) };
        let cut = RunResult { status: Status::Interrupted, ..run("1%", 3, vec![flow("a.0", 99.0, None)]) };
        let s = &summaries(&[broken, whole, cut])[0];
        assert_eq!((s.seeds.as_slice(), s.groups[0].goodput_bps.mean), ([1].as_slice(), 10.0));
        assert_eq!(summaries(&[]), []);
    }
}
