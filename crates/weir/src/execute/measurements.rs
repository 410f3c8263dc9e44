//! The result of a flow, from the measurements of its two ends.

use crate::experiment::plan::{Flow, Plan};
use crate::result::observe::flow_rate;
use crate::result::{intervals, FlowResult, Quantiles, QuantilesMax};
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
    /// See [`FlowResult::delay_us`].
    pub delay_us: Option<QuantilesMax>,
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

/// Datagrams of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Datagrams {
    /// Number sent.
    pub sent: u64,
    /// Number that arrived, each counted once.
    pub arrived: u64,
    /// Number missing below the highest one that arrived.
    pub missing: u64,
    /// Most that can be under way at the end of the run.
    pub under_way: u64,
}

impl Datagrams {
    /// Returns the lost share. Datagrams above the highest one that arrived do not count as far as they may
    /// be under way. `None` if no others were sent.
    pub fn loss(self) -> Option<f64> {
        let behind = self.sent.saturating_sub(self.arrived + self.missing);
        let lost = self.missing + behind.saturating_sub(self.under_way);
        let judged = self.arrived + lost;
        (judged > 0).then(|| lost as f64 / judged as f64)
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
        // ACKs control no datagrams: only a queue gives them a rate.
        let reliable = flow.group.protocol.is_reliable();
        let unfinished = flow.bytes.is_some() && complete.is_none();
        FlowResult {
            id: flow.id.clone(),
            class: self.class.map_or(String::new(), |c| c.name.clone()),
            cc: self.cc,
            target_bps: self.class.filter(|class| reliable || class.share.is_some()).and_then(flow_rate),
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
            delay_us: self.delay_us,
            rtt_us: self.rtt_us,
            back: None,
            exchanges: None,
            bursts: None,
            intervals: intervals((plan.bin, plan.interval), (flow.start, end), self.bins, self.in_time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 datagrams, of which the first 500 arrive and the others are lost: 490 of 990 if ten may be under
    /// way. A flow of which all may be under way has lost nothing that is known.
    #[test]
    fn datagrams_under_way_are_neither_lost_nor_arrived() {
        let loss = |sent, arrived, missing, under_way| Datagrams { sent, arrived, missing, under_way }.loss();
        assert_eq!(loss(1000, 500, 0, 10), Some(490.0 / 990.0));
        assert_eq!(loss(1000, 990, 0, 10), Some(0.0));
        assert_eq!(loss(1000, 0, 0, 10), Some(1.0));
        assert_eq!((loss(10, 0, 0, 10), loss(0, 0, 0, 0)), (None, None));
        // 51 of 424, as a path with a tenth of loss had it.
        assert_eq!(loss(424, 373, 51, 0), Some(51.0 / 424.0));
    }
}
