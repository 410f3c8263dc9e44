//! System calls without a safe wrapper: TCP_INFO, integer socket options, `recvmmsg`.

use std::io;
use std::mem::{size_of, MaybeUninit};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Fields used from the kernel's `struct tcp_info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    pub backoffs: u8,
    pub mss: u32,
    pub unacked: u32,
    pub srtt_us: u32,
    pub cwnd: u32,
    pub total_retrans: u32,
    pub pacing_bytes_per_s: u64,
    pub bytes_acked: u64,
    /// Number of segments sent, those without data included.
    pub segs_out: u32,
    /// Number of segments received, those without data included.
    pub segs_in: u32,
    pub min_rtt_us: u32,
    pub peer_window: u32,
    /// Number of time-outs, or `None` if the kernel does not count them (before Linux 6.7).
    pub total_rto: Option<u16>,
}

impl TcpInfo {
    /// Parses a `struct tcp_info` (include/uapi/linux/tcp.h). Its length tells which fields this kernel has.
    /// Missing fields read as zero.
    fn parse(raw: &[u8]) -> TcpInfo {
        let at = |offset: usize, len: usize| raw.get(offset..offset + len);
        let u32_at = |o| at(o, 4).map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
        let u64_at = |o| at(o, 8).map_or(0, |b| u64::from_ne_bytes(b.try_into().unwrap_or_default()));
        TcpInfo {
            backoffs: at(2, 1).map_or(0, |b| b[0]),
            mss: u32_at(16),
            unacked: u32_at(24),
            srtt_us: u32_at(68),
            cwnd: u32_at(80),
            total_retrans: u32_at(100),
            pacing_bytes_per_s: u64_at(104),
            bytes_acked: u64_at(120),
            segs_out: u32_at(136),
            segs_in: u32_at(140),
            min_rtt_us: u32_at(148),
            peer_window: u32_at(228),
            total_rto: at(240, 2).map(|b| u16::from_ne_bytes([b[0], b[1]])),
        }
    }
}

/// Reads the kernel's state of a TCP socket.
pub fn tcp_info(fd: BorrowedFd<'_>) -> io::Result<TcpInfo> {
    let mut raw = [0u8; 512];
    let mut len = raw.len() as libc::socklen_t;
    // SAFETY: `raw` and `len` live through the call. `len` is the length of `raw`, and the kernel writes at
    // most that many bytes.
    let rc = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            raw.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(TcpInfo::parse(&raw[..len as usize]))
}

/// Sets an integer option.
pub fn set_option(fd: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the pointer is to `value`, an `int` as these options take, and the length is its own.
    let rc = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Sets the codepoint (DSCP) of a socket's packets. Zero is every socket's own.
pub fn set_codepoint(socket: &impl AsFd, local: SocketAddr, dscp: u8) -> io::Result<()> {
    let (level, name) = match local {
        _ if dscp == 0 => return Ok(()),
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    };
    set_option(socket.as_fd(), level, name, i32::from(dscp << 2))
}

/// Messages per call of [`Batch::receive`].
const MESSAGES: usize = 32;
/// Bytes kept of each message.
pub const KEPT: usize = 64;

/// A received message: its first bytes and the kernel's timestamp (CLOCK_REALTIME, nanoseconds).
pub struct Message<'a> {
    pub bytes: &'a [u8],
    pub stamp: Option<i128>,
}

/// Space for a batch of messages with their timestamps.
pub struct Batch {
    data: Box<[[u8; KEPT]; MESSAGES]>,
    // The type `u64` provides the alignment that control messages need.
    control: Box<[[u64; 8]; MESSAGES]>,
    headers: Box<[MaybeUninit<libc::mmsghdr>; MESSAGES]>,
    vectors: Box<[libc::iovec; MESSAGES]>,
    count: usize,
}

