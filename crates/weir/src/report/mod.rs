//! Reports that are made of results.
//!
//! - `expect`: whether the checks hold;
//! - `summary`: several runs, their means;
//! - `compare`: results side by side;
//! - `index`: what is in the directories of several runs;
//! - `table`, `chart`, `json`: for people, and for programs.

pub mod chart;
pub mod compare;
pub mod expect;
pub mod index;
pub mod json;
pub mod summary;
pub mod table;
