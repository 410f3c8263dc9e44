//! What a hook does with segments that the receiver may or may not have sent, on a slot. Numbers are those of
//! RFC 9293 and RFC 5961; the bounds are the constants of `steer`.

use core::sync::atomic::Ordering::Relaxed;
use weir_core::steer::*;

const NXT: u32 = 0xffff_fff0; // numbers wrap soon
const TX: u32 = 0x7fff_ff00;
const SCALE: u32 = 7;
/// The receiver's right edge: 100,000 bytes beyond `TX`.
const EDGE: u32 = TX.wrapping_add(100_000);

fn slot() -> Slot {
    let slot = Slot::default();
    let flags = slot_flag::SCALED | SCALE << slot_flag::SCALE_SHIFT;
    slot.open(1, flags, TX, NXT, 50, EDGE, EDGE, 782);
    slot
}

fn ack(n: u32) -> Seen {
    Seen { flags: ACK, seq: NXT, ack: TX.wrapping_add(n), window: 782, ts: Some(60), ..Seen::default() }
}

fn payload(n: u32, bytes: u32) -> Seen {
    Seen { payload: bytes, ..ack(n) }
}

fn at(seen: Seen, offset: i32) -> Seen {
    Seen { seq: NXT.wrapping_add_signed(offset), ..seen }
}

/// Tag, tx, nxt, edge: what a disbelieved segment must leave alone.
fn numbers(slot: &Slot) -> [u32; 4] {
    [&slot.tag, &slot.tx, &slot.nxt, &slot.edge].map(|n| n.load(Relaxed))
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
        assert_eq!((numbers(&slot), slot.doubts.load(Relaxed)), (before, 2));
        assert_eq!(slot.segment(&ack(1_000)), Action::Take);
        assert_eq!(slot.doubts.load(Relaxed), 0);
    }
}

#[test]
fn an_ack_does_not_move_the_sequence_number() {
    // A segment before it was lost, or it is forged: made ACKs stay where the sender accepts them.
    let slot = slot();
    assert_eq!(slot.segment(&at(ack(1_000), 5_000)), Action::Take);
    assert_eq!(slot.nxt.load(Relaxed), NXT);
    // One that a segment with payload overtook is as good as any other.
    assert_eq!(slot.segment(&payload(0, 1_448)), Action::Pass);
    assert_eq!(slot.nxt.load(Relaxed), NXT.wrapping_add(1_448));
    assert_eq!(slot.segment(&ack(2_000)), Action::Take);
}

#[test]
fn keepalives_and_retransmissions_pass_and_teach_nothing() {
    let slot = slot();
    // The window's right edge stays: 5,000 bytes are 39 units of 128, rounded down.
    let back = Action::SetBack { ack: TX, window: 782 + 39, report: false };
    assert_eq!(slot.segment(&at(ack(5_000), -1)), back);
    assert_eq!(slot.segment(&at(payload(5_000, 1), -1)), back);
    assert_eq!(slot.segment(&at(payload(5_000, 1_000), -1_000)), back);
    // A FIN that comes again does not say anew what the sender may know.
    let fin = Seen { flags: ACK | FIN, ..payload(5_000, 99) };
    assert_eq!(slot.segment(&at(fin, -100)), back);
    assert_eq!((slot.tx.load(Relaxed), slot.ended.load(Relaxed)), (TX, 0));
}

#[test]
fn a_tail_loss_probe_brings_the_newest_timestamp() {
    // RFC 7323 section 4.3: whoever has acknowledged up to `SEG.SEQ` at least takes its TSval, of old data too; a made
    // ACK with an older one would then be refused.
    let slot = slot();
    let stamped = |slot: &Slot, ack: u32| match slot.stamp(TX + ack, 782) {
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
    assert_eq!((slot.tx.load(Relaxed), slot.nxt.load(Relaxed)), (TX + 5_000, NXT.wrapping_add(1)));
    assert_eq!(slot.stamp(TX + 5_000, 782), Stamp::Discard);
    assert!(matches!(slot.stamp(TX + 6_000, 782), Stamp::Send { .. }));
}

#[test]
fn what_passes_an_absent_gateway_keeps_the_windows_bound() {
    let slot = slot();
    slot.flags.fetch_or(slot_flag::SIZED, Relaxed);
    // The sender knows 100,000 bytes; no edge goes back, and none goes beyond 30,000 bytes any more.
    slot.width.store(30_000, Relaxed);
    let wide = Seen { window: 4_000, ..ack(60_000) };
    // 40,000 bytes are left of what it knows: 312.5 units of 128 bytes.
    assert_eq!(slot.bypass(&wide), Action::SetBack { ack: TX + 60_000, window: 313, report: false });
    let wide = Seen { window: 4_000, ..ack(90_000) };
    // 30,000 bytes are 234.4 units.
    assert_eq!(slot.bypass(&wide), Action::SetBack { ack: TX + 90_000, window: 235, report: false });
    assert_eq!((slot.tx.load(Relaxed), slot.sent.load(Relaxed)), (TX + 90_000, TX + 90_000 + 235 * 128));
    // Zero stays zero, and what cannot be true changes nothing.
    assert_eq!(slot.bypass(&Seen { window: 0, ..ack(90_000) }), Action::Pass);
    assert_eq!(slot.bypass(&at(ack(99_000), 1 << 20)), Action::Pass);
    assert_eq!(slot.tx.load(Relaxed), TX + 90_000);
}
