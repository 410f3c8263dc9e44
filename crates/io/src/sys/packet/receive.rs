//! Receiving frames through a packet socket, many in one call, giant ones whole.
//!
//! Frames are stamped by the kernel when it receives them. Those stamps are of the wall clock; they are brought
//! to the monotonic one by the difference of the two when they are read. A stamp that is not of the last
//! second, because the wall clock was set or the stamp was meant for something else (the departure time of
//! a frame of this host), is replaced by the time of reading.

use super::vnet::Vnet;
use crate::sys::pod::{self, Pod};
use crate::sys::{check, check_fd, clock};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use weir_core::time::{Duration, Time};

/// Frames that one call receives at most.
pub const BATCH: usize = 64;
/// Room in front of a frame in its first buffer: for a VLAN tag that is put back in.
pub const HEADROOM: usize = 16;
const TAG: usize = 4;
/// Room for the control messages of a frame: a stamp and what `PACKET_AUXDATA` says.
const CONTROL: usize = 96;
/// A stamp older than this is no stamp.
const CREDIBLE: Duration = Duration::from_secs(1);

/// What a receiver is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverOptions {
    /// Bytes that may wait in the kernel, buffers and their overhead (`SO_RCVBUF`); `None` for what the host has
    /// configured.
    pub buffer: Option<usize>,
    /// Let the kernel stamp frames. It then stamps every frame of the host (some 20 ns).
    pub stamps: bool,
}

/// A frame that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Where it starts in its first buffer.
    pub offset: usize,
    /// Bytes of it that are in the buffers.
    pub present: usize,
    /// Its length. Longer than what is present if the buffers were too small.
    pub len: usize,
    /// How it is to be cut, and its checksum state, for the frame as it is now.
    pub vnet: Vnet,
    /// When the kernel received it.
    pub time: Time,
}

/// `struct tpacket_auxdata`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Auxiliary {
    status: u32,
    len: u32,
    snap_len: u32,
    mac: [u8; 2],
    net: [u8; 2],
    vlan_tci: [u8; 2],
    vlan_tpid: [u8; 2],
}
// SAFETY: integers without padding.
unsafe impl Pod for Auxiliary {}

const VLAN_VALID: u32 = 1 << 4;
const TPID_VALID: u32 = 1 << 6;
const DOT1Q: u16 = 0x8100;

/// Receives the frames that come in on one interface.
#[derive(Debug)]
pub struct Receiver {
    socket: OwnedFd,
    scratch: Box<Scratch>,
    lost: u64,
}

/// What one call needs, kept so that receiving takes no memory.
#[derive(Debug)]
struct Scratch {
    headers: [Vnet; BATCH],
    control: [Control; BATCH],
    parts: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}
// SAFETY: the pointers in it are written and used within one call of `Receiver::receive`, which has the
// receiver for itself.
unsafe impl Send for Scratch {}

/// Aligned as control messages are.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

