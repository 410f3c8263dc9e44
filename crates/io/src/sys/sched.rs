//! Scheduling of the engine's thread.

use super::check;
use rustix::process::{set_parent_process_death_signal, setpriority_process, setsid, Signal};
use rustix::thread::{sched_setaffinity, set_current_timer_slack, CpuSet};
use std::io;
use std::num::NonZero;

/// Niceness of a process that is preferred to all others.
const MOST_PREFERRED: i32 = -20;
const AUTOGROUP_ATTEMPTS: u32 = 10;

/// Makes timers of this thread expire to the nanosecond. The default slack of 50 µs would be added to every
/// release.
pub fn no_timer_slack() -> io::Result<()> {
    Ok(set_current_timer_slack(NonZero::new(1))?)
}

/// Runs this thread under SCHED_FIFO, ahead of all ordinary threads.
pub fn fifo(priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: i32::from(priority) };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `parameters` is valid for the call.
    check(unsafe { libc::sched_setscheduler(0, policy, &parameters) })?;
    Ok(())
}

/// Prefers this process to ordinary ones by nice −20, which does not starve them.
pub fn prefer() -> io::Result<()> {
    Ok(setpriority_process(None, MOST_PREFERRED)?)
}

/// Prefers this process to those of other sessions. With autogroups (sched(7)) the kernel first divides time
/// between sessions, and niceness counts only within one. So the process gets its own session, with the same
/// preference. The kernel continues a stopped process that its parent leaves behind only in the parent's
/// session. Therefore this one is killed when its parent ends.
pub fn prefer_session() -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    setsid()?; // refused to the leader of a process group, which no forked child is
    for _ in 0..AUTOGROUP_ATTEMPTS {
        match std::fs::write("/proc/self/autogroup", MOST_PREFERRED.to_string()) {
            // The kernel takes one such change in 100 ms (`proc_sched_autogroup_set_nice()`).
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            // The kernel has no autogroups.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            result => return result,
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// Keeps this thread on one CPU.
pub fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}
