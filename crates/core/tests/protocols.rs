//! Hooks on several processors and the gateway at one slot, in all orders that a memory model with weak
//! ordering allows (`loom`): `cargo test --release -p weir-core --features loom --test protocols`.
#![cfg(feature = "loom")]

use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::sync::Arc;
use loom::thread;
use weir_core::steer::*;
use weir_core::wire::Seq;

const TX: Seq = Seq(1_000);
const NXT: Seq = Seq(9_000);
const EDGE: Seq = Seq(50_000);
const FLAGS: u32 = slot_flag::SCALED;

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    // Two switches ahead of time find what these protocols can get wrong; where even those take long, as many
    // as there is time for.
    builder.preemption_bound = Some(2);
    builder.max_duration = Some(std::time::Duration::from_secs(20));
    builder.check(run);
}

fn open(slot: &Slot, tag: u32, base: u32) {
    let [tx, nxt, edge] = [TX, NXT, EDGE].map(|seq| seq.plus(base));
    slot.open(tag, FLAGS, tx, nxt, base + 5, edge, edge, 100, 0);
}

fn slot() -> Arc<Slot> {
    let slot = Arc::new(Slot::default());
    open(&slot, 1, 0);
    slot
}

fn ack(n: u32) -> Seen {
    let seen = Seen { flags: ACK, seq: NXT, ack: TX.plus(n), window: 100, ..Seen::default() };
    Seen { plain: true, ts: Some(6), ..seen }
}

fn data(n: u32, bytes: u32) -> Seen {
    Seen { payload: bytes, ..ack(n) }
}

#[test]
fn two_hooks_and_the_gateway_note_by_a_maximum() {
    model(|| {
        let slot = slot();
        // A segment that passed before the hooks knew of the slot.
        slot.note_seen(&Seen { ts: Some(7), ..data(100, 20) });
        let hook = |seen: Seen| {
            let slot = slot.clone();
            thread::spawn(move || slot.segment_among(1, &seen))
        };
        let hooks = [hook(ack(300)), hook(data(200, 10))];
        let before = slot.numbers();
        for hook in hooks {
            hook.join().unwrap();
        }
        let now = slot.numbers();
        assert_eq!((now.ack, now.nxt, now.ts, now.tx), (TX.plus(300), NXT.plus(20), 7, TX.plus(100)));
        assert!(!before.ack.is_after(now.ack) && !before.nxt.is_after(now.nxt) && !after(before.ts, now.ts));
    });
}

#[test]
fn what_the_gateway_takes_back_is_not_pushed_again() {
    model(|| {
        let slot = slot();
        slot.segment_among(1, &data(0, 5_000));
        let hook = {
            let slot = slot.clone();
            // It ends where the forged one did.
            thread::spawn(move || slot.segment_among(1, &Seen { seq: NXT.plus(4_900), ..data(0, 200) }))
        };
        slot.set_nxt(NXT);
        hook.join().unwrap();
        // Noted in the turn before, it does not count; seen in the new one, it is the receiver's.
        assert!([NXT, NXT.plus(5_100)].contains(&slot.nxt()), "{}", slot.nxt());
        slot.segment_among(1, &data(0, 100));
        assert!([NXT.plus(100), NXT.plus(5_100)].contains(&slot.nxt()), "{}", slot.nxt());
    });
}

#[test]
fn a_hook_with_an_old_tag_leaves_the_next_use_alone() {
    const NEXT: u32 = 1 << 20;
    model(|| {
        let slot = slot();
        let hook = {
            let slot = slot.clone();
            thread::spawn(move || slot.segment_among(1, &Seen { ts: Some(8), ..data(400, 10) }))
        };
        open(&slot, 2, NEXT);
        let action = hook.join().unwrap();
        let n = slot.numbers();
        assert_eq!((n.tx, n.ack, n.nxt), (TX.plus(NEXT), TX.plus(NEXT), NXT.plus(NEXT)));
        assert_eq!((n.ts, n.edge, n.sent), (NEXT + 5, EDGE.plus(NEXT), EDGE.plus(NEXT)));
        // It was set back by the numbers of its own flow, or passed.
        let own = matches!(action, Action::SetBack { ack, .. } if ack == TX);
        assert!(own || action == Action::Pass, "{action:?}");
    });
}

