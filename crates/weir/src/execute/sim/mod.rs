//! The simulator: an experiment in virtual time, with simulated hosts.
//!
//! The gateway and the links are those of `weir run` and `weir wan`. Hosts and everything between them are
//! nodes of one [world](weir_sim::world). A run depends only on its plan: it is identical bit for bit on any
//! machine, except for its duration.
//!
//! - `hosts`: the hosts of a plan; `flows`: the two ends of each flow on them;
//! - `topology`: translation of a plan to a wired world; `together`: merging of several gateways' results;
//! - `tcp`: translation of a plan's TCP settings to those of simulated connections;
//! - `drive`: running and recording of the world;
//! - `series`: recordings over time;
//! - `assemble`: translation of the nodes' counters to the result;
//! - `capture`, `pcap`: frames in files.

mod assemble;
mod capture;
mod drive;
mod flows;
#[cfg(test)]
mod graph_tests;
mod hosts;
#[cfg(test)]
mod law_tests;
mod pcap;
mod series;
mod tcp;
#[cfg(test)]
mod tests;
mod together;
mod topology;

pub use drive::{run, Options};
pub use flows::FlowEnd;
pub use topology::{build, Carrier, Topology, WiredFlow};
