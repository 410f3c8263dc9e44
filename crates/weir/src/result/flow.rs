//! Results of a flow.

use super::{Latency, Quantiles};
use serde::{Deserialize, Serialize};
use weir_core::time::Duration;

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
    /// 1 if an end gave the connection up after time-outs without an answer; absent otherwise.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gave_up: u64,
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
    /// Of an application that pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts: Option<Bursts>,
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

/// Bursts that were acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bursts {
    /// How many.
    pub count: u64,
    /// From when a burst was written until all of it was acknowledged, in microseconds.
    pub time_us: Latency,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl FlowResult {
    /// The group it belongs to: `ten` of `ten.0`.
    pub fn group(&self) -> &str {
        self.id.rsplit_once('.').map_or(self.id.as_str(), |(group, _)| group)
    }
}

/// The rate of flows that share something, each given by its bytes, start and end: all their bytes over the time from the
/// first start to the last end, in bits per second. A sum of their own rates would count each for the time of all, and
/// exceed the link that they share. `None` of none.
pub fn joint_rate(flows: impl Iterator<Item = (u64, f64, f64)>) -> Option<f64> {
    let all = flows.reduce(|(bytes, start, end), (b, s, e)| (bytes + b, start.min(s), end.max(e)));
    all.map(|(bytes, start, end)| if end > start { bytes as f64 * 8.0 / (end - start) } else { 0.0 })
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

/// Intervals of length `interval` from the bins of one flow, between its start and its end. Intervals
/// are aligned to the start of the run; the first and the last may be cut by the flow's own life.
pub fn intervals(
    bin: Duration,
    interval: Duration,
    start: Duration,
    end: Duration,
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
}
