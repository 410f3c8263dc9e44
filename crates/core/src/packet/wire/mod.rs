//! Frames as bytes: parsing Ethernet, IPv4, IPv6 and TCP, rewriting the few fields that a gateway may change,
//! and making ACKs.
//!
//! Bytes start at the Ethernet header and may be only the *head* of a frame. Its full length is given
//! separately, and the payload may be elsewhere (chained) or absent (virtual time). Parsing is in steps, each
//! of bounded work, and copies its results into small values that borrow nothing:
//!
//! ```text
//! packet(bytes, frame_len) -> Packet      Ethernet, up to two VLAN tags, PPPoE, IP header and extensions
//! tcp(bytes, &packet)      -> Tcp         the fixed TCP header
//! tcp_options(bytes, ..)   -> TcpOptions  its options
//! ```
//!
//! [`plain_ack`] reads pure ACKs of the usual layout in one step.
//!
//! Any input gives a value or a [`Reject`]. No code here panics, allocates or reads past the end of the IP
//! packet (Ethernet padding is not payload). Rejected frames are to be forwarded untouched: a middlebox that
//! does not understand a frame must not interfere with it.
//!
//! Not supported: IPv6 jumbograms (RFC 2675), reassembly, tunnels, and the pseudo-headers of source-routed
//! packets before their last hop (IPv6: reported as protocol 43).

mod accecn;
mod emit;
mod ethernet;
mod link;
mod options;
mod packet;
mod plain;
mod quic;
mod refuse;
mod rewrite;
mod seq;
mod sum;
mod tcp;
mod usual;

use super::be16;

#[cfg(any(test, feature = "rig"))]
pub mod build;
pub mod checksum;
#[cfg(test)]
mod tests;

pub use accecn::EcnBytes;
pub(crate) use emit::emit_known;
pub use emit::{ack_len, emit_ack, AckFields, MAX_ACK_LEN};
pub(crate) use ethernet::network;
pub use ethernet::{network_layer, Control, Vlan};
pub use link::{has_address_of_link, is_of_link};
pub use options::{fast_open_cookie, read_options, tcp_options, SackBlocks, TcpOptions, Timestamps};
pub(crate) use packet::mapped;
pub use packet::{any_packet, other_packet, packet, Packet};
pub use plain::{plain_ack, PlainAck};
pub use quic::is_quic;
pub use refuse::refuse_syn;
pub use rewrite::{set_ack, set_seq, set_timestamps, set_window};
pub use seq::Seq;
pub use tcp::{tcp, Flags, Tcp};
pub(crate) use usual::{usual_ack, USUAL_ACK};

/// IP protocol number of TCP.
pub const TCP: u8 = 6;
/// IP protocol number of UDP.
pub const UDP: u8 = 17;

/// Reasons not to parse a frame further. It is forwarded untouched all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reject {
    /// Neither IPv4 nor IPv6 under at most two VLAN tags and the header of a PPPoE session.
    NotIp,
    /// An IP packet of a protocol other than TCP.
    NotTcp,
    /// The frame ends before its headers say so, or the headers are not all in the bytes present.
    Truncated,
    /// A length, version or checksum of the headers contradicts the rest.
    Malformed,
    /// A fragment of an IP packet, the first one included. An "atomic" one (RFC 6946) is a whole packet.
    Fragment,
}

/// Returns `N` bytes from `at` on, if present.
#[inline]
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Returns a 32-bit field in network order, if present.
#[inline]
fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

/// Writes `value` from `at` on. Returns false, with nothing written, if it does not fit.
fn put(bytes: &mut [u8], at: usize, value: &[u8]) -> bool {
    let field = at.checked_add(value.len()).and_then(|end| bytes.get_mut(at..end));
    field.map(|f| f.copy_from_slice(value)).is_some()
}
