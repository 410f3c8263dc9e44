use super::*;
use crate::base::time::Duration;

const ALL: Told = Told { ack: 0, edge: Some(1 << 24) };

/// A sight with data that begins at 1,000.
fn sight() -> Sight {
    let sight = Sight::default();
    sight.open(1_000);
    sight
}

fn at(ms: u64) -> u32 {
    units(Time::ZERO + Duration::from_millis(ms))
}

fn packet(seq: u32, ms: u64) -> Data {
    Data { seq, payload: 1_000, packets: 1, echo: None, now: at(ms) }
}

#[test]
fn data_that_comes_again_is_counted_in_packets() {
    let sight = sight();
    for seq in [1_000, 2_000, 3_000] {
        assert_eq!(sight.data(&packet(seq, 0), &ALL), None);
    }
    assert_eq!(sight.data(&packet(2_000, 50), &ALL), Some(Repeat::Again(1)));
    // A giant segment of four, two of which are new.
    let giant = Data { payload: 4_000, packets: 4, ..packet(2_000, 60) };
    assert_eq!(sight.data(&giant, &ALL), Some(Repeat::Again(2)));
    assert_eq!(sight.data(&packet(6_000, 60), &ALL), None);
    assert_eq!((sight.repeated(), sight.reordered()), (3, 0));
    // A probe asks whether anybody is there.
    assert_eq!(sight.data(&Data { payload: 1, ..packet(6_999, 900) }, &ALL), None);
}

#[test]
fn what_fills_a_hole_at_once_was_overtaken() {
    let sight = sight();
    sight.data(&packet(1_000, 7), &ALL);
    sight.data(&packet(3_000, 7), &ALL);
    assert_eq!(sight.data(&packet(2_000, 9), &ALL), Some(Repeat::Overtaken(1)));
    sight.data(&packet(5_000, 20), &ALL);
    assert_eq!(sight.data(&packet(4_000, 26), &ALL), Some(Repeat::Again(1)), "it was lost");
    assert_eq!((sight.repeated(), sight.reordered()), (1, 1));
}

/// Two processors send one flow: packets of one overtake those of the other, and the sender repeats some of
/// them at once.
#[test]
fn what_comes_again_beside_a_hole_was_sent_again() {
    let sight = sight();
    for seq in [1_000, 4_000] {
        assert_eq!(sight.data(&packet(seq, 7), &ALL), None);
    }
    for (seq, found) in [
        (2_000, Repeat::Overtaken(1)),
        (4_000, Repeat::Again(1)), // behind the hole
        (3_000, Repeat::Overtaken(1)),
        (2_000, Repeat::Again(1)),
        (3_000, Repeat::Again(1)),
        (1_000, Repeat::Again(1)),
    ] {
        assert_eq!(sight.data(&packet(seq, 8), &ALL), Some(found), "{seq}");
    }
    assert_eq!((sight.repeated(), sight.reordered()), (4, 2));
}

#[test]
fn data_that_nobody_may_send_changes_nothing() {
    let sight = sight();
    let told = Told { ack: 1_000, edge: Some(11_000) };
    sight.data(&packet(10_001, 0), &told);
    sight.data(&packet(0x8000_0000, 0), &told);
    assert_eq!(sight.data(&packet(1_000, 0), &told), None, "it is the first");
    let unscaled = Told { edge: None, ..told };
    sight.data(&packet(1 << 30, 0), &unscaled);
    sight.data(&packet(2_000, 0), &Told { ack: 1_000u32.wrapping_sub(1 << 29), ..unscaled });
    assert_eq!(sight.data(&packet((1 << 30) + 1_001, 0), &unscaled), None);
    // Very old data is not the connection's.
    let far = Told { ack: 1 << 23, edge: Some(1 << 24) };
    sight.data(&packet(1 << 23, 0), &far);
    assert_eq!((sight.data(&packet(1_000, 0), &far), sight.repeated()), (None, 0));
}

