//! The classes of a running gateway. Each has a place that stays its own while flows refer to it, whatever a
//! change of configuration does to the order: a flow finds out when it is next touched.

use super::accounts::{ClassAccount, ClassAccounts};
use super::stats::ClassStats;
use crate::ack::AckControl;
use crate::classify::{ClassConfig, Config, Direction};
use crate::flow::ClassId;
use crate::node::{Port, LAN, WAN};
use crate::systems::class_rate::{Share, Shares};
use std::collections::HashMap;

/// Places at most.
pub(super) const MOST: usize = 1 << 24;

/// A class, or what is left of one until its last flow has found out.
struct Class {
    name: String,
    direction: Direction,
    /// ACK control of the flows that refer to it.
    policy: Option<AckControl>,
    /// Flows that refer to it.
    members: u32,
    /// Index in the configuration, if it is still there.
    index: Option<u32>,
}

/// The classes by place. A place is what [`Record::class`](crate::flow::Record::class) holds.
pub(in crate::gateway) struct Classes {
    places: Vec<Class>,
    /// Classes whose flows share a rate, or did so.
    pub(in crate::gateway) shares: Shares,
    /// Their totals.
    accounts: ClassAccounts,
    /// Places of the configuration's classes, in its order.
    order: Vec<ClassId>,
    /// Some borrow from others.
    nested: bool,
}

impl Classes {
    /// The classes of a configuration. Those that have an account are in its place.
    pub(in crate::gateway) fn new(config: &Config, mut accounts: ClassAccounts) -> Classes {
        let had = accounts.find(&config.classes);
        let mut places = Vec::new();
        for (place, class) in had.into_iter().zip(&config.classes).filter_map(|(place, c)| Some((place?, c)))
        {
            let place = place.index();
            if place >= places.len() {
                places.resize_with(place + 1, Class::nobody);
            }
            places[place] = Class { name: class.name.clone(), direction: class.direction, ..Class::nobody() };
        }
        let mut classes =
            Classes { places, shares: Shares::default(), accounts, order: Vec::new(), nested: false };
        classes.change(config, None);
        classes
    }

