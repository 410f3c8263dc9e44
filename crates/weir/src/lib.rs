//! Weir's library: configuration files, experiment plans, results and what is made of them; the
//! gateway and the emulator as processes; the lab that measures them; the commands.

pub mod chart;
pub mod cli;
pub mod cmd;
pub mod compare;
pub mod config;
pub mod error;
pub mod expect;
pub mod hosts;
pub mod json;
pub mod lab;
pub mod observe;
pub mod output;
pub mod plan;
pub mod progress;
pub mod result;
pub mod run;
pub mod sim;
pub mod summary;
pub mod sweep;
pub mod table;
pub mod traffic;
