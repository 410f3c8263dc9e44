//! Experiments: files, the plans that they describe, and descriptions in words.
//!
//! - `config`: from a file to values, with errors that name its lines, sweeps included;
//! - `plan`: the values;
//! - `describe`: the values in words.

pub mod config;
pub mod describe;
pub mod plan;
