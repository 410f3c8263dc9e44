//! A rate of a class, as the time at which its sent bytes are paid for.

use crate::base::VirtualClock;
use crate::time::{Duration, Time};

/// Longest delay of a backlogged class that costs it nothing, besides the time of a full frame at its rate.
/// It covers the service of other classes, and limits the burst after a time in which nothing could leave.
const LAG: Duration = Duration::from_millis(10);
/// Bytes of a full Ethernet frame: a class may have to wait for one of another class on the same link.
const FULL_FRAME: u64 = 1514;

/// Charges `bytes` sent at `now`, by a class backlogged since `since`. No credit is saved from before
/// `since`. Unused credit since then lapses too if the class must keep `strict`ly to its rate. Otherwise
/// [`LAG`] and the time of a frame are kept.
#[inline]
pub(super) fn charge(clock: &mut VirtualClock, now: Time, since: Time, bytes: u64, strict: bool) {
    let late = match strict {
        true => Duration::ZERO,
        false => LAG + clock.rate().time_for(bytes.max(FULL_FRAME)),
    };
    clock.forfeit(since.max(now.saturating_sub(late)));
    clock.charge(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Rate;

    fn ms(n: u64) -> Time {
        Time::from_millis(n)
    }

    #[test]
    fn a_class_that_waits_loses_nothing_and_one_that_rested_saved_nothing() {
        // A byte a microsecond: 1,000 bytes take a millisecond.
        let mut b = VirtualClock::new(Rate::mbit(8), Time::ZERO);
        let mut due_after = |now, since, strict| {
            charge(&mut b, now, since, 1000, strict);
            b.due()
        };
        assert_eq!(due_after(ms(5), ms(5), false), ms(6));
        // Served 3 ms late, since others were served. The next is due as if it had not been late.
        assert_eq!(due_after(ms(9), ms(5), false), ms(7));
        // It was idle until 20 ms.
        assert_eq!(due_after(ms(20), ms(20), false), ms(21));
        // Delayed for 80 ms. 10 ms and the time of a full frame count.
        assert_eq!(due_after(ms(101), ms(20), false), Time::from_micros(90_486));
        assert_eq!(due_after(ms(200), ms(20), true), ms(201));
    }
}
