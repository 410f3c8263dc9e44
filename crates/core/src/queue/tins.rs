//! Tins: queues of one class, told by the codepoint of a packet (DSCP, RFC 2474), as CAKE has them
//! (`sch_cake.c`).
//!
//! - [`Diffserv`] gives each codepoint a tin, and each tin a share of what leaves the class.
//! - A tin's schedule is the bytes that have to leave the class until its own are no more than its share. Of
//!   the tins in which packets wait, the last one that meets its schedule is served, and if none does, the
//!   one that is nearest to it. So a tin waits for no other within its share, and beyond it has what others
//!   leave.
//! - CAKE's schedules are times at a part of the rate. These are of bytes, so that they hold at any rate that
//!   a class gets, and while it borrows.
//! - Each tin has the discipline and the limit of the class for itself.

use super::backlog::Backlog;
use super::limit::QueueLimit;
use super::{mark, Config, Discipline, Queue};
use crate::frame::{Frames, Head, Waiting};
use crate::node::Cx;
use crate::rate::Rate;
use crate::stats::DropReason;

#[cfg(test)]
mod tests;

/// Number of codepoints.
const CODEPOINTS: usize = 64;

/// Tins by codepoint, with CAKE's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Diffserv {
    /// Three tins: best effort, bulk (LE, CS1), and voice (CS7, CS6, EF, VA, TOS4).
    Three,
    /// Four tins: best effort, bulk (LE, CS1), video (AF4x, AF3x, CS3, AF2x, TOS4, CS2), and voice (CS7, CS6,
    /// EF, VA, CS5, CS4).
    Four,
}

/// Codepoints of bulk: LE (RFC 8622) and CS1 (RFC 3662).
const BULK: [u8; 2] = [1, 8];
/// Codepoints of voice with three tins: TOS4, VA (RFC 5865), EF (RFC 3246), CS6 and CS7 (RFC 2474).
const VOICE_OF_THREE: [u8; 5] = [4, 44, 46, 48, 56];
/// Codepoints of voice with four tins.
const VOICE_OF_FOUR: [u8; 6] = [32, 40, 44, 46, 48, 56];
/// Codepoints of video: TOS4, CS2, AF2x, CS3, AF3x, AF4x (RFC 2597).
const VIDEO: [u8; 12] = [4, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38];

impl Diffserv {
    /// Returns for each tin how often its share is halved: best effort has all, bulk a sixteenth, video a
    /// half and voice a quarter. A later tin goes before an earlier one.
    const fn shares(self) -> &'static [u32] {
        match self {
            Diffserv::Three => &[0, 4, 2],
            Diffserv::Four => &[0, 4, 1, 2],
        }
    }

    /// Returns the tin of each codepoint.
    fn tins(self) -> [u8; CODEPOINTS] {
        let (video, voice): (&[u8], &[u8]) = match self {
            Diffserv::Three => (&[], &VOICE_OF_THREE),
            Diffserv::Four => (&VIDEO, &VOICE_OF_FOUR),
        };
        let mut tins = [0; CODEPOINTS];
        let last = self.shares().len() as u8 - 1;
        for (codepoints, tin) in [(&BULK[..], 1), (video, 2), (voice, last)] {
            codepoints.iter().for_each(|&codepoint| tins[usize::from(codepoint)] = tin);
        }
        tins
    }
}

/// A tin.
#[derive(Debug)]
struct Tin {
    queue: Queue,
    /// Number of times that its share of the class is halved.
    share: u32,
    /// Bytes that leave the class before the tin meets its schedule, from the beginning on.
    due: u64,
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Tins {
    tins: Box<[Tin]>,
    by_codepoint: [u8; CODEPOINTS],
    /// Bytes that have left the class.
    left: u64,
    pub(super) backlog: Backlog,
}

impl Tins {
    /// Returns the tins of a class with this queue in front of `rate`.
    pub fn new(diffserv: Diffserv, config: &Config, rate: Rate) -> Tins {
        let each = Config { tins: None, ..*config };
        let tin = |&share: &u32| Tin { queue: each.build(rate), share, due: 0 };
        Tins {
            tins: diffserv.shares().iter().map(tin).collect(),
            by_codepoint: diffserv.tins(),
            left: 0,
            backlog: Backlog::default(),
        }
    }

