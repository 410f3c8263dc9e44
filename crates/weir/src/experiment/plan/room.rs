//! Stretches of time for which results have what flows received.

use super::{Flow, Length, Plan};
use weir_core::time::Duration;

/// Most bins of received bytes in a result, of all flows together. They take 2 GB.
pub const MOST_BINS: u64 = 100_000_000;
/// Most intervals of goodput in a result, of all flows together. They take half a gigabyte of JSON.
pub const MOST_INTERVALS: u64 = 4_000_000;

impl Plan {
    /// Returns how many stretches of this length the flows have in all, as far as the plan tells: without
    /// flows that end by their bytes.
    pub fn stretches(&self, length: Duration) -> u64 {
        let lasts = |flow: &Flow| match flow.group.length {
            Length::Bytes(_) | Length::Drawn(_) => 0,
            Length::UntilEnd | Length::Duration(_) => {
                flow.end(self.duration).saturating_sub(flow.start).as_nanos()
            }
        };
        self.flows().fold(0, |sum, flow| sum.saturating_add(lasts(&flow) / length.as_nanos().max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Arrivals, FlowGroup};
    use super::*;

    /// Three flows of 4 s that begin a second apart in 5 s: 4, 4 and 3 seconds. Flows with bytes do not
    /// count.
    #[test]
    fn a_plan_tells_of_flows_that_end_by_time() {
        let second = Duration::from_secs(1);
        let mut plan = Plan::new("t", second.saturating_mul(5));
        let timed = FlowGroup {
            count: 3,
            arrivals: Arrivals::Every(second),
            length: Length::Duration(second.saturating_mul(4)),
            ..FlowGroup::new("timed")
        };
        plan.groups = vec![timed, FlowGroup { length: Length::Bytes(9), ..FlowGroup::new("sized") }];
        assert_eq!(plan.stretches(second), 11);
        assert_eq!(plan.stretches(Duration::from_millis(1)), 11_000);
    }
}
