//! Thresholds of delay in slow start.

use weir_core::time::Duration;

/// RFC 9406 §4.3.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;

/// By how much the delay may grow before slow start is at its end: an eighth of it, within bounds. The same
/// in both algorithms.
pub fn rtt_thresh(base: Duration) -> Duration {
    Duration::from_nanos(base.as_nanos() / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH)
}
