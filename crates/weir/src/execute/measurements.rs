//! The result of a flow, from the measurements of its two ends.

use crate::experiment::plan::{Flow, Plan};
use crate::result::observe::flow_rate;
use crate::result::{intervals, FlowResult, Quantiles};
use weir_core::gateway::ClassConfig;
use weir_core::time::Duration;

/// Measurements of a flow's two ends, in either world. Times count from the start of the run.
#[derive(Clone, Debug, Default)]
pub struct FlowMeasurements<'a> {
    /// Class that the plan assigns.
    pub class: Option<&'a ClassConfig>,
    /// See [`FlowResult::cc`].
    pub cc: String,
    /// Number of retransmitted segments.
    pub retransmits: u64,
    /// Number of retransmission time-outs.
    pub rtos: u64,
    /// True if an end gave the connection up after time-outs without an answer.
    pub gave_up: bool,
    /// See [`FlowResult::loss`].
    pub loss: Option<f64>,
    /// Round-trip times measured by the sender.
    pub rtt_us: Quantiles,
    /// Bytes received up to the end of the run.
    pub bytes: u64,
    /// Bytes received in the flow's time.
    pub in_time: u64,
    /// Bytes received up to the end of the run, by bin.
    pub bins: &'a [u64],
    /// Time at which the last of them arrived.
    pub last: Option<Duration>,
    /// Time at which the client began to open the flow.
    pub opened: Option<Duration>,
    /// Time at which the last byte arrived, if the flow has a last byte.
    pub complete: Option<Duration>,
}

/// Returns the share of a flow's datagrams that was lost, from the datagrams sent, arrived (each counted
/// once), and missing below the highest number that arrived. Datagrams above that number may still be under
/// way, so they do not count, unless nothing arrived at all.
pub fn datagram_loss(sent: u64, arrived: u64, missing: u64) -> Option<f64> {
    match (arrived, sent) {
        (0, 0) => None,
        (0, _) => Some(1.0),
        (n, _) => Some(missing as f64 / (missing + n) as f64),
    }
}

impl FlowMeasurements<'_> {
    /// Returns the flow's result in a run that covers the time up to `covered`.
    pub fn row(self, plan: &Plan, flow: &Flow, covered: Duration) -> FlowResult {
        let last = flow.end(plan.duration).min(covered);
        let complete = self.complete.filter(|_| flow.bytes.is_some());
        // In a run that was interrupted before the flow's start, the flow has no duration.
        let end = complete.map_or(last, |c| c.min(covered)).max(flow.start);
        let lasted = end.saturating_sub(flow.start);
        let unfinished = flow.bytes.is_some() && complete.is_none();
        FlowResult {
            id: flow.id.clone(),
            class: self.class.map_or(String::new(), |c| c.name.clone()),
            cc: self.cc,
            target_bps: self.class.and_then(flow_rate),
            start_s: flow.start.as_secs_f64(),
            end_s: end.as_secs_f64(),
            last_s: self.last.filter(|last| *last > end).map(|last| last.min(covered).as_secs_f64()),
            size_bytes: flow.bytes,
            bytes: self.bytes,
            counts: "payload".into(),
            goodput_bps: if lasted > Duration::ZERO {
                self.in_time as f64 * 8.0 / lasted.as_secs_f64()
            } else {
                0.0
            },
            fct_at_least_s: unfinished.then(|| covered.saturating_sub(flow.start).as_secs_f64()),
            fct_s: complete.zip(self.opened).map(|(c, o)| c.saturating_sub(o).as_secs_f64()),
            pass_reason: None,
            retransmits: self.retransmits,
            rtos: self.rtos,
            gave_up: u64::from(self.gave_up),
            loss: self.loss,
            rtt_us: self.rtt_us,
            back: None,
            exchanges: None,
            bursts: None,
            intervals: intervals(plan.bin, plan.interval, flow.start, end, self.bins),
        }
    }
}
