//! Verdicts on flows for the kernel, kept until the driver fetches them.

use super::Gateway;
use crate::ack::Window;
use crate::flow::{flag, Key, Record};
use crate::steer::{self, slot_flag};
use crate::time::{Duration, Time};
use crate::wire::TcpOptions;
use core::sync::atomic::Ordering::Relaxed;
use std::collections::VecDeque;

/// Operations kept. Further flows are neither begun nor forgotten until some were fetched.
const LIMIT: usize = 5120;
/// Verdicts that may wait when a flow is added that the kernel does not know.
const NEW_LIMIT: usize = 4096;
/// Places among these for flows that pass. Any of them may be lost.
const PASS_LIMIT: usize = 1024;

/// Most flows that are told of at their handshake within the window.
const EARLY_LIMIT: u32 = 500;
const EARLY_WINDOW: Duration = Duration::from_millis(100);

/// An operation on the kernel's table of flows. `ack_key` is the flow as its ACKs show it: the source is
/// the receiver of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The flow's ACKs are controlled by this slot, under this tag: the entry is made or replaced. Never
    /// lost.
    Shape {
        /// The flow as its ACKs show it.
        ack_key: Key,
        /// Number of the slot, and of the flow's record.
        slot: u32,
        /// See [`Slot::tag`](crate::steer::Slot::tag).
        tag: u32,
    },
    /// The entry is removed if it has this slot and tag. Never lost.
    Forget {
        /// The flow as its ACKs show it.
        ack_key: Key,
        /// Number of the slot.
        slot: u32,
        /// The tag that the entry has.
        tag: u32,
    },
    /// The flow passes untouched. One that is lost costs a look at one more segment.
    Pass {
        /// The flow as its ACKs show it.
        ack_key: Key,
    },
    /// Packets with this key are counted by a tally, if by any. One that is lost costs a look at one more
    /// packet.
    Count {
        /// Flow of TCP as its data shows it; otherwise what the [`Fields`](crate::steer::Fields) of the
        /// direction leave of the packet's key.
        key: Key,
        /// Number of the tally.
        tally: Option<u32>,
    },
}

/// The operations that the driver has not fetched.
pub(super) struct Verdicts {
    queue: VecDeque<Verdict>,
    /// There is a kernel that is told of slots.
    hooked: bool,
    /// Flows told of at their handshake since when.
    early: (u32, Time),
}

impl Verdicts {
    pub(super) fn new(hooked: bool) -> Verdicts {
        Verdicts { queue: VecDeque::with_capacity(LIMIT), hooked, early: (0, Time::ZERO) }
    }

    /// May the kernel be told of a flow of which nothing but the handshake was seen? That spares a look at
    /// its first segment, and the answers to a flood of SYNs must not keep the kernel busy.
    pub(super) fn may_tell_early(&mut self, now: Time) -> bool {
        if now.since(self.early.1) >= EARLY_WINDOW {
            self.early = (0, now);
        }
        self.early.0 += 1;
        self.early.0 <= EARLY_LIMIT
    }

    /// Is there room for one that must not be lost?
    pub(super) fn has_room(&self) -> bool {
        !self.hooked || self.queue.len() < LIMIT
    }

    /// Is there room for a flow that the kernel does not know? Part of the room is for those that it knows,
    /// so that many new flows do not keep them from being followed or forgotten.
    fn has_room_for_new(&self) -> bool {
        !self.hooked || self.queue.len() < NEW_LIMIT
    }

    /// One that must not be lost: [`Verdicts::has_room`] was asked.
    pub(super) fn push(&mut self, verdict: Verdict) {
        debug_assert!(self.has_room());
        if self.hooked {
            self.queue.push_back(verdict);
        }
    }

    /// Those that tell of what passes are lost.
    pub(super) fn forget_passing(&mut self) {
        self.queue.retain(|verdict| !matches!(verdict, Verdict::Pass { .. } | Verdict::Count { .. }));
    }

    /// One that may be lost.
    pub(super) fn pass(&mut self, ack_key: Key) {
        self.may_be_lost(Verdict::Pass { ack_key });
    }

    /// See [`Verdict::Count`]. It may be lost.
    pub(super) fn count(&mut self, key: Key, tally: Option<u32>) {
        self.may_be_lost(Verdict::Count { key, tally });
    }

    fn may_be_lost(&mut self, verdict: Verdict) {
        if self.queue.len() < PASS_LIMIT {
            self.queue.push_back(verdict);
        }
    }

    pub(super) fn drain(&mut self, max: usize) -> impl Iterator<Item = Verdict> + '_ {
        let n = max.min(self.queue.len());
        self.queue.drain(..n)
    }
}

