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
use super::Share;
use crate::base::ring::{Linked, Links};
use crate::flow::{Timers, NONE};
use crate::gateway::classes::Classes;
use crate::gateway::DEEPEST;
use crate::time::Time;

/// Classes looked at for a turn in one call.
const VISITS: u32 = 32;

/// The classes and their timers.
pub(in crate::gateway) struct Tree<'a> {
    pub(super) classes: &'a mut Classes,
    pub(super) timers: &'a mut Timers<2>,
    /// The timer of the first class.
    pub(super) first: u32,
    pub(super) wheel: usize,
}

impl Linked for Classes {
    fn links(&self, i: u32) -> Links {
        self.share(i).and_then(Share::node).map_or(Links::NONE, |node| node.links)
    }

    fn set_links(&mut self, i: u32, links: Links) {
        if let Some(node) = self.share_mut(i).and_then(Share::node_mut) {
            node.links = links;
        }
    }
}

impl Tree<'_> {
    fn node(&self, place: u32) -> Option<&Node> {
        self.classes.share(place)?.node()
    }

    fn node_mut(&mut self, place: u32) -> Option<&mut Node> {
        self.classes.share_mut(place)?.node_mut()
    }

    /// The place of the class that it borrows from.
    fn parent(&self, place: u32) -> Option<u32> {
        self.classes.share(place)?.parent()
    }

    /// Something is held in the class that was not, or the other way round, or its clocks have moved: it and
    /// those above it stand where they belong.
    pub(in crate::gateway) fn settle(&mut self, place: u32, now: Time) {
        let mut at = place;
        while let Some(parent) = self.parent(at) {
            self.settle_one(at, parent, now);
            at = parent;
        }
        self.arm(at, now);
    }

    fn settle_one(&mut self, place: u32, parent: u32, now: Time) {
        let Some(share) = self.classes.share(place) else { return };
        let Some(node) = share.node() else { return };
        let (at, to) = (node.standing, share.standing(node, now));
        if at != to {
            self.leave(place, parent, at);
            self.join(place, parent, to);
            if (at == Standing::Idle) != (to == Standing::Idle) {
                self.note_child(place, parent, to != Standing::Idle, now);
            }
            self.disarm(place);
        }
        if to == Standing::Waits {
            if let Some(share) = self.classes.share_mut(place) {
                share.note_bound(now);
            }
        }
        self.wake(place, now);
    }

    fn leave(&mut self, place: u32, parent: u32, from: Standing) {
        let Standing::Listed(list) = from else { return };
        self.relist(place, parent, list, |children, classes, portion| {
            children.ring.remove(classes, place);
            children.count -= 1;
            children.sum -= portion;
        });
    }

    /// A class that has not used its last turn in a list goes on with it: or else those that stay would have
    /// more turns.
    fn join(&mut self, place: u32, parent: u32, to: Standing) {
        let Some(node) = self.node_mut(place) else { return };
        node.standing = to;
        let Standing::Listed(list) = to else { return };
        let goes_on = node.deficits[list as usize] > 0;
        self.relist(place, parent, list, |children, classes, portion| {
            match goes_on {
                true => children.ring.push_front(classes, place),
                false => children.ring.push(classes, place),
            }
            children.count += 1;
            children.sum += portion;
        });
    }

    /// Changes a list of a class by one of its children.
    fn relist(
        &mut self,
        child: u32,
        parent: u32,
        list: List,
        change: impl FnOnce(&mut super::node::Children, &mut Classes, u64),
    ) {
        let Some(portion) = self.node(child).map(|node| node.portion(list)) else { return };
        let Some(mut children) = self.node(parent).map(|node| node.lists[list as usize]) else { return };
        change(&mut children, self.classes, portion);
        if let Some(node) = self.node_mut(parent) {
            node.lists[list as usize] = children;
        }
    }

    fn note_child(&mut self, place: u32, parent: u32, holds: bool, now: Time) {
        let Some((own, weight)) = self.node(place).map(|n| (n.own_bps(), n.portion(List::Borrows))) else {
            return;
        };
        if let Some(node) = self.node_mut(parent) {
            node.note_child(holds, own, weight, now);
        }
    }

    /// The class has a timer for when it stands elsewhere, if only time is missing.
    fn wake(&mut self, place: u32, now: Time) {
        let Some(share) = self.classes.share(place) else { return };
        let Some(node) = share.node() else { return };
        let at = match node.standing {
            Standing::Waits => Some(share.clock.due()),
            Standing::Listed(List::Borrows) => node.own.as_ref().map(|own| own.due()),
            _ => None,
        };
        let timer = self.first + place;
        if let Some(at) = at.filter(|_| !self.timers.is_armed(timer)) {
            self.timers.arm(self.wheel, timer, at.max(now));
        }
    }

    /// The class has no timer.
    pub(in crate::gateway) fn disarm(&mut self, place: u32) {
        let timer = self.first + place;
        if self.timers.is_armed(timer) {
            self.timers.disarm(self.wheel, timer);
        }
    }

    /// The class at the top has a timer for its next turn, if there is anything to release.
    pub(super) fn arm(&mut self, top: u32, now: Time) {
        let timer = self.first + top;
        let Some(share) = self.classes.share_mut(top).filter(|share| share.offers()) else { return };
        share.note_bound(now);
        if !self.timers.is_armed(timer) {
            self.timers.arm(self.wheel, timer, share.clock.due().max(share.next).max(now));
        }
    }

    /// The class at the top may release earlier than it has a timer for.
    fn hasten(&mut self, top: u32, now: Time) {
        if self.timers.is_armed(self.first + top) {
            self.disarm(top);
            self.arm(top, now);
        }
    }

    /// The class with flows whose turn it is, of a class at the top.
    pub(super) fn pick(&mut self, top: u32) -> Option<u32> {
        let mut at = top;
        for _ in 0..DEEPEST {
            if !self.classes.share(at)?.lends() {
                return Some(at);
            }
            at = self.child(at)?;
        }
        None
    }

    /// The child whose turn it is.
    fn child(&mut self, parent: u32) -> Option<u32> {
        for _ in 0..VISITS {
            let share = self.classes.share(parent)?;
            let node = share.node()?;
            let list = List::BOTH.into_iter().find(|&list| node.lists[list as usize].count > 0)?;
            let mut children = node.lists[list as usize];
            let child = children.ring.head()?;
            let quantum = u128::from(share.quantum) * u128::from(children.count);
            let node = self.node_mut(child)?;
            let deficit = &mut node.deficits[list as usize];
            if *deficit > 0 {
                return Some(child);
            }
            let portion = node.portion(list);
            let turn = quantum * u128::from(portion) / u128::from(children.sum.max(1));
            node.deficits[list as usize] += (turn as i64).max(1);
            children.ring.remove(self.classes, child);
            children.ring.push(self.classes, child);
            self.node_mut(parent)?.lists[list as usize] = children;
        }
        None
    }

    /// The senders of a class were permitted `bytes` from `since` to `now`, all that is above it with them.
    /// Returns those that are forgiven.
    pub(super) fn charge(&mut self, place: u32, bytes: u64, since: Time, now: Time) -> u64 {
        let mut forgiven = 0;
        let mut at = place;
        while let Some(share) = self.classes.share_mut(at) {
            let beyond = share.charge(bytes, since, now);
            forgiven = forgiven.max(beyond);
            let Some(parent) = self.parent(at) else { break };
            at = parent;
        }
        if at != place {
            self.settle(place, now);
        }
        forgiven
    }

    /// `bytes` that were permitted will not be sent.
    pub(super) fn give_back(&mut self, place: u32, bytes: u64, now: Time) {
        let mut at = place;
        while let Some(share) = self.classes.share_mut(at) {
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

    /// So many bytes have passed of a class that ACKs cannot slow.
    pub(super) fn note_others(&mut self, place: u32, bytes: u64, now: Time) {
        let mut at = Some(place);
        while let Some(node) = at.and_then(|place| self.node_mut(place)) {
            node.others.note(bytes, now);
            at = Some(node.parent).filter(|&parent| parent != NONE);
        }
    }
}

impl Share {
    /// Its place in a tree, if it is in one.
    pub(super) fn node(&self) -> Option<&Node> {
        self.node.as_deref()
    }

    /// See [`Share::node`].
    pub(super) fn node_mut(&mut self) -> Option<&mut Node> {
        self.node.as_deref_mut()
    }

    /// The place of the class that it borrows from.
    pub(in crate::gateway) fn parent(&self) -> Option<u32> {
        self.node().map(|node| node.parent).filter(|&parent| parent != NONE)
    }

    /// Do other classes borrow from it?
    fn lends(&self) -> bool {
        self.node().is_some_and(|node| node.lends)
    }

    /// Something is to be released: does that have to wait?
    fn note_bound(&mut self, now: Time) {
        if self.clock.due() > now {
            self.bound = now;
        }
    }

    /// Is there anything to release?
    pub(in crate::gateway) fn offers(&self) -> bool {
        self.head().is_some() || self.node().is_some_and(Node::offers)
    }

    /// Where it belongs.
    fn standing(&self, node: &Node, now: Time) -> Standing {
        if self.head().is_none() && !node.is_active() {
            Standing::Idle
        } else if !self.offers() {
            Standing::Bare
        } else if node.bounded && self.clock.due() > now {
            Standing::Waits
        } else if node.is_below(now) {
            Standing::Listed(List::Below)
        } else {
            Standing::Listed(List::Borrows)
        }
    }

    /// See [`Tree::charge`]: for this class alone.
    fn charge(&mut self, bytes: u64, since: Time, now: Time) -> u64 {
        let Some(node) = self.node.as_deref_mut() else { return self.clock.charge_since(bytes, since, now) };
        node.used.note(bytes, now);
        let list = if node.is_below(now) { List::Below } else { List::Borrows };
        let deficit = &mut node.deficits[list as usize];
        *deficit = deficit.saturating_sub_unsigned(bytes).max(-node.most_owed);
        if let Some(own) = node.own.as_mut().filter(|_| list == List::Below) {
            own.charge_since(bytes, since, now);
        }
        if node.bounded {
            self.clock.charge_since(bytes, since, now)
        } else {
            0
        }
    }

    /// See [`Tree::give_back`]: for this class alone.
    fn give_back(&mut self, bytes: u64, now: Time) {
        let quantum = i64::from(self.quantum);
        let Some(node) = self.node.as_deref_mut() else { return self.clock.give_back(bytes) };
        if node.is_below(now) {
            if let Some(own) = &mut node.own {
                own.give_back(bytes);
            }
        } else {
            let deficit = &mut node.deficits[List::Borrows as usize];
            *deficit = deficit.saturating_add_unsigned(bytes).min(quantum.max(*deficit));
        }
        if node.bounded {
            self.clock.give_back(bytes);
        }
    }
}
