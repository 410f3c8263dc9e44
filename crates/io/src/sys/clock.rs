//! The clocks: one of the few places where Weir asks what time it is.

use weir_core::time::{Duration, Time};

fn read(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for writes. The clocks used here always exist.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// CLOCK_MONOTONIC, the clock of `bpf_ktime_get_ns`.
pub fn now() -> Time {
    Time::from_nanos(read(libc::CLOCK_MONOTONIC))
}

/// CLOCK_REALTIME in nanoseconds, the clock that packets are stamped with.
pub fn realtime() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// CPU time that this thread has used.
pub fn thread_cpu() -> Duration {
    Duration::from_nanos(read(libc::CLOCK_THREAD_CPUTIME_ID))
}

/// Sleeps until `at`, or until a signal.
pub fn sleep_until(at: Time) {
    let ns = at.as_nanos();
    let at = libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `at` is valid for reads; with an absolute time nothing is written back.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &at, std::ptr::null_mut()) };
}
