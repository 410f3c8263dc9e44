//! Clocks of the system: one of the few places where Weir reads the time.

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{clock_gettime, ClockId, Timespec};
use weir_core::time::{Duration, Time};

fn read(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Time of CLOCK_MONOTONIC, the clock of `bpf_ktime_get_ns`.
pub fn now() -> Time {
    Time::from_nanos(read(ClockId::Monotonic))
}

/// Nanoseconds of CLOCK_REALTIME, the clock that packets are stamped with.
pub fn realtime() -> u64 {
    read(ClockId::Realtime)
}

/// CPU time that this thread has used.
pub fn thread_cpu() -> Duration {
    Duration::from_nanos(read(ClockId::ThreadCPUTime))
}

/// Sleeps until `at`, or until a signal.
pub fn sleep_until(at: Time) {
    // The only error is an interruption by a signal.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &timespec(at));
}

/// Converts a time for system calls.
pub(super) fn timespec(at: Time) -> Timespec {
    let ns = at.as_nanos();
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}
