//! Delay thresholds of slow start.

use weir_core::time::Duration;

/// Constants of RFC 9406 §4.3.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;

/// Returns the growth of the delay that ends slow start: an eighth of `base`, within bounds. Both algorithms
/// use it.
pub fn rtt_thresh(base: Duration) -> Duration {
    Duration::from_nanos(base.as_nanos() / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH)
}
