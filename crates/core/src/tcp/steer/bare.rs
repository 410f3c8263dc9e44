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
//! segment, and where one finds no room, so that traffic within the bound pays for no other look-up.
//!
//! Small segments of data have more ACKs than that. So each packet of data that its class has let pass makes
//! room for an ACK, for whichever segment that acknowledges data of this class finds none.
//!
//! Nobody fills the queue for all. The last quarter of the room is for segments of flows whose ACKs are
//! controlled. The quarter before is for hosts, by their addresses on the LAN's side, that use up no more
//! than a sixteenth of what the queue serves: new connections of the one open beside a flood of SYNs to the
//! other.
//!
//! Each class above has such a queue for all that are below it: the ACKs of a site's customers together are
//! bounded, too. The data is that of the class as far above the data's own class, or of the highest one
//! there. Its customers may be elsewhere in the other direction, so a class above serves at least its own
//! rate, and 20 Mbit/s. Where they have no room, a class still has its guaranteed rate, which pays for it.

use super::bound::{above, chain, Bound};
use super::due::{charge, has_room, served, FRACTION};
use crate::base::time::Time;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of data for each byte without.
const PART: u64 = 8;
/// Bytes for which a packet of data makes room: headers of IPv6 and TCP with timestamps (RFC 7323 §3.2).
const ACK: u64 = 40 + 20 + 12;
/// Most packets of data that make room at once: as much as there is.
const ACKS: u64 = 1_000;
/// A host has a part of what a queue serves, whatever others send: one by this. It may be ahead of it by so
/// many bytes.
const QUIET: u64 = 16;
const QUIET_ROOM: u64 = 4_000;
/// Quarters of the room that everybody has, that quiet hosts have, and that controlled flows have.
const OF_ALL: u64 = 2;
const OF_QUIET: u64 = 3;
const OF_HELD: u64 = 4;
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

/// Nanoseconds per byte at which the queue of a class above others is served, by the data found last.
fn per_bare_byte_above(bounds: &[Bound], class: &Bound) -> u64 {
    let least = class.per_byte().min(UNKNOWN);
    match class.bare_by.load(Relaxed) {
        0 => least,
        by => least.min(per_byte_of(bounds, by - 1) * PART),
    }
}

/// The segments of the class at `place` acknowledge data of the class at `back`: those above it bound them by
/// the data of those above that.
fn learn_above(bounds: &[Bound], place: u32, back: u32) {
    let mut by = back;
    for class in chain(bounds, place).skip(1) {
        by = above(bounds, by).unwrap_or(by);
        if per_byte_of(bounds, by) * PART < per_bare_byte_above(bounds, class) {
            class.bare_by.store(by + 1, Relaxed);
        }
    }
}

/// Each packet of `data` that has passed makes room for an ACK in the queue of the class that is `own`,
/// served at `per_byte`. Each does so once.
fn make_room(own: &Bound, data: &Bound, per_byte: u64, now: u64) {
    let (packets, acked) = (data.packets(), data.acked.load(Relaxed));
    // The second may have been read later.
    if packets <= acked || data.acked.compare_exchange(acked, packets, Relaxed, Relaxed).is_err() {
        return;
    }
    let room = served(packets.wrapping_sub(acked).min(ACKS) * ACK, per_byte);
    let wait = own.bare_due.load(Relaxed).saturating_sub(now);
    own.bare_due.fetch_sub(room.min(wait), Relaxed);
}

/// Returns whether the host with this record uses up no more than its part of a queue that is served at
/// `per_byte`. It is charged with the bytes then.
fn is_quiet(host: &AtomicU64, bytes: u64, per_byte: u64, now: u64) -> bool {
    let per_byte = per_byte * QUIET;
    if host.load(Relaxed).saturating_sub(now) > served(QUIET_ROOM, per_byte) {
        return false;
    }
    charge(host, served(bytes, per_byte), now);
    true
}

/// Room for a segment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    None,
    /// In the queues of its class and of all above it.
    Shared,
    /// In what its class has for itself; a class above it has none.
    Own,
}

