//! A flow's data and its measurement as hooks and gateway both know them, in 32 bytes of shared memory.
//! The programs in the kernel do the same as [`Sight::data`] and [`Sight::passes`] (`sight.h`).
//!
//! Hooks begin a measurement and end it, the gateway does what lies between. The stage says whose turn it is,
//! so neither writes what the other one writes at that time.

use super::{between, units, LONGEST};
use crate::base::time::Time;
use crate::steer::after;
use crate::wire::Tcp;
use core::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Stages of a measurement.
mod stage {
    /// None is under way: the next new data begins one.
    pub const NONE: u32 = 0;
    /// Somebody is about to begin one.
    pub const BEGINS: u32 = 1;
    /// Data that ends at `number` has passed at `at`.
    pub const DATA: u32 = 2;
    /// The data's ACK has come at `at`, and is held. `sample`: the receiver's numbers at that time.
    pub const HELD: u32 = 3;
    /// An ACK with the TSval `number` has left at `at`. `sample`: time for which it was held.
    pub const LEFT: u32 = 4;
    /// Data has echoed it at `number`.
    pub const ECHOED: u32 = 5;
    /// As `LEFT`, of an ACK that nothing tells from earlier ones.
    pub const DONE: u32 = 6;
}

/// In [`Sight::sample`]: the time of the round trip to the receiver, of an ACK that the kernel let pass.
const PASSED: u32 = 1 << 31;

/// Time within which data that fills a hole was not sent again but overtaken, in units of 2^20 ns.
const OVERTAKEN: u16 = 3;

/// Distance behind the newest data within which a segment is taken for data that was sent again.
const BEHIND: u32 = 1 << 22;

/// Counters of a flow's data, and its measurement.
#[derive(Debug, Default)]
#[repr(C, align(32))]
pub struct Sight {
    /// End of the farthest data seen; 0: none was.
    end: AtomicU32,
    stage: AtomicU32,
    number: AtomicU32,
    at: AtomicU32,
    sample: AtomicU32,
    /// Packets of data that had passed before.
    repeated: AtomicU32,
    /// Packets that others overtook; above them the time at which the newest hole came, in units of 2^20 ns.
    reordered: AtomicU32,
    /// First byte that is missing in the newest hole.
    hole: AtomicU32,
}

const _: () = assert!(core::mem::size_of::<Sight>() == 32);

/// A segment of data as the hook reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Sequence number.
    pub seq: u32,
    /// Payload bytes, of all packets of a giant one.
    pub payload: u32,
    /// Packets that it stands for.
    pub packets: u32,
    /// TSecr, if it has timestamps.
    pub echo: Option<u32>,
    /// Time in [`units`].
    pub now: u32,
}

impl Data {
    /// A segment that arrives alone. Its `echo` is read only if the [sight waits for it](Sight::awaits_echo).
    pub fn of(tcp: &Tcp, echo: Option<u32>, now: Time) -> Data {
        Data { seq: tcp.seq.0, payload: tcp.payload_len, packets: 1, echo, now: units(now) }
    }
}

/// Verdict on data that has been there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Packets that were sent again.
    Again(u32),
    /// Packets that were overtaken.
    Overtaken(u32),
}

/// Numbers that the receiver has told, as a slot knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Highest acknowledgement number.
    pub ack: u32,
    /// Right edge, if the scale of the window is known.
    pub edge: Option<u32>,
}

/// Times that an ACK tells the gateway, in [`units`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Round trip to the receiver.
    pub receiver: Option<u32>,
    /// Time for which the ACK was held.
    pub held: Option<u32>,
    /// Round trip to the sender.
    pub sender: Option<u32>,
}

impl Told {
    /// Returns whether data up to `end` can be the sender's.
    fn allows(&self, end: u32) -> bool {
        match self.edge {
            Some(edge) => !after(end, edge),
            None => end.wrapping_sub(self.ack) as i32 <= 1 << 30,
        }
    }
}

impl Sight {
    /// The record is another connection's, of which nothing has passed.
    pub fn begin(&self) {
        let all = [
            &self.end,
            &self.stage,
            &self.number,
            &self.at,
            &self.sample,
            &self.repeated,
            &self.reordered,
            &self.hole,
        ];
        all.into_iter().for_each(|word| word.store(0, Relaxed));
    }

    /// The flow is controlled from here on; its sender has been acknowledged `tx`.
    pub fn open(&self, tx: u32) {
        let end = self.end.load(Relaxed);
        if end == 0 || !after(end, tx) || end.wrapping_sub(tx) > 1 << 30 {
            self.end.store(tx, Relaxed);
        }
        self.cancel();
    }

