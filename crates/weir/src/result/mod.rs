//! Results of experiments, `schema = 1`. Both worlds write the same shape; field names are a contract. Times
//! are seconds since the start of the run. Rates are bits per second.

mod document;
mod flow;
mod gateway;
mod link;
mod machine;
pub mod metric;
pub mod observe;
mod pace;
pub mod quality;
mod quantiles;
pub mod running;
pub mod sample;
mod series;
mod setting;
pub mod traffic;
pub mod unit;

pub use document::{Document, GroupSummary, Mean, Runs, Summary};
pub use flow::{intervals, joint_rate, joint_target, Back, Bursts, Exchanges, FlowResult, Interval};
pub use gateway::{
    parent, with_flows, Ancestry, ClassAdmission, ClassAlone, ClassBound, ClassOthers, ClassQueue,
    ClassResult, Frames, GatewayResult, Steering,
};
pub use link::LinkResult;
pub use machine::Machine;
pub use pace::{Bandwidth, ClassPace, PortPace};
pub use quantiles::{Latency, Most, Quantiles, QuantilesMax};
pub use series::{Column, Series, RECEIVED, UNKNOWN};
pub use setting::{describe, Setting, Settings};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Schema that is written here.
pub const SCHEMA: u32 = 1;

/// Counts by name (`queue_full`, …); names that did not occur are left out.
pub type Counts = BTreeMap<String, u64>;

/// The result of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Always [`SCHEMA`].
    pub schema: u32,
    /// Name of the experiment.
    pub experiment: String,
    /// Settings that a sweep made for this run, by the path of the key in the file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: Settings,
    /// World of the run.
    pub world: Backend,
    /// End of the run.
    pub status: Status,
    /// Reason why a run among several could not be made; the fields below are then empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Faults during the run: flows that were reset, files that could not be written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Time covered by the experiment; shorter than planned if it was interrupted.
    pub duration_s: f64,
    /// Time taken by the clock, set-up and tear-down included.
    pub wall_s: f64,
    /// Processor time available to the run; absent in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Frames sent over the links, counted at each link.
    pub packets: u64,
    /// Program and configuration behind the result.
    pub made_by: MadeBy,
    /// Distance between the worlds that the experiment allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parity: Option<Parity>,
    /// Variants of the experiment that ran beside it, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub baselines: BTreeMap<String, RunResult>,
    /// Checks of the experiment, with their outcomes.
    pub expects: Vec<ExpectResult>,
    /// Values from a paper for the same experiment, beside the values found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reference: Vec<ReferenceResult>,
    /// The gateway; absent for a plain bridge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayResult>,
    /// Groups whose flows are drawn, or depend on the run: their number, starts or sizes. A flow of the same
    /// name is the same one only in runs of the same seed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drawn: Vec<String>,
    /// Flows in the order of the plan.
    pub flows: Vec<FlowResult>,
    /// Classes of the gateway, in its order.
    pub classes: Vec<ClassResult>,
    /// Links, one entry for each direction.
    pub links: Vec<LinkResult>,
    /// Values over time, by flow identifier or link name. The bytes received by a flow are in the series of
    /// its name. If other values of the flow were recorded, these are in that series, and received bytes in
    /// `<flow>.received`. Data that the gateway held of it is in `<flow>.held`, unless it was sampled
    /// together with the others.
    pub series: BTreeMap<String, Series>,
}

impl Default for RunResult {
    /// Returns an empty result of the simulator.
    fn default() -> RunResult {
        RunResult {
            schema: SCHEMA,
            experiment: String::new(),
            settings: Settings::new(),
            world: Backend::Sim,
            status: Status::Ok,
            error: None,
            faults: Vec::new(),
            seed: 0,
            duration_s: 0.0,
            wall_s: 0.0,
            machine: None,
            packets: 0,
            made_by: MadeBy::default(),
            parity: None,
            baselines: BTreeMap::new(),
            expects: Vec::new(),
            reference: Vec::new(),
            gateway: None,
            drawn: Vec::new(),
            flows: Vec::new(),
            classes: Vec::new(),
            links: Vec::new(),
            series: BTreeMap::new(),
        }
    }
}

/// World that an experiment runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Virtual time, with simulated end hosts.
    Sim,
    /// Network namespaces, with the real Linux TCP.
    Lab,
}

impl Backend {
    /// Returns the name used in files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Sim => "sim",
            Backend::Lab => "lab",
        }
    }
}

/// End of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Completed; every check holds.
    Ok,
    /// Completed; a check failed.
    Failed,
    /// Stopped early; checks were not made.
    Interrupted,
}

impl Status {
    /// Returns the name used in results.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Failed => "failed",
            Status::Interrupted => "interrupted",
        }
    }
}

/// Program and configuration behind a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeBy {
    /// Version of Weir.
    pub version: String,
    /// Release of the kernel; empty in the simulator.
    pub kernel: String,
    /// SHA-256 of the experiment file, in hexadecimal.
    pub config_sha256: String,
    /// TCP settings in force. In the lab they are those of its hosts, by the names of `sysctl`, and the
    /// parameters of CUBIC. In the simulator they are those of each group of flows with TCP, by the keys of
    /// `[tcp]`: `flow.bulk.mss`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

