//! A hook at a slot, with segments that the receiver may or may not have sent. Numbers are those of
//! RFC 9293 and RFC 5961; the bounds are the constants of `steer`.

use core::sync::atomic::Ordering::Relaxed;
use weir_core::steer::*;
use weir_core::wire::Seq;

const NXT: u32 = 0xffff_fff0; // numbers wrap soon
const TX: u32 = 0x7fff_ff00;
const SCALE: u32 = 7;
/// The receiver's right edge: 100,000 bytes beyond `TX`.
const EDGE: u32 = TX.wrapping_add(100_000);

/// Nothing has happened for no time, which allows no TSval to be far ahead.
const AT: u32 = 7;

fn slot() -> Slot {
    let slot = Slot::default();
    let flags = slot_flag::SCALED | SCALE << slot_flag::SCALE_SHIFT;
    slot.open(1, flags, TX, NXT, 50, EDGE, EDGE, 782, AT);
    slot
}

fn ack(n: u32) -> Seen {
    Seen {
        flags: ACK,
        seq: Seq(NXT),
        ack: Seq(TX.wrapping_add(n)),
        window: 782,
        ts: Some(60),
        at: AT,
        ..Seen::default()
    }
}

fn payload(n: u32, bytes: u32) -> Seen {
    Seen { payload: bytes, ..ack(n) }
}

fn at(seen: Seen, offset: i32) -> Seen {
    Seen { seq: Seq(NXT.wrapping_add_signed(offset)), ..seen }
}

/// Tag, tx, nxt, edge: what a disbelieved segment must leave alone.
fn numbers(slot: &Slot) -> [u32; 4] {
    [slot.tag.load(Relaxed), slot.tx().0, slot.nxt().0, slot.edge().0]
}

#[test]
fn what_cannot_be_true_changes_nothing() {
    let far = [
        ack(100_001),                              // beyond the right edge
        ack((-(0xffffi32 << SCALE) - 1) as u32),   // a largest window below SND.UNA
        at(ack(1_000), SEQ_AHEAD as i32 + 1),      // beyond the receiver's SND.NXT
        at(ack(1_000), -(PURE_BEHIND as i32) - 1), // long overtaken
        at(payload(1_000, 10), -(SEQ_BEHIND as i32) - 1),
    ];
    for seen in far {
        let slot = slot();
        let before = numbers(&slot);
        assert!(!slot.believes(&seen));
        assert_eq!(slot.segment(&seen), Action::Copy, "the first is shown");
        assert_eq!(slot.segment(&seen), Action::Pass);
        assert_eq!((numbers(&slot), slot.doubts()), (before, 2));
        assert_eq!(slot.segment(&ack(1_000)), Action::Take);
        assert_eq!(slot.doubts(), 0);
    }
}

#[test]
fn an_ack_does_not_move_the_sequence_number() {
    // A segment before it was lost, or it is forged: made ACKs stay where the sender accepts them.
    let slot = slot();
    assert_eq!(slot.segment(&at(ack(1_000), 5_000)), Action::Take);
    assert_eq!(slot.nxt(), NXT);
    // One that a segment with payload overtook is as good as any other.
    assert_eq!(slot.segment(&payload(0, 1_448)), Action::Pass);
    assert_eq!(slot.nxt(), NXT.wrapping_add(1_448));
    assert_eq!(slot.segment(&ack(2_000)), Action::Take);
}

#[test]
fn keepalives_and_retransmissions_pass_and_teach_nothing() {
    let slot = slot();
    // The window's right edge stays: 5,000 bytes are 39 units of 128, rounded down.
    let back = Action::SetBack { ack: Seq(TX), window: 782 + 39, report: false };
    assert_eq!(slot.segment(&at(ack(5_000), -1)), back);
    assert_eq!(slot.segment(&at(payload(5_000, 1), -1)), back);
    assert_eq!(slot.segment(&at(payload(5_000, 1_000), -1_000)), back);
    // A FIN that comes again does not repeat what the sender may know.
    let fin = Seen { flags: ACK | FIN, ..payload(5_000, 99) };
    assert_eq!(slot.segment(&at(fin, -100)), back);
    assert_eq!((slot.tx().0, slot.has_ended()), (TX, false));
}

