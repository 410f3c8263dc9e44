//! Weir: configuration, experiments, lab, commands.