/// Returns whether a segment of `bytes`, without data, of the class at this place may pass at `now`. It is
/// charged then. `back` finds the place of the class of the data that it acknowledges, and `is_held` says
/// whether the ACKs of its flow are controlled. `host` is its host's
/// [record](super::Strangers::of_bare).
pub fn admits_bare(
    bounds: &[Bound],
    place: u32,
    bytes: u64,
    now: Time,
    back: impl FnOnce() -> Option<u32>,
    is_held: impl FnOnce() -> bool,
    host: &AtomicU64,
) -> bool {
    let Some(own) = bounds.get(place as usize).filter(|_| per_byte_of(bounds, place) != 0) else {
        return true;
    };
    let at = now.as_nanos();
    let by = own.bare_by.load(Relaxed);
    let mut per_byte = if by == 0 { u64::MAX } else { per_bare_byte(bounds, place, by - 1) };
    let parents = || chain(bounds, place).skip(1);
    let room = |per_byte, quarters| {
        let fits = |class: &Bound| {
            let per_byte = per_bare_byte_above(bounds, class);
            has_room(&class.bare_due, per_byte, quarters, bytes, at)
        };
        match has_room(&own.bare_due, per_byte, quarters, bytes, at) {
            false => Room::None,
            true if parents().all(fits) => Room::Shared,
            true if own.is_within_own(bytes, at) => Room::Own,
            true => Room::None,
        }
    };
    let mut found = if by == 0 { Room::None } else { room(per_byte, OF_ALL) };
    if found == Room::None {
        let data = by_data_of(bounds, place, back());
        let faster = per_bare_byte(bounds, place, data);
        if faster < per_byte {
            own.bare_by.store(data + 1, Relaxed);
            per_byte = faster;
        }
        if data != place {
            learn_above(bounds, place, data);
            make_room(own, &bounds[data as usize], per_byte, at);
        }
        found = room(per_byte, OF_ALL);
        if found == Room::None && is_quiet(host, bytes, per_byte, at) {
            found = room(per_byte, OF_QUIET);
        }
        if found == Room::None && is_held() {
            found = room(per_byte, OF_HELD);
        }
    }
    if found == Room::None {
        own.count_dropped(bytes);
        return false;
    }
    charge(&own.bare_due, served(bytes, per_byte), at);
    for class in parents() {
        charge(&class.bare_due, served(bytes, per_bare_byte_above(bounds, class)), at);
    }
    if found == Room::Own {
        own.spend_own(bytes, at);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::bound::{admits, Kind, Limit, Load, Records};
    use super::super::tally::Tally;
    use super::*;
    use crate::base::rate::Rate;

    /// An ACK with timestamps.
    const ACK: u64 = 52;

    fn bounds(rates: &[Option<u64>]) -> Vec<Bound> {
        let limit = |mbit: &Option<u64>| {
            let most = mbit.map(Rate::mbit);
            Limit { most, ..Limit::NONE }
        };
        let bound = |mbit| {
            let bound = Bound::default();
            bound.set(Some(limit(mbit)));
            bound
        };
        rates.iter().map(bound).collect()
    }

    /// Bytes that pass of a segment each 10 us, 41.6 Mbit/s, by second from `from` on. All are of one host.
    fn flood(bounds: &[Bound], from: u64, back: Option<u32>, held: bool) -> [u64; 3] {
        let (mut passed, host) = ([0; 3], AtomicU64::new(0));
        for n in 0..300_000u64 {
            let now = Time::from_micros(1_000_000 * from + 10 * n);
            if admits_bare(bounds, 0, ACK, now, || back, || held, &host) {
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
        for (held, quarters) in [(true, 4), (false, 2)] {
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

    /// A class of 8 Mbit/s at place 0, and one of 4 Mbit/s at 1, below one of 12 Mbit/s at 2; their data is
    /// of those at 3 and 4, of 400 Mbit/s each, below one of `data` Mbit/s at 5. Of the first two, `own`
    /// Mbit/s are guaranteed.
    fn nested(data: u64, own: Option<u64>) -> Vec<Bound> {
        let rates = [8, 4, 12, 400, 400, data];
        let bound = |(place, mbit): (usize, u64)| {
            let above = [Some(2), Some(2), None, Some(5), Some(5), None][place];
            let own = own.filter(|_| place < 2).map(Rate::mbit);
            let most = Some(Rate::mbit(mbit));
            let bound = Bound::default();
            bound.set(Some(Limit { most, own, above, ..Limit::NONE }));
            bound
        };
        rates.into_iter().enumerate().map(bound).collect()
    }

    /// Bytes that pass of segments of both classes, 41.6 Mbit/s of each, in the third second.
    fn both(bounds: &[Bound], held: bool) -> [u64; 2] {
        let (mut passed, host) = ([0; 2], AtomicU64::new(0));
        for n in 0..300_000u64 {
            let now = Time::from_micros(1_000_000 + 10 * n);
            for place in 0..2 {
                let held = held && place == 1;
                let passes = admits_bare(bounds, place, ACK, now, || Some(3 + place), || held, &host);
                passed[place as usize] += if passes && n >= 200_000 { ACK } else { 0 };
            }
        }
        passed
    }

    /// Each class alone may have an eighth of 400 Mbit/s.
    #[test]
    fn a_class_above_bounds_those_of_all_below_it() {
        // An eighth of its data's rate; the least that is known of; and its own rate where that is more.
        for (data, bytes) in [(240, second(30)), (80, 2_500_000)] {
            let passed = both(&nested(data, None), false);
            assert!(is(passed.iter().sum(), bytes), "{data}: {passed:?}");
        }
        let fast = nested(240, None);
        fast[2].set(Some(Limit { most: Some(Rate::mbit(36)), ..Limit::NONE }));
        assert!(is(both(&fast, false).iter().sum(), second(36)), "its own rate");
    }

    /// A guarantee pays for a class's segments where a sibling fills the queue above.
    #[test]
    fn a_sibling_takes_neither_guarantees_nor_the_part_of_controlled_flows() {
        let passed = |bounds: &[Bound]| {
            let (mut passed, host) = (0, AtomicU64::new(0));
            for n in 0..300_000u64 {
                let now = Time::from_micros(1_000_000 + 10 * n);
                admits_bare(bounds, 0, ACK, now, || Some(3), || false, &host);
                // A segment each 416 us is 1 Mbit/s.
                let passes = n % 42 == 0 && admits_bare(bounds, 1, ACK, now, || Some(4), || false, &host);
                if passes && n >= 200_000 {
                    passed += ACK;
                }
            }
            passed
        };
        let sent = 2_381 * ACK;
        assert!(passed(&nested(240, Some(2))) >= sent - ACK, "it is guaranteed");
        assert!(passed(&nested(240, None)) < sent * 9 / 10, "it is not");
        let [_, held] = both(&nested(240, None), true);
        assert!(held > second(30) * 9 / 10, "the queue serves controlled flows first: {held}");
    }

    /// ACKs for each segment of 1,500 bytes of 80 Mbit/s, 100 ms of them at once: all pass.
    #[test]
    fn acks_of_data_at_its_rate_find_room() {
        let (bounds, host) = (bounds(&[Some(1), Some(80)]), AtomicU64::new(0));
        let each = 80_000_000 / 8 / 1_500 / 10;
        let passes = |n: u64| {
            let now = Time::from_millis(1_000 + 100 * n);
            (0..each).all(|_| admits_bare(&bounds, 0, ACK, now, || Some(1), || false, &host))
        };
        assert!((0..100).all(passes));
    }

    /// Segments of 60 bytes each, 1,000 a second, which are 0.9 Mbit/s with headers: each may have an ACK,
    /// though an eighth of their class's 1 Mbit/s serves 315. A connection that opens beside them finds room.
    #[test]
    fn each_packet_of_data_has_its_ack() {
        let (bounds, hosts) = (bounds(&[Some(20), Some(1)]), [0, 0].map(AtomicU64::new));
        let small = Load { packets: 1, bytes: 112, payload: 60, ecn: 0, kind: Kind::Held };
        let tallies = [0, 1].map(|_| Tally::default());
        let passes = |n: u64, host: usize| {
            let now = Time::from_millis(1_000 + n);
            admits_bare(&bounds, 0, ACK, now, || Some(1), || host == 0, &hosts[host])
        };
        for n in 0..20_000 {
            let now = Time::from_millis(1_000 + n);
            assert!(admits(&bounds, &tallies, 1, Records::default(), &small, now), "{n}");
            assert!(passes(n, 0) && (n % 100 > 0 || passes(n, 1)), "{n}");
        }
        // Without the data there is an eighth of the rate, and the room, which is made once again.
        let acks = (20_000..40_000).filter(|&n| passes(n, 0)).count() as u64;
        assert!(acks * ACK <= 20 * second(1) / 8 + 65_000 + ACKS * super::ACK, "{acks}");
    }

    /// A flood of ACKs beside packets of 1,500 bytes has an eighth of the rate, and 72 bytes for each packet.
    #[test]
    fn data_makes_room_for_one_ack_and_no_more() {
        let (bounds, host) = (bounds(&[Some(1), Some(12)]), AtomicU64::new(0));
        let full = Load { packets: 1, bytes: 1_500, payload: 1_448, ecn: 0, kind: Kind::Held };
        let tallies = [0, 1].map(|_| Tally::default());
        let mut acks = 0;
        for n in 0..200_000u64 {
            let now = Time::from_micros(1_000_000 + 50 * n);
            // 1,000 packets a second.
            let data = n % 20 == 0;
            assert!(!data || admits(&bounds, &tallies, 1, Records::default(), &full, now));
            let passes = admits_bare(&bounds, 0, ACK, now, || Some(1), || false, &host);
            acks += u64::from(passes);
        }
        let expected = 10 * (second(12) / 8 + 1_000 * super::ACK) + 64_000 / 2;
        assert!((acks * ACK).abs_diff(expected) <= expected / 100, "{acks} of {}", expected / ACK);
    }

    /// A flood of 900 SYNs a second to one host, of which 410 find room. At another host four connections a
    /// second open, of four segments each: 832 of 1,025 bytes that a sixteenth of the queue serves.
    #[test]
    fn a_flood_to_one_host_leaves_a_part_to_others() {
        let (bounds, hosts) = (bounds(&[Some(20), Some(1)]), [0, 0].map(AtomicU64::new));
        let passes = |host: usize, bytes, at| {
            let now = Time::from_micros(at);
            admits_bare(&bounds, 0, bytes, now, || Some(1), || false, &hosts[host])
        };
        let mut syns = 0;
        for n in 0..20_000u64 {
            let at = 1_000_000 + 1_111 * n;
            syns += u64::from(passes(1, 40, at));
            assert!(n % 225 > 0 || (0..4).all(|_| passes(0, ACK, at)), "{n}");
        }
        let served = 20_000 * 1_111 * (second(1) / 8) / 1_000_000;
        assert!((syns * 40).abs_diff(served + 32_000 - 18_500) <= 2_000, "{syns}");
    }
}
