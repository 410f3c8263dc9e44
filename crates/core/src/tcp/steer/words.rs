//! The words of a [`Slot`] that hooks and gateway both read, and how each side writes its own.

use super::{after, Slot};
use crate::packet::wire::Seq;
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

#[cfg(not(feature = "loom"))]
pub(super) use core::sync::atomic::{fence, AtomicU32, AtomicU64};
#[cfg(feature = "loom")]
pub(super) use loom::sync::atomic::{fence, AtomicU32, AtomicU64};

/// The receiver's FIN has passed, above the window field.
const ENDED: u32 = 1 << 16;
/// The hooks have begun: their numbers were no older than the gateway's then, which count no more. They would
/// be ahead again once the others have gone round half of the numbers that there are.
const OWN: u32 = 1 << 17;

/// The numbers as one side knows them, two in a word.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Line {
    /// Acknowledgement number and above it the right edge that have left towards the sender.
    pub(super) told: AtomicU64,
    /// Acknowledgement number and above it the right edge that the receiver has sent.
    pub(super) said: AtomicU64,
    /// The receiver's SND.NXT, and above it the turn in which it was noted.
    pub(super) next: AtomicU64,
    /// The receiver's newest TSval, and above it when it came.
    pub(super) clock: AtomicU64,
}

/// Numbers of a slot at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Highest acknowledgement number that has left towards the sender.
    pub tx: Seq,
    /// The right edge that has left towards the sender. With `SCALED` only.
    pub sent: Seq,
    /// Highest acknowledgement number that the receiver has sent: what is beyond `tx` is held.
    pub ack: Seq,
    /// The receiver's right edge: the largest `ack + window` that it has sent. With `SCALED` only.
    pub edge: Seq,
    /// End of what the receiver has sent, of all that passed: its SND.NXT, unless segments were lost on their
    /// way here. Only what takes up sequence numbers moves it: an ACK without payload is accepted at this
    /// number in any case, and a forged one could move it beyond what the sender accepts.
    pub nxt: Seq,
    /// The receiver's newest TSval.
    pub ts: u32,
    /// The window field that the receiver sent last.
    pub window: u16,
    /// The receiver's FIN has passed.
    pub ended: bool,
    /// Times that the gateway has taken `nxt` back.
    pub turn: u32,
    /// Time at which the newest TSval came; see [`Seen::at`](super::Seen::at).
    pub at: u32,
}

pub(super) fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

pub(super) fn halves(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

fn newest(a: u32, b: u32) -> u32 {
    if after(a, b) {
        a
    } else {
        b
    }
}

/// Nothing of what comes behind it happens before what stands in front of it, nor the other way round: in BPF
/// an atomic addition.
pub(super) fn barrier() {
    fence(SeqCst);
}

/// Writer of the hooks' line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer {
    /// No other writer does meanwhile: no locked instruction is needed.
    Alone,
    /// One of several, who has found the slot with this tag.
    Among(u32),
}

impl Line {
    fn put(&self, n: &Numbers) {
        self.told.store(pair(n.sent.0, n.tx.0), Relaxed);
        self.said.store(pair(n.edge.0, n.ack.0), Relaxed);
        self.next.store(pair(n.turn, n.nxt.0), Relaxed);
        self.clock.store(pair(n.at, n.ts), Relaxed);
    }
}

/// Number and edge of the hooks' word, or of the gateway's where that is ahead, unless the hooks' is their
/// `own`.
#[inline(always)]
fn newest_pair(own: bool, hooks: &AtomicU64, gateway: &AtomicU64) -> (Seq, Seq) {
    let (edge, ack) = halves(hooks.load(Relaxed));
    if own {
        return (Seq(ack), Seq(edge));
    }
    let (edge2, ack2) = halves(gateway.load(Relaxed));
    (Seq(newest(ack, ack2)), Seq(newest(edge, edge2)))
}

/// A number and an edge moved forward, never back.
#[inline(always)]
fn forward(word: u64, ack: Seq, edge: Option<Seq>) -> u64 {
    let (old_edge, old_ack) = halves(word);
    pair(edge.map_or(old_edge, |edge| newest(edge.0, old_edge)), newest(ack.0, old_ack))
}

