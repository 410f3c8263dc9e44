//! System calls, so that the rest of the crate is safe code: through `rustix`, or wrapped here where it lacks
//! them.

pub mod clock;
pub mod epoll;
pub mod ethtool;
pub mod inherit;
pub mod letters;
pub mod link;
pub mod memory;
pub mod mmap;
pub mod namespace;
pub mod owner;
pub mod packet;
pub mod pod;
pub mod privileges;
pub mod process;
pub mod sandbox;
pub mod sched;
#[cfg(test)]
pub(crate) mod testing;
pub mod ticks;
pub mod tun;

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// Converts the result of a call that returns -1 and sets `errno`.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

/// Converts the result of a call that returns a new descriptor, like [`check`].
///
/// # Safety
/// `result` comes from such a call, and the descriptor has no owner yet.
pub(crate) unsafe fn check_fd(result: RawFd) -> io::Result<OwnedFd> {
    let fd = check(result)?;
    // SAFETY: the caller guarantees a new descriptor without an owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
