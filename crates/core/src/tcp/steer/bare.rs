//! The bound of segments without data: ACKs, SYNs, RSTs.
//!
//! They are no part of what a class is charged with: a download at its rate does not pay for its ACKs with
//! the upload's. But there is a limit to how many are needed. Those of a class pass a virtual queue that is
//! served at an eighth of the rate of the data that they acknowledge: an ACK of 100 bytes for each segment of
//! 800. That data is of the class which takes their reversed key in the other direction. Where none does, or
//! that has no bound, nothing tells how much data there is. They may have as much as their own class then,
//! and 20 Mbit/s at least: that is an ACK of 52 bytes for each two segments of a gigabit per second.
//!
//! The queue of a class is served by the fastest such class that was found. It is looked for with the first
//! segment, and where one finds no room, so that traffic within the bound pays for no other look-up. Segments
//! of flows whose ACKs are controlled have a quarter of the room to themselves.

use super::bound::{chain, Bound};
use super::tally::{served, FRACTION};
use crate::base::time::Time;
use core::sync::atomic::Ordering::Relaxed;

/// Bytes of data for each byte without.
const PART: u64 = 8;
/// Nanoseconds per byte at 20 Mbit/s, in units of 2^-20.
const UNKNOWN: u64 = 400 << FRACTION;

/// Nanoseconds per byte at which a class is served, or those above it; 0: it has no bound.
fn per_byte_of(bounds: &[Bound], place: u32) -> u64 {
    chain(bounds, place).map(Bound::per_byte).find(|&per_byte| per_byte != 0).unwrap_or(0)
}

/// Nanoseconds per byte at which the queue of the class at `place` is served by the data of that at `by`. If
/// that is itself, the data is not known.
fn per_bare_byte(bounds: &[Bound], place: u32, by: u32) -> u64 {
    let per_byte = per_byte_of(bounds, by);
    if by == place {
        per_byte.min(UNKNOWN)
    } else {
        per_byte * PART
    }
}

/// Place of the class by whose data the segments of the class at `place` are bounded, if those of one flow
/// acknowledge data of the class at `back`.
fn by_data_of(bounds: &[Bound], place: u32, back: Option<u32>) -> u32 {
    back.filter(|&back| back != place && per_byte_of(bounds, back) != 0).unwrap_or(place)
}

/// Returns whether a segment of `bytes`, without data, of the class at this place may pass at `now`. It is
/// charged then. `back` finds the place of the class of the data that it acknowledges, and `is_held` says
/// whether the ACKs of its flow are controlled.
pub fn admits_bare(
    bounds: &[Bound],
    place: u32,
    bytes: u64,
    now: Time,
    back: impl FnOnce() -> Option<u32>,
    is_held: impl FnOnce() -> bool,
) -> bool {
    let Some(own) = bounds.get(place as usize).filter(|_| per_byte_of(bounds, place) != 0) else {
        return true;
    };
    let at = now.as_nanos();
    let by = own.bare_by.load(Relaxed);
    let mut per_byte = if by == 0 { u64::MAX } else { per_bare_byte(bounds, place, by - 1) };
    let has_room = |per_byte, quarters| Bound::has_room(&own.bare_due, per_byte, quarters, bytes, at);
    let mut passes = by != 0 && has_room(per_byte, 3);
    if !passes {
        let found = by_data_of(bounds, place, back());
        let faster = per_bare_byte(bounds, place, found);
        if faster < per_byte {
            own.bare_by.store(found + 1, Relaxed);
            per_byte = faster;
        }
        passes = has_room(per_byte, 3) || has_room(per_byte, 4) && is_held();
    }
    if passes {
        Bound::charge(&own.bare_due, served(bytes, per_byte), at);
    } else {
        own.count_dropped(bytes);
    }
    passes
}

#[cfg(test)]
mod tests {
    use super::super::bound::Limit;
    use super::*;
    use crate::base::rate::Rate;
    use crate::packet::Counts;

