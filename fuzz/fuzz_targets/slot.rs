//! Hooks and gateway at one slot, in any order: segments, ACKs that are made, grants.
//!
//! Input: flags of the slot and its scale, a byte each; records of 8 bytes: what is done, flags, sequence
//! number (signed 16 bits) and acknowledgement (signed 16 bits times 97) from where the slot is, window
//! (times 256), payload. `cargo +nightly fuzz run slot`
#![no_main]

use core::sync::atomic::Ordering::Relaxed;
use libfuzzer_sys::fuzz_target;
use weir_core::steer::{self, after, slot_flag, Action, Seen, Slot, Stamp};
use weir_core::time::Time;
use weir_core::wire::Seq;

/// `tx`, `nxt`, `ts`, `ack`, `edge` and `sent`: what only moves forward.
fn numbers(slot: &Slot) -> [u32; 6] {
    let seqs = [slot.tx(), slot.nxt(), slot.ack(), slot.edge(), slot.sent()].map(|seq| seq.0);
    let [tx, nxt, ack, edge, sent] = seqs;
    [tx, nxt, slot.ts(), ack, edge, sent]
}

fn edge(slot: &Slot, ack: Seq, window: u16) -> Seq {
    ack.plus(u32::from(window) << slot.scale())
}

fn seen(slot: &Slot, r: &[u8; 8]) -> Seen {
    let word = |i: usize| i32::from(i16::from_be_bytes([r[i], r[i + 1]]));
    Seen {
        flags: r[1] & !(steer::SYN | steer::RST) | if r[0] & 8 == 0 { steer::ACK } else { 0 },
        seq: slot.nxt().plus(word(2) as u32),
        ack: slot.tx().plus((word(4) * 97) as u32),
        window: u16::from(r[6]) << 8,
        payload: u32::from(r[7]) * 16,
        ts: (r[0] & 16 != 0).then(|| slot.ts().wrapping_add_signed(word(2) % 8)),
        sack: r[0] & 32 != 0,
        plain: r[0] & 32 == 0,
        at: 0,
    }
}

/// Checks that what leaves tells no more than the receiver has said, and the sender is known to know it.
fn check(slot: &Slot, seen: &Seen, believed: bool, action: Action) {
    let tx = slot.tx();
    match action {
        Action::SetBack { ack, window, .. } => {
            assert!(!ack.is_after(seen.ack) && !ack.is_after(tx));
            if slot.has(slot_flag::SCALED) {
                assert!(!edge(slot, ack, window).is_after(edge(slot, seen.ack, seen.window)));
            }
        }
        Action::Pass | Action::Copy if believed => assert!(!seen.ack.is_after(tx)),
        Action::Pass | Action::Copy => {}
        Action::Take => assert!(believed && seen.is_pure()),
    }
}

fn segment(slot: &Slot, seen: &Seen, taken: &mut Vec<Time>, at: Time) {
    let before = numbers(slot);
    let granted = slot.granted();
    let believed = seen.flags & steer::ACK != 0 && slot.believes(seen);
    let action = slot.segment(seen);
    if !believed {
        assert_eq!(numbers(slot), before);
    }
    check(slot, seen, believed, action);
    let passed = seen.is_pure() && slot.tx().is_after(Seq(before[0]));
    if passed && seen.flags & (steer::FIN | steer::URG) == 0 {
        // Nothing but a grant lets progress pass that carries nothing else.
        assert!(granted.is_some_and(|to| !seen.ack.is_after(to)) && taken.is_empty());
    }
    if action == Action::Take {
        slot.take();
        taken.push(at);
        assert_eq!(slot.granted(), None);
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&[kind, scale], mut rest)) = data.split_first_chunk::<2>() else { return };
    let slot = Slot::default();
    let flags = u32::from(kind) & 7 | u32::from(scale % 16) << slot_flag::SCALE_SHIFT;
    let (tx, own) = (0xffff_8000, 0xffff_8000u32.wrapping_add(200_000));
    slot.open(1, flags, tx, 0x7fff_ff00, 9, own, own, 500, 0);
    slot.width.store(if kind & 8 == 0 { 0 } else { 50_000 }, Relaxed);
    let mut taken = Vec::new();
    let mut now = Time::from_millis(1);
    while let Some((r, tail)) = rest.split_first_chunk::<8>() {
        rest = tail;
        now = Time::from_nanos(now.as_nanos() + 1_001);
        let (before, seen) = (numbers(&slot), seen(&slot, r));
        match r[0] & 7 {
            0..=2 => segment(&slot, &seen, &mut taken, now),
            3 => {
                let believed = seen.flags & steer::ACK != 0 && slot.believes(&seen);
                let action = slot.bypass(&seen);
                assert!(matches!(action, Action::Pass | Action::SetBack { report: false, .. }));
                check(&slot, &seen, believed, action);
            }
            4 => {
                let known = slot.edge();
                if let Stamp::Send { window, .. } = slot.stamp(seen.ack, seen.window) {
                    assert!(!Seq(before[0]).is_after(seen.ack) && slot.tx() == seen.ack);
                    let (said, told) = (edge(&slot, seen.ack, window), edge(&slot, seen.ack, seen.window));
                    assert!(!slot.has(slot_flag::SCALED) || !said.is_after(known) || said == told);
                }
            }
            5 => assert_eq!(slot.grant(Seq(before[0]).plus(u32::from(r[2]) << 8)), taken.is_empty()),
            6 => slot.revoke(),
            // The gateway has what was taken, in order.
            _ => taken.drain(..).for_each(|_| slot.has_come()),
        }
        for (new, old) in numbers(&slot).into_iter().zip(before) {
            assert!(!after(old, new), "{before:x?} became {:x?}", numbers(&slot));
        }
    }
});
