//! AF_PACKET: whole frames sent and received on an interface, with the kernel's notes on their segmentation
//! and checksum (`PACKET_VNET_HDR`).
//!
//! `PACKET_QDISC_BYPASS` is never set: sent frames pass the interface's queueing discipline and tc hooks like
//! all others.

mod receive;
mod send;
#[cfg(test)]
mod tests;

pub use receive::{clocks, Received, Receiver};
pub use send::{PacketSender, Sending};

use super::check;
use rustix::net::{socket_with, AddressFamily, SocketFlags, SocketType};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// An interface for packet sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Number of the interface.
    pub ifindex: u32,
    /// True if its frames begin with an Ethernet header. On other interfaces the core's header is not sent.
    pub ethernet: bool,
}

/// `struct virtio_net_hdr`, in the byte order of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vnet {
    /// Flags; see [`Vnet::NEEDS_CHECKSUM`].
    pub flags: u8,
    /// Kind of a giant segment, 0 for none.
    pub gso_type: u8,
    /// Bytes that the kernel should keep together.
    pub header: u16,
    /// Payload bytes of each segment.
    pub gso_size: u16,
    /// Offset at which the checksum begins.
    pub checksum_start: u16,
    /// Offset of the checksum field from there.
    pub checksum_offset: u16,
}

impl Vnet {
    /// Bytes of the header.
    pub const LEN: usize = 10;
    /// Flag: only the pseudo-header is summed.
    pub const NEEDS_CHECKSUM: u8 = 1;

    /// Reads a header.
    pub fn read(b: &[u8; Vnet::LEN]) -> Vnet {
        let word = |i: usize| u16::from_ne_bytes([b[i], b[i + 1]]);
        Vnet {
            flags: b[0],
            gso_type: b[1],
            header: word(2),
            gso_size: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        }
    }

    /// The header of a frame that begins `by` bytes earlier.
    pub fn moved(self, by: i16) -> Vnet {
        let needs_checksum = self.flags & Vnet::NEEDS_CHECKSUM != 0;
        let moved = |offset: u16, counts: bool| if counts { offset.wrapping_add_signed(by) } else { offset };
        let checksum_start = moved(self.checksum_start, needs_checksum);
        Vnet { header: moved(self.header, self.gso_type != 0), checksum_start, ..self }
    }

    /// The header as bytes.
    pub fn bytes(&self) -> [u8; Vnet::LEN] {
        let mut b = [0; Vnet::LEN];
        (b[0], b[1]) = (self.flags, self.gso_type);
        let words = [self.header, self.gso_size, self.checksum_start, self.checksum_offset];
        for (to, word) in b[2..].chunks_exact_mut(2).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        b
    }
}

/// Opens a socket, with the Ethernet header or without. It receives no frames before it is bound with a
/// protocol.
fn open(ethernet: bool) -> io::Result<OwnedFd> {
    let kind = if ethernet { SocketType::RAW } else { SocketType::DGRAM };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(AddressFamily::PACKET, kind, flags, None)?)
}

fn address(ifindex: u32, protocol: u16) -> libc::sockaddr_ll {
    // SAFETY: zero is a valid address.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = ifindex as i32;
    address.sll_protocol = protocol.to_be();
    address
}

fn bind(socket: &OwnedFd, ifindex: u32, protocol: u16) -> io::Result<()> {
    let address = address(ifindex, protocol);
    let len = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` is valid for reads of `len` bytes.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) }).map(drop)
}

/// Number of the interface that a socket is bound to; `None` once that is gone from this network namespace,
/// even if it is back (`packet_notifier()`).
fn bound_to(socket: &OwnedFd) -> io::Result<Option<u32>> {
    let mut address = address(0, 0);
    let mut len = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` is valid for writes of `len` bytes.
    check(unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut len) })?;
    Ok(u32::try_from(address.sll_ifindex).ok().filter(|index| *index != 0))
}

fn set<T>(socket: BorrowedFd<'_>, level: i32, option: i32, value: &T) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    let value = (value as *const T).cast();
    // SAFETY: `value` is valid for reads of `len` bytes.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, len) }).map(drop)
}
