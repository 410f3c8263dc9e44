//! Receiving in batches, straight into memory of the caller.

use super::{bind, open, set, Vnet};
use crate::sys::{check, clock};
use rustix::net::sockopt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use weir_core::time::Time;

/// Bytes that may wait to be received, as the kernel counts them: some milliseconds at 10 Gb/s.
const RECEIVE_BUFFER: usize = 8 << 20;
/// Option since Linux 4.20.
const PACKET_IGNORE_OUTGOING: i32 = 23;
/// Option since Linux 5.19.
const SO_RCVMARK: i32 = 75;
/// Nanoseconds after which a stamp is not credible: the wall clock was set, or the stamp is the departure
/// time of a frame of this host.
const CREDIBLE: i64 = 1_000_000_000;
/// Room for a time stamp, the auxiliary data and a mark.
const CONTROL: usize = 16;

/// Receiver of an interface's frames. Each is preceded by a [`Vnet`] header.
#[derive(Debug)]
pub struct Receiver {
    socket: OwnedFd,
    /// Parts of each frame's memory.
    parts: usize,
    iovecs: Box<[libc::iovec]>,
    _controls: Box<[[u64; CONTROL]]>,
    messages: Box<[libc::mmsghdr]>,
    dropped: u64,
}

// SAFETY: the pointers in the arrays are not followed between calls.
unsafe impl Send for Receiver {}

/// A received frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Bytes, including the [`Vnet`] header.
    pub len: usize,
    /// Time of the kernel's stamp; `None` without a stamp of the last second.
    pub at: Option<Time>,
    /// VLAN tag that was taken out of the frame: protocol and tag.
    pub tag: Option<(u16, u16)>,
    /// True if the frame was longer than its memory.
    pub cut: bool,
    /// Mark of the frame, if marks are received.
    pub mark: u32,
}

