//! Execution of plans.
//!
//! - `sim`: in virtual time;
//! - `lab`: in network namespaces (Linux), with `traffic` as its senders and receivers;
//! - `hosts`, `measurements`: what both have in common, at the ends and in a flow's row;
//! - `baselines`: variants of an experiment that are run beside it;
//! - `sweep`: several runs at once;
//! - `progress`: how far they are;
//! - `machine`: how much of its time they got.

pub mod baselines;
pub mod hosts;
#[cfg(feature = "linux")]
pub mod lab;
#[cfg(feature = "linux")]
pub mod machine;
pub mod measurements;
pub mod progress;
pub mod sim;
pub mod sweep;
#[cfg(feature = "linux")]
pub mod traffic;
