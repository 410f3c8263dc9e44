//! Processes: fork, pidfd, signals as a descriptor, capabilities.

use super::inherit::Heir;
use super::{check, check_fd};
use rustix::process::{self, Pid, PidfdFlags, Resource, Signal, WaitOptions};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

/// A child process.
#[derive(Debug)]
pub struct Child {
    /// Process number.
    pub pid: i32,
    handle: OwnedFd,
}

/// End of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Exit with this code.
    Exited(i32),
    /// End by this signal.
    Signalled(i32),
}

impl Child {
    /// Forks and runs `body` in the child, which exits with the code that `body` returns and never comes
    /// back. The child gets SIGTERM when the calling thread ends.
    ///
    /// # Errors
    /// Fails if this process has threads beside this one and those of [`spawn_beside_forks`]. A lock that
    /// another thread held would stay held in the child for ever.
    pub fn fork(body: impl FnOnce() -> i32) -> io::Result<Child> {
        if threads()? != 1 + BESIDE_FORKS.load(Ordering::Relaxed) {
            return Err(io::Error::other("the process has several threads: it cannot fork safely"));
        }
        let parent = std::process::id();
        // SAFETY: no other thread takes a lock, so all locks are free in the child and it may run any code.
        match check(unsafe { libc::fork() })? {
            0 => {
                BESIDE_FORKS.store(0, Ordering::Relaxed);
                let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    end_with_parent(parent);
                    body()
                }));
                end_now(code.unwrap_or(101))
            }
            pid => {
                let number = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
                let handle = process::pidfd_open(number, PidfdFlags::empty());
                // A child without a handle could not be watched.
                Ok(handle.map(|handle| Child { pid, handle }).inspect_err(|_| end(pid))?)
            }
        }
    }

    /// Takes over a child that the program before has forked in this process.
    pub fn adopt(pid: i32) -> io::Result<Child> {
        let number = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Child { pid, handle: process::pidfd_open(number, PidfdFlags::empty())? })
    }

    /// Sends the child a signal.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(process::pidfd_send_signal(&self.handle, signal)?)
    }

    /// Kills the child and waits until it is gone, whatever else fails.
    pub fn end(self) {
        end(self.pid);
    }

    /// Returns the child's end, `None` while it runs or is stopped. Reaps the child: do not call again after
    /// an end.
    pub fn ended(&self) -> io::Result<Option<Ended>> {
        let ended = process::waitpid(Pid::from_raw(self.pid), WaitOptions::NOHANG)?;
        Ok(ended.map(|(_, status)| match status.terminating_signal() {
            Some(signal) => Ended::Signalled(signal),
            None => Ended::Exited(status.exit_status().unwrap_or_default()),
        }))
    }
}

impl AsFd for Child {
    /// Readable when the child has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

/// Execution of another program with the arguments and the environment of this one.
#[derive(Debug)]
pub struct Execution(Command);

impl Execution {
    /// Prepares the execution of the program at `path`.
    pub fn again(path: &Path) -> Execution {
        let (mut command, mut args) = (Command::new(path), std::env::args_os());
        args.next().into_iter().for_each(|name| _ = command.arg0(name));
        command.args(args);
        Execution(command)
    }

    /// Sets a variable of the environment.
    pub fn with(mut self, name: &str, value: String) -> Execution {
        self.0.env(name, value);
        self
    }

    /// Executes the program in this process, which ends all other threads. Returns only an error.
    pub fn execute(mut self) -> io::Error {
        self.0.exec()
    }

