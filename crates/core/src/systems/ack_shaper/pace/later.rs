//! Repayment by delay, where a step is one segment and the window is sized.
//!
//! There the right edge moves with the number. A step of less than a segment lets no segment leave, and one
//! of nearly two lets two leave together. The step therefore stays whole, and repayment delays the next
//! release instead, by a period at most. The rate is the same.
//!
//! A sender whose round trips are still those of the handshake has a time-out of little more than 200 ms. At
//! first, repayment therefore delays no release to more than 100 ms after the one before. Where that is not
//! enough, steps are made smaller as elsewhere. A sender whose segments have waited for three periods has
//! seen round trips of one, two and three. By RFC 6298 its time-out is then five periods.

use super::{clamp, Pace, BOUNDED};
use crate::rate::mul_div;
use crate::systems::ack_shaper::{Period, RateRelease};
use crate::time::Duration;

/// Longest time between releases, before the sender is used to more.
const SILENCE: Duration = Duration::from_millis(100);
/// Periods after which the sender is used to more.
const USED_TO: u64 = 3;

impl Pace {
    /// Returns the delay of the next release that repays as much as withholding `paid` of the `earned` bytes
    /// of a period. Zero if repayment by delay does not apply. The flow must remain backlogged.
    #[cold]
    pub(super) fn later(&mut self, policy: &RateRelease, earned: u32, paid: u32, mss: u16) -> Duration {
        let steps_are_segments = matches!(policy.period, Period::Auto { .. }) && earned <= u32::from(mss);
        if !self.is(BOUNDED) || !steps_are_segments || earned < self.step() {
            return Duration::ZERO;
        }
        let (later, _) = mul_div(paid.into(), self.period.into(), 0, u64::from(earned - paid).max(1));
        let later = Duration::from_nanos(later);
        if self.period() + later > SILENCE && !self.is_used_to_waiting() {
            return Duration::ZERO;
        }
        // The rate allows more arrivals, and a later right edge, by then.
        self.entitle(later);
        let bytes = self.rate().map_or(0, |rate| clamp(rate.bytes_in(later)));
        self.told(0, bytes);
        later
    }

    /// Returns whether a full step has been held for several periods.
    fn is_used_to_waiting(&self) -> bool {
        self.mark != 0 && self.due.saturating_sub(self.mark) >= USED_TO * u64::from(self.period)
    }
}
