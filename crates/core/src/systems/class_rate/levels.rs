//! Bounds of unresponsive traffic by the levels of the classes above.

use super::level::{is_near, WAITS};
use super::node::List;
use super::{Shares, DEEPEST};
use crate::flow::ClassId;
use crate::rate::Rate;
use crate::steer::Tally;
use crate::time::Time;

/// Least rate of such a bucket, in bits per second.
const LEAST: u64 = 8_000;

impl Shares {
    /// A child has a turn: the level of its parent follows what it has, if it has waited for long. That is
    /// of no use where all traffic takes turns.
    pub(crate) fn follow_level(&mut self, child: ClassId, parent: ClassId, now: Time) {
        let waits = |since: Time| now.since(since) >= WAITS;
        let Some((below, node)) = self.get(child).and_then(|share| Some((share.most, share.node()?))) else {
            return;
        };
        if !node.listed.is_some_and(waits) {
            return;
        }
        let used = node.used_bps();
        let borrows = used.saturating_sub(node.own_bps()) / node.portion(List::Borrows).max(1);
        let Some(share) = self.get_mut(parent) else { return };
        let most = share.most.bps();
        if let Some(node) = share.node_mut().filter(|node| node.beside.sum() > 0) {
            match is_near(used, below.bps()) {
                true => node.level.hold(now),
                false => node.level.follow(borrows, most, now),
            }
        }
    }

    /// The bucket of a class's unresponsive traffic has the rate that the levels of all classes above leave
    /// it, which is returned.
    pub(crate) fn limit_others(&mut self, place: ClassId, tally: &Tally, now: Time) -> Option<Rate> {
        let share = self.get(place)?;
        let most = share.most;
        let Some(node) = share.node().filter(|node| node.is_limited || node.told.sum() > 0) else {
            return Some(most);
        };
        let was = node.is_limited;
        let may = Rate::from_bps(self.level_of(place, now).max(LEAST)).map_or(most, |level| level.min(most));
        let share = self.get_mut(place)?;
        if let Some((rate, burst, overhead)) = share.bucket(may).filter(|_| was || may < most) {
            tally.police(Some(rate), burst, overhead);
        }
        if let Some(node) = share.node_mut() {
            node.is_limited = may < most;
        }
        Some(may)
    }

    /// Returns the bits per second that a class may have by the levels of all classes above it; `u64::MAX` if
    /// there are none. They rise if nothing waits.
    fn level_of(&mut self, place: ClassId, now: Time) -> u64 {
        let mut path = [ClassId::default(); DEEPEST];
        let above = core::iter::successors(Some(place), |&at| self.get(at)?.parent());
        let depth = above.zip(&mut path).map(|(at, place)| *place = at).count();
        let mut may = u64::MAX;
        for pair in path[..depth].windows(2).rev() {
            let (child, parent) = (pair[0], pair[1]);
            let Some(share) = self.get_mut(parent) else { break };
            let most = share.most.bps();
            let Some(node) = share.node_mut() else { break };
            let (part, used) = (may.min(most), node.used_bps());
            if used > part || may < u64::MAX {
                node.level.share(part, used, most, now);
            } else {
                node.level.rise(most, now);
            }
            let level = node.level;
            let Some(node) = self.get(child).and_then(|share| share.node()) else { break };
            may = may.min(level.of(node.own_bps(), node.portion(List::Borrows)));
        }
        may
    }
}
