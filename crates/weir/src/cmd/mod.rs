//! The commands of `weir`, one module each.

pub mod lab;
pub mod traffic;