#[test]
fn a_tail_loss_probe_brings_the_newest_timestamp() {
    // RFC 7323 section 4.3: an end that has acknowledged up to `SEG.SEQ` at least takes its TSval, of old
    // data too; a made ACK with an older one would then be refused.
    let slot = slot();
    let stamped = |slot: &Slot, ack: u32| match slot.stamp(Seq(TX + ack), 782) {
        Stamp::Send { ts, .. } => ts,
        Stamp::Discard => panic!("nothing newer has left"),
    };
    slot.segment(&payload(0, 1_448));
    slot.segment(&at(payload(0, 1_448), 1_448));
    assert_eq!(stamped(&slot, 1_000), 60);
    let later = |seen: Seen, ts: u32| Seen { ts: Some(ts), ..seen };
    // Of what has a successor that passed, nothing is believed; nor of a keepalive.
    slot.segment(&later(payload(0, 1_448), 70));
    slot.segment(&later(at(ack(0), 2 * 1_448 - 1), 70));
    assert_eq!(stamped(&slot, 2_000), 60);
    slot.segment(&later(at(payload(0, 1_448), 1_448), 80));
    assert_eq!(stamped(&slot, 3_000), 80);
}

#[test]
fn a_fin_passes_with_its_own_ack_and_ends_old_ones() {
    let slot = slot();
    let fin = Seen { flags: ACK | FIN, ..ack(5_000) };
    assert_eq!(slot.segment(&fin), Action::Copy);
    assert_eq!((slot.tx().0, slot.nxt().0), (TX + 5_000, NXT.wrapping_add(1)));
    assert_eq!(slot.stamp(Seq(TX + 5_000), 782), Stamp::Discard);
    assert!(matches!(slot.stamp(Seq(TX + 6_000), 782), Stamp::Send { .. }));
}

#[test]
fn what_passes_an_absent_gateway_keeps_the_windows_bound() {
    let slot = slot();
    slot.flags.fetch_or(slot_flag::SIZED, Relaxed);
    // The sender knows 100,000 bytes; no edge goes back, and none goes beyond 30,000 bytes any more.
    slot.width.store(30_000, Relaxed);
    let wide = Seen { window: 4_000, ..ack(60_000) };
    // 40,000 bytes are left of what it knows: 312.5 units of 128 bytes.
    assert_eq!(slot.bypass(&wide), Action::SetBack { ack: Seq(TX + 60_000), window: 313, report: false });
    let wide = Seen { window: 4_000, ..ack(90_000) };
    // 30,000 bytes are 234.4 units.
    assert_eq!(slot.bypass(&wide), Action::SetBack { ack: Seq(TX + 90_000), window: 235, report: false });
    assert_eq!((slot.tx().0, slot.sent().0), (TX + 90_000, TX + 90_000 + 235 * 128));
    // Zero stays zero, and what cannot be true changes nothing.
    assert_eq!(slot.bypass(&Seen { window: 0, ..ack(90_000) }), Action::Pass);
    assert_eq!(slot.bypass(&at(ack(99_000), 1 << 20)), Action::Pass);
    assert_eq!(slot.tx(), TX + 90_000);
}

/// Nothing but progress.
fn plain(n: u32) -> Seen {
    Seen { plain: true, ..ack(n) }
}

/// A slot whose hook may let plain segments pass for 10,000 bytes.
fn granted() -> Slot {
    let slot = slot();
    assert!(slot.grant(Seq(TX.wrapping_add(10_000))));
    slot
}

#[test]
fn what_is_granted_passes_and_is_noted() {
    let slot = granted();
    assert_eq!(slot.segment(&plain(4_000)), Action::Pass);
    assert_eq!(slot.segment(&Seen { flags: ACK | PSH, payload: 100, ..plain(5_000) }), Action::Pass);
    let numbers = [slot.tx().0, slot.nxt().0, slot.ts(), slot.ack().0];
    assert_eq!(numbers, [TX.wrapping_add(5_000), NXT.wrapping_add(100), 60, TX.wrapping_add(5_000)]);
    // The sender knows of the right edge: 782 units of 128 bytes.
    let right = TX.wrapping_add(5_000 + 782 * 128);
    assert_eq!([slot.sent(), slot.edge()], [right; 2]);
    // What is older has nothing to tell, and what is beyond waits for the gateway.
    let next = |n| Seen { seq: Seq(NXT.wrapping_add(100)), ..plain(n) };
    assert_eq!(slot.segment(&next(4_500)), Action::Take);
    assert_eq!(slot.segment(&next(10_001)), Action::Take);
    assert_eq!(slot.tx(), TX.wrapping_add(5_000));
    assert_eq!(slot.segment(&next(10_000)), Action::Pass);
}

