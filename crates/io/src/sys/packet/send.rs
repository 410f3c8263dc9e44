//! Sending frames through a packet socket, many in one call.
//!
//! Frames take the way of everything else: through the egress hooks and the queueing discipline. So the
//! kernel may say at any frame that there is no room, and what it says is told frame by frame.

use super::vnet::Vnet;
use crate::sys::pod::bytes_of;
use crate::sys::{check, check_fd};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Frames that one call hands over.
const BATCH: usize = 64;
/// Length of the Ethernet header that devices without one do not get.
const ETHERNET: usize = 14;

/// What a sender is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderOptions {
    /// The interface has Ethernet headers; otherwise the one that each frame starts with is left away.
    pub ethernet: bool,
    /// Frames may be giant or lack their checksums ([`Vnet`]).
    pub vnet: bool,
    /// Bytes that may wait in the kernel (`SO_SNDBUF`); `None` for what the host has configured.
    pub buffer: Option<usize>,
}

/// A frame to send, from the Ethernet header on.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// How it is cut, and its checksum state: the default unless the sender was opened for more.
    pub vnet: Vnet,
    /// Its first bytes: at least the Ethernet header.
    pub head: &'a [u8],
    /// What follows, in pieces.
    pub rest: &'a [IoSlice<'a>],
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It has been sent.
    Yes,
    /// There was no room for it: it is to be sent again later.
    Later,
    /// It cannot be sent: `errno`. `ENETDOWN`, `ENXIO` and `ENODEV` are of the interface, others of the frame.
    No(i32),
}

/// Sends frames by one interface.
#[derive(Debug)]
pub struct Sender {
    socket: OwnedFd,
    ifindex: u32,
    options: SenderOptions,
    scratch: Scratch,
}

/// What one call needs, kept so that sending takes no memory.
#[derive(Debug, Default)]
struct Scratch {
    headers: Vec<Vnet>,
    addresses: Vec<libc::sockaddr_ll>,
    parts: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}
// SAFETY: the pointers in it are written and used within one call of `Sender::send_batch`, which has the
// sender for itself.
unsafe impl Send for Scratch {}

impl Sender {
    /// A sender on the interface numbered `ifindex`. It receives nothing.
    pub fn open(ifindex: u32, options: SenderOptions) -> io::Result<Sender> {
        let kind = if options.ethernet { libc::SOCK_RAW } else { libc::SOCK_DGRAM };
        // SAFETY: no pointers; the result is a new descriptor. Protocol 0 receives nothing.
        let socket = unsafe { check_fd(libc::socket(libc::AF_PACKET, kind | libc::SOCK_CLOEXEC, 0)) }?;
        if options.vnet {
            super::set(socket.as_fd(), libc::SOL_PACKET, super::PACKET_VNET_HDR, &1i32)?;
        }
        if let Some(bytes) = options.buffer {
            super::set_buffer(socket.as_fd(), libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, bytes)?;
        }
        super::bind(socket.as_fd(), ifindex, 0)?;
        Ok(Sender { socket, ifindex, options, scratch: Scratch::default() })
    }

    /// What the hooks know the socket by ([`register_sender`](crate::bpf::Hooks::register_sender)).
    pub fn cookie(&self) -> io::Result<u64> {
        super::cookie(self.socket.as_fd())
    }

    /// Sends frames in order and says in `results`, in the same order, what became of each. From the first
    /// one on for which there is no room, all are for later; one that cannot be sent is stepped over.
    pub fn send(&mut self, frames: &[Outgoing<'_>], results: &mut Vec<Sent>) {
        results.clear();
        while results.len() < frames.len() {
            let rest = &frames[results.len()..];
            let error = match self.send_batch(&rest[..rest.len().min(BATCH)]) {
                Ok(count) => {
                    results.resize(results.len() + count, Sent::Yes);
                    continue;
                }
                Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
            };
            match error {
                libc::EINTR => {}
                libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM => results.resize(frames.len(), Sent::Later),
                libc::ENETDOWN | libc::ENXIO | libc::ENODEV => results.resize(frames.len(), Sent::No(error)),
                _ => results.push(Sent::No(error)),
            }
        }
    }

    /// How many of `frames` went out; an error is of the first.
    fn send_batch(&mut self, frames: &[Outgoing<'_>]) -> io::Result<usize> {
        self.describe(frames);
        let messages = &mut self.scratch.messages;
        let count = messages.len() as libc::c_uint;
        let fd = self.socket.as_raw_fd();
        // SAFETY: `messages` is valid for `count` entries; each points to entries of the other lists, which
        // no longer grow, and those to the frames; all outlive the call, and sending only reads them.
        let sent = check(unsafe { libc::sendmmsg(fd, messages.as_mut_ptr(), count, libc::MSG_DONTWAIT) })?;
        Ok(sent as usize)
    }

    /// Fills the lists for one call.
    fn describe(&mut self, frames: &[Outgoing<'_>]) {
        let Scratch { headers, addresses, parts, messages } = &mut self.scratch;
        headers.clear();
        addresses.clear();
        parts.clear();
        messages.clear();
        let skip = if self.options.ethernet { 0 } else { ETHERNET };
        headers.extend(frames.iter().map(|frame| frame.vnet.to_send(skip as u16)));
        for (frame, header) in frames.iter().zip(headers.iter()) {
            if self.options.vnet {
                parts.push(part(bytes_of(header)));
            }
            parts.push(part(frame.head.get(skip..).unwrap_or_default()));
            parts.extend(frame.rest.iter().map(|more| part(more)));
        }
        if !self.options.ethernet {
            addresses.extend(frames.iter().map(|frame| super::address(self.ifindex, ethertype(frame.head))));
        }
        let mut at = parts.as_mut_ptr();
        for (i, frame) in frames.iter().enumerate() {
            // SAFETY: zero is a valid header: no address, no control data.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            let count = usize::from(self.options.vnet) + 1 + frame.rest.len();
            message.msg_hdr.msg_iov = at;
            message.msg_hdr.msg_iovlen = count as _;
            if let Some(address) = addresses.get_mut(i) {
                message.msg_hdr.msg_name = (address as *mut libc::sockaddr_ll).cast();
                message.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            }
            // SAFETY: every frame has put `count` entries into `parts`, in this order.
            at = unsafe { at.add(count) };
            messages.push(message);
        }
    }
}

fn part(bytes: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

/// Type field of an Ethernet header, 0 if it is cut short.
fn ethertype(frame: &[u8]) -> u16 {
    frame.get(12..14).map_or(0, |t| u16::from_be_bytes([t[0], t[1]]))
}

impl AsFd for Sender {
    /// Writable when the kernel has room for what waits for its buffer.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
