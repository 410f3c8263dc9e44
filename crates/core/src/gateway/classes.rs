//! The classes of a running gateway. Each has a place that stays its own while flows refer to it, whatever a change of
//! configuration does to the order: a flow finds out when it is next touched.

use super::{ClassConfig, ClassStats, Config, Direction};
use crate::ack::AckControl;

/// A class, or what is left of one until its last flow has found out.
struct Class {
    name: String,
    direction: Direction,
    /// Of the flows that refer to it.
    policy: Option<AckControl>,
    stats: ClassStats,
    /// Flows that refer to it.
    members: u32,
    /// It is in the configuration.
    listed: bool,
}

/// The classes by place. A place is what [`Record::class`](crate::flow::Record::class) holds.
pub(super) struct Classes {
    places: Vec<Class>,
    /// Places of the configuration's classes, in its order.
    order: Vec<u16>,
}

impl Classes {
    /// The classes of a configuration.
    pub(super) fn new(config: &Config) -> Classes {
        let mut classes = Classes { places: Vec::new(), order: Vec::new() };
        classes.change(config);
        classes
    }

    /// Would there be a place for each class of this configuration?
    pub(super) fn have_room(&self, config: &Config) -> bool {
        self.places.len() + config.classes.len() <= usize::from(u16::MAX)
    }

    /// The classes become those of this configuration. One of the same name and direction keeps its place, its flows
    /// and what it counted.
    pub(super) fn change(&mut self, config: &Config) {
        self.places.iter_mut().for_each(|class| class.listed = false);
        let mut kept: Vec<Option<u16>> = config.classes.iter().map(|c| self.claim(c)).collect();
        for (place, class) in kept.iter_mut().zip(&config.classes) {
            place.get_or_insert_with(|| self.add(class));
        }
        self.order = kept.into_iter().flatten().collect();
    }

    /// The place that the class has already.
    fn claim(&mut self, config: &ClassConfig) -> Option<u16> {
        let same = |c: &Class| !c.listed && c.name == config.name && c.direction == config.direction;
        let place = self.places.iter().position(same)?;
        let class = &mut self.places[place];
        class.listed = true;
        if config.ack.is_some() {
            class.policy = config.ack; // or else its flows find out that they are controlled no longer
        }
        Some(place as u16)
    }

    /// A new place, or one that nobody refers to any more.
    fn add(&mut self, config: &ClassConfig) -> u16 {
        let class = Class {
            name: config.name.clone(),
            direction: config.direction,
            policy: config.ack,
            stats: ClassStats::default(),
            members: 0,
            listed: true,
        };
        match self.places.iter().position(|c| !c.listed && c.members == 0) {
            Some(free) => {
                self.places[free] = class;
                free as u16
            }
            None => {
                self.places.push(class);
                (self.places.len() - 1) as u16
            }
        }
    }

    /// The place of the class with this index in the configuration.
    pub(super) fn place(&self, index: usize) -> u16 {
        self.order[index]
    }

    /// The index in the configuration of the class in this place.
    pub(super) fn index(&self, place: u16) -> Option<usize> {
        self.order.iter().position(|&p| p == place)
    }

    /// How ACKs of flows that refer to this place are controlled.
    pub(super) fn policy(&self, place: u16) -> &AckControl {
        match &self.places[usize::from(place)].policy {
            Some(policy) => policy,
            None => unreachable!("flows refer to classes that control ACKs"),
        }
    }

    /// One flow more refers to this place.
    pub(super) fn join(&mut self, place: u16) {
        self.places[usize::from(place)].members += 1;
    }

    /// One flow less refers to this place.
    pub(super) fn leave(&mut self, place: u16) {
        self.places[usize::from(place)].members -= 1;
    }

    /// Totals of the configuration's classes, in its order.
    pub(super) fn stats(&self) -> impl ExactSizeIterator<Item = &ClassStats> {
        self.order.iter().map(|&place| &self[place])
    }
}

impl core::ops::Index<u16> for Classes {
    type Output = ClassStats;
    fn index(&self, place: u16) -> &ClassStats {
        &self.places[usize::from(place)].stats
    }
}

impl core::ops::IndexMut<u16> for Classes {
    fn index_mut(&mut self, place: u16) -> &mut ClassStats {
        &mut self.places[usize::from(place)].stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Rate;

    fn config(names: &[&str]) -> Config {
        let class = |name: &&str| ClassConfig {
            name: (*name).into(),
            direction: Direction::Out,
            matches: vec![],
            ack: Some(AckControl::ack_shaper(Rate::mbit(1))),
            share: None,
        };
        Config { classes: names.iter().map(class).collect(), ..Config::default() }
    }

    #[test]
    fn a_class_keeps_its_place_and_a_free_place_is_used_again() {
        let mut c = Classes::new(&config(&["a", "b"]));
        let (a, b) = (c.place(0), c.place(1));
        c.join(a);
        c[b].flows = 7;
        c.change(&config(&["new", "b"]));
        // A flow still refers to the class that went, so the new one has a place of its own.
        assert_eq!((c.place(1), c[b].flows, c.index(a)), (b, 7, None));
        assert_ne!(c.place(0), a);
        c.leave(a);
        c.change(&config(&["b", "new", "third"]));
        assert_eq!((c.place(0), c.place(2)), (b, a));
        assert_eq!(c.stats().map(|s| s.flows).collect::<Vec<_>>(), [7, 0, 0]);
    }
}
