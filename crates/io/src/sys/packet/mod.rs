//! AF_PACKET: sending and receiving whole frames, and promiscuous mode.

mod receive;
mod send;
#[cfg(test)]
mod tests;
mod vnet;

pub use receive::{Received, Receiver, ReceiverOptions, BATCH as RECEIVE_BATCH, HEADROOM};
pub use send::{Outgoing, Sender, SenderOptions, Sent};
pub use vnet::Vnet;

use super::{check, check_fd};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// As in `linux/if_packet.h`.
const PACKET_STATISTICS: i32 = 6;
const PACKET_AUXDATA: i32 = 8;
const PACKET_VNET_HDR: i32 = 15;
/// Linux 4.20.
const PACKET_IGNORE_OUTGOING: i32 = 23;

/// Sets an option that is an integer or a structure of integers.
fn set<T: super::pod::Pod>(socket: BorrowedFd<'_>, level: i32, option: i32, value: &T) -> io::Result<()> {
    let (value, len) = ((value as *const T).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: `value` is valid for reads of `len` bytes.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, len) }).map(drop)
}

/// Reads an option.
fn get<T: super::pod::Pod>(socket: BorrowedFd<'_>, level: i32, option: i32, mut value: T) -> io::Result<T> {
    let mut len = size_of::<T>() as libc::socklen_t;
    let to = (&raw mut value).cast();
    // SAFETY: `to` is valid for writes of `len` bytes, and any bytes are a value (`Pod`).
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, to, &mut len) })?;
    Ok(value)
}

/// Sets a buffer's size beyond the host's limit if permitted, else up to it. The kernel doubles the number.
fn set_buffer(socket: BorrowedFd<'_>, force: i32, plain: i32, bytes: usize) -> io::Result<()> {
    let half = (bytes / 2).min(i32::MAX as usize) as i32;
    set(socket, libc::SOL_SOCKET, force, &half).or_else(|_| set(socket, libc::SOL_SOCKET, plain, &half))
}

/// The number that the kernel knows a socket by, never given twice (`SO_COOKIE`).
fn cookie(socket: BorrowedFd<'_>) -> io::Result<u64> {
    get(socket, libc::SOL_SOCKET, libc::SO_COOKIE, 0u64)
}

/// Frames that found no room in a socket's buffer since the last call (`struct tpacket_stats`).
fn drops(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let [_, drops] = get(socket, libc::SOL_PACKET, PACKET_STATISTICS, [0u32; 2])?;
    Ok(drops.into())
}

/// The address of an interface and a protocol.
fn address(ifindex: u32, protocol: u16) -> libc::sockaddr_ll {
    // SAFETY: zero is a valid address.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = ifindex as i32;
    address.sll_protocol = protocol.to_be();
    address
}

fn bind(socket: BorrowedFd<'_>, ifindex: u32, protocol: u16) -> io::Result<()> {
    let address = address(ifindex, protocol);
    let len = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` is valid for reads of `len` bytes.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) }).map(drop)
}

/// Frames that one call hands over.
const BATCH: usize = 64;

/// Sends whole Ethernet frames out of one interface, past any steering.
#[derive(Debug)]
pub struct RawSender {
    socket: OwnedFd,
}

impl RawSender {
    /// A sender on the interface numbered `ifindex`. It receives nothing.
    pub fn open(ifindex: u32) -> io::Result<RawSender> {
        use std::os::fd::AsFd;
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers; the result is a new descriptor. Protocol 0 receives nothing.
        let socket = unsafe { check_fd(libc::socket(libc::AF_PACKET, kind, 0)) }?;
        bind(socket.as_fd(), ifindex, 0)?;
        Ok(RawSender { socket })
    }

    /// Sends `frames` in order and says how many went out. Stops at the first that does not.
    pub fn send<B: AsRef<[u8]>>(&self, frames: &[B]) -> io::Result<usize> {
        let mut sent = 0;
        for batch in frames.chunks(BATCH) {
            let mut rest = batch;
            while !rest.is_empty() {
                let count = match self.send_batch(rest) {
                    Err(error) if sent == 0 => return Err(error),
                    Err(_) => return Ok(sent),
                    Ok(count) => count,
                };
                sent += count;
                rest = &rest[count..];
            }
        }
        Ok(sent)
    }

    fn send_batch<B: AsRef<[u8]>>(&self, frames: &[B]) -> io::Result<usize> {
        let part = |frame: &B| {
            let bytes = frame.as_ref();
            libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
        };
        let mut parts: Vec<libc::iovec> = frames.iter().map(part).collect();
        let message = |part: &mut libc::iovec| {
            // SAFETY: zero is a valid header: no address, no control data.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
            header
        };
        let mut messages: Vec<libc::mmsghdr> = parts.iter_mut().map(message).collect();
        let count = messages.len() as libc::c_uint;
        // SAFETY: `messages` is valid for `count` entries; each points to one entry of `parts`,
        // which points to a frame; all outlive the call, and sending only reads the frames.
        let sent =
            check(unsafe { libc::sendmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), count, 0) })?;
        Ok(sent as usize)
    }
}

/// Keeps an interface promiscuous for as long as it lives: a bump in the wire takes frames for
/// everyone.
#[derive(Debug)]
pub struct Promiscuous {
    _socket: OwnedFd,
}

impl Promiscuous {
    /// Makes the interface numbered `ifindex` promiscuous.
    pub fn new(ifindex: u32) -> io::Result<Promiscuous> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers; the result is a new descriptor.
        let socket = unsafe { check_fd(libc::socket(libc::AF_PACKET, kind, 0)) }?;
        // SAFETY: zero is a valid request.
        let mut request: libc::packet_mreq = unsafe { std::mem::zeroed() };
        request.mr_ifindex = ifindex as i32;
        request.mr_type = libc::PACKET_MR_PROMISC as u16;
        let len = size_of_val(&request) as libc::socklen_t;
        // SAFETY: `request` is valid for reads of `len` bytes.
        check(unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_ADD_MEMBERSHIP,
                (&raw const request).cast(),
                len,
            )
        })?;
        Ok(Promiscuous { _socket: socket })
    }
}
