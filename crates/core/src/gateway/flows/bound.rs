//! Bounds of classes and flows, as the configuration says them.

use crate::ack::{AckControl, Turns, Unresponsive, Window};
use crate::classify::{Config, Direction};
use crate::rate::Rate;
use crate::steer::{FairLimit, FlowLimit, Limit, Share};
use crate::time::Duration;

/// Time at its rate that a flow may be ahead whose window is kept: in slow start it sends up to twice what it
/// is acknowledged.
pub(super) const AHEAD: Duration = Duration::from_secs(1);

impl AckControl {
    /// Terms of the bound that each flow has of its own, if it has one.
    fn flow_limit(&self) -> Option<FlowLimit> {
        let ahead = if self.window == Window::Keep { AHEAD } else { Duration::ZERO };
        self.release.flow_limit(ahead)
    }
}

impl Config {
    /// Returns whether flows of some class of this direction may spill.
    pub fn spills(&self, direction: Direction) -> bool {
        let fair = |class: usize| self.limit(class)?.fair?.spills;
        let is_of = |class: &usize| self.classes[*class].direction == direction;
        (0..self.classes.len()).filter(is_of).any(|class| fair(class).is_some())
    }

    /// Terms of the class with this index, if its flows share a rate or have one each. Places above it are
    /// indices, and rates are those that hooks serve.
    pub fn limit(&self, class: usize) -> Option<Limit> {
        let config = &self.classes[class];
        let ack = config.ack?;
        let counts = ack.release.counts();
        let served = |rate: Rate| counts.served_by_hooks(rate);
        let flow = ack.flow_limit().filter(|_| config.bounds_flows());
        let flow = flow.map(|flow| FlowLimit { rate: served(flow.rate), ..flow });
        let each = flow.zip(Unresponsive::FAIR.depth());
        let each = each.map(|(of, depth)| FairLimit { depth, spills: None, share: Share::Each(of.rate) });
        let Some(law) = ack.release.share().copied() else {
            return flow.map(|_| Limit { flow, fair: each, counts, ..Limit::NONE });
        };
        if !config.shares_rate() {
            return None;
        }
        if law.unresponsive == Unresponsive::Count {
            return None;
        }
        // Turns of ACKs permit segments, not bytes.
        let permits = law.turns == Turns::Bytes;
        let spills = law.unresponsive.spills().filter(|_| permits);
        let share = Share::Fair { most: law.flow_max.map(served) };
        let fair = law.unresponsive.depth().map(|depth| FairLimit { depth, spills, share }).or(each);
        let Some(nested) = config.nested else {
            let most = Some(served(law.rate));
            return Some(Limit { most, own: None, above: None, flow, permits, fair, counts });
        };
        let parent = |class: &usize| self.classes[*class].nested?.parent;
        let bounded =
            |class: &usize| self.classes[*class].nested.is_some_and(|above| above.bound().is_some());
        let above =
            core::iter::successors(nested.parent, parent).take(crate::classify::DEEPEST).find(bounded);
        let own = nested.rate.filter(|_| nested.parent.is_some()).map(served);
        let (most, above) = (nested.bound().map(served), above.map(|class| class as u32));
        Some(Limit { most, own, above, flow, permits, fair, counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{ClassConfig, Direction};
    use crate::packet::{Cells, Counts, LinkLayer};
    use crate::steer::{Bound, Kind, Load, Records, Tally};
    use crate::time::Time;

    const PPPOE: LinkLayer = LinkLayer { overhead: 40, mpu: 0, cells: Cells::Atm };
    /// 250,000 cells a second are 5,300 cells in 21.2 ms.
    const RATE: Rate = Rate::mbit(106);

    fn config(unresponsive: Unresponsive) -> Config {
        let mut ack = AckControl::ack_share(RATE);
        ack.release.set_counts(Counts::Link(PPPOE));
        ack.release.set_unresponsive(unresponsive);
        Config { classes: vec![ClassConfig::controlled("", Direction::Out, ack)], ..Config::default() }
    }

    /// Bytes on the link that pass in ten seconds of a flood of packets with `ip` bytes.
    fn flooded(ip: u64, kind: Kind) -> u64 {
        let config = config(Unresponsive::Police);
        let (bounds, tallies) = ([Bound::default()], [Tally::default()]);
        bounds[0].set(config.limit(0));
        let counts = Counts::Link(PPPOE);
        tallies[0].police(
            Some(counts.served_by_hooks(RATE)),
            Duration::from_millis(20),
            counts.overhead_of_packet(),
        );
        let load = Load { packets: 1, bytes: ip, payload: ip - 28, ecn: 0, kind };
        let passes = |&us: &u64| {
            crate::steer::admits(&bounds, &tallies, 0, Records::default(), &load, Time::from_micros(us))
        };
        let start = 1_000_000;
        (start..start + 10_000_000).step_by(3).filter(passes).count() as u64 * PPPOE.bytes(ip)
    }

    /// A flood is held to the rate on the link, within half a cell for each packet: 26.5 bytes of 1749, 583
    /// and 159.
    #[test]
    fn hooks_hold_a_flood_to_the_rate_of_cells() {
        let all = RATE.bytes_in(Duration::from_secs(10));
        for (ip, thousandths) in [(1500, 16), (1452, 16), (1457, 16), (500, 48), (80, 174)] {
            let bytes = flooded(ip, Kind::Counted);
            let beyond = RATE.bytes_in(Duration::from_millis(20)) + 2_000;
            assert!(bytes >= all / 1000 * (1000 - thousandths), "{ip}: {bytes} of {all}");
            assert!(bytes <= all / 1000 * (1000 + thousandths) + beyond, "{ip}: {bytes} of {all}");
        }
    }

    /// Full segments of TCP at their rate find room: the virtual queue is served at 1.05 times the rate.
    #[test]
    fn hooks_serve_full_segments_beyond_the_rate() {
        let all = RATE.bytes_in(Duration::from_secs(10));
        for ip in [1500, 1452, 1457, 1536, 576] {
            let bytes = flooded(ip, Kind::Held);
            assert!((all / 100 * 101..all / 100 * 116).contains(&bytes), "{ip}: {bytes} of {all}");
        }
    }
}
