//! The commands of `weir`, one module each.

pub mod traffic;
