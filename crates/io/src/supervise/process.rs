//! Process of an engine, from the supervisor's side.

use super::handover::LeftProcess;
use crate::sys::clock;
use crate::sys::epoll::Waiter;
use crate::sys::inherit::adopt;
use crate::sys::process::{Child, Ended};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::Signal;
use std::cell::Cell;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use weir_core::time::{Duration, Time};

/// Interval between looks whether the process is gone.
const LOOK: Duration = Duration::from_millis(5);
/// Longest time that an engine may take to stop.
const STOP: Duration = Duration::from_secs(3);
/// Longest wait for a killed engine to run no more instructions. One that is frozen, or that waits for a
/// device, does not die before it would run again.
const DEATH: Duration = Duration::from_millis(200);
/// Number above all descriptors of an engine.
const LAST: i32 = 256;

/// An engine's process, and the stream on which it reports its failure.
///
/// When a process ends, the kernel closes its sockets before the parent can see the end. It waits for all
/// processors with each packet socket: 40 to 60 ms in all. It closes the highest descriptor first. Therefore
/// the engine's end of the stream is its highest one ([`Said`]). Its hang-up tells at once that the engine
/// will run no more instructions.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    words: UnixStream,
    ended: Cell<Option<Ended>>,
    /// Time at which it is killed, if it was told to stop and nothing waits for its end.
    kill_at: Cell<Option<Time>>,
}

/// The engine's end of the stream.
pub(super) struct Said(UnixStream);

impl Process {
    /// Forks. An error of `body` is reported to the supervisor.
    pub(super) fn fork(body: impl FnOnce() -> io::Result<()>) -> io::Result<Process> {
        let (ours, theirs) = UnixStream::pair()?;
        let child = Child::fork(|| {
            let said = Said::new(theirs);
            body().map_or_else(|error| said.fail(&error), |()| 0)
        })?;
        Ok(Process::of(child, ours))
    }

    fn of(child: Child, words: UnixStream) -> Process {
        Process { child, words, ended: Cell::new(None), kill_at: Cell::new(None) }
    }

    /// Takes over a process that the program before has forked.
    pub(super) fn adopt(left: LeftProcess) -> io::Result<Process> {
        let words = UnixStream::from(adopt(left.words)?);
        Ok(Process::of(Child::adopt(left.pid)?, words))
    }

    /// The stream of its last words.
    pub(super) fn words(&self) -> &UnixStream {
        &self.words
    }

    pub(super) fn pid(&self) -> i32 {
        self.child.pid
    }

    /// Wakes the waiter when the process begins to end, and when it has ended.
    pub(super) fn wakes(&self, waiter: &Waiter, token: u64) -> io::Result<()> {
        waiter.add(self.child.as_fd(), token)?;
        waiter.add(self.words.as_fd(), token)
    }

    /// Wakes the waiter when the process has ended.
    pub(super) fn wakes_at_end(&self, waiter: &Waiter, token: u64) -> io::Result<()> {
        waiter.add(self.child.as_fd(), token)
    }

    pub(super) fn signal(&self, signal: Signal) -> io::Result<()> {
        self.child.signal(signal)
    }

    /// Returns whether it will run no more instructions; the process may still exist.
    pub(super) fn is_dying(&self) -> bool {
        let mut fds = [PollFd::new(&self.words, PollFlags::empty())];
        // A failed poll tells nothing; the end is noticed in another way.
        poll(&mut fds, Some(&Default::default())).is_ok() && fds[0].revents().contains(PollFlags::HUP)
    }

    /// Returns its end, `None` while it exists.
    pub(super) fn ended(&self) -> io::Result<Option<Ended>> {
        if self.ended.get().is_none() {
            self.ended.set(self.child.ended()?);
            if self.kill_at.get().is_some_and(|at| clock::now() >= at) {
                self.kill_at.set(None);
                // It may have ended just now.
                let _ = self.signal(Signal::KILL);
            }
        }
        Ok(self.ended.get())
    }

    /// Returns whether its end is known.
    pub(super) fn is_down(&self) -> bool {
        self.ended.get().is_some()
    }

