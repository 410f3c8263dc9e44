//! The ACK filter: [which ACKs](redundant) newer ones make redundant, and the policies that say when they
//! are erased. [`AckFilter`](crate::queue::AckFilter) is the queue in which that happens.

mod growth;
mod meter;
mod params;
pub mod redundant;

pub(crate) use growth::Growth;
pub(crate) use meter::{channel, part, Meter, ALL};
pub use params::*;
