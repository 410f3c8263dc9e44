//! Foundations that know no packets: time, rates, random numbers, statistics, timers and heaps.

mod cache;
pub mod dist;
pub mod heap;
pub(crate) mod linked;
pub mod rate;
pub mod registry;
pub mod rng;
pub(crate) mod smooth;
pub mod stats;
pub mod time;
mod timers;
mod virtual_clock;

pub(crate) use cache::prefetch;
pub use timers::Timers;
pub use virtual_clock::VirtualClock;

/// No number: the end of a list.
pub const NONE: u32 = u32::MAX;
