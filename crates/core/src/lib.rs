//! Weir's algorithms. This crate reads no clock, owns no thread and does no I/O: time, frames and seeds are
//! handed in, so the same code runs inline, in the lab and in virtual time.
//!
//! Start with [`node`]: the contract of everything that moves frames.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod ack;
pub mod cache;
pub mod class;
pub mod combined;
pub mod dist;
pub mod flow;
pub mod frame;
pub mod gateway;
pub mod link;
pub mod node;
pub mod pace;
pub mod queue;
pub mod rate;
#[cfg(any(test, feature = "rig"))]
pub mod rig;
pub mod rng;
pub mod sharing;
pub mod stats;
pub mod steer;
pub mod time;
pub mod track;
pub mod wire;
