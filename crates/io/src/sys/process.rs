//! Processes: fork, pidfd, signals as a descriptor, capabilities.

use super::{check, check_fd};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A child process.
#[derive(Debug)]
pub struct Child {
    /// Its number.
    pub pid: i32,
    handle: OwnedFd,
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
}

impl Child {
    /// Forks and runs `body` in the child, which exits with the code that `body` returns and never
    /// comes back. The child gets SIGTERM when the calling thread ends.
    ///
    /// An error if this process has more than one thread: a lock that another thread held would
    /// stay held in the child for ever.
    pub fn fork(body: impl FnOnce() -> i32) -> io::Result<Child> {
        if threads()? != 1 {
            return Err(io::Error::other("the process has several threads: it cannot fork safely"));
        }
        let parent = std::process::id();
        // SAFETY: there is one thread, so the child has every lock free and may run any code.
        match check(unsafe { libc::fork() })? {
            0 => {
                let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    end_with_parent(parent);
                    body()
                }));
                // SAFETY: ends the child without running what the parent registered for its exit.
                unsafe { libc::_exit(code.unwrap_or(101)) }
            }
            pid => {
                // SAFETY: no pointers; the result is a new descriptor.
                let handle = unsafe { check_fd(libc::syscall(libc::SYS_pidfd_open, pid, 0) as i32) };
                Ok(Child { pid, handle: handle? })
            }
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        let fd = self.handle.as_raw_fd();
        // SAFETY: no information is given along.
        let result =
            unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, std::ptr::null::<u8>(), 0) };
        check(result as i32).map(drop)
    }

    /// How it ended, `None` if it runs (or is stopped). Reaps it: ask no more after an answer.
    pub fn ended(&self) -> io::Result<Option<Ended>> {
        let mut status = 0;
        // SAFETY: `status` is valid for writes.
        match check(unsafe { libc::waitpid(self.pid, &mut status, libc::WNOHANG) })? {
            0 => Ok(None),
            _ if libc::WIFSIGNALED(status) => Ok(Some(Ended::Signalled(libc::WTERMSIG(status)))),
            _ => Ok(Some(Ended::Exited(libc::WEXITSTATUS(status)))),
        }
    }
}

impl AsFd for Child {
    /// Readable when the child has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

fn end_with_parent(parent: u32) {
    // SAFETY: sets a number of the calling process.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) };
    // It may have ended before that.
    if parent_id() != parent {
        // SAFETY: no pointers.
        unsafe { libc::raise(libc::SIGTERM) };
    }
}

/// Number of the parent process.
pub fn parent_id() -> u32 {
    // SAFETY: always succeeds.
    unsafe { libc::getppid() as u32 }
}

/// Threads of this process.
pub fn threads() -> io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

/// Signals that arrive as bytes on a descriptor instead of interrupting.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// Takes over SIGTERM, SIGINT and SIGHUP of this process.
    pub fn new() -> io::Result<Signals> {
        Signals::of(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP])
    }

    /// Takes over SIGTERM and SIGINT of this process alone: what else is held back stays so.
    pub fn ends_only() -> io::Result<Signals> {
        Signals::of(&[libc::SIGTERM, libc::SIGINT])
    }

    fn of(signals: &[i32]) -> io::Result<Signals> {
        // SAFETY: a signal set is an array of bits; it is emptied before use.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: `set` is valid for writes, and the signals exist.
        unsafe {
            libc::sigemptyset(&mut set);
            for signal in signals {
                libc::sigaddset(&mut set, *signal);
            }
        }
        // SAFETY: `set` is valid; the old mask is not asked for.
        let result = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
        if result != 0 {
            return Err(io::Error::from_raw_os_error(result));
        }
        // SAFETY: `set` is valid; the result is a new descriptor.
        let fd = unsafe { check_fd(libc::signalfd(-1, &set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC)) }?;
        Ok(Signals { fd })
    }

    /// Reads what arrived: true if it is to end. SIGHUP changes nothing.
    pub fn ends(&self) -> bool {
        while let Some(signal) = self.next() {
            if signal != libc::SIGHUP {
                return true;
            }
            tracing::info!("SIGHUP: nothing to do (it is reserved for reading the configuration again)");
        }
        false
    }

    fn next(&self) -> Option<i32> {
        // SAFETY: zero is a valid value of this structure of integers.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of_val(&info);
        // SAFETY: `info` is valid for writes of `size` bytes.
        let got = unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size) };
        (got == size as isize).then_some(info.ssi_signo as i32)
    }
}

impl AsFd for Signals {
    /// Readable when a signal arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The kernel's version: major and minor.
pub fn kernel() -> Option<(u32, u32)> {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Effective capabilities of this process, as bits.
pub fn capabilities() -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    line.and_then(|l| u64::from_str_radix(l.trim(), 16).ok()).ok_or(io::ErrorKind::InvalidData.into())
}

/// Identifies the network namespace, `None` if it is the one that the machine started with.
pub fn namespace() -> io::Result<Option<u64>> {
    use std::os::unix::fs::MetadataExt;
    let here = std::fs::metadata("/proc/self/ns/net")?.ino();
    match std::fs::metadata("/proc/1/ns/net") {
        Ok(first) if first.ino() == here => Ok(None),
        _ => Ok(Some(here)),
    }
}

/// Memory that this process may lock, in bytes.
pub fn lockable_memory() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writes. The limit exists, so this does not fail.
    unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) };
    limit.rlim_cur
}

/// Locks all memory that is mapped now: a page fault would delay releases.
pub fn lock_memory() -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT) }).map(drop)
}
