//! Weir in virtual time: an event core that drives nodes exactly, and hosts with a TCP of their own that emit
//! real headers. The crate reads no clock and does no I/O. A run is determined by its seed, and is identical
//! bit for bit on any machine: all arithmetic is on integers, maps are never iterated, and ties are resolved
//! by (time, sequence).
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod agenda;
mod cache;
pub mod cc;
pub mod host;
pub mod steering;
pub mod switch;
pub mod tcp;
pub mod udp;
pub mod world;