impl Slot {
    /// Makes another word of one in the hooks' line. It stays as it is if the slot is opened meanwhile: the
    /// tag is looked at behind the word.
    #[inline(always)]
    pub(super) fn update(&self, word: &AtomicU64, by: Writer, to: impl Fn(u64) -> u64) {
        let mut old = word.load(Relaxed);
        loop {
            let new = to(old);
            if new == old {
                return;
            }
            let Writer::Among(tag) = by else { return word.store(new, Relaxed) };
            barrier();
            if self.tag.load(Relaxed) != tag {
                return;
            }
            match word.compare_exchange(old, new, SeqCst, Relaxed) {
                // A full barrier, as every exchange in BPF is.
                Ok(_) => return barrier(),
                Err(now) => old = now,
            }
        }
    }

    /// The sender knows of this number, and of this right edge if there is one.
    #[inline(always)]
    pub(super) fn tell(&self, by: Writer, ack: Seq, edge: Option<Seq>) {
        self.update(&self.hooks.told, by, |word| forward(word, ack, edge));
    }

    /// The receiver has said this.
    #[inline(always)]
    pub(super) fn say(&self, by: Writer, ack: Seq, edge: Option<Seq>) {
        self.update(&self.hooks.said, by, |word| forward(word, ack, edge));
    }

    /// The receiver has sent up to `nxt`, as seen in this turn.
    #[inline(always)]
    pub(super) fn pass(&self, by: Writer, turn: u32, nxt: Seq) {
        self.update(&self.hooks.next, by, |word| match halves(word) {
            (t, old) if t == turn => pair(turn, newest(nxt.0, old)),
            // What the gateway has taken back it knows better.
            (t, _) if after(turn, t) => pair(turn, newest(nxt.0, self.gateway.next.load(Relaxed) as u32)),
            _ => word,
        });
    }