impl Receiver {
    /// Opens a receiver on the interface numbered `ifindex`. It receives `batch` frames at once, each in
    /// `parts` pieces of memory, and with `promiscuous` also those for other hosts.
    pub fn open(ifindex: u32, promiscuous: bool, batch: usize, parts: usize) -> io::Result<Receiver> {
        let socket = open(true)?;
        set(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1i32)?;
        set(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_AUXDATA, &1i32)?;
        set(socket.as_fd(), libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1i32)?;
        set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32)?;
        // The forced size may exceed the system's limit, with the privilege.
        sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER))?;
        if promiscuous {
            // SAFETY: zero is a valid request.
            let mut request: libc::packet_mreq = unsafe { std::mem::zeroed() };
            request.mr_ifindex = ifindex as i32;
            request.mr_type = libc::PACKET_MR_PROMISC as u16;
            set(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)?;
        }
        bind(&socket, ifindex, libc::ETH_P_ALL as u16)?;
        let none = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let mut iovecs = vec![none; batch * parts].into_boxed_slice();
        let mut controls = vec![[0; CONTROL]; batch].into_boxed_slice();
        let message = |(iovec, control): (&mut [libc::iovec], &mut [u64; CONTROL])| {
            // SAFETY: zero is a valid header.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            message.msg_hdr.msg_iov = iovec.as_mut_ptr();
            message.msg_hdr.msg_iovlen = parts;
            message.msg_hdr.msg_control = control.as_mut_ptr().cast();
            message
        };
        let messages = iovecs.chunks_exact_mut(parts).zip(&mut controls).map(message).collect();
        Ok(Receiver { socket, parts, iovecs, _controls: controls, messages, dropped: 0 })
    }

    /// Receives frames with their marks from now on.
    pub fn receive_marks(&self) -> io::Result<()> {
        set(self.socket.as_fd(), libc::SOL_SOCKET, SO_RCVMARK, &1i32)
    }

    /// Most frames received at once.
    pub fn batch(&self) -> usize {
        self.messages.len()
    }

    /// Sets the memory of part `part` of frame `frame`.
    ///
    /// # Safety
    /// The memory stays valid for writes until this is called again for the same part. No other code reads or
    /// writes it during a call of [`Receiver::receive`] that includes the frame.
    pub unsafe fn set_part(&mut self, frame: usize, part: usize, memory: *mut u8, len: usize) {
        self.iovecs[frame * self.parts + part] = libc::iovec { iov_base: memory.cast(), iov_len: len };
    }

    /// Receives into the memory of the first `count` frames at most. Returns the number of frames that came.
    pub fn receive(&mut self, count: usize) -> io::Result<usize> {
        let count = count.min(self.messages.len());
        for message in &mut self.messages[..count] {
            message.msg_hdr.msg_controllen = size_of::<[u64; CONTROL]>() as _;
        }
        let (fd, flags) = (self.socket.as_raw_fd(), libc::MSG_DONTWAIT);
        let none = std::ptr::null_mut();
        // SAFETY: `messages` is valid for `count` entries, which point to `iovecs` and `_controls` (boxed:
        // they have not moved). The memory of the parts is valid for writes (`set_part`).
        let got = unsafe { libc::recvmmsg(fd, self.messages.as_mut_ptr(), count as u32, flags as _, none) };
        match check(got) {
            Ok(got) => Ok(got as usize),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Describes a frame that the last call received. The kernel stamps with CLOCK_REALTIME. `realtime` is
    /// its lead over CLOCK_MONOTONIC, which is `now`.
    pub fn received(&self, frame: usize, realtime: i64, now: Time) -> Received {
        let message = &self.messages[frame];
        let mut received = Received {
            len: message.msg_len as usize,
            cut: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            ..Received::default()
        };
        // SAFETY: the header describes the control data that the kernel wrote into `_controls`.
        let mut control = unsafe { libc::CMSG_FIRSTHDR(&message.msg_hdr) };
        // SAFETY: the pointer is null or a control message that lies wholly in the control data.
        while let Some(head) = unsafe { control.as_ref() } {
            // SAFETY: the data follows its head. Level and type determine its structure.
            let data = unsafe { libc::CMSG_DATA(control) };
            match (head.cmsg_level, head.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    // SAFETY: the data has this structure; it need not be aligned.
                    let at = unsafe { data.cast::<libc::timespec>().read_unaligned() };
                    let ns = at.tv_sec as i64 * 1_000_000_000 + at.tv_nsec as i64 - realtime;
                    let credible = (0..CREDIBLE).contains(&(now.as_nanos() as i64 - ns));
                    received.at = u64::try_from(ns).ok().filter(|_| credible).map(Time::from_nanos);
                }
                (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                    // SAFETY: the data has this structure.
                    let data = unsafe { data.cast::<libc::tpacket_auxdata>().read_unaligned() };
                    received.tag = tag(&data);
                }
                (libc::SOL_SOCKET, libc::SO_MARK) => {
                    // SAFETY: the data has this structure.
                    received.mark = unsafe { data.cast::<u32>().read_unaligned() };
                }
                _ => {}
            }
            // SAFETY: as for the first message.
            control = unsafe { libc::CMSG_NXTHDR(&message.msg_hdr, control) };
        }
        received
    }

    /// Frames that the kernel dropped since the start, because they were not received in time.
    pub fn dropped(&mut self) -> u64 {
        // Reading the counts sets them to zero.
        let mut counts = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut len = size_of_val(&counts) as libc::socklen_t;
        // SAFETY: `counts` is valid for writes of `len` bytes.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut counts).cast(),
                &mut len,
            )
        };
        if result == 0 {
            self.dropped += u64::from(counts.tp_drops);
        }
        self.dropped
    }
}

fn tag(data: &libc::tpacket_auxdata) -> Option<(u16, u16)> {
    let has = |flag| data.tp_status & flag != 0;
    let protocol =
        if has(libc::TP_STATUS_VLAN_TPID_VALID) { data.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
    has(libc::TP_STATUS_VLAN_VALID).then_some((protocol, data.tp_vlan_tci))
}

/// The time, and the lead of CLOCK_REALTIME over it in nanoseconds.
pub fn clocks() -> (Time, i64) {
    let now = clock::now();
    (now, clock::realtime() as i64 - now.as_nanos() as i64)
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

const _: () = assert!(Vnet::LEN == 10);
