//! Weir's library: configuration files, experiment plans, results and what is made of them.

pub mod chart;
pub mod cli;
pub mod cmd;
pub mod config;
pub mod error;
pub mod expect;
pub mod plan;
pub mod result;
pub mod summary;
pub mod table;
