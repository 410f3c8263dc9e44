//! Files of a running instance that somebody removed: its locks, its socket, its note of changes. Without
//! them no client finds it, and another instance could take its interfaces.

use super::state::Directory;
use super::Supervisor;
use crate::log::Seldom;
use crate::sys::epoll::Waiter;
use std::io;
use weir_core::time::{Duration, Time};

/// Interval at which the files are looked for.
const EVERY: Duration = Duration::from_secs(1);

/// Last look at the files.
#[derive(Debug)]
pub(super) struct Files {
    looked: Time,
    failed: Seldom,
}

impl Files {
    pub const fn new() -> Files {
        Files { looked: Time::ZERO, failed: Seldom::new() }
    }
}

impl Supervisor {
    /// Makes removed files again, once a second. The waiter wakes for clients of the new socket, too.
    pub(super) fn miss_files(&mut self, now: Time, waiter: &Waiter) {
        if now.since(self.files.looked) < EVERY {
            return;
        }
        self.files.looked = now;
        if self.site.locks.are_there() && self.control.is_there() {
            return;
        }
        let path = self.site.setup.state.display().to_string();
        match self.make_files(waiter) {
            Ok(()) => tracing::warn!("somebody has removed files in {path}: they are made again"),
            Err(error) if self.files.failed.is_due(now).is_some() => {
                tracing::error!(
                    "somebody has removed files in {path}, and they cannot be made again: {error}"
                );
            }
            Err(_) => {}
        }
    }

    fn make_files(&mut self, waiter: &Waiter) -> io::Result<()> {
        let open = || Directory::open(&self.site.setup.state);
        let [for_locks, for_changes] = [open()?, open()?];
        self.site.locks.take_again(for_locks)?;
        self.site.changes.move_to(for_changes)?;
        if !self.control.is_there() {
            let listener = self.site.setup.listener(&self.site.locks.instance)?;
            self.control.listen_again(listener, waiter)?;
        }
        Ok(())
    }
}
