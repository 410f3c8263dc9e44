//! Weir's algorithms. This crate reads no clock, owns no thread and does no I/O: time, frames and seeds are
//! handed in, so the same code runs inline, in the lab and in virtual time.
//!
//! Start with [`manual`]: a packet's way through the files, as drawings. [`node`] is the contract of
//! everything that moves frames. [`systems`] has one folder for each system.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod ack;
pub mod base;
pub mod classify;
pub mod combined;
pub mod flow;
pub mod gateway;
pub mod link;
/// Drawings of the whole: where a packet goes, file by file.
// Its drawings are no examples to run.
#[cfg(all(doc, not(doctest)))]
#[doc = include_str!("../../../ARCHITECTURE.md")]
pub mod manual {}
pub mod node;
pub mod packet;
pub mod quality;
pub mod queue;
#[cfg(any(test, feature = "rig"))]
pub mod rig;
pub mod systems;
pub mod tcp;

pub use base::{dist, rate, registry, rng, stats, time};
pub use packet::{frame, wire};
pub use systems::gap_pacing as pace;
pub use systems::link_sharing as sharing;
pub use systems::link_sharing::classes as class;
pub use tcp::{steer, track};
