//! Classes that borrow from each other: who has a turn, and who pays.
//!
//! Each class has a byte clock of its own rate and one of its ceiling, if it has these; at the top the rate
//! is the ceiling. What senders are let send is charged to all classes above them: to each ceiling, and to
//! the own rate of each class that is below it. A class takes turns in one of two lists of its parent, each
//! with deficits of its own: of those that are below their rates, or of those that borrow, which have a turn
//! while none is below. So a class has its rate, and by its weight a part of what the others leave; what is
//! borrowed does not count for what it has for itself. Turns are deficit round robin (Shreedhar and Varghese,
//! 1995), in which the turn of an average class is that of a flow, so that no weight makes others wait for
//! long.
//!
//! A class whose ceiling is reached is in no list until its clock lets it, and one that borrows goes to the
//! other list when its own clock does: both are timers. So whatever happens costs a constant at each level.

mod entitled;

use super::node::{List, Node, Standing};
use super::{Share, Shares, DEEPEST};
use crate::base::linked::{Linked, Links};
use crate::base::Timers;
use crate::flow::ClassId;
use crate::time::Time;

/// Classes looked at for a turn in one call.
const VISITS: u32 = 32;

/// The classes and their timers.
pub(crate) struct ClassTree<'a> {
    pub(crate) shares: &'a mut Shares,
    pub(crate) timers: &'a mut Timers<2>,
    /// The timer of the first class.
    pub(crate) first: u32,
    pub(crate) wheel: usize,
}

impl Linked for Shares {
    fn links(&mut self, i: u32) -> Option<&mut Links> {
        self.get_mut(ClassId(i)).and_then(Share::node_mut).map(|node| &mut node.links)
    }
}

