//! Reports made of results.
//!
//! - `expect`: evaluates the checks;
//! - `summary`: summarises several runs by means;
//! - `compare`: puts results side by side;
//! - `index`: lists the directories of several runs;
//! - `table`, `chart`, `json`, `metrics`: write for people, and for programs.

pub mod chart;
pub mod compare;
pub mod expect;
pub mod index;
pub mod json;
#[cfg(feature = "linux")]
pub mod metrics;
pub mod summary;
pub mod table;
