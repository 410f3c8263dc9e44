//! Results of experiments, `schema = 1`. Both worlds write the same shape; field names are a
//! contract. Times are seconds since the start of the run, rates are bits per second.

mod document;
mod flow;

pub use document::{Document, GroupSummary, Mean, Means, Runs, Settings, Summary};
pub use flow::Seen;

use crate::plan::{Parity, Plan};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;

/// The schema written here.
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
    /// What a sweep set for this run, by the path of the key in the file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: Settings,
    /// Where it ran.
    pub world: World,
    /// How it ended.
    pub status: Status,
    /// Why a run among several could not be made; there is nothing of it below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What went wrong in it, if something did: flows that were reset, files that could not be written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// Seed of everything random.
    pub seed: u64,
    /// Time that the experiment covers; shorter than planned if it was interrupted.
    pub duration_s: f64,
    /// Time that it took by the clock, set-up and tear-down included.
    pub wall_s: f64,
    /// Frames that went over the links, each link counted.
    pub packets: u64,
    /// What made it.
    pub made_by: MadeBy,
    /// How far apart the worlds may be, as the experiment declares it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parity: Option<Parity>,
    /// Checks of the experiment and how they went.
    pub expects: Vec<ExpectResult>,
    /// The gateway; absent for a plain bridge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayResult>,
    /// Flows in the order of the plan.
    pub flows: Vec<FlowResult>,
    /// Classes of the gateway, in its order.
    pub classes: Vec<ClassResult>,
    /// Links, each direction by itself.
    pub links: Vec<LinkResult>,
    /// Values over time, by flow identifier or link name. Bytes received by a flow are in the series of its name, or, if
    /// others of its values were recorded, which are there then, in `<flow>.received`; what the gateway held of it is in
    /// `<flow>.held` if it was not looked at together with the others.
    pub series: BTreeMap<String, Series>,
}

impl Default for RunResult {
    /// Of nothing, in the simulator.
    fn default() -> RunResult {
        RunResult {
            schema: SCHEMA,
            experiment: String::new(),
            settings: Settings::new(),
            world: World::Sim,
            status: Status::Ok,
            error: None,
            faults: Vec::new(),
            seed: 0,
            duration_s: 0.0,
            wall_s: 0.0,
            packets: 0,
            made_by: MadeBy::default(),
            parity: None,
            expects: Vec::new(),
            gateway: None,
            flows: Vec::new(),
            classes: Vec::new(),
            links: Vec::new(),
            series: BTreeMap::new(),
        }
    }
}

/// Where an experiment runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    /// In virtual time, with simulated end hosts.
    Sim,
    /// In network namespaces, with the real Linux TCP.
    Lab,
}

impl World {
    /// The name used in files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            World::Sim => "sim",
            World::Lab => "lab",
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It ran to its end and every check holds.
    Ok,
    /// It ran to its end and a check failed.
    Failed,
    /// It was stopped early; checks were not made.
    Interrupted,
}

/// What made a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeBy {
    /// Version of Weir.
    pub version: String,
    /// Release of the kernel; empty in the simulator.
    pub kernel: String,
    /// SHA-256 of the experiment file, in hexadecimal.
    pub config_sha256: String,
}

impl MadeBy {
    /// This version of Weir, for this plan, with this kernel.
    pub fn new(plan: &Plan, kernel: String) -> MadeBy {
        let version = env!("CARGO_PKG_VERSION").into();
        MadeBy { version, kernel, config_sha256: plan.config_sha256.clone() }
    }
}

/// A check and how it went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpectResult {
    /// What was checked, in the words of the file.
    pub what: String,
    /// The value found: of several, the one furthest on the wrong side or nearest to it. `null` if
    /// there was nothing to measure, which fails.
    pub found: Option<f64>,
    /// The bound that decides about `found`.
    pub bound: f64,
    /// Whether the check holds.
    pub ok: bool,
    /// Where `found` was found: the flow, the time; empty for a single value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub at: String,
}

/// The gateway's totals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewayResult {
    /// Processor time of the engine, user and system.
    pub cpu_s: f64,
    /// TCP payload that passed through user space; 0 when only ACKs are steered there.
    pub user_data_bytes: u64,
    /// The conservation law's account: `in + made = out + held + absorbed + Σ dropped`.
    pub frames: Frames,
}

/// An account of frames.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frames {
    /// Handed in.
    #[serde(rename = "in")]
    pub received: u64,
    /// Made by the gateway.
    pub made: u64,
    /// Given out.
    #[serde(rename = "out")]
    pub sent: u64,
    /// Still inside.
    pub held: u64,
    /// Ended with their information kept.
    pub absorbed: u64,
    /// Dropped, by reason.
    pub dropped: Counts,
}

