//! Weir's library: configuration files, experiment plans, results and what is made of them.

pub mod plan;
pub mod result;
