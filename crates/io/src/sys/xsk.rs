//! AF_XDP sockets: the calls alone. Rings are in [`crate::port::ring`].

use super::mmap::Mapping;
use super::pod::Pod;
use super::{check, check_fd, check_size};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A descriptor of a receive or transmit ring (`struct xdp_desc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Desc {
    /// Where the frame starts in the UMEM.
    pub addr: u64,
    /// Its length.
    pub len: u32,
    /// Options.
    pub options: u32,
}
// SAFETY: integers without padding.
unsafe impl Pod for Desc {}

/// One of the four rings of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Chunks for the kernel to receive into.
    Fill,
    /// Chunks that the kernel has transmitted.
    Completion,
    /// Frames received.
    Receive,
    /// Frames to transmit.
    Transmit,
}

/// Where the parts of a ring lie in its mapping (`struct xdp_ring_offset`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Offset of the producer's index.
    pub producer: usize,
    /// Offset of the consumer's index.
    pub consumer: usize,
    /// Offset of the flags.
    pub flags: usize,
    /// Offset of the entries.
    pub entries: usize,
}

/// What the kernel could not deliver to a socket (`struct xdp_statistics`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Dropped for other reasons, such as a frame longer than a chunk.
    pub dropped: u64,
    /// The receive ring was full.
    pub ring_full: u64,
    /// The fill ring was empty.
    pub fill_empty: u64,
    /// Transmit descriptors that the kernel refused.
    pub invalid: u64,
}

/// How a socket is bound.
#[derive(Clone, Copy, Debug)]
pub enum Bind<'a> {
    /// The first socket of a UMEM, with zero copy or not.
    First {
        /// The device reads and writes the chunks itself.
        zero_copy: bool,
    },
    /// A further socket on the UMEM of `first`. Mode and wake-up flag come from there: giving them
    /// again is refused.
    Sharing(BorrowedFd<'a>),
}

/// Linux 6.18: how many frames one `sendto` sends in copy mode. 32 without.
const XDP_MAX_TX_SKB_BUDGET: i32 = 9;

/// A socket.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
}

impl Socket {
    /// A new socket, bound to nothing.
    pub fn new() -> io::Result<Socket> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers; the result is a new descriptor.
        let fd = unsafe { check_fd(libc::socket(libc::AF_XDP, kind, 0)) }?;
        Ok(Socket { fd })
    }

    fn set<T>(&self, option: i32, value: &T) -> io::Result<()> {
        let (value, len) = ((value as *const T).cast(), size_of::<T>() as libc::socklen_t);
        // SAFETY: `value` is valid for reads of `len` bytes.
        check(unsafe { libc::setsockopt(self.fd.as_raw_fd(), libc::SOL_XDP, option, value, len) }).map(drop)
    }

    /// Fills `value` as far as the kernel knows it.
    fn get<T>(&self, option: i32, value: &mut T) -> io::Result<usize> {
        let mut len = size_of::<T>() as libc::socklen_t;
        let to = (value as *mut T).cast();
        // SAFETY: `to` is valid for writes of `len` bytes; every caller passes a structure of
        // integers, for which any bytes are valid.
        check(unsafe { libc::getsockopt(self.fd.as_raw_fd(), libc::SOL_XDP, option, to, &mut len) })?;
        Ok(len as usize)
    }

    /// Registers `memory` as the UMEM that this socket and those sharing with it use.
    ///
    /// From here on the kernel writes chunks that stand in a fill ring. They must not be touched
    /// until the receive ring returns them.
    pub fn register(&self, memory: &mut [u8], chunk_size: u32) -> io::Result<()> {
        // SAFETY: zero is a valid value: no headroom, no flags.
        let mut umem: libc::xdp_umem_reg = unsafe { std::mem::zeroed() };
        umem.addr = memory.as_mut_ptr() as u64;
        umem.len = memory.len() as u64;
        umem.chunk_size = chunk_size;
        self.set(libc::XDP_UMEM_REG, &umem)
    }

    /// Makes one of the rings with room for `size` entries (a power of two) and maps it.
    pub fn ring(&self, which: Which, size: u32) -> io::Result<(Mapping, Layout)> {
        // SAFETY: zero is a valid value of this structure of integers.
        let mut all: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
        let (option, page, entry) = match which {
            Which::Fill => (libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_PGOFF_FILL_RING as i64, 8),
            Which::Completion => {
                (libc::XDP_UMEM_COMPLETION_RING, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64, 8)
            }
            Which::Receive => (libc::XDP_RX_RING, libc::XDP_PGOFF_RX_RING, size_of::<Desc>()),
            Which::Transmit => (libc::XDP_TX_RING, libc::XDP_PGOFF_TX_RING, size_of::<Desc>()),
        };
        self.set(option, &size)?;
        if self.get(libc::XDP_MMAP_OFFSETS, &mut all)? != size_of_val(&all) {
            return Err(io::Error::other("the kernel's rings have no flags: it is older than 5.4"));
        }
        let at = match which {
            Which::Fill => all.fr,
            Which::Completion => all.cr,
            Which::Receive => all.rx,
            Which::Transmit => all.tx,
        };
        let layout = Layout {
            producer: at.producer as usize,
            consumer: at.consumer as usize,
            flags: at.flags as usize,
            entries: at.desc as usize,
        };
        let len = layout.entries + size as usize * entry;
        Ok((Mapping::of_fd(self.fd.as_fd(), len, page, true)?, layout))
    }

    /// Binds to a queue of a device. Rings must have been made.
    pub fn bind(&self, ifindex: u32, queue: u32, how: Bind<'_>) -> io::Result<()> {
        // SAFETY: zero is a valid address.
        let mut address: libc::sockaddr_xdp = unsafe { std::mem::zeroed() };
        address.sxdp_family = libc::AF_XDP as u16;
        address.sxdp_ifindex = ifindex;
        address.sxdp_queue_id = queue;
        address.sxdp_flags = match how {
            Bind::First { zero_copy: true } => libc::XDP_ZEROCOPY | libc::XDP_USE_NEED_WAKEUP,
            Bind::First { zero_copy: false } => libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP,
            Bind::Sharing(first) => {
                address.sxdp_shared_umem_fd = first.as_raw_fd() as u32;
                libc::XDP_SHARED_UMEM
            }
        };
        let len = size_of_val(&address) as libc::socklen_t;
        // SAFETY: `address` is valid for reads of `len` bytes.
        check(unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), len) }).map(drop)
    }

    /// Lets one kick send up to `frames` frames. An error before Linux 6.18.
    pub fn set_budget(&self, frames: u32) -> io::Result<()> {
        self.set(XDP_MAX_TX_SKB_BUDGET, &frames)
    }

    /// Has the kernel look at the transmit ring.
    pub fn kick(&self) -> io::Result<()> {
        let fd = self.fd.as_raw_fd();
        // SAFETY: no data and no address.
        let sent = unsafe { libc::sendto(fd, std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0) };
        check_size(sent).map(drop)
    }

    /// Has the kernel look at the fill ring.
    pub fn wake_receive(&self) -> io::Result<()> {
        let fd = self.fd.as_raw_fd();
        let none = std::ptr::null_mut();
        // SAFETY: no buffer and no address.
        let got = unsafe {
            libc::recvfrom(fd, none, 0, libc::MSG_DONTWAIT, std::ptr::null_mut(), std::ptr::null_mut())
        };
        check_size(got).map(drop)
    }

    /// What the kernel could not deliver so far.
    pub fn losses(&self) -> io::Result<Losses> {
        // SAFETY: zero is a valid value of this structure of integers.
        let mut s: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        self.get(libc::XDP_STATISTICS, &mut s)?;
        Ok(Losses {
            dropped: s.rx_dropped,
            ring_full: s.rx_ring_full,
            fill_empty: s.rx_fill_ring_empty_descs,
            invalid: s.tx_invalid_descs,
        })
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
