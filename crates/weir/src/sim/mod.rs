//! The simulator: an experiment in virtual time, with simulated hosts.
//!
//! The gateway and the links are those of `weir run` and `weir wan`; hosts and everything between them are nodes of
//! one [world](weir_sim::world). A run depends on nothing but its plan: it is the same bit for bit on any machine,
//! except for how long it took.
//!
//! - `ends`: the hosts of a plan, and the two ends of each flow;
//! - `topology`: from a plan to a wired world;
//! - `tcp`: from what a plan says of TCP to what simulated connections are told;
//! - `drive`: runs the world, looks at it meanwhile;
//! - `series`: what is recorded over time;
//! - `assemble`: from what nodes counted to the result;
//! - `capture`, `pcap`: frames in files.

mod assemble;
mod capture;
mod drive;
pub(crate) mod ends;
mod pcap;
mod series;
mod tcp;
#[cfg(test)]
mod tests;
pub(crate) mod topology;

pub use drive::{run, Options};
