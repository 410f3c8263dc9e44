//! The machine's monotonic clock, the same in every namespace.

use weir_core::time::Time;

/// Reads CLOCK_MONOTONIC.
pub fn monotonic() -> Time {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Time::from_nanos(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}

/// Returns CLOCK_REALTIME minus CLOCK_MONOTONIC in nanoseconds. Both are slewed alike, so the difference
/// changes only when the clock is set.
pub(super) fn realtime_offset() -> i128 {
    let ns = |t: rustix::time::Timespec| i128::from(t.tv_sec) * 1_000_000_000 + i128::from(t.tv_nsec);
    let mono = rustix::time::ClockId::Monotonic;
    let real = rustix::time::ClockId::Realtime;
    // The reading with the shortest bracket has an error of at most half the bracket.
    (0..16)
        .map(|_| {
            let before = ns(rustix::time::clock_gettime(mono));
            let real = ns(rustix::time::clock_gettime(real));
            let after = ns(rustix::time::clock_gettime(mono));
            (after - before, real - (before + after) / 2)
        })
        .min()
        .map_or(0, |(_, offset)| offset)
}