impl Gateway {
    /// Opens the flow's slot with the record's numbers, and [tells](Gateway::tell_early) the kernel.
    pub(super) fn show(&mut self, i: u32, options: &TcpOptions) {
        let r = &self.table[i];
        let sent = if r.has(flag::EDGE_KNOWN) { r.edge } else { r.right };
        let ts = options.timestamps.map_or(0, |t| t.value);
        self.slots[i].open(
            r.next_tag(),
            self.slot_flags(r),
            r.tx,
            r.seq,
            ts,
            r.right,
            sent,
            r.window,
            steer::ticks(self.now),
        );
        let limit = self.window_limit(&self.table[i]);
        self.slots[i].width.store(limit.unwrap_or(0), Relaxed);
        self.tell_early(i);
    }

    /// The data's sender has answered its receiver's SYN, in a segment with these `options`. What the
    /// receiver sends next brings its first window, and may carry payload that does not come here: so the
    /// hook is told how far it may go. The record's numbers begin with the receiver's first ACK all the same.
    pub(super) fn show_ahead(&mut self, i: u32, options: &TcpOptions) {
        let mut r = self.table[i];
        if !self.hooked || r.has(flag::PASSES) || !r.has(flag::SENDER_SYN | flag::RECEIVER_SYN) {
            return;
        }
        let policy = *self.policy(&r);
        r.law = policy.release.begin(&r.segments(), true, self.now);
        r.obey(&policy);
        self.entitle(i);
        let Some(limit) = self.window_limit(&r) else { return };
        if r.has(flag::SHOWN) && !self.verdicts.has_room() {
            return;
        }
        // The answer repeats the receiver's timestamp (RFC 7323 section 3.2).
        let ts = options.timestamps.map_or(0, |t| t.echo);
        let (slot, tx) = (&self.slots[i], r.fin);
        slot.open(
            r.next_tag(),
            self.slot_flags(&r),
            tx,
            r.seq,
            ts,
            tx,
            tx.wrapping_add(limit),
            1,
            steer::ticks(self.now),
        );
        slot.width.store(limit, Relaxed);
        self.tell_early(i);
    }

    fn slot_flags(&self, r: &Record) -> u32 {
        let sized = matches!(self.policy(r).window, Window::Size { .. });
        let mut flags = if r.has(flag::TIMESTAMPS) { slot_flag::TIMESTAMPS } else { 0 };
        if r.has(flag::SCALE_KNOWN) {
            flags |= slot_flag::SCALED | u32::from(r.scale) << slot_flag::SCALE_SHIFT;
            flags |= if sized { slot_flag::SIZED } else { 0 };
        }
        flags
    }

    /// The slot has been opened anew. The kernel is told now, or, where so many connections are
    /// opened that most may be forged, with the first segment that shows that this one is not.
    fn tell_early(&mut self, i: u32) {
        let r = &mut self.table[i];
        r.tag = r.next_tag();
        if r.has(flag::SHOWN) || self.verdicts.may_tell_early(self.now) {
            r.set(flag::SHOWN, false); // the entry that the kernel has is replaced
            self.tell(i);
        }
    }

    /// Tells the kernel of the flow's slot, unless it knows. Until there is room its segments are those of an
    /// unknown flow.
    pub(super) fn tell(&mut self, i: u32) {
        if !self.table[i].has(flag::SHOWN) && self.verdicts.has_room_for_new() {
            self.table[i].flags |= flag::SHOWN;
            self.verdicts.push(self.shape(i));
        }
    }

    /// The kernel's entry for the flow.
    fn shape(&self, i: u32) -> Verdict {
        let r = &self.table[i];
        Verdict::Shape { ack_key: r.key.reversed(), slot: i, tag: r.tag }
    }

    /// The flow's slot is no longer used, and the kernel is told as soon as there is room.
    pub(super) fn hide(&mut self, i: u32) {
        self.slots[i].close();
        let r = &mut self.table[i];
        r.flags &= !flag::SYNCED;
        if r.has(flag::SHOWN) && self.verdicts.has_room() {
            r.flags &= !flag::SHOWN;
            self.verdicts.push(Verdict::Forget { ack_key: r.key.reversed(), slot: i, tag: r.tag });
        }
    }

    /// After a restart: the kernel may not have been told of slots that the last engine opened.
    fn show_again(&mut self) {
        while self.unshown < self.table.capacity() && self.verdicts.has_room() {
            let i = self.unshown;
            if self.table[i].has(flag::USED | flag::SHOWN | flag::SYNCED) {
                let shape = self.shape(i);
                self.verdicts.push(shape);
            }
            if self.table[i].has(flag::USED | flag::PASSES) {
                self.count_untouched(i);
            }
            self.unshown += 1;
        }
    }

    /// Takes at most `max` of what the kernel is to be told, oldest first. After a restart all flows are told
    /// again.
    pub fn verdicts(&mut self, max: usize) -> impl Iterator<Item = Verdict> + '_ {
        self.show_again();
        self.verdicts.drain(max)
    }
}

impl Record {
    /// The tag of the slot's next use.
    fn next_tag(&self) -> u32 {
        self.tag.wrapping_add(1).max(1)
    }
}