impl Receiver {
    /// A receiver on the interface numbered `ifindex`, for all protocols.
    pub fn open(ifindex: u32, options: ReceiverOptions) -> io::Result<Receiver> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers; the result is a new descriptor. It receives nothing until it is bound to a protocol.
        let socket = unsafe { check_fd(libc::socket(libc::AF_PACKET, kind, 0)) }?;
        let fd = socket.as_fd();
        super::set(fd, libc::SOL_PACKET, super::PACKET_VNET_HDR, &1i32)?;
        super::set(fd, libc::SOL_PACKET, super::PACKET_AUXDATA, &1i32)?;
        super::set(fd, libc::SOL_PACKET, super::PACKET_IGNORE_OUTGOING, &1i32)?;
        if options.stamps {
            super::set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32)?;
        }
        if let Some(bytes) = options.buffer {
            super::set_buffer(fd, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, bytes)?;
        }
        super::bind(fd, ifindex, libc::ETH_P_ALL as u16)?;
        let scratch = Box::new(Scratch {
            headers: [Vnet::default(); BATCH],
            control: [Control([0; CONTROL]); BATCH],
            parts: Vec::with_capacity(2 * BATCH),
            messages: Vec::with_capacity(BATCH),
        });
        Ok(Receiver { socket, scratch, lost: 0 })
    }

    /// Receives frames, each into as many of `buffers` as `pieces` says, and gives the number of each and what is
    /// known of it to `each`, in order. A frame starts [`HEADROOM`] bytes into its first buffer, or a tag's length
    /// before that. Says how many there were: 0 if none waits, or if no room was given.
    pub fn receive(
        &mut self,
        buffers: &mut [&mut [u8]],
        pieces: usize,
        mut each: impl FnMut(usize, &mut [&mut [u8]], Received),
    ) -> io::Result<usize> {
        let count = (buffers.len() / pieces).min(BATCH);
        let got = match self.receive_batch(&mut buffers[..count * pieces], pieces) {
            Ok(got) => got,
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => 0,
                // A frame that no such header can describe (segments in a tunnel): it is gone.
                Some(libc::EINVAL) => {
                    self.lost += 1;
                    0
                }
                _ => return Err(error),
            },
        };
        if got == 0 {
            return Ok(0);
        }
        let (now, wall) = (clock::now(), clock::wall());
        for (i, pieces) in buffers.chunks_mut(pieces).take(got).enumerate() {
            let received = self.describe(i, pieces, now, wall);
            each(i, pieces, received);
        }
        Ok(got)
    }

    fn receive_batch(&mut self, buffers: &mut [&mut [u8]], pieces: usize) -> io::Result<usize> {
        let Scratch { headers, control, parts, messages } = &mut *self.scratch;
        parts.clear();
        messages.clear();
        for (i, buffer) in buffers.iter_mut().enumerate() {
            let room = if i % pieces == 0 {
                let header = &mut headers[i / pieces];
                parts.push(libc::iovec { iov_base: (header as *mut Vnet).cast(), iov_len: Vnet::LEN });
                buffer.get_mut(HEADROOM..).unwrap_or_default()
            } else {
                &mut buffer[..]
            };
            parts.push(libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() });
        }
        let parts_of = parts.as_mut_ptr();
        for (i, control) in control.iter_mut().enumerate().take(buffers.len() / pieces) {
            // SAFETY: zero is a valid header: no address.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            // SAFETY: every frame has put `pieces + 1` entries into `parts`, in this order.
            message.msg_hdr.msg_iov = unsafe { parts_of.add(i * (pieces + 1)) };
            message.msg_hdr.msg_iovlen = (pieces + 1) as _;
            message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = CONTROL as _;
            messages.push(message);
        }
        let (fd, count) = (self.socket.as_raw_fd(), messages.len() as libc::c_uint);
        let none = std::ptr::null_mut();
        // SAFETY: `messages` is valid for `count` entries; each points to entries of the other lists and to
        // buffers that are borrowed for writing; all outlive the call, and none overlap.
        let got =
            check(unsafe { libc::recvmmsg(fd, messages.as_mut_ptr(), count, libc::MSG_DONTWAIT, none) })?;
        Ok(got as usize)
    }

    /// What is known of frame `i`; puts its tag back in.
    fn describe(&mut self, i: usize, pieces: &mut [&mut [u8]], now: Time, wall: u64) -> Received {
        let message = &self.scratch.messages[i];
        let present = (message.msg_len as usize).saturating_sub(Vnet::LEN);
        let mut received =
            Received { offset: HEADROOM, present, len: present, vnet: self.scratch.headers[i], time: now };
        let header = &message.msg_hdr;
        // SAFETY: the header is the one that the kernel has filled, with the control data it points to.
        let mut control = unsafe { libc::CMSG_FIRSTHDR(header) };
        while !control.is_null() {
            // SAFETY: a control message within the buffer, as the macros find them.
            let (level, kind, data) = unsafe { ((*control).cmsg_level, (*control).cmsg_type, data(control)) };
            if (level, kind) == (libc::SOL_PACKET, super::PACKET_AUXDATA) {
                if let Some(auxiliary) = pod::read::<Auxiliary>(data) {
                    received.len = received.len.max(auxiliary.len as usize);
                    put_tag(&mut received, pieces, &auxiliary);
                }
            } else if (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
                if let Some([seconds, nanos]) = pod::read::<[u64; 2]>(data) {
                    received.time =
                        monotonic(seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos), now, wall);
                }
            }
            // SAFETY: as for the first one.
            control = unsafe { libc::CMSG_NXTHDR(header, control) };
        }
        received
    }

    /// Frames that were not received since the last call: no room in the buffer, or no way to describe them.
    pub fn losses(&mut self) -> io::Result<u64> {
        Ok(std::mem::take(&mut self.lost) + super::drops(self.socket.as_fd())?)
    }
}

/// The data of a control message.
///
/// # Safety
/// `control` points to a whole one, and the result does not outlive it.
#[allow(clippy::unnecessary_cast)] // Not every C library has a length of this size.
unsafe fn data<'a>(control: *const libc::cmsghdr) -> &'a [u8] {
    // SAFETY: the caller says that all of the message is there.
    unsafe {
        // A length of nothing but the header is the least there is.
        let len = ((*control).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
        std::slice::from_raw_parts(libc::CMSG_DATA(control), len)
    }
}

/// Puts the tag that the device or the kernel has taken out back behind the addresses.
fn put_tag(received: &mut Received, pieces: &mut [&mut [u8]], auxiliary: &Auxiliary) {
    let head = &mut pieces[0];
    if auxiliary.status & VLAN_VALID == 0 || head.len() < HEADROOM + 12 || received.present < 12 {
        return;
    }
    let tpid = match auxiliary.status & TPID_VALID {
        0 => DOT1Q,
        _ => u16::from_ne_bytes(auxiliary.vlan_tpid),
    };
    let start = HEADROOM - TAG;
    head.copy_within(HEADROOM..HEADROOM + 12, start);
    head[start + 12..start + 14].copy_from_slice(&tpid.to_be_bytes());
    head[start + 14..start + 16].copy_from_slice(&u16::from_ne_bytes(auxiliary.vlan_tci).to_be_bytes());
    received.offset = start;
    received.present += TAG;
    received.len += TAG;
    received.vnet = received.vnet.behind(TAG as u16);
}

/// A stamp of the wall clock on the monotonic one.
fn monotonic(stamp: u64, now: Time, wall: u64) -> Time {
    match wall.checked_sub(stamp) {
        Some(age) if age <= CREDIBLE.as_nanos() => now.saturating_sub(Duration::from_nanos(age)),
        _ => now,
    }
}

impl AsFd for Receiver {
    /// Readable when a frame waits.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