impl ClassTree<'_> {
    fn node(&self, place: ClassId) -> Option<&Node> {
        self.shares.get(place)?.node()
    }

    fn node_mut(&mut self, place: ClassId) -> Option<&mut Node> {
        self.shares.get_mut(place)?.node_mut()
    }

    /// The place of the class that it borrows from.
    fn parent(&self, place: ClassId) -> Option<ClassId> {
        self.shares.get(place)?.parent()
    }

    fn timer(&self, place: ClassId) -> u32 {
        self.first + place.0
    }

    /// Something is held in the class that was not, or the other way round, or its clocks have moved: it and
    /// those above it stand where they belong.
    pub(crate) fn settle(&mut self, place: ClassId, now: Time) {
        let mut at = place;
        while let Some(parent) = self.parent(at) {
            self.settle_one(at, parent, now);
            at = parent;
        }
        self.arm(at, now);
    }

    fn settle_one(&mut self, place: ClassId, parent: ClassId, now: Time) {
        let Some(share) = self.shares.get(place) else { return };
        let Some(node) = share.node() else { return };
        let (at, to) = (node.standing, share.standing(node, now));
        if at != to {
            if let Some(node) = self.node_mut(place) {
                node.note_listed(to, now);
            }
            self.leave(place, parent, at);
            self.join(place, parent, to);
            if (at == Standing::Idle) != (to == Standing::Idle) {
                self.note_child(place, parent, to != Standing::Idle, now);
            }
            self.disarm(place);
        }
        if to == Standing::Waits {
            if let Some(share) = self.shares.get_mut(place) {
                share.note_bound(now);
            }
        }
        self.wake(place, now);
    }

    fn leave(&mut self, place: ClassId, parent: ClassId, from: Standing) {
        let Standing::Listed(list) = from else { return };
        self.relist(place, parent, list, |children, shares, portion| {
            children.list.remove(shares, place.0);
            children.count -= 1;
            children.sum -= portion;
        });
    }

    /// A class that has not used its last turn in a list goes on with it: or else those that stay would have
    /// more turns.
    fn join(&mut self, place: ClassId, parent: ClassId, to: Standing) {
        let Some(node) = self.node_mut(place) else { return };
        node.standing = to;
        let Standing::Listed(list) = to else { return };
        let goes_on = node.deficits[list as usize] > 0;
        self.relist(place, parent, list, |children, shares, portion| {
            match goes_on {
                true => children.list.push_first(shares, place.0),
                false => children.list.push(shares, place.0),
            }
            children.count += 1;
            children.sum += portion;
        });
    }

    /// Changes a list of a class by one of its children.
    fn relist(
        &mut self,
        child: ClassId,
        parent: ClassId,
        list: List,
        change: impl FnOnce(&mut super::node::Children, &mut Shares, u64),
    ) {
        let Some(portion) = self.node(child).map(|node| node.portion(list)) else { return };
        let Some(mut children) = self.node(parent).map(|node| node.lists[list as usize]) else { return };
        change(&mut children, self.shares, portion);
        if let Some(node) = self.node_mut(parent) {
            node.lists[list as usize] = children;
        }
    }

    fn note_child(&mut self, place: ClassId, parent: ClassId, holds: bool, now: Time) {
        let Some((own, weight)) = self.node(place).map(|n| (n.own_bps(), n.portion(List::Borrows))) else {
            return;
        };
        if let Some(node) = self.node_mut(parent) {
            node.note_child(holds, own, weight, now);
        }
    }

    /// The class has a timer for when it stands elsewhere, if only time is missing.
    fn wake(&mut self, place: ClassId, now: Time) {
        let Some(share) = self.shares.get(place) else { return };
        let Some(node) = share.node() else { return };
        let at = match node.standing {
            Standing::Waits => Some(share.clock.due()),
            Standing::Listed(List::Borrows) => node.own.as_ref().map(|own| own.due()),
            _ => None,
        };
        let timer = self.timer(place);
        if let Some(at) = at.filter(|_| !self.timers.is_armed(timer)) {
            self.timers.arm(self.wheel, timer, at.max(now));
        }
    }

    /// The class has no timer.
    pub(crate) fn disarm(&mut self, place: ClassId) {
        let timer = self.timer(place);
        if self.timers.is_armed(timer) {
            self.timers.disarm(self.wheel, timer);
        }
    }

    /// The class at the top has a timer for its next turn, if there is anything to release.
    pub(crate) fn arm(&mut self, top: ClassId, now: Time) {
        let timer = self.timer(top);
        let Some(share) = self.shares.get_mut(top).filter(|share| share.offers()) else { return };
        share.note_bound(now);
        if !self.timers.is_armed(timer) {
            self.timers.arm(self.wheel, timer, share.clock.due().max(share.next).max(now));
        }
    }

    /// The class at the top may release earlier than it has a timer for.
    fn hasten(&mut self, top: ClassId, now: Time) {
        if self.timers.is_armed(self.timer(top)) {
            self.disarm(top);
            self.arm(top, now);
        }
    }

    /// The class with flows whose turn it is, of a class at the top.
    pub(crate) fn pick(&mut self, top: ClassId) -> Option<ClassId> {
        let mut at = top;
        for _ in 0..DEEPEST {
            if !self.shares.get(at)?.lends() {
                return Some(at);
            }
            at = self.child(at)?;
        }
        None
    }

    /// The child whose turn it is.
    fn child(&mut self, parent: ClassId) -> Option<ClassId> {
        for _ in 0..VISITS {
            let share = self.shares.get(parent)?;
            let node = share.node()?;
            let list = List::BOTH.into_iter().find(|&list| node.lists[list as usize].count > 0)?;
            let mut children = node.lists[list as usize];
            let child = ClassId(children.list.first()?);
            let quantum = u128::from(share.quantum) * u128::from(children.count);
            let node = self.node_mut(child)?;
            let deficit = &mut node.deficits[list as usize];
            if *deficit > 0 {
                return Some(child);
            }
            let portion = node.portion(list);
            let turn = quantum * u128::from(portion) / u128::from(children.sum.max(1));
            node.deficits[list as usize] += (turn as i64).max(1);
            children.list.remove(self.shares, child.0);
            children.list.push(self.shares, child.0);
            self.node_mut(parent)?.lists[list as usize] = children;
        }
        None
    }

    /// Charges a class, and all that is above it, with `bytes` that may pass from `since` to `now`. Returns
    /// those that are forgiven.
    pub(crate) fn charge(&mut self, place: ClassId, bytes: u64, since: Time, now: Time) -> u64 {
        let mut forgiven = 0;
        let mut at = place;
        while let Some(share) = self.shares.get_mut(at) {
            let beyond = share.charge(bytes, since, now);
            forgiven = forgiven.max(beyond);
            let Some(parent) = self.parent(at) else { break };
            self.shares.follow_level(at, parent, now);
            at = parent;
        }
        if at != place {
            self.settle(place, now);
        }
        forgiven
    }

    /// `bytes` that were permitted will not be sent.
    pub(crate) fn give_back(&mut self, place: ClassId, bytes: u64, now: Time) {
        if let Some(share) = self.shares.get_mut(place) {
            share.note_turns(-(bytes as i64));
        }
        let mut at = place;
        while let Some(share) = self.shares.get_mut(at) {
            share.give_back(bytes, now);
            let Some(parent) = self.parent(at) else { break };
            if self.node(at).is_some_and(|node| node.standing == Standing::Waits) {
                self.disarm(at);
            }
            at = parent;
        }
        self.settle(place, now);
        self.hasten(at, now);
    }
}