    /// Describes its end in words.
    pub(super) fn describe(&self, ended: Ended) -> String {
        let mut said = String::new();
        // There are no more writers, so this does not wait.
        let _ = self.words.set_nonblocking(true).and_then(|()| (&self.words).read_to_string(&mut said));
        match ended {
            Ended::Exited(0) => "the engine ended by itself".to_owned(),
            Ended::Exited(_) if !said.is_empty() => said,
            Ended::Exited(code) => format!("the engine ended with code {code}"),
            Ended::Signalled(signal) => format!("the engine was ended by signal {signal}"),
        }
    }

    /// Tells the engine to stop. True if it did so cleanly and in time.
    pub(super) fn stop(&self) -> io::Result<bool> {
        // The process may have ended already.
        let _ = self.signal(Signal::TERM);
        let until = clock::now() + STOP;
        while clock::now() < until {
            if let Some(ended) = self.ended()? {
                return Ok(ended == Ended::Exited(0));
            }
            sleep(&mut [self.end_fd()], until);
        }
        tracing::warn!("the engine does not stop: killing it");
        self.kill()?;
        Ok(false)
    }

    /// Tells the engine to stop, without waiting. It is killed if it takes too long.
    pub(super) fn retire(&self) {
        // The process may have ended already.
        let _ = self.signal(Signal::TERM);
        self.kill_at.set(Some(clock::now() + STOP));
    }

    /// Kills the engine and waits until it runs no more instructions. True if it is known to do so in time.
    pub(super) fn kill(&self) -> io::Result<bool> {
        self.signal(Signal::KILL)?;
        let until = clock::now() + DEATH;
        while !self.is_dying() && self.ended()?.is_none() {
            if clock::now() >= until {
                tracing::warn!(
                    pid = self.pid(),
                    "the engine does not die: it is frozen, or waits for a device"
                );
                return Ok(false);
            }
            let hang_up = PollFd::new(&self.words, PollFlags::empty());
            sleep(&mut [hang_up, self.end_fd()], clock::now() + LOOK);
        }
        Ok(true)
    }

    /// Watches for its end.
    fn end_fd(&self) -> PollFd<'_> {
        PollFd::from_borrowed_fd(self.child.as_fd(), PollFlags::IN)
    }

    /// Kills it and waits until it is gone, if it goes at all, whatever else fails.
    pub(super) fn end(self) {
        if !matches!(self.ended(), Ok(Some(_))) && self.kill().is_ok_and(|dies| dies) {
            self.child.end();
        }
    }
}

/// Sleeps until a descriptor reports something, at most until a time. It makes no descriptor: an engine must
/// end although there are none left.
fn sleep(fds: &mut [PollFd<'_>], until: Time) {
    let left = Timespec::try_from(std::time::Duration::from_nanos(until.since(clock::now()).as_nanos()));
    if poll(fds, left.ok().as_ref()).is_err() {
        clock::sleep_until(until.min(clock::now() + Duration::from_millis(1)));
    }
}

impl Said {
    fn new(stream: UnixStream) -> Said {
        // Where such a high descriptor is not allowed, the hang-up comes with the end.
        let last = fcntl_dupfd_cloexec(&stream, LAST);
        Said(last.map_or(stream, |last: OwnedFd| last.into()))
    }

    /// Reports the error, and returns the code to exit with.
    fn fail(mut self, error: &io::Error) -> i32 {
        // Without a reader the report is lost.
        let _ = self.0.write_all(error.to_string().as_bytes());
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_for(what: impl Fn() -> bool) {
        let until = clock::now() + Duration::from_secs(10);
        while !what() {
            assert!(clock::now() < until);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// The tests' harness has threads, so this test cannot fork: a stream stands for the process.
    #[test]
    fn the_engines_end_of_the_stream_is_its_last_descriptor() {
        use std::os::fd::AsRawFd;
        let (ours, theirs) = UnixStream::pair().unwrap();
        let said = Said::new(theirs);
        assert!(said.0.as_raw_fd() >= LAST);
        let hung_up = || {
            let mut fds = [PollFd::new(&ours, PollFlags::empty())];
            poll(&mut fds, Some(&Default::default())).unwrap();
            fds[0].revents().contains(PollFlags::HUP)
        };
        assert!(!hung_up());
        assert_eq!(said.fail(&io::Error::other("no reason")), 1);
        wait_for(hung_up);
        let mut text = String::new();
        (&ours).read_to_string(&mut text).unwrap();
        assert_eq!(text, "no reason");
    }
}
