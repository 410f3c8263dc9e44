//! Results of a flow.

use super::{Latency, Most, Quantiles, QuantilesMax};
use serde::{Deserialize, Serialize};
use weir_core::time::Duration;

/// Result of one flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// Identifier of the flow: `ten.0`.
    pub id: String,
    /// Class in the gateway; empty for none.
    pub class: String,
    /// Congestion control of its sender; `udp` for a flow without any.
    pub cc: String,
    /// Rate that the gateway is set to for this flow; absent if it controls none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_bps: Option<u64>,
    /// Start of the flow.
    pub start_s: f64,
    /// End of the flow.
    pub end_s: f64,
    /// Time of the last byte, if that is after `end_s`: data that was under way at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_s: Option<f64>,
    /// Planned size in bytes; absent if the flow ends by time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Bytes that the receiving application got, including those after `end_s`.
    pub bytes: u64,
    /// Kind of bytes in `bytes`: always `payload`.
    pub counts: String,
    /// Bytes received from `start_s` to `end_s`, over that time.
    pub goodput_bps: f64,
    /// Time from its start until the last byte was received; `null` if the flow has no last byte or it had
    /// not come.
    pub fct_s: Option<f64>,
    /// Time since its start, if the last byte had not come by the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fct_at_least_s: Option<f64>,
    /// Reason why the gateway leaves it alone, if it does.
    pub pass_reason: Option<String>,
    /// Retransmitted segments.
    pub retransmits: u64,
    /// Retransmission time-outs.
    pub rtos: u64,
    /// 1 if an end gave up the connection after unanswered time-outs; absent otherwise.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gave_up: u64,
    /// Lost share of a UDP flow's datagrams, 0 to 1; absent for TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// One-way delays of the datagrams that arrived; absent for TCP, for datagrams of less than 16 bytes, and
    /// if none arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_us: Option<QuantilesMax>,
    /// Round-trip times measured by the sender.
    pub rtt_us: Quantiles,
    /// Other direction of a flow with data both ways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<Back>,
    /// Requests and responses of the flow, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchanges: Option<Exchanges>,
    /// Bursts of an application that pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts: Option<Bursts>,
    /// Goodput interval by interval; the last may be shorter.
    pub intervals: Vec<Interval>,
}

/// Other direction of a flow with data both ways.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Back {
    /// Class in the gateway; empty for none.
    pub class: String,
    /// Rate that the gateway is set to for this direction; absent if it controls none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_bps: Option<u64>,
    /// Time of the last byte, if that is after the flow's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_s: Option<f64>,
    /// Bytes that the receiving application got, including those after the flow's end.
    pub bytes: u64,
    /// Bytes received between the flow's start and end, over that time.
    pub goodput_bps: f64,
}

/// Requests and their answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Exchanges {
    /// Number of answered requests.
    pub count: u64,
    /// Time from the first byte of a request written to the last of its response read, in microseconds. An
    /// unanswered request counts with its waiting time so far.
    pub latency_us: Latency,
    /// Waiting time of the last request, if it was not answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under_way_us: Option<u64>,
    /// Quantiles if that request is never answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_us: Option<Most>,
}

/// Bursts and their acknowledgements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bursts {
    /// Number of acknowledged bursts.
    pub count: u64,
    /// Time from a burst's write until all of it was acknowledged, in microseconds. A burst under way counts
    /// with its time so far.
    pub time_us: Latency,
    /// Time of the last burst so far, if not all of it was acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under_way_us: Option<u64>,
    /// Quantiles if that burst is never acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_us: Option<Most>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl FlowResult {
    /// Returns the group of the flow: `ten` of `ten.0`.
    pub fn group(&self) -> &str {
        self.id.rsplit_once('.').map_or(self.id.as_str(), |(group, _)| group)
    }

    /// Returns the later of the flow's end and its last byte.
    pub fn until_s(&self) -> f64 {
        self.last_s.map_or(self.end_s, |last| last.max(self.end_s))
    }
}

