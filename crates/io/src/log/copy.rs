//! Thread that copies lines from the pipe to a descriptor of any kind, however long that takes.

use super::journal::Journal;
use super::line;
use super::repeats::{Copied, Repeats};
use crate::sys::clock;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::{read, retry_on_intr, write, Errno};
use std::os::fd::OwnedFd;

/// Time between two attempts.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(1);
/// Default capacity of a pipe.
const ROOM: usize = 1 << 16;

pub struct Copy {
    from: OwnedFd,
    to: OwnedFd,
    journal: Option<Journal>,
    repeats: Repeats,
    /// Lines that could not be written since the last one that was written.
    lost: u64,
    /// True if the last write ended within a line.
    torn: bool,
}

impl Copy {
    pub fn new(from: OwnedFd, to: OwnedFd, journal: Option<Journal>) -> Copy {
        Copy { from, to, journal, repeats: Repeats::new(), lost: 0, torn: false }
    }

    /// Copies until no writer is left. `done` gets the number of bytes dealt with.
    pub fn run(mut self, done: impl Fn(u64)) {
        let mut room = vec![0; ROOM];
        let mut filled = 0;
        while let Ok(count @ 1..) = retry_on_intr(|| read(&self.from, &mut room[filled..])) {
            filled += count;
            let whole = room[..filled].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            for line in room[..whole].split_inclusive(|&byte| byte == b'\n') {
                self.line(std::str::from_utf8(line).unwrap_or("?\n"));
                done(line.len() as u64);
            }
            room.copy_within(whole..filled, 0);
            filled -= whole;
            if filled == ROOM {
                filled = 0; // no writer writes such a line
            }
        }
    }

    fn line(&mut self, text: &str) {
        match self.repeats.come(text, clock::now()) {
            Copied::Not => {}
            Copied::After(0) => self.put(text),
            Copied::After(n) => {
                self.put(&line::notice(text, &format!("{n} more lines like the next one were left out")));
                self.put(text);
            }
        }
    }

    fn put(&mut self, text: &str) {
        if self.journal.as_ref().is_some_and(|journal| journal.takes(text)) {
            return;
        }
        let text = line::with_notice(text, self.lost);
        let text = if self.torn { format!("\n{text}") } else { text };
        let mut left = text.as_bytes();
        while !left.is_empty() {
            match write(&self.to, left) {
                Ok(0) => break,
                Ok(count) => left = &left[count..],
                Err(Errno::INTR) => {}
                // Another process has made it non-blocking. This thread may wait.
                Err(Errno::AGAIN) => self.wait(),
                Err(_) => break,
            }
        }
        if left.len() < text.len() {
            self.torn = !left.is_empty();
        }
        self.lost = if left.is_empty() { 0 } else { self.lost + 1 };
    }

    /// Waits until there is room.
    fn wait(&self) {
        // A failed poll is followed by another attempt.
        let _ = poll(&mut [PollFd::new(&self.to, PollFlags::OUT)], None);
        // Some descriptors report ready and take nothing.
        std::thread::sleep(PAUSE);
    }
}
