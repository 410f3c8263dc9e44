//! The five papers again: what each figure, table and claim says, and what comes out here.
//!
//! - `rows`: what `experiments/papers/PAPER/rows.toml` says of a paper;
//! - `choose`: the rows that a command line means;
//! - `asks`: the values that rows ask of experiment files, and the runs that give them;
//! - `work`: makes the runs that are missing;
//! - `judge`: deviations and verdicts;
//! - `outcome`: rows with their values and verdicts, as written to JSON;
//! - `page`, `picture`: the same for people.

pub mod asks;
pub mod choose;
pub mod judge;
pub mod outcome;
pub mod page;
mod picture;
pub mod rows;
pub mod work;
