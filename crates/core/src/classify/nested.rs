//! Checks of classes that borrow from each other what they release by their ACKs.

use super::spec::{self, Spec, Unsound};
use super::{Config, Direction, Refused};
use crate::queue::{self, Kind, QueueLimit};
use crate::rate::Rate;
pub use crate::systems::class_rate::{Nested, DEEPEST};

impl Config {
    /// The most that a nested class with this index may send: its ceiling, or that of the next class above it
    /// that has one. `None` if it is not nested, or the tree is not [sound](Config::check_nested).
    pub fn most_of(&self, class: usize) -> Option<Rate> {
        let mut at = Some(class);
        for _ in 0..DEEPEST {
            let nested = self.classes.get(at?)?.nested?;
            if let Some(most) = nested.bound() {
                return Some(most);
            }
            at = nested.parent;
        }
        None
    }

    /// Returns whether the nested classes of each direction are trees whose guarantees fit the rate above
    /// them.
    pub fn check_nested(&self) -> Result<(), Refused<Unsound>> {
        [Direction::Out, Direction::In].into_iter().try_for_each(|direction| self.check_nested_in(direction))
    }

    fn check_nested_in(&self, direction: Direction) -> Result<(), Refused<Unsound>> {
        let is_here = |&i: &usize| self.classes[i].direction == direction && self.classes[i].nested.is_some();
        let indices: Vec<usize> = (0..self.classes.len()).filter(is_here).collect();
        let place = |i: usize| indices.binary_search(&i).unwrap_or(usize::MAX);
        let specs: Vec<Spec> =
            indices.iter().filter_map(|&i| Some(spec(&self.classes[i].nested?, place))).collect();
        let checked = check_depth(&specs).and_then(|()| spec::check(&specs));
        checked.map_err(|why| Refused { class: indices[why.class()], why })
    }
}

/// Returns the place that a class with a queue would have. A class with flows is a leaf.
fn spec(nested: &Nested, place: impl Fn(usize) -> usize) -> Spec {
    let leaf = queue::Config { limit: QueueLimit::default(), kind: Kind::Fifo, tins: None };
    let queue = (!nested.lends).then_some(leaf);
    let parent = nested.parent.map(place);
    Spec { rate: nested.rate, ceil: nested.ceil, weight: nested.weight, queue, ..Spec::of(parent) }
}

fn check_depth(specs: &[Spec]) -> Result<(), Unsound> {
    for (i, spec) in specs.iter().enumerate() {
        let above = |&at: &usize| specs.get(at).and_then(|spec| spec.parent);
        if core::iter::successors(spec.parent, above).take(DEEPEST).count() == DEEPEST {
            return Err(Unsound::Depth(i, DEEPEST - 1));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::AckControl;
    use crate::classify::ClassConfig;

    fn class(parent: Option<usize>, mbit: u64, lends: bool) -> ClassConfig {
        let rate = Rate::from_bps(mbit * 1_000_000);
        let nested = Nested { parent, rate, ceil: None, weight: 1, lends };
        let ack = AckControl::ack_share(Rate::mbit(1));
        ClassConfig { nested: Some(nested), ..ClassConfig::controlled("", Direction::Out, ack) }
    }

    fn config(classes: Vec<ClassConfig>) -> Config {
        Config { classes, ..Config::default() }
    }

    fn refused(classes: Vec<ClassConfig>) -> (usize, Unsound) {
        let refused = config(classes).check_nested().unwrap_err();
        (refused.class, refused.why)
    }

    #[test]
    fn eight_levels_are_the_most_and_a_ring_has_no_end() {
        let line = |n: usize| (0..n).map(|i| class(i.checked_sub(1), 1, i + 1 < n)).collect::<Vec<_>>();
        assert_eq!(config(line(8)).check_nested(), Ok(()));
        assert_eq!(refused(line(9)), (8, Unsound::Depth(8, 7)));
        let ring = vec![class(Some(1), 1, true), class(Some(0), 1, true)];
        assert_eq!(refused(ring), (0, Unsound::Depth(0, 7)));
    }

    #[test]
    fn guarantees_are_at_most_what_the_parent_has() {
        let tree = |b| vec![class(None, 10, true), class(Some(0), 6, false), class(Some(0), b, false)];
        assert_eq!(config(tree(4)).check_nested(), Ok(()));
        assert_eq!(refused(tree(5)), (0, Unsound::Overcommitted(0, 11_000_000, 10_000_000)));
        // Numbers count in the configuration, with classes of the other direction before.
        let other = ClassConfig { direction: Direction::In, ..class(None, 10, false) };
        let mut all = vec![other, class(None, 10, true), class(Some(1), 6, false)];
        assert_eq!(config(all.clone()).check_nested(), Ok(()));
        all[2].direction = Direction::In;
        assert_eq!(refused(all), (1, Unsound::Empty(0)));
    }

    #[test]
    fn the_most_is_the_next_ceiling_above() {
        let mut all = vec![class(None, 10, true), class(Some(0), 0, true), class(Some(1), 2, false)];
        assert_eq!(config(all.clone()).most_of(2), Some(Rate::mbit(10)));
        all[1].nested = all[1].nested.map(|n| Nested { ceil: Some(Rate::mbit(5)), ..n });
        assert_eq!(config(all.clone()).most_of(2), Some(Rate::mbit(5)));
        all[2].nested = all[2].nested.map(|n| Nested { ceil: Some(Rate::mbit(3)), ..n });
        assert_eq!(config(all).most_of(2), Some(Rate::mbit(3)));
    }
}
