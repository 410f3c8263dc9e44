//! Waiting: epoll with a timer descriptor.

use super::clock::timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::time::{
    timerfd_create, timerfd_settime, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use weir_core::time::Time;

/// Most events that one wait reports; the next wait reports more.
const EVENTS: usize = 16;

/// An epoll instance with its own timer.
#[derive(Debug)]
pub struct Waiter {
    epoll: OwnedFd,
    timer: OwnedFd,
    armed: Option<Time>,
}

/// A descriptor that became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Token given to [`Waiter::add`].
    pub token: u64,
    /// True if the descriptor reports an error or was hung up.
    pub error: bool,
}

const TIMER: u64 = u64::MAX;
const ZERO: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

impl Waiter {
    /// Creates an instance without descriptors; only time wakes it.
    pub fn new() -> io::Result<Waiter> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let waiter = Waiter { epoll, timer, armed: None };
        waiter.add(waiter.timer.as_fd(), TIMER)?;
        Ok(waiter)
    }

    /// Wakes when `fd` is readable or in error.
    pub fn add(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(token), EventFlags::IN)?)
    }

    /// Sleeps until a descriptor is ready, at most until `until`. A time in the past makes it only poll.
    pub fn wait(&mut self, until: Time, ready: &mut Vec<Ready>) -> io::Result<()> {
        self.arm(until)?;
        self.collect(None, ready)
    }

    /// Collects the descriptors that are ready now.
    pub fn look(&mut self, ready: &mut Vec<Ready>) -> io::Result<()> {
        self.collect(Some(&ZERO), ready)
    }

    fn arm(&mut self, until: Time) -> io::Result<()> {
        if self.armed == Some(until) {
            return Ok(());
        }
        // A time of zero would disarm.
        let at = Itimerspec { it_interval: ZERO, it_value: timespec(until.max(Time::from_nanos(1))) };
        // Setting a timer also forgets that it expired.
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &at)?;
        self.armed = Some(until);
        Ok(())
    }

    fn collect(&mut self, timeout: Option<&Timespec>, ready: &mut Vec<Ready>) -> io::Result<()> {
        let mut events = [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; EVENTS];
        let count = match epoll::wait(&self.epoll, &mut events, timeout) {
            Err(Errno::INTR) => 0,
            result => result?,
        };
        ready.clear();
        for event in &events[..count] {
            let (flags, data) = (event.flags, event.data);
            match data.u64() {
                // An expired timer must be armed again.
                TIMER => self.armed = None,
                token => {
                    ready.push(Ready { token, error: flags.intersects(EventFlags::ERR | EventFlags::HUP) })
                }
            }
        }
        Ok(())
    }
}

/// Returns whether `fd` is readable now.
pub fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    poll(&mut fds, Some(&ZERO)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::super::clock;
    use super::*;
    use std::os::fd::AsFd;
    use weir_core::time::Duration;

    #[test]
    fn sleeps_until_the_time_and_again() {
        let mut waiter = Waiter::new().unwrap();
        let mut ready = Vec::new();
        for _ in 0..2 {
            let until = clock::now() + Duration::from_millis(2);
            while clock::now() < until {
                waiter.wait(until, &mut ready).unwrap();
            }
            assert!(ready.is_empty());
        }
    }

    #[test]
    fn wakes_for_what_is_readable() {
        use std::io::Write;
        let (here, mut there) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut waiter = Waiter::new().unwrap();
        let mut ready = Vec::new();
        waiter.add(here.as_fd(), 7).unwrap();
        waiter.look(&mut ready).unwrap();
        assert!(ready.is_empty());
        there.write_all(b"x").unwrap();
        waiter.wait(Time::MAX.saturating_sub(Duration::from_secs(1 << 33)), &mut ready).unwrap();
        assert_eq!(ready, [Ready { token: 7, error: false }]);
        drop(there);
        waiter.look(&mut ready).unwrap();
        assert!(ready[0].error);
    }
}
