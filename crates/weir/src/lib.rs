//! Weir's library: configuration files, experiment plans, results, the traffic generator, the lab and
//! the commands.

pub mod cmd;
pub mod plan;
pub mod result;
pub mod run;
pub mod traffic;