    /// Whatever is measured is disturbed.
    pub fn cancel(&self) {
        self.stage.store(stage::NONE, Relaxed);
    }

    /// The sender knows of `tx` by an ACK that no measurement waits for.
    pub(crate) fn overtaken(&self, tx: u32) {
        if self.stage.load(Relaxed) == stage::DATA && !after(self.number.load(Relaxed), tx) {
            self.cancel();
        }
    }

    /// Packets of data that had passed before.
    pub fn repeated(&self) -> u32 {
        self.repeated.load(Relaxed)
    }

    /// Packets that others overtook.
    pub fn reordered(&self) -> u32 {
        self.reordered.load(Relaxed) & 0xffff
    }

    /// End of the farthest data, stage, and where the newest hole begins: for tests.
    #[doc(hidden)]
    pub fn data_words(&self) -> [u32; 3] {
        [&self.end, &self.stage, &self.hole].map(|word| word.load(Relaxed))
    }

    /// Returns whether [`Sight::data`] would look at the echo of data that comes now.
    pub fn awaits_echo(&self) -> bool {
        self.stage.load(Relaxed) == stage::LEFT
    }

    /// Notes data that continues the farthest, if nothing waits for it: most data. It is not compared with
    /// what the receiver allows, because it moves the end by no more than itself.
    #[inline(always)]
    fn follows(&self, data: &Data) -> bool {
        let waits = matches!(self.stage.load(Acquire), stage::NONE | stage::LEFT);
        let follows = !waits && self.end.load(Relaxed) == data.seq;
        if follows {
            self.end.store(data.seq.wrapping_add(data.payload), Relaxed);
        }
        follows
    }

    /// A segment of data comes, of whatever becomes of it. Returns what is found if it was there before.
    pub fn data(&self, data: &Data, told: &Told) -> Option<Repeat> {
        if self.follows(data) {
            return None;
        }
        let (last, end) = (data.seq.wrapping_add(data.payload), self.end.load(Relaxed));
        if !told.allows(last) || end.wrapping_sub(data.seq) as i32 > BEHIND as i32 {
            return None;
        }
        if self.stage.load(Acquire) == stage::LEFT {
            self.note_echo(data);
        }
        let repeat = if after(end, data.seq) { self.old(data, end) } else { None };
        if after(last, end) {
            if after(data.seq, end) {
                self.note_hole(end, data.now);
            }
            self.end.store(last, Relaxed);
            if repeat.is_none() {
                self.begin_with(last, data.now);
            }
        }
        repeat
    }

    /// Data has come that begins before the farthest.
    fn old(&self, data: &Data, end: u32) -> Option<Repeat> {
        // A probe of one byte asks whether anybody is there (RFC 9293 section 3.8.4).
        if data.payload == 1 && data.seq.wrapping_add(1) == end {
            return None;
        }
        // The acknowledgement may be of either (Karn), and whatever comes behind a hole waits for it.
        let _ = self.stage.compare_exchange(stage::DATA, stage::NONE, Relaxed, Relaxed);
        let common = end.wrapping_sub(data.seq).min(data.payload);
        let each = data.payload.div_ceil(data.packets.max(1)).max(1);
        let packets = common.div_ceil(each);
        let (word, hole) = (self.reordered.load(Relaxed), self.hole.load(Relaxed));
        let since = ((data.now >> 10) as u16).wrapping_sub((word >> 16) as u16);
        // What is overtaken fills the hole from its beginning. Everything else has passed before.
        let fills = hole == data.seq;
        if fills {
            self.hole.store(data.seq.wrapping_add(common), Relaxed);
        }
        if fills && word >> 16 != 0 && since < OVERTAKEN {
            let count = (word & 0xffff).saturating_add(packets).min(0xffff);
            self.reordered.store(word & !0xffff | count, Relaxed);
            return Some(Repeat::Overtaken(packets));
        }
        self.repeated.fetch_add(packets, Relaxed);
        Some(Repeat::Again(packets))
    }

    fn note_hole(&self, from: u32, now: u32) {
        let at = ((now >> 10) as u16).max(1);
        self.hole.store(from, Relaxed);
        self.reordered.store(self.reordered() | u32::from(at) << 16, Relaxed);
    }

