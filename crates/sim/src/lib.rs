//! Weir in virtual time: an event core that drives nodes exactly, and hosts with a TCP of their own that
//! emit real headers. Nothing here reads a clock or does I/O, and a run is the same bit for bit from its
//! seed on any machine: integers only, no map is ever iterated, ties go by (time, sequence).
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
