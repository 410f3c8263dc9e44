//! Bytes that may pass of a class's flows before they are looked at, where its rate does not bind.

use super::{ClassTree, Share};
use crate::flow::ClassId;
use crate::time::{Duration, Time};

/// Longest time to the next look.
const LONGEST: Duration = Duration::from_millis(4);
/// A class has not been ahead of its clock for this many round trips, and for so long at least, where its
/// rate does not bind.
const FREE_ROUNDS: u64 = 16;
const FREE_LEAST: Duration = Duration::from_millis(2);
/// The first look at a flow of which nothing is known yet.
const FIRST: Duration = Duration::from_millis(1);

/// Returns the bytes to grant, of `most`, to a flow that `used` bytes in some time, and the time until the
/// look at it. By then half of the grant is likely to be used.
pub(crate) fn portion(used: Option<(u32, Duration)>, most: u64) -> (u32, Duration) {
    let Some((bytes, time)) = used else { return (clamp(most / 2), FIRST) };
    let (bytes, time) = (u128::from(bytes.max(1)), u128::from(time.as_nanos().max(1)));
    let wanted = 2 * bytes * u128::from(LONGEST.as_nanos()) / time;
    let granted = wanted.min(u128::from(most));
    let half = granted * time / (2 * bytes);
    let within = Duration::from_nanos(half.min(u128::from(LONGEST.as_nanos())) as u64);
    (clamp(granted as u64), within)
}

fn clamp(bytes: u64) -> u32 {
    bytes.min(1 << 30) as u32
}

impl ClassTree<'_> {
    /// Returns whether its unresponsive traffic has not been looked at for some time.
    pub(crate) fn is_due_for_others(&self, top: ClassId, now: Time) -> bool {
        let Some(share) = self.shares.get(top) else { return false };
        let looked = match share.node() {
            Some(node) => node.looked,
            None => share.others.at(),
        };
        now.since(looked) >= FIRST
    }

    /// Bytes that may pass unasked of flows with this round trip by the next look: none where the class or
    /// one above it is ahead of its clock, or was lately.
    pub(crate) fn free(&mut self, place: ClassId, rtt: Duration, now: Time) -> u64 {
        let long = rtt.saturating_mul(FREE_ROUNDS).max(FREE_LEAST);
        let mut least = u64::MAX;
        let mut at = Some(place);
        while let Some(share) = at.and_then(|at| self.shares.get_mut(at)) {
            if share.is_bounded() {
                if share.clock.due() > now {
                    share.bound = now;
                }
                if now.since(share.bound) < long {
                    return 0;
                }
                least = least.min(share.clock.earned_by(now, LONGEST).saturating_sub(share.granted));
            }
            at = share.parent();
        }
        least
    }

    pub(crate) fn reserve(&mut self, place: ClassId, bytes: u64) {
        self.each_above(place, |share| share.granted += bytes);
    }

    pub(crate) fn unreserve(&mut self, place: ClassId, bytes: u64) {
        self.each_above(place, |share| share.granted = share.granted.saturating_sub(bytes));
    }

    /// Changes the class and all above it.
    pub(crate) fn each_above(&mut self, place: ClassId, mut change: impl FnMut(&mut Share)) {
        let mut at = Some(place);
        while let Some(share) = at.and_then(|at| self.shares.get_mut(at)) {
            change(share);
            at = share.parent();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_twice_what_is_used_by_the_next_look() {
        let ms = Duration::from_millis;
        // 1,000 bytes a millisecond: 8,000 in 4 ms, half of which take 4 ms.
        assert_eq!(portion(Some((2_000, ms(2))), 100_000), (8_000, ms(4)));
        // If there is less, the look is earlier.
        assert_eq!(portion(Some((2_000, ms(2))), 3_000), (3_000, Duration::from_micros(1_500)));
        assert_eq!(portion(None, 10_000), (5_000, ms(1)));
    }
}