    /// The accounts, by place.
    pub(in crate::gateway) fn accounts(&self) -> impl Iterator<Item = ClassAccount> + '_ {
        self.ids().map(|place| self.accounts[place])
    }

    /// Returns whether the totals outlive the gateway.
    pub(super) fn outlive(&self) -> bool {
        self.accounts.outlive()
    }

    /// Returns whether there would be a place for each class of this configuration, among `most` or as many
    /// as there may be. `found` as in [`Classes::change`].
    pub(super) fn have_room(
        &self,
        config: &Config,
        found: Option<&[Option<u32>]>,
        most: Option<usize>,
    ) -> bool {
        let most = most.unwrap_or(MOST).min(self.accounts.most().unwrap_or(MOST)).min(MOST);
        if self.places.len() + config.classes.len() <= most {
            return true;
        }
        let new = match found {
            Some(found) => found.iter().filter(|index| index.is_none()).count(),
            None => self.by_name(config).iter().filter(|place| place.is_none()).count(),
        };
        self.places.len() + new.saturating_sub(self.free().len()) <= most
    }

    /// The classes become those of this configuration, in time for as many as there are. One of the same name
    /// and direction keeps its place, its flows and what it counted. `found` are the indices that they have
    /// had, if they are known.
    pub(super) fn change(&mut self, config: &Config, found: Option<&[Option<u32>]>) {
        self.places.iter_mut().for_each(|class| class.index = None);
        let kept: Vec<Option<ClassId>> = match found {
            Some(found) => found.iter().map(|index| index.map(|i| self.order[i as usize])).collect(),
            None => self.by_name(config),
        };
        self.order.clear();
        for (index, (place, class)) in kept.iter().zip(&config.classes).enumerate() {
            if let Some(place) = *place {
                self.keep(place, index as u32, class);
            }
        }
        let mut free = self.free().into_iter();
        for (index, (place, class)) in kept.into_iter().zip(&config.classes).enumerate() {
            let place = place.unwrap_or_else(|| self.add(free.next(), index as u32, class));
            self.order.push(place);
        }
        self.nest(config);
    }

    /// Classes borrow from those that the configuration says.
    fn nest(&mut self, config: &Config) {
        let nests = config.classes.iter().any(|class| class.nested.is_some());
        if !nests && !self.nested {
            return;
        }
        self.nested = nests;
        for (class, share) in self.places.iter().zip(self.shares.iter_mut()) {
            if class.index.is_none_or(|i| config.classes[i as usize].nested.is_none()) {
                share.into_iter().for_each(Share::stand_alone);
            }
        }
        for (index, class) in config.classes.iter().enumerate() {
            let Some(nested) = class.nested else { continue };
            let parent = nested.parent.map(|parent| self.order[parent]);
            if let Some(share) = self.shares.get_mut(self.order[index]) {
                share.nest(&nested, parent);
            }
        }
        for index in (0..config.classes.len()).filter(|&i| config.classes[i].nested.is_some_and(|n| !n.lends))
        {
            let place = self.order[index];
            let top = self.shares.top(place);
            if let Some(share) = self.shares.get_mut(top) {
                share.has_leaf(place);
            }
            self.shares.tell_others(place);
        }
    }

    /// Returns whether any are nested.
    pub(super) fn are_nested(&self) -> bool {
        self.nested
    }

    /// The place that each class of a configuration has already.
    fn by_name(&self, config: &Config) -> Vec<Option<ClassId>> {
        let named =
            |(place, class): (usize, &Class)| ((class.name.clone(), class.direction), ClassId(place as u32));
        let mut known: HashMap<(String, Direction), ClassId> =
            self.places.iter().enumerate().map(named).collect();
        config.classes.iter().map(|c| known.remove(&(c.name.clone(), c.direction))).collect()
    }

    /// The class in this place stays, with another policy.
    pub(in crate::gateway) fn keep(&mut self, place: ClassId, index: u32, config: &ClassConfig) {
        let class = &mut self.places[place.index()];
        class.index = Some(index);
        let Some(policy) = config.ack else {
            return; // its flows find out that they are controlled no longer
        };
        class.policy = Some(policy);
        match (policy.release.share(), self.shares.get_mut(place)) {
            (Some(law), Some(share)) => share.set_law(law),
            (Some(law), None) => self.shares.put(place, Some(Share::new(law))),
            (None, _) => {} // flows that are listed find out
        }
    }

    /// Places that no flow refers to any more.
    pub(super) fn free(&self) -> Vec<ClassId> {
        let is_free = |(_, c): &(usize, &Class)| c.index.is_none() && c.members == 0;
        self.places.iter().enumerate().filter(is_free).map(|(place, _)| ClassId(place as u32)).collect()
    }

    /// A new class in a `free` place, or in one more.
    pub(super) fn add(&mut self, free: Option<ClassId>, index: u32, config: &ClassConfig) -> ClassId {
        let class = Class {
            name: config.name.clone(),
            direction: config.direction,
            policy: config.ack,
            members: 0,
            index: Some(index),
        };
        let place = match free {
            Some(place) => {
                self.places[place.index()] = class;
                place
            }
            None => {
                self.places.push(class);
                ClassId((self.places.len() - 1) as u32)
            }
        };
        self.shares.put(place, config.ack.and_then(|ack| ack.release.share().map(Share::new)));
        self.accounts.open(place, config);
        place
    }

    /// The place of the class with this index in the configuration.
    pub(in crate::gateway) fn place(&self, index: usize) -> ClassId {
        self.order[index]
    }

    /// The index in the configuration of the class in this place.
    pub(in crate::gateway) fn index(&self, place: ClassId) -> Option<usize> {
        self.places[place.index()].index.map(|index| index as usize)
    }

    /// Returns the ACK control of flows that refer to this place.
    #[inline(always)]
    pub(in crate::gateway) fn policy(&self, place: ClassId) -> &AckControl {
        match &self.places[place.index()].policy {
            Some(policy) => policy,
            None => unreachable!("flows refer to classes that control ACKs"),
        }
    }

    /// Returns the ACK control of flows that refer to this place, the totals of their class, and its index in
    /// the configuration.
    #[inline(always)]
    pub(in crate::gateway) fn of_flow(
        &mut self,
        place: ClassId,
    ) -> (&AckControl, &mut ClassStats, Option<u32>) {
        let Class { policy, index, .. } = &self.places[place.index()];
        match policy {
            Some(policy) => (policy, self.accounts.stats_mut(place), *index),
            None => unreachable!("flows refer to classes that control ACKs"),
        }
    }

    /// Returns the state of the class in this place, if its flows share a rate.
    pub(in crate::gateway) fn share(&self, place: ClassId) -> Option<&Share> {
        self.shares.get(place)
    }

    /// See [`Classes::share`].
    pub(in crate::gateway) fn share_mut(&mut self, place: ClassId) -> Option<&mut Share> {
        self.shares.get_mut(place)
    }

    /// Returns the state of all classes whose flows share a rate, and the totals of the class in this place.
    pub(super) fn split(&mut self, place: ClassId) -> (&mut Shares, &mut ClassStats) {
        (&mut self.shares, self.accounts.stats_mut(place))
    }

    /// The port by which ACKs of the class's flows leave.
    pub(in crate::gateway) fn ack_out(&self, place: ClassId) -> Port {
        match self.places[place.index()].direction {
            Direction::Out => LAN,
            Direction::In => WAN,
        }
    }

    /// Returns the state of each class whose flows share its rate, or did.
    pub(in crate::gateway) fn shares_mut(&mut self) -> impl Iterator<Item = &mut Share> {
        self.shares.iter_mut().flatten()
    }

    /// Returns the numbers of all places, used or not.
    pub(in crate::gateway) fn ids(&self) -> impl Iterator<Item = ClassId> + 'static {
        (0..self.len()).map(ClassId)
    }

    /// Places that there are.
    pub(in crate::gateway) fn len(&self) -> u32 {
        self.places.len() as u32
    }

    /// One flow more refers to this place.
    pub(in crate::gateway) fn join(&mut self, place: ClassId) {
        self.places[place.index()].members += 1;
    }

    /// One flow less refers to this place.
    pub(in crate::gateway) fn leave(&mut self, place: ClassId) {
        self.places[place.index()].members -= 1;
    }

    /// Totals of the configuration's classes, in its order.
    pub(in crate::gateway) fn stats(&self) -> impl ExactSizeIterator<Item = &ClassStats> {
        self.order.iter().map(|&place| &self[place])
    }
}

