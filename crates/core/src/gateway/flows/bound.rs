//! Bounds of classes and flows, as the configuration says them.

use crate::ack::{AckControl, Turns, Unresponsive, When, Window};
use crate::classify::Config;
use crate::steer::{FairLimit, FlowLimit, Limit};
use crate::time::Duration;

/// Time at its rate that a flow may be ahead whose window is kept: in slow start it sends up to twice what it
/// is acknowledged.
pub(super) const AHEAD: Duration = Duration::from_secs(1);

impl AckControl {
    /// Terms of the bound that each flow has of its own, if it has one. While ACKs are held for a congested
    /// queue alone, the queue is what bounds.
    fn flow_limit(&self) -> Option<FlowLimit> {
        let ahead = if self.window == Window::Keep { AHEAD } else { Duration::ZERO };
        self.release.flow_limit(ahead).filter(|_| self.when == When::Always)
    }
}

impl Config {
    /// Terms of the class with this index, if its flows share a rate or have one each. Places above it are
    /// indices.
    pub fn limit(&self, class: usize) -> Option<Limit> {
        let config = &self.classes[class];
        let ack = config.ack?;
        let flow = ack.flow_limit();
        let Some(law) = ack.release.share().copied() else {
            let counts = ack.release.counts();
            return flow.map(|_| Limit { flow, counts, ..Limit::NONE });
        };
        if !config.shares_rate() {
            return None;
        }
        if law.unresponsive == Unresponsive::Count {
            return None;
        }
        // Turns of ACKs permit segments, not bytes.
        let (permits, counts) = (law.turns == Turns::Bytes, law.counts);
        let fair = law.unresponsive.depth().map(|depth| FairLimit { depth, most: law.flow_max });
        let Some(nested) = config.nested else {
            let most = Some(law.rate);
            return Some(Limit { most, own: None, above: None, flow, permits, fair, counts });
        };
        let parent = |class: &usize| self.classes[*class].nested?.parent;
        let bounded =
            |class: &usize| self.classes[*class].nested.is_some_and(|above| above.bound().is_some());
        let above =
            core::iter::successors(nested.parent, parent).take(crate::classify::DEEPEST).find(bounded);
        let own = nested.rate.filter(|_| nested.parent.is_some());
        let (most, above) = (nested.bound(), above.map(|class| class as u32));
        Some(Limit { most, own, above, flow, permits, fair, counts })
    }
}
