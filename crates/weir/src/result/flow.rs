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
    /// Time of its last byte, if that is after `end_s`: data that was under way when its time was up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_s: Option<f64>,
    /// Bytes that it was to carry; absent if it ends by time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Bytes that the receiving application got, also after `end_s`.
    pub bytes: u64,
    /// What `bytes` counts: always `payload`.
    pub counts: String,
    /// The bytes of its time, from `start_s` to `end_s`, over that time.
    pub goodput_bps: f64,
    /// Time from its start until the last byte was received; `null` if it has no last byte or that had not
    /// come.
    pub fct_s: Option<f64>,
    /// Time since its start, if its last byte had not come by the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fct_at_least_s: Option<f64>,
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
    /// Time of its last byte, if that is after the flow's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_s: Option<f64>,
    /// Bytes that the receiving application got, also after the flow's end.
    pub bytes: u64,
    /// The bytes of the flow's time over that time.
    pub goodput_bps: f64,
}

/// Requests and their answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Exchanges {
    /// Number of answered requests.
    pub count: u64,
    /// Time from the first byte of a request written to the last of its response read, in microseconds. A
    /// request without an answer counts with the time that it has waited.
    pub latency_us: Latency,
    /// Time that the last request has waited, if it was not answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under_way_us: Option<u64>,
}

/// Bursts and their acknowledgements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bursts {
    /// Number of acknowledged bursts.
    pub count: u64,
    /// Time from a burst's write until all of it was acknowledged, in microseconds. One that is under way
    /// counts with the time that it has taken.
    pub time_us: Latency,
    /// Time that the last burst has taken, if not all of it was acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under_way_us: Option<u64>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl FlowResult {
    /// The group it belongs to: `ten` of `ten.0`.
    pub fn group(&self) -> &str {
        self.id.rsplit_once('.').map_or(self.id.as_str(), |(group, _)| group)
    }

    /// Returns the time at which all of `bytes` had come and the flow's time was up.
    pub fn until_s(&self) -> f64 {
        self.last_s.map_or(self.end_s, |last| last.max(self.end_s))
    }
}

/// The rate of flows that share something, each given by its bytes, start and end: all their bytes over the time from the
/// first start to the last end, in bits per second. A sum of their own rates would count each for the time of all, and
/// exceed the link that they share. `None` of none.
pub fn joint_rate(flows: impl Iterator<Item = (u64, f64, f64)>) -> Option<f64> {
    let all = flows.reduce(|(bytes, start, end), (b, s, e)| (bytes + b, start.min(s), end.max(e)));
    all.map(|(bytes, start, end)| if end > start { bytes as f64 * 8.0 / (end - start) } else { 0.0 })
}

/// The most that flows are set to together at any time, each given by its rate, start and end. `None` of
/// none.
pub fn joint_target(flows: impl Iterator<Item = (u64, f64, f64)>) -> Option<u64> {
    let flows: Vec<(u64, f64, f64)> = flows.collect();
    let mut steps: Vec<(f64, bool, u64)> = Vec::with_capacity(2 * flows.len());
    for &(bps, start, end) in &flows {
        steps.extend([(start, true, bps), (end.max(start), false, bps)]);
    }
    // One that ends when another starts is not there with it; one that takes no time is there before it goes.
    steps.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut now, mut most) = (0u64, flows.iter().map(|f| f.0).max()?);
    for (_, begins, bps) in steps {
        now = if begins { now.saturating_add(bps) } else { now.saturating_sub(bps) };
        most = most.max(now);
    }
    Some(most)
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
    // A flow that has not begun, or that takes no time, has none.
    let mut t = start - start % interval;
    while t < end && start < end {
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
