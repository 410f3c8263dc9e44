//! Log of processes that must neither wait nor panic: lines on standard error, or entries of journald.
//!
//! Standard error may be a pipe without a reader, a stopped or closed terminal, or a file on a full or frozen
//! disk.
//!
//! ```text
//! supervisor ─┐
//! engine ─────┴─ pipe, non-blocking ──▶ thread of the supervisor ── may wait ──▶ standard error
//! ```
//!
//! - A writer makes one line of each event and writes it to the pipe with one atomic write, or drops it
//!   without room.
//! - The thread copies lines to standard error and drops those that cannot be written. Lines of JSON may be
//!   entries of journald instead; what it does not take goes to standard error.
//! - The next written line tells how many were dropped.
//!
//! The thread is started before engines are forked. It takes no lock but the allocator's, which libc releases
//! in a forked process. It has no privileges and takes no signals.

mod copy;
mod journal;
mod line;
mod repeats;
mod seldom;

pub use line::shown;
pub use seldom::Seldom;

use crate::sys::clock;
use crate::sys::mmap::Mapping;
use crate::sys::{privileges, process};
use copy::Copy;
use journal::Journal;
use rustix::fs::{fcntl_setfl, OFlags};
use rustix::pipe::{pipe_with, PipeFlags};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, OnceLock};
use weir_core::time::Duration;

/// Longest time that the end of a process waits for a log without progress.
const LAST_LINES: Duration = Duration::from_millis(300);
/// Time between two looks at the progress.
const LOOK: std::time::Duration = std::time::Duration::from_millis(1);

/// Places of counters in the memory that all processes share.
mod counter {
    /// Lines dropped by writers and not yet reported.
    pub const LOST: usize = 0;
    /// Bytes written to the pipe.
    pub const WRITTEN: usize = 8;
    /// Bytes of these that the thread has dealt with.
    pub const DONE: usize = 16;
    pub const BYTES: usize = 24;
}

/// Log of a process and of those that it forks.
#[derive(Debug)]
pub struct Log {
    pipe: OwnedFd,
    counters: Arc<Mapping>,
}

static LOG: OnceLock<Log> = OnceLock::new();

/// Destination of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// Standard error.
    StandardError,
    /// Journald, for lines of JSON.
    Journal,
}

/// Opens the log, for the life of the process. A second call returns the first log. From
/// then on the process ignores signals that only writing raises (`SIGTTOU`, `SIGXFSZ`).
pub fn open(to: To) -> io::Result<&'static Log> {
    if LOG.get().is_none() {
        process::ignore_signals_of_output();
        let journal = (to == To::Journal).then(|| Journal::at(journal::SOCKET)).transpose()?;
        let log = Log::new(io::stderr().as_fd().try_clone_to_owned()?, journal)?;
        // A log that another thread has opened meanwhile is as good.
        let _ = LOG.set(log);
    }
    LOG.get().ok_or_else(|| io::ErrorKind::NotConnected.into())
}

/// Returns the log, if it is open.
pub fn opened() -> Option<&'static Log> {
    LOG.get()
}

impl Log {
    /// Creates a log that a thread copies to a journal, or to `to`.
    fn new(to: OwnedFd, journal: Option<Journal>) -> io::Result<Log> {
        let (from, pipe) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        let counters = Arc::new(Mapping::anonymous(counter::BYTES, true)?);
        let done = counters.clone();
        process::spawn_beside_forks("log", move || {
            // Privileges that it keeps do no harm: the file is open.
            let _ = privileges::keep_only(privileges::capability::Set::empty());
            Copy::new(from, to, journal)
                .run(|bytes| _ = done.atomic_u64(counter::DONE).fetch_add(bytes, Release));
        })?;
        Ok(Log { pipe, counters })
    }

    /// Writes an event as one line without waiting. Control characters are escaped, and a long event is cut.
    pub fn write(&self, text: &str) {
        let lost = self.counters.atomic_u64(counter::LOST);
        let dropped = lost.swap(0, Relaxed);
        let line = line::with_notice(&line::one(text), dropped);
        if self.put(&line).is_err() {
            lost.fetch_add(dropped + 1, Relaxed);
        }
    }

    /// Writes a line whole or fails (pipe(7): at most PIPE_BUF bytes).
    fn put(&self, line: &str) -> io::Result<()> {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(&self.pipe, line.as_bytes()))?;
        self.counters.atomic_u64(counter::WRITTEN).fetch_add(written as u64, Relaxed);
        Ok(())
    }

    /// Waits until standard error has all lines written so far, or for 300 ms without progress.
    /// Returns whether it has them.
    pub fn drain(&self) -> bool {
        let written = self.counters.atomic_u64(counter::WRITTEN).load(Relaxed);
        let done = || self.counters.atomic_u64(counter::DONE).load(Acquire);
        let (mut before, mut until) = (done(), clock::now() + LAST_LINES);
        while before < written && clock::now() < until {
            std::thread::sleep(LOOK);
            if done() != before {
                (before, until) = (done(), clock::now() + LAST_LINES);
            }
        }
        before >= written
    }
}

/// Destination of formatted events: each write is a whole event.
#[derive(Clone, Copy, Debug)]
pub struct Events(pub &'static Log);

impl io::Write for Events {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.0.write(&String::from_utf8_lossy(event));
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
