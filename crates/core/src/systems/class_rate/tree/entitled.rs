//! Rate that the flows of a class have together now.

use super::{ClassTree, Share};
use crate::flow::ClassId;
use crate::rate::Rate;
use crate::systems::class_rate::node::List;
use crate::systems::class_rate::DEEPEST;
use crate::time::{Duration, Time};

/// Longest time for which a computed part of a class's rate is used.
const FRESH: Duration = Duration::from_millis(1);
/// Largest debt of a class to its neighbours, as time at what it has.
const OWED: Duration = Duration::from_millis(100);
/// The least that the flows of a class have together, in bits per second.
const LEAST: u64 = 8_000;

impl ClassTree<'_> {
    /// As [`ClassTree::entitle`], if that was some time ago.
    pub(crate) fn refresh(&mut self, place: ClassId, now: Time) {
        if self.node(place).is_some_and(|node| now.since(node.entitled) >= FRESH) {
            self.entitle(place, now);
        }
    }

    /// Finds what the flows of a class have together, by what is used now: windows are for that.
    pub(crate) fn entitle(&mut self, place: ClassId, now: Time) {
        let mut path = [ClassId::default(); DEEPEST];
        let mut depth = 0;
        let mut at = Some(place);
        while let (Some(place), true) = (at, depth < DEEPEST) {
            path[depth] = place;
            depth += 1;
            at = self.parent(place);
        }
        let Some(&top) = path[..depth].last() else { return };
        let Some(share) = self.shares.get_mut(top).filter(|share| share.node().is_some()) else { return };
        share.begin_entitling(now);
        let (mut rate, mut ahead) = (share.law.rate.bps(), share.clock.due());
        for pair in path[..depth].windows(2).rev() {
            let (child, parent) = (pair[0], pair[1]);
            if let Some(share) = self.shares.get_mut(child) {
                share.begin_entitling(now);
            }
            rate = self.entitled(child, parent, rate).unwrap_or(rate);
            if let Some(share) = self.shares.get_mut(child) {
                ahead = share.entitle(rate, ahead, now);
            }
        }
    }

    /// Returns a class's part of what its parent has: by rates and weights, or what the others leave if that
    /// is more, up to its ceiling.
    fn entitled(&self, child: ClassId, parent: ClassId, rate: u64) -> Option<u64> {
        let share = self.shares.get(child)?;
        let (c, p) = (share.node()?, self.node(parent)?);
        let others = p.beside.others.saturating_sub(c.beside.others);
        let there = rate.saturating_sub(others).max(rate / 10);
        let part = p.divide(there, c.own_bps(), c.portion(List::Borrows));
        let left = rate.saturating_sub(p.used_bps().saturating_sub(c.used_bps()));
        let most = if c.bounded { share.clock.rate().bps() } else { u64::MAX };
        Some(part.max(left).max(LEAST).min(most))
    }
}

impl Share {
    /// Brings its measurements up to `now`.
    fn begin_entitling(&mut self, now: Time) {
        self.note_active(now);
        if let Some(node) = self.node_mut() {
            node.used.note(0, now);
            node.note_active(now);
        }
    }

    /// It has this many bits per second, and what was permitted is ahead of the clocks above it until
    /// `ahead`. Returns the same with its own clock.
    fn entitle(&mut self, bps: u64, ahead: Time, now: Time) -> Time {
        self.law.rate = Rate::from_bps(bps).unwrap_or(self.law.rate);
        self.quantum = self.law.quantum();
        let (owed, due) = (self.law.rate.bytes_in(OWED) as i64, self.clock.due());
        let Some(node) = self.node_mut() else { return ahead };
        node.most_owed = owed;
        node.entitled = now;
        node.ahead = if node.bounded { ahead.max(due) } else { ahead };
        node.ahead
    }
}
