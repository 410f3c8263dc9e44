//! Waiting: epoll with a timer descriptor.

use super::{check, check_fd};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use weir_core::time::Time;

/// Most events that one wait reports; more come with the next.
const EVENTS: usize = 16;

/// An epoll instance with a timer of its own.
#[derive(Debug)]
pub struct Waiter {
    epoll: OwnedFd,
    timer: OwnedFd,
    armed: Option<Time>,
}

/// What a wait ended with: the tokens that became ready, and whether each is in error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// As given to [`Waiter::add`].
    pub token: u64,
    /// The descriptor reports an error or was hung up.
    pub error: bool,
}

const TIMER: u64 = u64::MAX;

impl Waiter {
    /// A new instance that waits for nothing but time.
    pub fn new() -> io::Result<Waiter> {
        // SAFETY: no pointers; the result is a new descriptor.
        let epoll = unsafe { check_fd(libc::epoll_create1(libc::EPOLL_CLOEXEC)) }?;
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: as above.
        let timer = unsafe { check_fd(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags)) }?;
        let waiter = Waiter { epoll, timer, armed: None };
        waiter.register(waiter.timer.as_raw_fd(), TIMER)?;
        Ok(waiter)
    }

    /// Wakes when `fd` is readable or in error.
    pub fn add(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.register(fd.as_raw_fd(), token)
    }

    /// No longer wakes for `fd`.
    pub fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let epoll = self.epoll.as_raw_fd();
        // SAFETY: removing takes no event.
        check(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_DEL, fd.as_raw_fd(), std::ptr::null_mut()) })?;
        Ok(())
    }

    fn register(&self, fd: i32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token };
        // SAFETY: `event` is valid for the call, which copies it.
        check(unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) })?;
        Ok(())
    }

    /// Sleeps until something is ready or it is `until`, whichever comes first. With `until` in
    /// the past it only looks.
    pub fn wait(&mut self, until: Time, ready: &mut Vec<Ready>) -> io::Result<()> {
        self.arm(until)?;
        self.collect(-1, ready)
    }

    /// What is ready now.
    pub fn look(&mut self, ready: &mut Vec<Ready>) -> io::Result<()> {
        self.collect(0, ready)
    }

    fn arm(&mut self, until: Time) -> io::Result<()> {
        if self.armed == Some(until) {
            return Ok(());
        }
        // A time of zero would disarm.
        let ns = until.as_nanos().max(1);
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let value = libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        };
        let spec = libc::itimerspec { it_interval: zero, it_value: value };
        let fd = self.timer.as_raw_fd();
        // SAFETY: `spec` is valid for the call; the old value is not asked for. Setting a timer
        // also forgets that it expired.
        check(unsafe { libc::timerfd_settime(fd, libc::TFD_TIMER_ABSTIME, &spec, std::ptr::null_mut()) })?;
        self.armed = Some(until);
        Ok(())
    }

    fn collect(&mut self, timeout: i32, ready: &mut Vec<Ready>) -> io::Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        let epoll = self.epoll.as_raw_fd();
        // SAFETY: `events` is valid for writes of `EVENTS` entries.
        let result = check(unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), EVENTS as i32, timeout) });
        let count = match result {
            Ok(count) => count as usize,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        ready.clear();
        for event in &events[..count] {
            let error = event.events & (libc::EPOLLERR | libc::EPOLLHUP) as u32 != 0;
            match event.u64 {
                // Expired: it must be armed anew to sleep again.
                TIMER => self.armed = None,
                token => ready.push(Ready { token, error }),
            }
        }
        Ok(())
    }
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
