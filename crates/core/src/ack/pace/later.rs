//! Repayment by time, where a step is one segment and the window is sized.
//!
//! There the right edge moves with the number. By less than a segment it lets nothing leave, and by nearly two a segment and most of another
//! leave together. So the step stays whole, and what is to be paid back makes the next release later instead, by a period at most. The rate is
//! the same.
//!
//! A sender whose round trips were those of the handshake has a time-out of 200 ms and little more, so at first no release is for this later than
//! 100 ms after the one before: where that is not enough, steps are smaller as elsewhere. One whose segments have waited for three
//! periods has seen round trips of one, two and three, and by RFC 6298 its time-out is five then.

use super::{clamp, Pace, BOUNDED};
use crate::ack::{Period, RateRelease};
use crate::rate::mul_div;
use crate::time::Duration;

/// From one release to the next at most, before the sender is used to more.
const SILENCE: Duration = Duration::from_millis(100);
/// Periods after which it is.
const USED_TO: u64 = 3;

impl Pace {
    /// Of what was `earned` in a period, `paid` is not to be released, by a flow that goes on holding something. How much later the next
    /// release is if all of it is released instead; zero if that is not to be.
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
        // So much more may have arrived by then, and so much further may the right edge be.
        self.entitle(later);
        let bytes = self.rate().map_or(0, |rate| clamp(rate.bytes_in(later)));
        self.told(0, bytes);
        later
    }

    /// Has a full step been held for several periods?
    fn is_used_to_waiting(&self) -> bool {
        self.mark != 0 && self.due.saturating_sub(self.mark) >= USED_TO * u64::from(self.period)
    }
}