/// Returns the joint rate of flows, in bits per second: all their bytes over the time from the first start to
/// the last end. Each flow is given by its bytes, start and end. A sum of the flows' own rates can exceed the
/// link that they share, because flows that follow each other would each count for the whole time. `None`
/// without flows.
pub fn joint_rate(flows: impl Iterator<Item = (u64, f64, f64)>) -> Option<f64> {
    let all =
        flows.reduce(|(bytes, start, end), (b, s, e)| (bytes.saturating_add(b), start.min(s), end.max(e)));
    all.map(|(bytes, start, end)| if end > start { bytes as f64 * 8.0 / (end - start) } else { 0.0 })
}

/// Returns the highest sum of targets at any time, each flow given by its rate, start and end. `None` without
/// flows.
pub fn joint_target(flows: impl Iterator<Item = (u64, f64, f64)>) -> Option<u64> {
    let flows: Vec<(u64, f64, f64)> = flows.collect();
    let mut steps: Vec<(f64, bool, u64)> = Vec::with_capacity(2 * flows.len());
    // Flows that take no time overlap with nothing. The highest single target, the least result, covers them.
    for &(bps, start, end) in flows.iter().filter(|(_, start, end)| end > start) {
        steps.extend([(start, true, bps), (end, false, bps)]);
    }
    // At equal times, ends come before starts: such flows do not overlap.
    steps.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut now, mut most) = (0u64, flows.iter().map(|f| f.0).max()?);
    for (_, begins, bps) in steps {
        now = if begins { now.saturating_add(bps) } else { now.saturating_sub(bps) };
        most = most.max(now);
    }
    Some(most)
}

/// Bytes received in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Beginning of the interval.
    pub t_s: f64,
    /// Length of the interval.
    pub len_s: f64,
    /// Bytes received.
    pub bytes: u64,
    /// Rate: `bytes` over the length.
    pub bps: f64,
}

/// Returns intervals of length `interval` from the bins of one flow, between its start and its end. Intervals
/// are aligned to the start of the run. The start and the end of the flow may cut the first and the last.
/// Together they have the bytes `in_time`: the bin of the end has others too, which came after it.
pub fn intervals(
    (bin, interval): (Duration, Duration),
    (start, end): (Duration, Duration),
    received: &[u64],
    in_time: u64,
) -> Vec<Interval> {
    let (bin, interval) = (bin.as_nanos().max(1), interval.as_nanos().max(1));
    let (start, end) = (start.as_nanos(), end.as_nanos());
    let mut out = Vec::new();
    // A flow that has not begun, or that takes no time, has no intervals.
    let mut t = start - start % interval;
    let mut left = in_time;
    while t < end && start < end {
        let (from, to) = (t.max(start), (t + interval).min(end));
        let bins = (t / bin) as usize..((t + interval) / bin) as usize;
        let bytes = received.iter().take(bins.end).skip(bins.start).sum::<u64>().min(left);
        left -= bytes;
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
        // 1000 bytes in 10 ms from 15 ms to 45 ms, in intervals of 20 ms, and 2000 more after the end.
        let bins = [0, 500, 1000, 1000, 1500, 1000];
        let ms = Duration::from_millis;
        let got = intervals((ms(10), ms(20)), (ms(15), ms(45)), &bins, 3000);
        let rows: Vec<(f64, f64, u64)> = got.iter().map(|i| (i.t_s, i.len_s, i.bytes)).collect();
        assert_eq!(rows, [(0.015, 0.005, 500), (0.02, 0.02, 2000), (0.04, 0.005, 500)]);
        assert!(got.iter().all(|i| (i.bps - 800_000.0).abs() < 1e-6), "{got:?}");
    }

    #[test]
    fn a_flow_that_takes_no_time_is_in_no_later_sum() {
        let flows = [(10, 0.0, 0.0), (10, 1.0, 2.0), (5, 1.5, 3.0), (7, 3.0, 4.0)];
        assert_eq!(joint_target(flows.into_iter()), Some(15));
        assert_eq!(joint_target([(10, 0.0, 0.0)].into_iter()), Some(10));
    }
}
