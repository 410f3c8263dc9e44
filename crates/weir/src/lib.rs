//! Weir's library.
//!
//! - `experiment`: what a file says, an experiment's or a gateway's;
//! - `execute`: the two worlds that run an experiment;
//! - `field`: the gateway and the emulator as processes (Linux);
//! - `result`: what came out;
//! - `report`: what is made of results: checks, summaries, comparisons, tables, charts;
//! - `repro`: the papers' figures again, with verdicts;
//! - `command`: the commands.

pub mod command;
pub mod execute;
pub mod experiment;
#[cfg(feature = "linux")]
pub mod field;
pub mod output;
pub mod report;
pub mod repro;
pub mod result;
