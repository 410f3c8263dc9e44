//! Execution of plans.
//!
//! - `sim`: in virtual time;
//! - `lab`: in network namespaces (Linux), with `traffic` as its senders and receivers;
//! - `hosts`, `measurements`: shared parts, at the flows' ends and in a flow's result;
//! - `baselines`: variants of an experiment that run beside it;
//! - `sweep`: several runs at once;
//! - `store`: results kept between calls; `kept`: a sweep whose results are kept;
//! - `progress`: progress of runs;
//! - `room`: room in results for what flows received over time;
//! - `machine`: processor time that was available to runs.

pub mod baselines;
pub mod hosts;
pub mod kept;
#[cfg(feature = "linux")]
pub mod lab;
#[cfg(feature = "linux")]
pub mod machine;
pub mod measurements;
pub mod progress;
pub mod room;
pub mod sim;
pub mod store;
pub mod sweep;
#[cfg(feature = "linux")]
pub mod traffic;
