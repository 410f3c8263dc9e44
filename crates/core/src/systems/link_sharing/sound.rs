//! Classes with queues, and the checks of their configuration.

use crate::classify::spec::{Spec, Unsound};
use crate::classify::{ClassConfig, Config, Direction};
use crate::systems::gap_pacing::{self, Queued};

/// Reason to refuse a configuration, and the class of it that is at fault.
pub type Refused = crate::classify::Refused<Why>;

/// Fault of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Place in the tree.
    Tree(Unsound),
    /// Pacing.
    Pace(gap_pacing::Unsound),
}

impl core::fmt::Display for Why {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Why::Tree(why) => why.fmt(f),
            Why::Pace(why) => why.fmt(f),
        }
    }
}

/// Returns whether the class is in the tree of a direction.
fn in_tree(class: &ClassConfig, direction: Direction) -> bool {
    class.direction == direction && class.share.is_some_and(|share| share.pace.is_none())
}

/// Returns the tree of a direction: its classes, with parents among themselves, and the index of each in the
/// configuration.
pub(super) fn specs(config: &Config, direction: Direction) -> (Vec<Spec>, Vec<usize>) {
    let shares = |&i: &usize| in_tree(&config.classes[i], direction);
    let indices: Vec<usize> = (0..config.classes.len()).filter(shares).collect();
    let place = |i: usize| indices.binary_search(&i).unwrap_or(usize::MAX);
    let spec = |&i: &usize| config.classes[i].share.map(|s| Spec { parent: s.parent.map(place), ..s });
    (indices.iter().filter_map(spec).collect(), indices)
}

/// Returns the paced classes of a direction, with the index of each in the configuration.
pub(super) fn paced(config: &Config, direction: Direction) -> (Vec<Queued>, Vec<usize>) {
    let of = |(i, class): (usize, &ClassConfig)| {
        let share = class.share.filter(|_| class.direction == direction)?;
        Some(((share.pace?, share.queue?), i))
    };
    config.classes.iter().enumerate().filter_map(of).unzip()
}

/// Checks that the queued classes of each direction are a tree whose guarantees do not exceed its rates, and
/// that its paced classes can be paced.
pub fn check(config: &Config) -> Result<(), Refused> {
    for direction in [Direction::Out, Direction::In] {
        let (specs, indices) = specs(config, direction);
        let refused = |why: Unsound| Refused { class: indices[why.class()], why: Why::Tree(why) };
        crate::classify::spec::check(&specs).map_err(refused)?;
        let (paced, indices) = paced(config, direction);
        let classes: Vec<gap_pacing::Class> = paced.iter().map(|(class, _)| *class).collect();
        let refused = |why: gap_pacing::Unsound| Refused { class: indices[why.class()], why: Why::Pace(why) };
        gap_pacing::check(&config.port, &classes).map_err(refused)?;
    }
    Ok(())
}