    /// An ACK with timestamps.
    const ACK: u64 = 52;

    fn bounds(rates: &[Option<u64>]) -> Vec<Bound> {
        let limit = |mbit: &Option<u64>| {
            let most = mbit.map(Rate::mbit);
            Limit { most, own: None, above: None, flow: None, permits: false, counts: Counts::Ip }
        };
        let bound = |mbit| {
            let bound = Bound::default();
            bound.set(Some(limit(mbit)));
            bound
        };
        rates.iter().map(bound).collect()
    }

    /// Bytes that pass of a segment each 10 us, 41.6 Mbit/s, by second from `from` on.
    fn flood(bounds: &[Bound], from: u64, back: Option<u32>, held: bool) -> [u64; 3] {
        let mut passed = [0; 3];
        for n in 0..300_000u64 {
            let now = Time::from_micros(1_000_000 * from + 10 * n);
            if admits_bare(bounds, 0, ACK, now, || back, || held) {
                passed[n as usize / 100_000] += ACK;
            }
        }
        passed
    }

    /// Returns whether as much passed, or two segments more or less. A segment takes whole nanoseconds.
    fn is(passed: u64, expected: u64) -> bool {
        passed.abs_diff(expected) <= 2 * ACK + expected / 10_000
    }

    /// Bytes in a second at 1.05 times a rate in Mbit/s.
    const fn second(mbit: u64) -> u64 {
        mbit * 131_250
    }

    /// The class has 4 Mbit/s, and the data that its ACKs are for 16. Before it is bounded there is room for
    /// 64,000 bytes and 50 ms.
    #[test]
    fn a_flood_has_an_eighth_of_the_rate_of_the_data() {
        let room = 64_000 + second(2) / 20;
        for (held, quarters) in [(true, 4), (false, 3)] {
            let passed = flood(&bounds(&[Some(4), Some(16)]), 1, Some(1), held);
            let expected = [second(2) + room / 4 * quarters, second(2), second(2)];
            assert!(passed.iter().zip(expected).all(|(&n, m)| is(n, m)), "{held}: {passed:?}");
        }
    }

    #[test]
    fn without_data_that_is_bounded_they_have_the_rate_of_their_class() {
        // No class takes what they acknowledge, or one without a bound. 20 Mbit/s are 2,500,000 bytes.
        for (rates, back, bytes) in [
            (vec![Some(32)], None, second(32)),
            (vec![Some(32), None], Some(1), second(32)),
            (vec![Some(4)], None, 2_500_000),
        ] {
            let passed = flood(&bounds(&rates), 1, back, false);
            assert!(is(passed[2], bytes), "{rates:?}: {passed:?}");
        }
        // A class without a bound has none for them either.
        assert_eq!(flood(&bounds(&[None, Some(80)]), 1, Some(1), false)[2], 100_000 * ACK);
    }

    /// Flows acknowledge data of a slow class, of a fast one, and of a slow one again: the fast one bounds
    /// all of them.
    #[test]
    fn the_fastest_data_that_was_found_counts() {
        let bounds = bounds(&[Some(4), Some(16), Some(160)]);
        let found = [(1, 2), (2, 20), (1, 20)];
        for (n, (back, mbit)) in found.into_iter().enumerate() {
            let passed = flood(&bounds, 1 + 10 * n as u64, Some(back), false);
            assert!(is(passed[2], second(mbit)), "{back}: {passed:?}");
        }
    }

    /// ACKs for each segment of 1,500 bytes of 80 Mbit/s, 100 ms of them at once: all pass.
    #[test]
    fn acks_of_data_at_its_rate_find_room() {
        let bounds = bounds(&[Some(1), Some(80)]);
        let each = 80_000_000 / 8 / 1_500 / 10;
        let passes = |n: u64| {
            let now = Time::from_millis(1_000 + 100 * n);
            (0..each).all(|_| admits_bare(&bounds, 0, ACK, now, || Some(1), || false))
        };
        assert!((0..100).all(passes));
    }
}