#[test]
fn nothing_passes_by_a_grant_made_behind_what_waits() {
    model(|| {
        let slot = slot();
        // Done on one processor: what comes to another one later sees it.
        let done = Arc::new(AtomicU32::new(0));
        let first = {
            let (slot, done) = (slot.clone(), done.clone());
            thread::spawn(move || {
                assert_eq!(slot.segment_among(1, &Seen { plain: false, ..ack(100) }), Action::Take);
                slot.take();
                done.store(1, loom::sync::atomic::Ordering::Release);
            })
        };
        let second = {
            let (slot, done) = (slot.clone(), done.clone());
            thread::spawn(move || {
                let before = done.load(loom::sync::atomic::Ordering::Acquire) == 1;
                (before, slot.segment_among(1, &ack(200)))
            })
        };
        slot.grant(TX.plus(1_000));
        first.join().unwrap();
        let (before, action) = second.join().unwrap();
        assert!(!before || action == Action::Take, "{action:?} overtook what waits");
        assert!(slot.is_waited_for() && !slot.grant(TX.plus(1_000)));
    });
}

#[test]
fn two_that_wait_are_two() {
    model(|| {
        let slot = slot();
        let hook = || {
            let slot = slot.clone();
            thread::spawn(move || slot.take())
        };
        let hooks = [hook(), hook()];
        for hook in hooks {
            hook.join().unwrap();
        }
        slot.has_come();
        assert!(!slot.grant(TX.plus(1_000)), "the other one waits");
        slot.has_come();
        assert!(slot.grant(TX.plus(1_000)));
    });
}

/// Refused for its age (RFC 7323 section 5.3), a made ACK must have told nothing that the newer segment does
/// not.
#[test]
fn a_made_ack_has_the_newest_timestamp_or_tells_nothing() {
    model(|| {
        let slot = slot();
        slot.segment_among(1, &ack(500));
        let hook = {
            let slot = slot.clone();
            thread::spawn(move || slot.segment_among(1, &Seen { ts: Some(9), ..data(500, 10) }))
        };
        let stamp = slot.stamp_among(1, TX.plus(300), 100);
        let action = hook.join().unwrap();
        let told = match action {
            Action::SetBack { ack, .. } => ack,
            other => panic!("{other:?}"),
        };
        let Stamp::Send { ts, .. } = stamp else { panic!("nothing newer has left") };
        assert!(ts == 9 || told == TX.plus(300), "TSval {ts}, and the segment tells {told}");
    });
}

/// `Hooks::sleep` and `submit` of the programs: an index that the hook moves, a flag that the engine sets,
/// and a full barrier between write and read on both sides.
#[test]
fn no_segment_is_slept_through() {
    model(|| {
        let [produced, wake, woken] = [(); 3].map(|()| Arc::new(AtomicU32::new(0)));
        let hook = {
            let (produced, wake, woken) = (produced.clone(), wake.clone(), woken.clone());
            thread::spawn(move || {
                produced.store(1, Relaxed);
                loom::sync::atomic::fence(loom::sync::atomic::Ordering::SeqCst);
                if wake.load(Relaxed) != 0 {
                    woken.store(1, Relaxed);
                }
            })
        };
        wake.store(1, Relaxed);
        loom::sync::atomic::fence(loom::sync::atomic::Ordering::SeqCst);
        let sleeps = produced.load(Relaxed) == 0;
        hook.join().unwrap();
        assert!(!sleeps || woken.load(Relaxed) == 1);
    });
}
