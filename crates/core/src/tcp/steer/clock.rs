//! The receiver's clock: which TSval made ACKs carry.
//!
//! The sender of the data takes the TSval of what it accepts for the newest (RFC 7323 section 4.3) and drops
//! what is older
//! (section 5.3): a made ACK must not lag what has passed, and one that is ahead makes the sender drop what
//! the receiver sends itself until its clock is there. A segment with payload is not summed, so that its
//! TSval may be damaged.
//!
//! So a TSval is believed at once if the time since the last one allows it, at up to two ticks a millisecond
//! (RFC 7323 section 5.4), and [`CLOCK_SLACK`]: a wrong one does harm for as long. One further ahead is
//! believed once several in a row say so; if it turns out to be a clock of microseconds, it is one from then
//! on. Back it goes when many summed ACKs in a row are older, for longer than segments overtake each other.

use super::words::{halves, pair, Writer};
use super::{after, Slot, CLOCK_SLACK};
use core::sync::atomic::Ordering::Relaxed;

/// TSvals in a row, each soon after the one before, that are believed however far ahead they are.
const WITNESSES: u32 = 3;
/// Ticks by which each of them may be ahead of the one before.
const NEAR: u32 = 1 << 20;
/// Summed ACKs in a row with an older TSval that set it back,
const BEHIND: u32 = 8;
/// unless the newest has overtaken them all: 100.7 ms.
const OVERTAKEN: u32 = 96;
/// Ticks of a fast clock for one of a slow one, about: microseconds and milliseconds.
const FAST_SHIFT: u32 = 10;

/// Layout of `witnesses`: those ahead, from here on those behind, and whether the clock is fast.
const BEHIND_UNIT: u32 = 1 << 8;
const FAST: u32 = 1 << 16;

/// Largest advance of a TSval after this many ticks of time.
fn bound(elapsed: u32, fast: bool) -> u32 {
    let ticks = elapsed.min(1 << 29) * 2 + CLOCK_SLACK;
    let shift = if fast { FAST_SHIFT } else { 0 };
    if ticks > (1 << 30) >> shift {
        1 << 30
    } else {
        ticks << shift
    }
}

impl Slot {
    /// Notes the TSval of a segment, seen at `at`; `summed`: its checksum is right.
    #[inline(always)]
    pub(super) fn note_ts(&self, by: Writer, ts: u32, at: u32, summed: bool) {
        let (now, since) = self.clock(self.is_own());
        let (ahead, witnesses) = (ts.wrapping_sub(now) as i32, self.witnesses.load(Relaxed));
        if ahead > 0 && ahead as u32 <= bound(elapsed(at, since), witnesses & FAST != 0) {
            self.set_clock(by, at, ts);
            if witnesses & !FAST != 0 {
                self.witnesses.store(witnesses & FAST, Relaxed);
            }
        } else if ahead != 0 || witnesses & !FAST != 0 {
            self.doubt_ts(by, ts, at, summed);
        }
    }

    /// A TSval is behind the newest or too far ahead, or the newest again after one that was.
    #[cold]
    #[inline(never)]
    fn doubt_ts(&self, by: Writer, ts: u32, at: u32, summed: bool) {
        let ((now, since), witnesses) = (self.clock(self.is_own()), self.witnesses.load(Relaxed));
        let fast = witnesses & FAST;
        if ts == now {
            self.witnesses.store(fast, Relaxed);
        } else if after(ts, now) {
            let near = ts.wrapping_sub(self.candidate.load(Relaxed)) <= NEAR;
            let count = if near { witnesses % BEHIND_UNIT + 1 } else { 1 };
            self.candidate.store(ts, Relaxed);
            if count < WITNESSES {
                return self.witnesses.store(fast | count, Relaxed);
            }
            let is_fast = ts.wrapping_sub(now) <= bound(elapsed(at, since), true);
            self.witnesses.store(if is_fast { FAST } else { fast }, Relaxed);
            self.set_clock(by, at, ts);
        } else if summed {
            let behind = (witnesses / BEHIND_UNIT % 256 + 1).min(BEHIND);
            if behind == 1 {
                self.behind_since.store(at, Relaxed);
            }
            let is_over = elapsed(at, self.behind_since.load(Relaxed)) >= OVERTAKEN;
            if behind < BEHIND || !is_over {
                return self.witnesses.store(fast | (behind * BEHIND_UNIT), Relaxed);
            }
            self.witnesses.store(0, Relaxed);
            self.update(&self.hooks.clock, by, |_| pair(at, ts));
        }
    }

    /// The newest TSval is `ts`, seen at `at`, if none newer is known by now.
    #[inline(always)]
    pub(super) fn set_clock(&self, by: Writer, at: u32, ts: u32) {
        self.update(
            &self.hooks.clock,
            by,
            |word| {
                if after(halves(word).1, ts) {
                    word
                } else {
                    pair(at, ts)
                }
            },
        );
    }

    /// As [`Slot::note_ts`], of what the gateway has seen pass before the hooks knew of the slot.
    pub(super) fn note_ts_by_gateway(&self, ts: u32, at: u32) {
        let (now, since) = self.clock(self.is_own());
        let ahead = ts.wrapping_sub(now) as i32;
        if ahead > 0 && ahead as u32 <= bound(elapsed(at, since), false) {
            self.gateway.clock.store(pair(at, ts), Relaxed);
        }
    }
}

/// Ticks from `then` to `now`; none if another processor's look at the time was later.
fn elapsed(now: u32, then: u32) -> u32 {
    (now.wrapping_sub(then) as i32).max(0) as u32
}