/// One flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// Its identifier: `ten.0`.
    pub id: String,
    /// Its class in the gateway; empty for none.
    pub class: String,
    /// Congestion control of its sender; `udp` for a flow that has none.
    pub cc: String,
    /// The rate that the gateway is set to for this flow; absent if it controls none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_bps: Option<u64>,
    /// When it started.
    pub start_s: f64,
    /// When it ended.
    pub end_s: f64,
    /// Bytes that the receiving application got.
    pub bytes: u64,
    /// What `bytes` counts: always `payload`.
    pub counts: String,
    /// `bytes` over its time.
    pub goodput_bps: f64,
    /// Time from its start until the last byte was received; `null` if it has no last byte or was cut.
    pub fct_s: Option<f64>,
    /// Why the gateway leaves it alone, if it does.
    pub pass_reason: Option<String>,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission time-outs.
    pub rtos: u64,
    /// Share of a UDP flow's datagrams that did not arrive, 0 to 1; absent for TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Round-trip times that the sender measured.
    pub rtt_us: Quantiles,
    /// Of a flow that goes both ways, the other direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<Back>,
    /// Of requests and responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchanges: Option<Exchanges>,
    /// Goodput interval by interval; the last may be shorter.
    pub intervals: Vec<Interval>,
}

/// The other direction of a flow that goes both ways.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Back {
    /// Its class in the gateway; empty for none.
    pub class: String,
    /// The rate that the gateway is set to for it; absent if it controls none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_bps: Option<u64>,
    /// Bytes that the receiving application got.
    pub bytes: u64,
    /// `bytes` over the flow's time.
    pub goodput_bps: f64,
}

/// Requests that were answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Exchanges {
    /// How many.
    pub count: u64,
    /// From the first byte of a request written to the last of its response read, in microseconds.
    pub latency_us: Latency,
}

/// Three quantiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
}

impl FlowResult {
    /// The group it belongs to: `ten` of `ten.0`.
    pub fn group(&self) -> &str {
        self.id.rsplit_once('.').map_or(self.id.as_str(), |(group, _)| group)
    }
}

impl RunResult {
    /// A column of the series of a flow or link, and its times: of the series of that name, or of one of its parts.
    pub fn column(&self, name: &str, column: &str) -> Option<(&[f64], &[f64])> {
        let parts = ["", ".received", ".held"].map(|part| format!("{name}{part}"));
        parts.iter().find_map(|key| {
            let series = self.series.get(key)?;
            Some((series.t_s.as_slice(), series.columns.get(column)?.0.as_slice()))
        })
    }

    /// Bytes that a flow received, bin by bin, and the number of the first of these bins; others are empty.
    pub fn received(&self, flow: &FlowResult, bin: weir_core::time::Duration) -> Option<(usize, &[f64])> {
        let (t_s, bytes) = self.column(&flow.id, RECEIVED)?;
        let begin = t_s.first().map_or(0.0, |t| t * 1e9 / bin.as_nanos().max(1) as f64);
        Some((begin.round() as usize, bytes))
    }

    /// The flows of each group, in order of appearance.
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

/// Two quantiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantiles {
    /// The median.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
}

/// Two quantiles and the maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuantilesMax {
    /// The median.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

/// Bytes of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// When it begins.
    pub t_s: f64,
    /// How long it is.
    pub len_s: f64,
    /// Bytes received in it.
    pub bytes: u64,
    /// `bytes` over its length.
    pub bps: f64,
}

/// One class of the gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassResult {
    /// Its name.
    pub name: String,
    /// The rates that its flows are set to, all together; 0 for none.
    pub target_bps: u64,
    /// Goodput of its flows, all together.
    pub bps: f64,
    /// The most ACKs whose progress was held at any time, as packets a queue would have held.
    pub held_ack_peak_packets: u64,
    /// The most bytes acknowledged by receivers and not yet passed on, at any time.
    pub held_ack_peak_bytes: u64,
    /// Pure ACKs whose number was held instead of the packet.
    pub acks_absorbed: u64,
    /// ACKs made by the gateway.
    pub acks_generated: u64,
    /// Segments whose ACK number or window was rewritten.
    pub acks_rewritten: u64,
}

