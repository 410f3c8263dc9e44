//! The classes whose flows share a rate, by place.

use super::Share;
use crate::flow::ClassId;

/// State of each class, by its place in the gateway. A place without a shared rate has none.
#[derive(Default)]
pub(crate) struct Shares(Vec<Option<Share>>);

impl Shares {
    /// Returns what is kept of the class at a place.
    pub(crate) fn get(&self, place: ClassId) -> Option<&Share> {
        self.0.get(place.index())?.as_ref()
    }

    /// Returns what is kept of the class at a place, for changes.
    pub(crate) fn get_mut(&mut self, place: ClassId) -> Option<&mut Share> {
        self.0.get_mut(place.index())?.as_mut()
    }

    /// Puts what is kept of a class, or nothing, at its place.
    pub(crate) fn put(&mut self, place: ClassId, share: Option<Share>) {
        let place = place.index();
        if place >= self.0.len() {
            self.0.resize_with(place + 1, || None);
        }
        self.0[place] = share;
    }

    /// Returns what is kept of each place, in their order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = Option<&mut Share>> {
        self.0.iter_mut().map(Option::as_mut)
    }

    /// The classes above this one learn what passes beside the turns of its flows, by its last look.
    pub(crate) fn tell_others(&mut self, place: ClassId) {
        let Some(share) = self.get_mut(place) else { return };
        let now = share.others.rates();
        let Some(node) = share.node_mut() else { return };
        let before = core::mem::replace(&mut node.told, now);
        if before == now {
            return;
        }
        let mut at = Some(place);
        while let Some(node) = at.and_then(|place| self.get_mut(place)?.node_mut()) {
            node.beside = node.beside.with(before, now);
            at = node.parent;
        }
    }

    /// Returns the place of the class at the top of the tree that this one is in.
    pub(crate) fn top(&self, place: ClassId) -> ClassId {
        core::iter::successors(Some(place), |&at| self.get(at)?.parent()).last().unwrap_or(place)
    }
}
