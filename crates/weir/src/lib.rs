//! Weir: configuration, experiments, lab, commands.

pub mod traffic;
