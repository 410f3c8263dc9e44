//! Steps of moving averages.
//!
//! Other averages are not these: those whose weights a paper gives are beside its law (RED, the meter of the
//! ACK filters, the detector of slow start), and the use of a class is a mean that ends after two seconds
//! (`systems::link_sharing`).

use super::rate::mul_div;

/// Returns `old` after a sample, with the gain of a sender's smoothed round-trip time (RFC 6298 section 2.3).
/// The first sample is the average.
pub(crate) fn eighth(old: u32, sample: u64) -> u32 {
    let (average, sample) = (i64::from(old), sample as i64);
    let average = if old == 0 { sample } else { average + (sample - average) / 8 };
    average.clamp(1, u32::MAX.into()) as u32
}

/// Returns `value` after a time in which it followed `to` with a time constant, in the same unit. It is the
/// backward Euler step of a first-order lag, which is stable however long it is.
pub(crate) fn lag(value: u64, to: u64, elapsed: u64, constant: u64) -> u64 {
    let (by, _) = mul_div(value.abs_diff(to), elapsed, 0, elapsed.saturating_add(constant));
    if to > value {
        value + by
    } else {
        value - by
    }
}