    fn begin_with(&self, end: u32, now: u32) {
        let (none, begins) = (stage::NONE, stage::BEGINS);
        if self.stage.load(Relaxed) != none
            || self.stage.compare_exchange(none, begins, Relaxed, Relaxed).is_err()
        {
            return;
        }
        self.number.store(end, Relaxed);
        self.at.store(now, Relaxed);
        self.stage.store(stage::DATA, Release);
    }

    fn note_echo(&self, data: &Data) {
        if data.echo.is_some_and(|echo| !after(self.number.load(Relaxed), echo)) {
            self.number.store(data.now, Relaxed);
            self.stage.store(stage::ECHOED, Release);
        }
    }

    /// Returns whether this is the ACK that the measurement waits for.
    #[inline(always)]
    pub(crate) fn awaits_ack(&self, ack: u32) -> bool {
        self.stage.load(Acquire) == stage::DATA && !after(self.number.load(Relaxed), ack)
    }

    /// An ACK with this TSval passes by a grant: the gateway does not see it.
    pub fn passes(&self, ack: u32, ts: Option<u32>, now: u32) {
        if !self.awaits_ack(ack) {
            return;
        }
        let Some(time) = between(self.at.load(Relaxed), now) else { return self.cancel() };
        self.sample.store(PASSED | time, Relaxed);
        self.at.store(now, Relaxed);
        if let Some(ts) = ts {
            self.number.store(ts, Relaxed);
        }
        self.stage.store(if ts.is_some() { stage::LEFT } else { stage::DONE }, Release);
    }

    /// An ACK has come that acknowledges `ack`. Is there anything to [find](Sight::answer)?
    #[inline(always)]
    pub(crate) fn is_answered(&self, ack: u32, now: u32) -> bool {
        match self.stage.load(Acquire) {
            stage::NONE | stage::BEGINS | stage::HELD => false,
            stage::DATA => !after(self.number.load(Relaxed), ack),
            stage::LEFT => now.wrapping_sub(self.at.load(Relaxed)) > LONGEST,
            _ => true,
        }
    }

    /// Returns what an ACK tells that comes now and [answers](Sight::is_answered). `ts` is the receiver's
    /// newest TSval, `nxt` its SND.NXT.
    pub(crate) fn answer(&self, ts: u32, nxt: u32, now: u32) -> Answer {
        let (at, sample) = (self.at.load(Relaxed), self.sample.load(Relaxed));
        let was = self.stage.load(Acquire);
        if was == stage::DATA {
            let receiver = between(at, now);
            self.at.store(now, Relaxed);
            self.sample.store(known(ts.wrapping_sub(1), nxt), Relaxed);
            self.stage.store(if receiver.is_some() { stage::HELD } else { stage::NONE }, Relaxed);
            return Answer { receiver, ..Answer::default() };
        }
        self.cancel();
        let sender = if was == stage::ECHOED { between(at, self.number.load(Relaxed)) } else { None };
        let time = (sample & !PASSED).min(LONGEST);
        match sample & PASSED != 0 {
            true => Answer { receiver: Some(time), held: Some(0), sender },
            false => Answer { receiver: None, held: Some(time), sender },
        }
    }

    /// Returns whether the ACK that the measurement waits for is held.
    #[inline(always)]
    pub(crate) fn is_held(&self) -> bool {
        self.stage.load(Relaxed) == stage::HELD
    }

    /// An ACK leaves while one [is held](Sight::is_held), with the TSval `ts` if it has one. Only one that is
    /// the first with its TSval tells the round trip to the sender.
    #[cold]
    #[inline(never)]
    pub(crate) fn leaves(&self, ack: u32, ts: Option<u32>, nxt: u32, at: u32) {
        let sample = self.sample.load(Relaxed);
        let stamp = ts.unwrap_or_default();
        if after(self.number.load(Relaxed), ack) {
            return self.sample.store(sample & 0xffff_0000 | stamp & 0xffff, Relaxed);
        }
        // What the receiver sent meanwhile has left with its timestamps.
        let first = ts.is_some() && sample >> 16 == nxt & 0xffff && sample & 0xffff != stamp & 0xffff;
        // Releases that are made up for have earlier times.
        let held = between(self.at.load(Relaxed), at).unwrap_or(0);
        self.sample.store(held, Relaxed);
        self.at.store(at, Relaxed);
        self.number.store(stamp, Relaxed);
        self.stage.store(if first { stage::LEFT } else { stage::DONE }, Release);
    }
}

/// Packs what is known of a receiver: the low halves of its SND.NXT and of the TSval that left last.
fn known(ts: u32, nxt: u32) -> u32 {
    nxt << 16 | ts & 0xffff
}

#[cfg(test)]
mod tests;