/// One measurement goes around: 30 ms to the receiver, 20 ms held, 40 ms to the sender.
#[test]
fn a_measurement_goes_around() {
    let sight = sight();
    sight.data(&packet(1_000, 100), &ALL);
    sight.data(&packet(2_000, 101), &ALL);
    assert!(!sight.is_answered(1_999, at(129)) && sight.is_answered(2_000, at(130)));
    let answer = sight.answer(500, 9, at(130));
    assert_eq!(answer, Answer { receiver: Some(at(130) - at(100)), ..Answer::default() });
    assert!(sight.is_held() && !sight.is_answered(9_000, at(131)));
    sight.leaves(1_500, Some(500), 9, at(140));
    sight.leaves(2_000, Some(510), 9, at(150));
    assert!(!sight.is_held() && sight.awaits_echo());
    let echo = |seq, ms, echo| Data { echo: Some(echo), ..packet(seq, ms) };
    sight.data(&echo(3_000, 189, 509), &ALL);
    sight.data(&echo(4_000, 190, 510), &ALL);
    assert!(sight.is_answered(0, at(191)));
    let (held, sender) = (Some(at(150) - at(130)), Some(at(190) - at(150)));
    assert_eq!(sight.answer(0, 0, at(195)), Answer { receiver: None, held, sender });
    sight.data(&packet(5_000, 196), &ALL);
    assert!(sight.is_answered(6_000, at(200)), "the next one has begun");
}

#[test]
fn a_repetition_ends_a_measurement() {
    let sight = sight();
    sight.data(&packet(1_000, 0), &ALL);
    sight.data(&packet(2_000, 0), &ALL);
    sight.data(&packet(1_000, 30), &ALL);
    assert!(!sight.is_answered(3_000, at(60)), "the ACK may be of either");
}

/// A timestamp that has left before, with an ACK or with the receiver's own data, tells nothing.
#[test]
fn only_the_first_ack_with_a_timestamp_measures() {
    let held = || {
        let sight = sight();
        sight.data(&packet(1_000, 0), &ALL);
        sight.answer(500, 9, at(10));
        sight
    };
    let again = held();
    again.leaves(1_500, Some(500), 9, at(12));
    again.leaves(2_000, Some(500), 9, at(20));
    let two_way = held();
    two_way.leaves(2_000, Some(501), 1_009, at(20));
    let without = held();
    without.leaves(2_000, None, 9, at(20));
    for sight in [again, two_way, without] {
        assert!(!sight.awaits_echo() && sight.is_answered(0, at(21)));
        assert_eq!(sight.answer(0, 0, at(21)), Answer { held: Some(at(20) - at(10)), ..Answer::default() });
    }
}

#[test]
fn an_ack_that_the_kernel_passes_measures_too() {
    let sight = sight();
    sight.data(&packet(1_000, 100), &ALL);
    sight.passes(1_999, Some(7), at(110));
    sight.passes(2_000, Some(8), at(130));
    sight.data(&Data { echo: Some(8), ..packet(2_000, 160) }, &ALL);
    let (receiver, sender) = (Some(at(130) - at(100)), Some(at(160) - at(130)));
    assert_eq!(sight.answer(0, 0, at(170)), Answer { receiver, held: Some(0), sender });
    let sight = self::sight();
    sight.data(&packet(1_000, 100), &ALL);
    sight.passes(2_000, None, at(5_000));
    assert!(!sight.is_answered(2_000, at(5_001)), "longer than four seconds");
}

#[test]
fn another_connection_begins_with_nothing() {
    let sight = sight();
    sight.data(&packet(1_000, 0), &ALL);
    sight.data(&packet(1_000, 0), &ALL);
    sight.begin();
    sight.open(77);
    assert_eq!((sight.repeated(), sight.data(&packet(77, 0), &ALL)), (0, None));
    // Opened again in the same connection, what has passed is known.
    sight.open(500);
    assert_eq!(sight.data(&packet(77, 0), &ALL), Some(Repeat::Again(1)));
}