impl Batch {
    pub fn new() -> Batch {
        let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Batch {
            data: Box::new([[0; KEPT]; MESSAGES]),
            control: Box::new([[0; 8]; MESSAGES]),
            headers: Box::new([const { MaybeUninit::zeroed() }; MESSAGES]),
            vectors: Box::new([empty; MESSAGES]),
            count: 0,
        }
    }

    /// Waits for one message and also takes the others that are there. A message longer than [`KEPT`] is
    /// truncated.
    pub fn receive(&mut self, fd: BorrowedFd<'_>) -> io::Result<usize> {
        self.count = 0;
        for i in 0..MESSAGES {
            self.vectors[i] = libc::iovec { iov_base: self.data[i].as_mut_ptr().cast(), iov_len: KEPT };
            // SAFETY: all-zero bytes are a valid `mmsghdr`: integers and null pointers.
            let mut header: libc::mmsghdr = unsafe { MaybeUninit::zeroed().assume_init() };
            header.msg_hdr.msg_iov = &raw mut self.vectors[i];
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = self.control[i].as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = size_of::<[u64; 8]>();
            self.headers[i].write(header);
        }
        // SAFETY: all headers were written above. Each points at buffers of `self` with their true lengths.
        // The buffers are boxed and exclusively borrowed during the call.
        let n = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                self.headers.as_mut_ptr().cast(),
                MESSAGES as u32,
                libc::MSG_WAITFORONE,
                std::ptr::null_mut(),
            )
        };
        self.count = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
        Ok(self.count)
    }

    /// Returns the messages of the last call.
    pub fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        (0..self.count).map(|i| {
            // SAFETY: `receive` wrote the first `count` headers, and their buffers belong to `self`.
            let header = unsafe { self.headers[i].assume_init_ref() };
            let len = (header.msg_len as usize).min(KEPT);
            Message { bytes: &self.data[i][..len], stamp: stamp(&header.msg_hdr) }
        })
    }
}

/// Returns the SCM_TIMESTAMPNS timestamp of a received message.
fn stamp(header: &libc::msghdr) -> Option<i128> {
    // SAFETY: `recvmmsg` filled `header`. Its control buffer is aligned, alive and as long as
    // `msg_controllen` says, as these macros require.
    unsafe {
        let mut cmsg = libc::CMSG_FIRSTHDR(header);
        while let Some(c) = cmsg.as_ref() {
            if c.cmsg_level == libc::SOL_SOCKET && c.cmsg_type == libc::SCM_TIMESTAMPNS {
                let t = libc::CMSG_DATA(cmsg).cast::<libc::timespec>().read_unaligned();
                return Some(i128::from(t.tv_sec) * 1_000_000_000 + i128::from(t.tv_nsec));
            }
            cmsg = libc::CMSG_NXTHDR(header, cmsg);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    #[test]
    fn older_kernels_have_fewer_fields() {
        let mut raw = [0u8; 256];
        raw[100..104].copy_from_slice(&7u32.to_ne_bytes());
        raw[240..242].copy_from_slice(&3u16.to_ne_bytes());
        assert_eq!(TcpInfo::parse(&raw).total_rto, Some(3));
        assert_eq!(TcpInfo::parse(&raw[..232]).total_rto, None);
        assert_eq!(TcpInfo::parse(&raw[..232]).total_retrans, 7);
    }

    #[test]
    fn a_connection_over_loopback() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut a = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_b, _) = listener.accept().unwrap();
        a.write_all(&[0; 1000]).unwrap();
        // ACKs on loopback are immediate but asynchronous.
        for _ in 0..100 {
            if tcp_info(a.as_fd()).unwrap().bytes_acked >= 1000 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let info = tcp_info(a.as_fd()).unwrap();
        // The kernel counts the SYN as a byte.
        assert_eq!(info.bytes_acked, 1001);
        assert!(info.cwnd >= 1 && info.srtt_us > 0 && info.mss > 500);
    }
}