impl ClassResult {
    /// With what its flows tell: what they are set to, and their goodput.
    #[must_use]
    pub fn with(self, flows: &[FlowResult]) -> ClassResult {
        let there = flows.iter().map(|f| (f.class.as_str(), f.target_bps, f.goodput_bps));
        let back = flows.iter().filter_map(|f| f.back.as_ref());
        let back = back.map(|b| (b.class.as_str(), b.target_bps, b.goodput_bps));
        let own = || there.clone().chain(back.clone()).filter(|(class, ..)| *class == self.name);
        let (target_bps, bps) = (own().filter_map(|(_, t, _)| t).sum(), own().map(|(.., bps)| bps).sum());
        ClassResult { target_bps, bps, ..self }
    }
}

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkResult {
    /// `lan.out`, `lan.back`, `wan.out` or `wan.back`; the access links of host `edge.0` are `edge.0.up` and
    /// `edge.0.down`.
    pub name: String,
    /// Frames that left it.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Share of its rate that was used, 0 to 1; 0 for a link without a rate.
    pub utilization: f64,
    /// Time that frames waited in its queue.
    pub queue_us: QuantilesMax,
    /// Frames marked with Congestion Experienced.
    pub marks: u64,
    /// Frames dropped, by reason.
    pub drops: Counts,
}

/// Values over time: equally long columns, the first of them time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Time of each row.
    #[serde(serialize_with = "numbers")]
    pub t_s: Vec<f64>,
    /// The other columns by name. `received_bytes` of a flow: payload received from `t_s` until the
    /// next row, at the bin length of the plan; the simulator leaves bins outside the flow's life out.
    #[serde(flatten)]
    pub columns: BTreeMap<String, Column>,
}

/// A column of a series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Column(#[serde(serialize_with = "numbers")] pub Vec<f64>);

/// Name of the column that expectations about goodput are computed from.
pub const RECEIVED: &str = "received_bytes";

impl Series {
    /// The series of bytes received in bins of length `bin`, beginning with bin 0 at the start of the run.
    pub fn received(bin: weir_core::time::Duration, bytes: &[u64]) -> Series {
        Series::received_from(bin, 0, bytes)
    }

    /// As [`Series::received`], beginning with bin `first`.
    pub fn received_from(bin: weir_core::time::Duration, first: usize, bytes: &[u64]) -> Series {
        let t = |i: usize| bin.saturating_mul(i as u64).as_secs_f64();
        Series {
            t_s: (first..first + bytes.len()).map(t).collect(),
            columns: BTreeMap::from([(
                RECEIVED.to_string(),
                Column(bytes.iter().map(|&b| b as f64).collect()),
            )]),
        }
    }
}

/// Whole numbers are written as such: `12`, not `12.0`. Readers take both.
fn numbers<S: Serializer>(values: &[f64], s: S) -> Result<S::Ok, S::Error> {
    // 2^53: up to here every whole number has its own f64.
    let whole = |v: f64| v.fract() == 0.0 && v.abs() <= 9_007_199_254_740_992.0;
    if values.iter().all(|&v| whole(v)) {
        s.collect_seq(values.iter().map(|&v| v as i64))
    } else {
        s.collect_seq(values)
    }
}

/// Intervals of length `interval` from the bins of one flow, between its start and its end. Intervals
/// are aligned to the start of the run; the first and the last may be cut by the flow's own life.
pub fn intervals(
    bin: weir_core::time::Duration,
    interval: weir_core::time::Duration,
    start: weir_core::time::Duration,
    end: weir_core::time::Duration,
    received: &[u64],
) -> Vec<Interval> {
    let (bin, interval) = (bin.as_nanos().max(1), interval.as_nanos().max(1));
    let (start, end) = (start.as_nanos(), end.as_nanos());
    let mut out = Vec::new();
    let mut t = start - start % interval;
    while t < end {
        let (from, to) = (t.max(start), (t + interval).min(end));
        let bins = (t / bin) as usize..((t + interval) / bin) as usize;
        let bytes: u64 = received.iter().take(bins.end).skip(bins.start).sum();
        let len_s = (to - from) as f64 / 1e9;
        out.push(Interval { t_s: from as f64 / 1e9, len_s, bytes, bps: bytes as f64 * 8.0 / len_s });
        t += interval;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::time::Duration;

    #[test]
    fn intervals_of_a_flow_that_starts_late_and_ends_early() {
        // 10 ms bins of 1000 bytes from 15 ms to 45 ms, in intervals of 20 ms.
        let bins = [0, 500, 1000, 1000, 500, 0];
        let ms = Duration::from_millis;
        let got = intervals(ms(10), ms(20), ms(15), ms(45), &bins);
        let rows: Vec<(f64, f64, u64)> = got.iter().map(|i| (i.t_s, i.len_s, i.bytes)).collect();
        assert_eq!(rows, [(0.015, 0.005, 500), (0.02, 0.02, 2000), (0.04, 0.005, 500)]);
        assert!(got.iter().all(|i| (i.bps - 800_000.0).abs() < 1e-6), "{got:?}");
    }

    #[test]
    fn a_result_survives_being_written_and_read() {
        let run = RunResult {
            schema: SCHEMA,
            experiment: "x".into(),
            world: World::Lab,
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
