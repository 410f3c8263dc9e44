//! AF_PACKET: sending whole frames when the engine is gone, and promiscuous mode.

use super::{check, check_fd};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

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
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers; the result is a new descriptor. Protocol 0 receives nothing.
        let socket = unsafe { check_fd(libc::socket(libc::AF_PACKET, kind, 0)) }?;
        // SAFETY: zero is a valid address.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = ifindex as i32;
        let len = size_of_val(&address) as libc::socklen_t;
        // SAFETY: `address` is valid for reads of `len` bytes.
        check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) })?;
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
