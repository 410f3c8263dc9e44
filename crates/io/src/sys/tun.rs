//! TUN devices: interfaces whose IP packets a process reads and writes.

use super::check;
use rustix::fs::{open, Mode, OFlags};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Creates a TUN device of this name in the network namespace of the calling thread. Each read returns a
/// packet sent through it, and each write makes one come in on it; neither waits. The device disappears with
/// the descriptor. Needs CAP_NET_ADMIN in the user namespace that the network namespace belongs to.
pub fn create(name: &str) -> io::Result<OwnedFd> {
    if name.is_empty() || name.len() >= libc::IFNAMSIZ {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let device = open("/dev/net/tun", flags, Mode::empty())?;
    // SAFETY: zero is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the request is valid for reads and writes, and its name ends within it.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF as _, &mut request) })?;
    Ok(device)
}
