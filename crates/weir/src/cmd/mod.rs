//! The commands of `weir`, one module each.

pub mod bench;
pub mod lab;
pub mod traffic;