    /// Executes the program in a forked child, as an ordinary process whose output goes to a file. It gets
    /// the descriptor `kept`. Returns only the code to exit with, after an error.
    pub fn rehearse(mut self, output: &File, kept: RawFd) -> i32 {
        let prepared = (|| {
            set_signal_mask(&signal_set(Some(&[])))?;
            process::setpriority_process(None, 0)?;
            let mut most = process::getrlimit(Resource::Fsize);
            most.current = Some(MOST_OUTPUT);
            process::setrlimit(Resource::Fsize, most)?;
            let mut heir = Heir::default();
            // SAFETY: the caller has it open.
            heir.gets(unsafe { BorrowedFd::borrow_raw(kept) });
            heir.keep(true)?;
            self.0.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
            Ok(())
        })();
        let error: io::Error = prepared.map_or_else(|error| error, |()| self.0.exec());
        // Without it the code tells.
        let _ = (&*output).write_all(error.to_string().as_bytes());
        127
    }
}

/// Most bytes that a program may write in a rehearsal.
const MOST_OUTPUT: u64 = 1 << 20;

/// Number of threads of [`spawn_beside_forks`].
static BESIDE_FORKS: AtomicUsize = AtomicUsize::new(0);

/// Runs `body` for the life of the process in a thread that takes no signals. [`Child::fork`] forks beside
/// it, so `body` may take no lock but the allocator's, which libc releases in the child.
pub fn spawn_beside_forks(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let (begins, begun) = std::sync::mpsc::channel();
    let run = move || {
        // The receiver still waits. From here on the thread holds none of the locks that std takes to start
        // it.
        let _ = begins.send(());
        drop(begins);
        body();
    };
    let mask = block_signals(&signal_set(None))?;
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    set_signal_mask(&mask)?;
    started?;
    BESIDE_FORKS.fetch_add(1, Ordering::Relaxed);
    // An error means that the thread has ended.
    let _ = begun.recv();
    Ok(())
}

/// Ignores the signals that writing raises: `SIGXFSZ` beyond a limit of file sizes, and `SIGTTOU` for the
/// terminal of another process group. The runtime of Rust ignores `SIGPIPE`.
pub fn ignore_signals_of_output() {
    for signal in [libc::SIGXFSZ, libc::SIGTTOU] {
        // SAFETY: no handler is installed, and the signals exist.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Makes a set of these signals, or of all.
fn signal_set(signals: Option<&[i32]>) -> libc::sigset_t {
    // SAFETY: a signal set is an array of bits; it is filled before use.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is valid for writes, and the signals exist.
    unsafe {
        match signals {
            None => _ = libc::sigfillset(&mut set),
            Some(signals) => {
                libc::sigemptyset(&mut set);
                signals.iter().for_each(|signal| _ = libc::sigaddset(&mut set, *signal));
            }
        }
    }
    set
}

/// Blocks signals in this thread, and returns its previous mask.
fn block_signals(set: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut before = signal_set(Some(&[]));
    // SAFETY: both sets are valid.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set, &mut before) } {
        0 => Ok(before),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Restores a previous signal mask of this thread.
fn set_signal_mask(mask: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: the set is valid, and the old one is not requested.
    match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Ends this process with all its threads, without running exit handlers.
pub fn end_now(code: i32) -> ! {
    // SAFETY: it has no requirements.
    unsafe { libc::_exit(code) }
}

/// Kills a child and waits until it is gone.
fn end(pid: i32) {
    let Some(pid) = Pid::from_raw(pid) else { return };
    // The number is that of a child not yet reaped, so neither call fails.
    let _ = process::kill_process(pid, Signal::KILL);
    let _ = process::waitpid(Some(pid), WaitOptions::empty());
}

fn end_with_parent(parent: u32) {
    // Neither call fails: the signal exists, and a process may signal itself.
    let _ = process::set_parent_process_death_signal(Some(Signal::TERM));
    // The parent may have ended before that.
    if parent_id() != parent {
        let _ = process::kill_process(process::getpid(), Signal::TERM);
    }
}

/// Notice that this process gets of its parent's end: this signal, if the parent is still this one.
#[derive(Clone, Copy, Debug)]
pub struct EndOfParent {
    signal: Option<Signal>,
    parent: u32,
}

/// Returns the notice that this process gets of its parent's end.
pub fn end_of_parent() -> io::Result<EndOfParent> {
    Ok(EndOfParent { signal: process::parent_process_death_signal()?, parent: parent_id() })
}

/// Makes this process get this notice of its parent's end, which may have come already.
pub fn end_with(ends: EndOfParent) -> io::Result<()> {
    process::set_parent_process_death_signal(ends.signal)?;
    match ends.signal {
        Some(signal) if parent_id() != ends.parent => Ok(process::kill_process(process::getpid(), signal)?),
        _ => Ok(()),
    }
}

/// Number of the parent process.
pub fn parent_id() -> u32 {
    process::getppid().map_or(0, |pid| pid.as_raw_pid() as u32)
}

/// Number of threads of this process.
pub fn threads() -> io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

/// Signals that arrive as bytes on a descriptor instead of interrupting.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
}

/// Signals that have arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// SIGTERM or SIGINT: the process is to end.
    pub ends: bool,
    /// SIGHUP.
    pub hangup: bool,
}

impl Signals {
    /// Takes over SIGTERM, SIGINT and SIGHUP of this process.
    pub fn new() -> io::Result<Signals> {
        Signals::of(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP])
    }

    /// Takes over only SIGTERM and SIGINT of this process: other blocked signals stay blocked.
    pub fn ends_only() -> io::Result<Signals> {
        Signals::of(&[libc::SIGTERM, libc::SIGINT])
    }

    fn of(signals: &[i32]) -> io::Result<Signals> {
        let set = signal_set(Some(signals));
        block_signals(&set)?;
        // SAFETY: `set` is valid, and the result is a new descriptor.
        let fd = unsafe { check_fd(libc::signalfd(-1, &set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC)) }?;
        Ok(Signals { fd })
    }

    /// Reads the signals that arrived.
    pub fn heard(&self) -> Heard {
        let mut heard = Heard::default();
        while let Some(signal) = self.next() {
            match signal {
                libc::SIGHUP => heard.hangup = true,
                _ => heard.ends = true,
            }
        }
        heard
    }

    fn next(&self) -> Option<i32> {
        let mut info = [0; size_of::<libc::signalfd_siginfo>()];
        let got = rustix::io::read(&self.fd, &mut info).ok()?;
        // The first field is the signal's number (`ssi_signo`).
        (got == info.len()).then(|| info.first_chunk().map(|number| i32::from_ne_bytes(*number)))?
    }
}

impl AsFd for Signals {
    /// Readable when a signal arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Version of the kernel: major and minor.
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

/// Setting that only the network namespace has that the kernel started with.
const FIRST_ALONE: &str = "/proc/sys/net/core/netdev_budget";

/// Number of the network namespace, `None` for the one that the kernel started with. A service that may not
/// look at process 1 must give the same answer as its administrator's shell.
pub fn namespace() -> io::Result<Option<u64>> {
    use std::os::unix::fs::MetadataExt;
    if std::fs::exists(FIRST_ALONE)? {
        return Ok(None);
    }
    std::fs::metadata("/proc/self/ns/net").map(|here| Some(here.ino()))
}

/// Status file of this process in /proc, for a process that may not open files later.
static STATUS: OnceLock<File> = OnceLock::new();

/// Opens the file that [`resident_memory`] reads.
pub fn keep_status() -> io::Result<()> {
    let _ = STATUS.set(File::open("/proc/self/status")?);
    Ok(())
}

/// Resident memory of this process in bytes, including shared memory (`VmRSS` of proc_pid_status(5)).
pub fn resident_memory() -> io::Result<u64> {
    let status = match STATUS.get() {
        None => std::fs::read_to_string("/proc/self/status")?,
        Some(file) => {
            let mut text = [0; 4096];
            let count = file.read_at(&mut text, 0)?;
            String::from_utf8_lossy(&text[..count]).into_owned()
        }
    };
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kb.map(|kb| kb << 10).ok_or(io::ErrorKind::InvalidData.into())
}

/// Raises the limit of open files as far as this process may, and returns it.
pub fn raise_file_limit() -> u64 {
    let mut limit = process::getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // A refusal leaves the limit unchanged.
    let _ = process::setrlimit(Resource::Nofile, limit);
    process::getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Bytes of memory that this process may lock.
pub fn lockable_memory() -> u64 {
    // `None` means that there is no limit.
    process::getrlimit(Resource::Memlock).current.unwrap_or(u64::MAX)
}

/// Bytes of stack that the engine uses from the start.
const STACK: usize = 1 << 20;

/// Uses this much of the stack once. A locked stack counts as it grows. Without the privilege to exceed the
/// limit of locked memory, growing would end the process.
#[inline(never)]
fn grow_stack() {
    let mut room = [0u8; STACK];
    room.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    std::hint::black_box(&room);
}

/// Locks all memory that is mapped now, because a page fault would delay releases. `at_once` takes tens of
/// milliseconds for tens of megabytes; otherwise each page is locked at its first use.
pub fn lock_memory(at_once: bool) -> io::Result<()> {
    use rustix::mm::MlockAllFlags;
    let when = if at_once { MlockAllFlags::empty() } else { MlockAllFlags::ONFAULT };
    grow_stack();
    Ok(rustix::mm::mlockall(MlockAllFlags::CURRENT | when)?)
}
