//! A timer that wakes an event loop at a set time.

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;
use weir_core::time::Time;

/// Token of a loop's timer.
pub(super) const TIMER: Token = Token(usize::MAX);
/// Interval at which an idle loop checks whether it should stop.
pub(super) const LOOK_UP: Duration = Duration::from_millis(50);

/// One timer of CLOCK_MONOTONIC, registered with a poll.
pub(super) struct Alarm {
    timer: OwnedFd,
    set_to: Option<Time>,
}

impl Alarm {
    /// Registers a timer whose events have the token [`TIMER`].
    pub fn register(registry: &Registry) -> io::Result<Alarm> {
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)?;
        registry.register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)?;
        Ok(Alarm { timer, set_to: None })
    }

    /// Sets the timer to ring once at this time, or at once if that has passed. `None` disarms it.
    pub fn set(&mut self, at: Option<Time>) -> io::Result<()> {
        if at == self.set_to {
            return Ok(());
        }
        // A time of zero disarms the timer.
        let ns = at.map_or(0, |at| at.as_nanos().max(1));
        let it_value = Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let spec = Itimerspec { it_interval, it_value };
        rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &spec)?;
        self.set_to = at;
        Ok(())
    }
}
