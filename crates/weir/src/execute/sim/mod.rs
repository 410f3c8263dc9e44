//! The simulator: an experiment in virtual time, with simulated hosts.
//!
//! The gateway and the links are those of `weir run` and `weir wan`; hosts and everything between them are nodes of
//! one [world](weir_sim::world). A run depends on nothing but its plan: it is the same bit for bit on any machine,
//! except for how long it took.
//!
//! - `hosts`: the hosts of a plan; `flows`: the two ends of each flow on them;
//! - `topology`: from a plan to a wired world; `together`: results of several gateways as of one;
//! - `tcp`: from the TCP settings of a plan to those of simulated connections;
//! - `drive`: runs the world and records meanwhile;
//! - `series`: what is recorded over time;
//! - `assemble`: from what nodes counted to the result;
//! - `capture`, `pcap`: frames in files.

mod assemble;
mod capture;
mod drive;
pub(crate) mod flows;
#[cfg(test)]
mod graph_tests;
mod hosts;
mod pcap;
mod series;
mod tcp;
#[cfg(test)]
mod tests;
mod together;
pub(crate) mod topology;

pub use drive::{run, Options};