    /// From now on the hooks' numbers alone count, and are these at least.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_own(&self, by: Writer, n: &Numbers) {
        self.tell(by, n.tx, Some(n.sent));
        self.say(by, n.ack, Some(n.edge));
        self.pass(by, n.turn, n.nxt);
        self.set_clock(by, n.at, n.ts);
        self.note_last(by, None, false);
    }

    /// Returns whether the hooks have begun.
    #[inline(always)]
    pub(super) fn is_own(&self) -> bool {
        self.last.load(Acquire) & OWN != 0
    }

    /// Notes a window field, and an end.
    #[inline(always)]
    pub(super) fn note_last(&self, by: Writer, window: Option<u16>, ended: bool) {
        let mut old = self.last.load(Relaxed);
        loop {
            let kept = if old & OWN != 0 { old } else { self.first.load(Relaxed) };
            let window = window.unwrap_or(kept as u16);
            let new = OWN | kept & ENDED | u32::from(window) | if ended { ENDED } else { 0 };
            if new == old {
                return;
            }
            let Writer::Among(tag) = by else { return self.last.store(new, Relaxed) };
            barrier();
            if self.tag.load(Relaxed) != tag {
                return;
            }
            match self.last.compare_exchange(old, new, SeqCst, Relaxed) {
                Ok(_) => return,
                Err(now) => old = now,
            }
        }
    }

    /// Returns the numbers that both sides know.
    #[inline(always)]
    pub fn numbers(&self) -> Numbers {
        let (last, first) = (self.last.load(Acquire), self.first.load(Relaxed));
        let own = last & OWN != 0;
        let (tx, sent) = self.told(own);
        let (ack, edge) = self.said(own);
        let (nxt, turn) = self.next(own);
        let (ts, at) = self.clock(own);
        let window = if own { last } else { first } as u16;
        let ended = (last | first) & ENDED != 0;
        Numbers { tx, sent, ack, edge, nxt, ts, window, ended, turn, at }
    }

    #[inline(always)]
    fn told(&self, own: bool) -> (Seq, Seq) {
        newest_pair(own, &self.hooks.told, &self.gateway.told)
    }

    #[inline(always)]
    fn said(&self, own: bool) -> (Seq, Seq) {
        newest_pair(own, &self.hooks.said, &self.gateway.said)
    }

    /// SND.NXT and its turn.
    #[inline(always)]
    fn next(&self, own: bool) -> (Seq, u32) {
        let (turn, nxt) = halves(self.gateway.next.load(Relaxed));
        let (then, ours) = halves(self.hooks.next.load(Relaxed));
        let nxt = match then == turn {
            true if own => ours,
            true => newest(ours, nxt),
            false => nxt,
        };
        (Seq(nxt), turn)
    }

    /// The newest TSval, and when it came.
    #[inline(always)]
    pub(super) fn clock(&self, own: bool) -> (u32, u32) {
        let (at, ts) = halves(self.hooks.clock.load(Relaxed));
        let (at2, ts2) = halves(self.gateway.clock.load(Relaxed));
        if own || !after(ts2, ts) {
            (ts, at)
        } else {
            (ts2, at2)
        }
    }

    /// Everybody knows this, and nothing else.
    pub(super) fn put(&self, n: &Numbers) {
        self.gateway.put(n);
        self.hooks.put(n);
        self.first.store(u32::from(n.window) | if n.ended { ENDED } else { 0 }, Relaxed);
        self.last.store(0, Relaxed);
    }

    /// Changes what all know, for a writer that is alone with the slot.
    #[doc(hidden)]
    pub fn assume(&self, change: impl FnOnce(&mut Numbers)) {
        let mut numbers = self.numbers();
        change(&mut numbers);
        self.put(&numbers);
    }

    /// Highest acknowledgement number that has left towards the sender.
    #[inline(always)]
    pub fn tx(&self) -> Seq {
        self.told(self.is_own()).0
    }
    /// See [`Numbers::sent`].
    #[inline(always)]
    pub fn sent(&self) -> Seq {
        self.told(self.is_own()).1
    }
    /// See [`Numbers::ack`].
    #[inline(always)]
    pub fn ack(&self) -> Seq {
        self.said(self.is_own()).0
    }
    /// See [`Numbers::ack`], and [`Numbers::edge`].
    #[inline(always)]
    pub fn heard(&self) -> (Seq, Seq) {
        self.said(self.is_own())
    }
    /// See [`Numbers::edge`].
    #[inline(always)]
    pub fn edge(&self) -> Seq {
        self.said(self.is_own()).1
    }
    /// See [`Numbers::nxt`].
    #[inline(always)]
    pub fn nxt(&self) -> Seq {
        self.next(self.is_own()).0
    }
    /// See [`Numbers::ts`].
    #[inline(always)]
    pub fn ts(&self) -> u32 {
        self.clock(self.is_own()).0
    }
    /// See [`Numbers::window`].
    #[inline(always)]
    pub fn window(&self) -> u16 {
        self.numbers().window
    }
    /// See [`Numbers::ended`].
    pub fn has_ended(&self) -> bool {
        self.numbers().ended
    }
    /// Segments that were not believed since the last one that was.
    pub fn doubts(&self) -> u32 {
        self.doubts.load(Relaxed)
    }

    /// The receiver's SND.NXT is this, whatever hooks have noted, or are about to: they note it in the turn
    /// that was before.
    pub fn set_nxt(&self, nxt: Seq) {
        let (turn, _) = halves(self.gateway.next.load(Relaxed));
        self.gateway.next.store(pair(turn.wrapping_add(1), nxt.0), Relaxed);
    }

    /// The gateway's own numbers move forward.
    pub(super) fn note_by_gateway(
        &self,
        ack: Seq,
        edge: Option<Seq>,
        nxt: Option<Seq>,
        window: u16,
        ended: bool,
    ) {
        let g = &self.gateway;
        g.told.store(forward(g.told.load(Relaxed), ack, edge), Relaxed);
        g.said.store(forward(g.said.load(Relaxed), ack, edge), Relaxed);
        let (turn, old) = halves(g.next.load(Relaxed));
        if let Some(nxt) = nxt {
            g.next.store(pair(turn, newest(nxt.0, old)), Relaxed);
        }
        let ended = if ended { ENDED } else { self.first.load(Relaxed) & ENDED };
        self.first.store(ended | u32::from(window), Relaxed);
    }
}
