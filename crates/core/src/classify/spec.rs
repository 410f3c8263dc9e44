//! The specification of a tree, and the checks that admit it.

use crate::queue;
use crate::rate::Rate;
use crate::systems::gap_pacing;
use core::fmt;
use core::ops::RangeInclusive;

/// Number of priorities.
pub const PRIORITIES: u8 = 8;
/// Weights that a class may have.
pub const WEIGHTS: RangeInclusive<u32> = 1..=1000;
/// Longest path from a leaf to the top, in classes.
const DEEPEST: usize = 32;

/// A class of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Spec {
    /// Number of the class that it borrows from. `None` at the top.
    pub parent: Option<usize>,
    /// Guaranteed rate. At the top it is the link's rate. Without one, all bytes are borrowed.
    pub rate: Option<Rate>,
    /// Maximum rate. `None`: the maximum of its parents. At the top it is the rate.
    pub ceil: Option<Rate>,
    /// Priority for borrowing, and for service below the rate: 0 to 7, 0 first.
    pub priority: u8,
    /// Weight for borrowing among children of the same parent and priority: 1 to 1000.
    pub weight: u32,
    /// Queue. `None` for a class with children.
    pub queue: Option<queue::Config>,
    /// Guarantee of each of its flows, if there is one.
    pub flow_min: Option<FlowMin>,
    /// Pacing, if any. A paced class stands alone: it is in no tree, and has a queue.
    pub pace: Option<gap_pacing::Class>,
    /// Part in a set of lanes, if it is a paced class that has them.
    pub spread: Option<gap_pacing::Spread>,
}

/// Guarantee of each flow of a class. Further flows are refused where the class cannot give each as much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FlowMin {
    /// Rate of each flow.
    pub rate: Rate,
    /// Treatment of a flow that cannot get it.
    pub refusal: Refusal,
}

/// Ways to refuse a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Refusal {
    /// Drops its SYN: the client retries for a while.
    Drop,
    /// Sends the client a RST.
    Reset,
}

impl Spec {
    /// Returns a class of this parent without a rate, with weight 1.
    pub const fn of(parent: Option<usize>) -> Spec {
        Spec {
            parent,
            rate: None,
            ceil: None,
            priority: 0,
            weight: 1,
            queue: None,
            flow_min: None,
            pace: None,
            spread: None,
        }
    }
}

/// Reasons to refuse a tree, with the number of the class at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsound {
    /// The parent is no class.
    NoParent(usize),
    /// The class is its own ancestor, or has more ancestors than the second number.
    Depth(usize, usize),
    /// The parent has a queue.
    ParentQueues(usize),
    /// The class has neither a queue nor children.
    Empty(usize),
    /// The class is at the top and has no rate, which is the link's.
    TopWithoutRate(usize),
    /// The class is at the top and has a ceiling other than its rate.
    TopCeil(usize),
    /// The ceiling is below the rate.
    CeilBelowRate(usize),
    /// The ceiling is above the maximum rate of a class above it, given here.
    CeilAboveParent(usize, Rate),
    /// The children's guarantees add up to the first figure, in bits per second. That is more than the
    /// second, its own rate, which is 0 if it has none.
    Overcommitted(usize, u64, u64),
    /// A weight that is not in [`WEIGHTS`], or a priority that is not below [`PRIORITIES`].
    OutOfRange(usize),
}

impl Unsound {
    /// Returns the number of the class.
    pub fn class(&self) -> usize {
        use Unsound::*;
        match *self {
            NoParent(i) | Depth(i, _) | ParentQueues(i) | Empty(i) | TopWithoutRate(i) | TopCeil(i) => i,
            CeilBelowRate(i) | CeilAboveParent(i, _) | Overcommitted(i, ..) | OutOfRange(i) => i,
        }
    }
}

impl fmt::Display for Unsound {
    /// Writes the reason, without the name of the class.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsound::NoParent(_) => f.write_str("its parent is no class of its direction"),
            Unsound::Depth(_, most) => write!(f, "it is its own ancestor, or has more than {most} of them"),
            Unsound::ParentQueues(_) => f.write_str("its parent has a queue of its own"),
            Unsound::Empty(_) => f.write_str("it has neither a queue nor children"),
            Unsound::TopWithoutRate(_) => f.write_str("it has no parent and no rate"),
            Unsound::TopCeil(_) => f.write_str("it has no parent, so its rate is the most that it may send"),
            Unsound::CeilBelowRate(_) => f.write_str("its ceiling is below its rate"),
            Unsound::CeilAboveParent(_, most) => {
                write!(f, "its ceiling is above what a class above it may send, {most}")
            }
            Unsound::Overcommitted(_, sum, 0) => {
                write!(f, "its children are guaranteed {} and it has no rate", bits(*sum))
            }
            Unsound::Overcommitted(_, sum, own) => {
                write!(f, "its children are guaranteed {} together, and it has {}", bits(*sum), bits(*own))
            }
            Unsound::OutOfRange(_) => f.write_str("its priority is above 7, or its weight not 1 to 1000"),
        }
    }
}

fn bits(bps: u64) -> String {
    Rate::from_bps(bps).map_or("nothing".to_string(), |rate| rate.to_string())
}

/// Checks that this is a tree, and that its guarantees do not exceed its rates.
pub fn check(classes: &[Spec]) -> Result<(), Unsound> {
    let mut promised = vec![0u64; classes.len()];
    let mut children = vec![0u32; classes.len()];
    for (i, class) in classes.iter().enumerate() {
        check_alone(i, class)?;
        check_above(i, classes)?;
        if let Some(parent) = class.parent {
            promised[parent] = promised[parent].saturating_add(class.rate.map_or(0, Rate::bps));
            children[parent] += 1;
        }
    }
    for (i, class) in classes.iter().enumerate() {
        let own = class.rate.map_or(0, Rate::bps);
        if class.queue.is_none() && children[i] == 0 {
            return Err(Unsound::Empty(i));
        }
        if promised[i] > own {
            return Err(Unsound::Overcommitted(i, promised[i], own));
        }
    }
    Ok(())
}

fn check_alone(i: usize, class: &Spec) -> Result<(), Unsound> {
    if class.priority >= PRIORITIES || !WEIGHTS.contains(&class.weight) {
        return Err(Unsound::OutOfRange(i));
    }
    if class.ceil.zip(class.rate).is_some_and(|(ceil, rate)| ceil < rate) {
        return Err(Unsound::CeilBelowRate(i));
    }
    match (class.parent, class.rate) {
        (None, None) => Err(Unsound::TopWithoutRate(i)),
        (None, rate) if class.ceil.is_some() && class.ceil != rate => Err(Unsound::TopCeil(i)),
        _ => Ok(()),
    }
}

/// Checks the classes above this one.
fn check_above(i: usize, classes: &[Spec]) -> Result<(), Unsound> {
    let mut at = classes[i].parent;
    for _ in 0..=DEEPEST {
        let Some(above) = at else { return Ok(()) };
        let Some(class) = classes.get(above) else { return Err(Unsound::NoParent(i)) };
        if class.queue.is_some() {
            return Err(Unsound::ParentQueues(i));
        }
        let most = if class.parent.is_none() { class.rate } else { class.ceil };
        if let Some(most) = most.filter(|&most| classes[i].ceil.is_some_and(|ceil| ceil > most)) {
            return Err(Unsound::CeilAboveParent(i, most));
        }
        at = class.parent;
    }
    Err(Unsound::Depth(i, DEEPEST))
}
