//! Descriptors that outlive the execution of another program in the same process.

use super::check;
use rustix::io::{fcntl_getfd, fcntl_setfd, FdFlags};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Descriptors that the next program of this process gets. All others are closed.
#[derive(Debug, Default)]
pub struct Heir(Vec<RawFd>);

impl Heir {
    /// Adds a descriptor and returns its number, by which the next program adopts it.
    pub fn gets(&mut self, fd: impl AsFd) -> RawFd {
        let number = fd.as_fd().as_raw_fd();
        self.0.push(number);
        number
    }

    /// Lets the next program have the descriptors, or no longer.
    pub fn keep(&self, kept: bool) -> io::Result<()> {
        let flags = if kept { FdFlags::empty() } else { FdFlags::CLOEXEC };
        self.0.iter().try_for_each(|number| {
            // SAFETY: their owners keep them open meanwhile: this process executes a program or goes on.
            let fd = unsafe { BorrowedFd::borrow_raw(*number) };
            Ok(fcntl_setfd(fd, flags)?)
        })
    }
}

/// Takes over a descriptor that the program before left open. Each is adopted once.
pub fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // SAFETY: the call has no requirements; it fails for a number that is not open.
    check(unsafe { libc::fcntl(number, libc::F_GETFD) })?;
    // SAFETY: it is open, and nothing of this program knows it: it was opened by the program before.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&fd, fcntl_getfd(&fd)? | FdFlags::CLOEXEC)?;
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::IntoRawFd;

    #[test]
    fn what_is_kept_is_adopted_and_closed_at_the_next_execution() {
        let (ours, _theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let mut heir = Heir::default();
        let number = heir.gets(&ours);
        let closes = |fd: &OwnedFd| fcntl_getfd(fd).unwrap().contains(FdFlags::CLOEXEC);
        assert!(closes(&ours));
        heir.keep(true).unwrap();
        assert!(!closes(&ours));
        heir.keep(false).unwrap();
        assert!(closes(&ours));
        heir.keep(true).unwrap();
        let adopted = adopt(ours.into_raw_fd()).unwrap();
        assert!(adopted.as_raw_fd() == number && closes(&adopted));
        assert!(adopt(-1).is_err() && adopt(1 << 20).is_err());
    }
}