#[test]
fn a_granted_window_is_within_its_bounds() {
    let slot = granted();
    slot.flags.fetch_or(slot_flag::SIZED, Relaxed);
    slot.width.store(12_800, Relaxed);
    slot.assume(|n| n.sent = Seq(TX));
    // 100 units of the receiver's 782.
    assert_eq!(
        slot.segment(&plain(1_000)),
        Action::SetBack { ack: Seq(TX.wrapping_add(1_000)), window: 100, report: false }
    );
    assert_eq!(slot.sent(), TX.wrapping_add(13_800));
    // Never beyond the receiver's own.
    assert_eq!(slot.segment(&Seen { window: 50, ..plain(2_000) }), Action::Pass);
    assert_eq!(slot.sent(), TX.wrapping_add(13_800));
}

#[test]
fn what_tells_more_than_progress_has_no_grant() {
    let others = [
        Seen { plain: false, ..plain(1_000) },
        Seen { flags: ACK | 0x40, ..plain(1_000) }, // ECE
        Seen { flags: ACK | 0x80, ..plain(1_000) }, // CWR
        Seen { flags: ACK | URG, ..plain(1_000) },
        Seen { window: 0, ..plain(1_000) },
        plain(0), // a duplicate, or another window
        at(plain(1_000), 1),
        at(plain(1_000), -2),
    ];
    for seen in others {
        let slot = granted();
        let tx = slot.tx();
        let action = slot.segment(&seen);
        assert!(matches!(action, Action::Take) || seen.flags & URG != 0, "{seen:?}: {action:?}");
        assert_eq!(slot.tx(), tx, "{seen:?}");
    }
    // The opening of a window.
    let slot = granted();
    slot.assume(|n| n.window = 0);
    assert_eq!(slot.segment(&plain(1_000)), Action::Take);
    // What cannot be true: beyond the receiver's right edge, whatever is granted.
    let slot = slot_granted_far();
    assert_eq!(slot.segment(&plain(100_001)), Action::Copy);
    assert_eq!(slot.tx(), TX);
}

fn slot_granted_far() -> Slot {
    let slot = slot();
    assert!(slot.grant(Seq(TX.wrapping_add(1 << 20))));
    slot
}

#[test]
fn nothing_passes_ahead_of_what_waits_for_the_gateway() {
    let slot = granted();
    slot.take();
    assert_eq!((slot.granted(), slot.grant(Seq(TX.wrapping_add(9_000)))), (None, false));
    slot.take();
    // One has come, the other has not.
    slot.has_come();
    assert!(slot.is_waited_for() && !slot.grant(Seq(TX.wrapping_add(9_000))));
    slot.has_come();
    assert!(slot.grant(Seq(TX.wrapping_add(9_000))));
    slot.revoke();
    assert_eq!(slot.segment(&plain(1_000)), Action::Take);
    // Another use of the slot knows nothing of the last.
    assert!(slot.grant(Seq(TX.wrapping_add(9_000))));
    slot.open(2, 0, TX, NXT, 0, EDGE, EDGE, 782, AT);
    assert_eq!((slot.granted(), slot.is_waited_for()), (None, false));
}

#[test]
fn a_grant_up_to_the_number_that_means_none_is_a_byte_short() {
    let slot = Slot::default();
    slot.open(1, slot_flag::SCALED, 0u32.wrapping_sub(5_000), NXT, 50, 5_000, 5_000, 782, AT);
    assert!(slot.grant(Seq(0)));
    assert_eq!(slot.granted().map(|to| to.0), Some(u32::MAX));
}

fn ts(ts: u32, at: u32, seen: Seen) -> Seen {
    Seen { ts: Some(ts), at: AT + at, ..seen }
}