    fn tin_of(&self, frames: &Frames, waiting: &Waiting) -> usize {
        let (head, _) = frames.parked_bytes(&waiting.frame);
        usize::from(self.by_codepoint[usize::from(mark::codepoint(head))])
    }

    /// Returns the tin that is served next.
    fn next(&self) -> Option<usize> {
        let mut next = None;
        for (i, tin) in self.tins.iter().enumerate().filter(|(_, tin)| tin.queue.packets() > 0) {
            let early = tin.due.saturating_sub(self.left);
            if early == 0 || next.is_none_or(|(_, nearest)| early <= nearest) {
                next = Some((i, early));
            }
        }
        next.map(|(i, _)| i)
    }

    /// Calls the queue of a tin, and counts for all of them.
    fn within<T>(&mut self, tin: usize, call: impl FnOnce(&mut Queue) -> T) -> T {
        let queue = &mut self.tins[tin].queue;
        let before = (queue.packets(), queue.bytes());
        core::mem::swap(&mut self.backlog.stats, queue.stats_mut());
        let result = call(queue);
        core::mem::swap(&mut self.backlog.stats, queue.stats_mut());
        self.backlog.replace(before, (queue.packets(), queue.bytes()));
        result
    }

    /// A tin that begins to wait has no credit of the time before.
    fn begin(&mut self, tin: usize) {
        let Tin { queue, due, .. } = &mut self.tins[tin];
        if queue.packets() == 0 {
            *due = (*due).max(self.left);
        }
    }

    /// Charges a tin for `bytes` that leave: as CAKE's `cake_advance_shaper()`.
    fn charge(&mut self, tin: usize, bytes: u64) {
        let Tin { due, share, .. } = &mut self.tins[tin];
        let cost = bytes << *share;
        *due = if *due < self.left { *due + cost } else { (*due).max(self.left + cost) };
        self.left += bytes;
    }
}

impl Discipline for Tins {
    fn push(&mut self, cx: &mut Cx<'_>, waiting: Waiting) -> Option<DropReason> {
        let tin = self.tin_of(cx.frames, &waiting);
        self.begin(tin);
        let dropped = self.within(tin, |queue| queue.push(cx, waiting));
        self.backlog.note_peak();
        dropped
    }

    fn admit(&mut self, cx: &mut Cx<'_>, waiting: Waiting) {
        let tin = self.tin_of(cx.frames, &waiting);
        self.begin(tin);
        self.within(tin, |queue| queue.admit(cx, waiting));
        self.backlog.note_peak();
    }

    fn pass(&mut self, cx: &mut Cx<'_>, waiting: Waiting) -> Option<Waiting> {
        let tin = self.tin_of(cx.frames, &waiting);
        self.begin(tin);
        let passed = self.within(tin, |queue| queue.pass(cx, waiting))?;
        self.charge(tin, passed.charge.bytes);
        Some(passed)
    }

    fn pop(&mut self, cx: &mut Cx<'_>) -> Option<Waiting> {
        while let Some(tin) = self.next() {
            if let Some(waiting) = self.within(tin, |queue| queue.pop(cx)) {
                self.charge(tin, waiting.charge.bytes);
                return Some(waiting);
            }
        }
        None
    }

    fn head(&self, frames: &Frames) -> Option<Head> {
        self.tins[self.next()?].queue.head(frames)
    }

    fn release(&mut self, frames: &Frames) -> Option<Waiting> {
        let tin = self.next()?;
        self.within(tin, |queue| queue.release(frames))
    }

    fn set_limit(&mut self, limit: QueueLimit, rate: Rate) {
        self.tins.iter_mut().for_each(|tin| tin.queue.set_limit(limit, rate));
    }
}