impl MadeBy {
    /// Describes this version of Weir, for the experiment file with this hash and this kernel.
    pub fn new(config_sha256: &str, kernel: &str) -> MadeBy {
        let version = env!("CARGO_PKG_VERSION").into();
        MadeBy {
            version,
            kernel: kernel.into(),
            config_sha256: config_sha256.into(),
            settings: BTreeMap::new(),
        }
    }
}

/// Allowed distance between simulator and lab, as fractions: 0.05 is 5 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parity {
    /// Distance of each group's goodput, as the mean of its flows.
    pub goodput: f64,
    /// Distance of the completion times of finite flows, as the mean of each group.
    pub fct: f64,
}

/// Check and its outcome.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExpectResult {
    /// Check in the words of the file.
    pub what: String,
    /// Value found. With several values it is the one furthest on the wrong side, or else the nearest to it.
    /// `null` if there was nothing to measure, which fails.
    pub found: Option<f64>,
    /// Bound that decides about `found`.
    pub bound: f64,
    /// Flag: the check holds.
    pub ok: bool,
    /// Flag: `found` is a lower bound, because its subject had not ended or was not measured.
    #[serde(default, skip_serializing_if = "is_false")]
    pub at_least: bool,
    /// Place of `found`: the flow, the time; empty for a single value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub at: String,
    /// Origin of the bound, if the file says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
}

/// Origin of a check's bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// A number or a sentence of the paper that the file reproduces.
    Paper,
    /// Arithmetic, a closed form, an RFC or an independent program.
    Theory,
    /// The spread over at least ten seeds.
    Seeds,
    /// A value that this program reached, with a margin: it guards against getting worse.
    Reached,
}

impl Basis {
    /// All origins, in the order in which manuals list them.
    pub const ALL: [Basis; 4] = [Basis::Paper, Basis::Theory, Basis::Seeds, Basis::Reached];

    /// Returns the name used in files and results.
    pub const fn name(self) -> &'static str {
        match self {
            Basis::Paper => "paper",
            Basis::Theory => "theory",
            Basis::Seeds => "seeds",
            Basis::Reached => "reached",
        }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Value reported by a paper, and the values found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReferenceResult {
    /// Name for readers.
    pub name: String,
    /// Value of the paper, as printed there.
    pub paper: String,
    /// Smallest value found; `null` if there was nothing to measure.
    pub low: Option<f64>,
    /// Largest value found; `null` if there was nothing to measure.
    pub high: Option<f64>,
    /// Flag: a value was not known, and `high` is a lower bound.
    #[serde(default, skip_serializing_if = "is_false")]
    pub at_least: bool,
}

/// Returns the names of the groups of flows in some runs, in order of appearance. With drawn arrivals a run
/// may have no flow of a group.
pub fn group_names<'a>(runs: impl IntoIterator<Item = &'a RunResult>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in runs.into_iter().flat_map(RunResult::groups) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

impl RunResult {
    /// Returns the times and a column of the series of a flow or link, or of one of the parts of that series.
    pub fn column(&self, name: &str, column: &str) -> Option<(&[f64], &[f64])> {
        let parts = ["", ".received", ".held"].map(|part| format!("{name}{part}"));
        parts.iter().find_map(|key| {
            let series = self.series.get(key)?;
            Some((series.t_s.as_slice(), series.columns.get(column)?.0.as_slice()))
        })
    }

    /// Returns the bytes that a flow received, bin by bin, and the number of the first bin. Bins outside are
    /// empty.
    pub fn received(&self, flow: &FlowResult, bin: weir_core::time::Duration) -> Option<(usize, &[f64])> {
        let (t_s, bytes) = self.column(&flow.id, RECEIVED)?;
        let begin = t_s.first().map_or(0.0, |t| t * 1e9 / bin.as_nanos().max(1) as f64);
        Some((begin.round() as usize, bytes))
    }

    /// Returns the flows of each group, in order of appearance.
    pub fn groups(&self) -> Vec<(&str, Vec<&FlowResult>)> {
        let mut groups: Vec<(&str, Vec<&FlowResult>)> = Vec::new();
        for f in &self.flows {
            match groups.iter_mut().find(|(name, _)| *name == f.group()) {
                Some((_, flows)) => flows.push(f),
                None => groups.push((f.group(), vec![f])),
            }
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::time::Duration;

    #[test]
    fn a_result_survives_being_written_and_read() {
        let run = RunResult {
            schema: SCHEMA,
            experiment: "x".into(),
            world: Backend::Lab,
            status: Status::Ok,
            seed: 1,
            duration_s: 1.5,
            wall_s: 2.0,
            packets: 3,
            made_by: MadeBy::default(),
            expects: vec![],
            gateway: Some(GatewayResult::default()),
            flows: vec![FlowResult { id: "a.0".into(), ..Default::default() }],
            classes: vec![ClassResult::default()],
            links: vec![LinkResult::default()],
            series: BTreeMap::from([("a.0".into(), Series::received(Duration::from_millis(10), &[1, 2]))]),
            ..RunResult::default()
        };
        let text = serde_json::to_string(&run).unwrap();
        assert!(text.contains(r#""series":{"a.0":{"t_s":[0.0,0.01],"received_bytes":[1,2]}}"#), "{text}");
        assert!(text.contains(r#""world":"lab","status":"ok""#), "{text}");
        assert!(text.contains(r#""frames":{"in":0,"made":0,"out":0,"held":0,"#), "{text}");
        assert_eq!(serde_json::from_str::<RunResult>(&text).unwrap(), run);
    }
}
