//! Weir: configuration, experiments, lab, commands.

pub mod cmd;
pub mod traffic;
