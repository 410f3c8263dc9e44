//! Distributions that sizes and times are drawn from. Drawing needs logarithms and powers, which come from a
//! pinned software library, so that a seed means the same on any machine.

use crate::rng::Rng;

/// A distribution of whole numbers: bytes, or nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Always this.
    Constant(u64),
    /// Each from `min` to `max`, both included, alike.
    Uniform {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// Exponential.
    Exponential {
        /// Its mean.
        mean: u64,
    },
    /// Pareto; its mean is `min` x `shape` / (`shape` - 1).
    Pareto {
        /// The smallest.
        min: u64,
        /// Shape (alpha), above 0.
        shape: f64,
        /// Larger draws are this.
        max: Option<u64>,
    },
    /// Each of these, alike.
    Empirical(Vec<u64>),
}

impl Distribution {
    /// One draw.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Distribution::Constant(n) => *n,
            Distribution::Uniform { min, max } => min + rng.below((max - min).saturating_add(1)),
            Distribution::Empirical(values) => values[rng.below(values.len() as u64) as usize],
            Distribution::Exponential { .. } | Distribution::Pareto { .. } => todo!(),
        }
    }
}
