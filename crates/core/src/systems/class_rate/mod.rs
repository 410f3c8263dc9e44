//! Classes whose flows share a rate by their ACKs.
//!
//! - `settings`: the settings of a class; `nested`: its place among classes that borrow from each other;
//! - `share`: the state of a class; `turn`: of a flow;
//! - `clock`, `average`, `meter`, `debt`: the parts of it;
//! - `node`, `tree`: classes that borrow from each other;
//! - `account`: charges to a class and its flows; `windows`: windows; `guarantee`: flows that have a
//!   guarantee, and those for which there is too little;
//! - `grants`: bytes that may pass unasked where the rate does not bind;
//! - `others`: traffic that ACKs cannot slow; `floor`: the rate that TCP keeps beside it; `level`, `levels`:
//!   what such traffic may borrow; `spill`: the queues of what exceeds its share.

mod account;
mod average;
mod clock;
mod debt;
mod floor;
mod grants;
mod guarantee;
mod level;
mod levels;
mod meter;
mod nested;
mod node;
mod others;
mod settings;
mod share;
mod shares;
mod spill;
mod tree;
mod turn;
mod windows;

pub(crate) use account::Charged;
pub(crate) use grants::portion;
pub(crate) use guarantee::Guarantee;
pub use nested::{Nested, DEEPEST};
pub use settings::{ShareRelease, Turns};
pub(crate) use share::Share;
pub(crate) use shares::Shares;
pub(crate) use spill::Spills;
pub(crate) use tree::ClassTree;
pub use turn::Turn;