/// RFC 7323 section 5.4: a clock makes a tick a millisecond at most, about one of the hook's. An ACK that is
/// made with a TSval ahead of it has the sender drop what the receiver sends until its clock is there.
#[test]
fn a_tsval_is_believed_as_far_as_time_allows() {
    for seen in [ack(0), payload(0, 10)] {
        let slot = slot();
        slot.segment(&ts(50 + CLOCK_SLACK + 1, 0, seen));
        assert_eq!(slot.ts(), 50);
        slot.segment(&ts(50 + CLOCK_SLACK, 0, at(seen, 10)));
        assert_eq!(slot.ts(), 50 + CLOCK_SLACK);
        // An hour of silence, in which the clock goes on.
        let hour = 3_600_000;
        slot.segment(&ts(50 + CLOCK_SLACK + hour, hour, at(seen, 20)));
        assert_eq!(slot.ts(), 50 + CLOCK_SLACK + hour);
    }
    // One wrong bit.
    let slot = slot();
    slot.segment(&ts(60 + (1 << 29), 10, payload(0, 10)));
    assert_eq!(slot.ts(), 50);
}

#[test]
fn several_in_a_row_tell_of_a_clock_that_is_ahead() {
    let slot = slot();
    let ahead = 50 + (1 << 30);
    for (n, expected) in [(0, 50), (1, 50), (2, ahead + 2)] {
        slot.segment(&ts(ahead + n, 0, ack(0)));
        assert_eq!(slot.ts(), expected);
    }
    // Not in a row.
    let slot = slot_at(50);
    for n in 0..8 {
        slot.segment(&ts(ahead + n, 0, ack(0)));
        slot.segment(&ts(50, 0, ack(0)));
    }
    assert_eq!(slot.ts(), 50);
}

fn slot_at(ts: u32) -> Slot {
    let slot = slot();
    slot.assume(|n| n.ts = ts);
    slot
}

#[test]
fn a_clock_of_microseconds_is_found_out() {
    let slot = slot();
    let at = |ms: u32| ts(50 + 1_000 * ms, ms, ack(0));
    for ms in [10, 11, 12] {
        slot.segment(&at(ms));
    }
    assert_eq!(slot.ts(), 12_050);
    // From then on time allows it at once.
    slot.segment(&at(2_000));
    assert_eq!(slot.ts(), 2_000_050);
}

#[test]
fn a_wrong_tsval_is_taken_back_when_the_receiver_says_so() {
    let slot = slot_at(50 + (1 << 28));
    // 100.7 ms: an ACK that the newest has overtaken is no later.
    for n in 0..20 {
        slot.segment(&ts(60 + n, 4 * n, ack(0)));
        assert_eq!(slot.ts(), 50 + (1 << 28), "{n}");
    }
    // Payload is not summed.
    slot.segment(&ts(40, 96, payload(0, 10)));
    assert_eq!(slot.ts(), 50 + (1 << 28));
    slot.segment(&ts(200, 96, ack(0)));
    assert_eq!(slot.ts(), 200);
    slot.segment(&ts(210, 97, ack(0)));
    assert_eq!(slot.ts(), 210);
    // Another use of the slot begins with its own.
    slot.open(2, 0, TX, NXT, 5, EDGE, EDGE, 782, AT);
    assert_eq!(slot.ts(), 5);
}

#[test]
fn what_the_gateway_takes_back_stays_back() {
    let slot = slot();
    slot.segment(&payload(0, 5_000));
    slot.set_nxt(Seq(NXT));
    assert_eq!(slot.nxt(), NXT);
    // From there on it moves by what is seen.
    slot.segment(&payload(0, 100));
    assert_eq!(slot.nxt(), NXT.wrapping_add(100));
}

#[test]
fn numbers_that_go_round_leave_the_first_ones_behind() {
    let slot = slot();
    slot.note_seen(&payload(1_000, 10));
    assert_eq!((slot.tx().0, slot.nxt().0), (TX.wrapping_add(1_000), NXT.wrapping_add(10)));
    let (mut seq, step) = (NXT.wrapping_add(10), 60_000);
    // Five times 2^30 bytes each way: serial numbers half a circle apart are neither before nor after each
    // other.
    for n in 1..=90_000u32 {
        let seen = Seen { seq: Seq(seq), ..payload(n.wrapping_mul(step), 60_000) };
        slot.bypass(&seen);
        seq = seq.wrapping_add(60_000);
        let numbers = slot.numbers();
        assert_eq!((numbers.tx, numbers.nxt, numbers.ack), (seen.ack, Seq(seq), seen.ack), "{n}");
    }
}