impl Class {
    /// A place that no class has.
    pub(in crate::gateway) fn nobody() -> Class {
        let (name, direction) = (String::new(), Direction::Out);
        Class { name, direction, policy: None, members: 0, index: None }
    }
}

impl core::ops::Index<ClassId> for Classes {
    type Output = ClassStats;
    fn index(&self, place: ClassId) -> &ClassStats {
        self.accounts.stats(place)
    }
}

impl core::ops::IndexMut<ClassId> for Classes {
    fn index_mut(&mut self, place: ClassId) -> &mut ClassStats {
        self.accounts.stats_mut(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Rate;

    pub(in crate::gateway) fn config(names: &[&str]) -> Config {
        let class = |name: &&str| {
            ClassConfig::controlled(*name, Direction::Out, AckControl::ack_shaper(Rate::mbit(1)))
        };
        Config { classes: names.iter().map(class).collect(), ..Config::default() }
    }

    #[test]
    fn a_class_keeps_its_place_and_a_free_place_is_used_again() {
        let mut c = Classes::new(&config(&["a", "b"]), ClassAccounts::Own(Vec::new()));
        let (a, b) = (c.place(0), c.place(1));
        c.join(a);
        c[b].flows = 7;
        c.change(&config(&["new", "b"]), None);
        // A flow still refers to the class that went, so the new one has a place of its own.
        assert_eq!((c.place(1), c[b].flows, c.index(a)), (b, 7, None));
        assert_ne!(c.place(0), a);
        c.leave(a);
        c.change(&config(&["b", "new", "third"]), None);
        assert_eq!((c.place(0), c.place(2)), (b, a));
        assert_eq!(c.stats().map(|s| s.flows).collect::<Vec<_>>(), [7, 0, 0]);
    }

    /// The accounts as the next gateway finds them.
    fn left_by(c: &Classes) -> ClassAccounts {
        let mut accounts: Vec<ClassAccount> = c.accounts().collect();
        accounts.resize(4, ClassAccount::default());
        ClassAccounts::Outlive(Box::leak(accounts.into()))
    }

    #[test]
    fn a_class_has_its_account_again_whatever_its_place_in_the_configuration() {
        let none = ClassAccounts::Outlive(Box::leak(vec![ClassAccount::default(); 4].into()));
        let mut c = Classes::new(&config(&["a", "b"]), none);
        let b = c.place(1);
        (c[b].acked_bytes, c[b].held_bytes) = (7, 3);
        c.change(&config(&["b", "c", "a"]), None);
        let c_place = c.place(1);
        c[c_place].acked_bytes = 9;
        let mut next = Classes::new(&config(&["c", "d", "b"]), left_by(&c));
        let acked = |c: &Classes| c.stats().map(|s| s.acked_bytes).collect::<Vec<_>>();
        assert_eq!((acked(&next), next.place(2)), (vec![9, 0, 7], b));
        assert_eq!(next[b].held_bytes, 0, "nothing is held yet");
        // There are four accounts, and the one of `a` is free.
        assert!(next.have_room(&config(&["c", "d", "b", "e"]), None, Some(9)));
        assert!(!next.have_room(&config(&["c", "d", "b", "e", "f"]), None, Some(9)));
        next.change(&config(&["e", "d", "c", "b"]), None);
        assert_eq!(acked(&next), [0, 0, 9, 7]);
    }

    #[test]
    fn fifty_thousand_customers_in_two_directions_have_a_place_each() {
        let customer = |n: u32| ClassConfig {
            name: format!("c{}", n / 2),
            direction: if n % 2 == 0 { Direction::Out } else { Direction::In },
            matches: vec![],
            ack: None,
            share: None,
            nested: None,
        };
        let all = Config { classes: (0..100_000).map(customer).collect(), ..Config::default() };
        let mut c = Classes::new(&all, ClassAccounts::Own(Vec::new()));
        let last = c.place(99_999);
        c[last].flows = 3;
        let fewer = Config { classes: all.classes[50_000..].to_vec(), ..Config::default() };
        assert!(c.have_room(&fewer, None, None));
        assert!(c.have_room(&fewer, None, Some(100_000)) && !c.have_room(&fewer, None, Some(99_999)));
        c.change(&fewer, None);
        assert_eq!((c.place(49_999), c.index(last), c[last].flows), (last, Some(49_999), 3));
        assert_eq!((c.index(ClassId(0)), c.places.len()), (None, 100_000));
        c.change(&all, None);
        assert_eq!((c.place(99_999), c.places.len()), (last, 100_000));
    }
}
