//! Weir's algorithms. This crate reads no clock, owns no thread and does no I/O: time, frames and seeds are
//! handed in, so the same code runs inline, in the lab and in virtual time.
//!
//! Start with [`node`]: the contract of everything that moves frames. [`systems`] has one folder for each
//! system.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod ack;
pub mod base;
pub mod classify;
pub mod combined;
pub mod flow;
pub mod gateway;
pub mod link;
pub mod node;
pub mod packet;
pub mod quality;
pub mod queue;
#[cfg(any(test, feature = "rig"))]
pub mod rig;
pub mod systems;
pub mod tcp;

pub use base::{dist, rate, rng, stats, time};
pub use packet::{frame, wire};
pub use systems::gap_pacing as pace;
pub use systems::link_sharing as sharing;
pub use systems::link_sharing::classes as class;
pub use tcp::{steer, track};
