//! Cross traffic: a source of UDP datagrams at a constant rate, optionally on and off, and the sink that
//! counts them.
//!
//! Frames have Ethernet, IPv4 and UDP headers (RFC 768) with a valid checksum. The payload is a length, of
//! which only the first sixteen bytes are present: the datagram's number and its departure in nanoseconds.
//! With a payload below eight bytes, the IP identification numbers them, and below sixteen none tells when it
//! left.

mod in_flight;
mod numbers;
mod sink;
mod source;
#[cfg(test)]
mod tests;
mod timetable;

pub use in_flight::InFlight;
pub use numbers::Numbers;
pub use sink::{UdpReport, UdpSink};
pub use source::{UdpConfig, UdpSource};
pub use timetable::Timetable;

use weir_core::node::Port;

/// The only port of a source or sink.
pub const WIRE: Port = Port(0);
/// Most payload bytes of a datagram over IPv4.
pub const MAX_PAYLOAD: u16 = 65_535 - 20 - 8;

/// Bytes of the number in front of the payload.
const NUMBER: usize = 8;
/// Bytes of the number and of the departure behind it.
const STAMPED: usize = 16;
