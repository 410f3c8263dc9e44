//! Held state of a flow: progress as a number or as ACKs that wait themselves, the news that keeps its place
//! behind that, congestion marks, and the accounts of all this.
//!
//! # ACKs that wait themselves ([`Hold::Queue`](crate::ack::Hold::Queue))
//!
//! The record's numbers say what is held, as for every policy: `rx - tx` bytes. The queue is what the ACKs
//! told beside that, in the order in which they came. So a queue that is lost, because an engine died or the
//! pool is nearly used up, loses no progress: what it had acknowledged goes with an ACK that is made. An ACK
//! for progress that the sender has heard of meanwhile is absorbed instead of sent, since it would count as a
//! duplicate; a duplicate that waits stays one.
//!
//! # News that keeps its place behind what is held, as it would in a queue
//!
//! Whatever tells the sender more than progress leaves at once, after what is held. Two kinds of it do not:
//!
//! - *Data that arrived twice* ([`Kind::Twice`]) with nothing missing. A sender that hears nothing for two of
//!   its round trips sends its last segment again (a tail loss probe, RFC 8985 §7.3). While ACKs are held
//!   it does so for no loss. Were all that is held to follow from that, the sender would hear of it within
//!   two round trips, and its next probe would come as soon. It needs the duplicate SACK no later than an
//!   acknowledgement beyond the probe, which without it means a loss (RFC 8985 §7.4.2), and no sooner than
//!   one of the probe itself: with a lower number the block would tell of a hole. So it goes with the first
//!   ACK that acknowledges the data that arrived twice.
//! - *A hole behind too much* ([`Kind::Sack`], [`Kind::Duplicate`]), of a flow whose window is not sized.
//!   Nothing else bounds what its sender may send of what goes early: at the path's rate it would meet the
//!   next loss, which would let it go on, and a receiver could say as often as it likes that something is
//!   missing, or a sender send something twice, to be let go. So the sender hears of the hole at its rate, as
//!   behind a queue, with the newest block; and at once, as others do, while what goes early is no more than
//!   its window would be, where that is to be sized and the handshake was not seen, and than its rate carries
//!   in [`AHEAD`] where it is kept.
//!
//! A window that is kept opens and closes at once too, by its right edge, but takes no more along than that.
//!
//! ACKs of what is held go on meanwhile, so no sender's retransmission timer (RFC 6298 §5.3) is nearer to
//! running out.
//!
//! # Congestion marks
//!
//! *ECE* (RFC 3168, RFC 8257): the gateway keeps how many of the held bytes came with ECE, and the ACKs that
//! it makes carry ECE until as many bytes were acknowledged with it. A sender that counts marked bytes
//! (DCTCP) sees the same share. A sender that reacts to ECE as such sees it with the next release, and for as
//! long as the receiver would have shown it, since marks leave first and are rounded up. A change of ECE is
//! no reason to release anything early.
//!
//! *AccECN* (RFC 9768): ACE counts marked packets in three bits. The difference between two values that a
//! sender is shown must never be more than it can tell apart. So an ACK that would carry the counter around
//! is preceded by one that shows the counter as it was.

use super::segment::Headers;
use super::stats::ClassStats;
use super::Register;
use crate::ack::{window, Fate, Kind, News, Pace, Window, ACE_MOST};
use crate::flow::{flag, FlowId, Record};
use crate::frame::{Charge, Frame, List, Waiting};
use crate::node::Cx;
use crate::time::{Duration, Time};
use crate::wire::{Seq, TcpOptions};

/// An ACK that waits is charged as this many packets if it tells nothing but progress, and as none if it
/// tells more.
const PROGRESS: u32 = 1;

/// Duplicates that make a sender without SACK retransmit (RFC 5681 §3.2).
const DUPLICATES: u32 = 3;

/// Time of the rate that may go early of a flow whose window is kept, with what the flow still owes. What is
/// held for longer has had its sender's timer run out anyway: 1 s at first, and 2 s then (RFC 6298 §2).
pub(super) const AHEAD: Duration = Duration::from_secs(2);

/// Bytes and ACKs that a flow holds.
#[derive(Clone, Copy)]
pub(in crate::gateway) struct Held {
    pub(in crate::gateway) bytes: u32,
    pub(in crate::gateway) acks: u32,
}

impl Register {
    /// Sets a timer for held bytes, unless one is set: for the release that is `scheduled`, or for the end of
    /// the gap after the last ACK.
    pub(in crate::gateway) fn arm(&mut self, cx: &Cx<'_>, i: FlowId, options: &TcpOptions, scheduled: bool) {
        self.note_echo(i, options);
        if scheduled {
            let due = self.table[i].timer();
            self.start_timer(i, due);
        } else {
            self.wait(i, cx.now);
        }
    }

    /// Notes the TSecr of held bytes.
    pub(in crate::gateway) fn note_echo(&mut self, i: FlowId, options: &TcpOptions) {
        let r = &mut self.table[i];
        if let Some(t) = options.timestamps {
            r.echoes.push(r.rx, t.echo);
        }
    }

    /// Lets held bytes wait for the end of the gap after the last ACK, or for a turn, unless they wait
    /// already.
    pub(in crate::gateway) fn wait(&mut self, i: FlowId, now: Time) {
        if self.table[i].takes_turns() {
            return self.enlist(i, now);
        }
        let r = &mut self.table[i];
        if !r.has(flag::ARMED) && r.held() > 0 {
            r.flags |= flag::WAITING;
            let due = r.timer();
            self.start_timer(i, due);
        }
    }

    /// Counts bytes that are acknowledged ahead of their time.
    pub(in crate::gateway) fn told_early(&mut self, i: FlowId, bytes: u32, now: Time) {
        if self.is_counted(i) {
            return;
        }
        if self.table[i].takes_turns() {
            return self.permit_told(i, bytes, now);
        }
        if !self.is_engaged(i) {
            return self.not_asked(i, now);
        }
        let r = &self.table[i];
        let (rtt, depth) = (self.rtt(r), self.policy(r).release.depth());
        let r = &mut self.table[i];
        let idle = (!r.has(flag::ARMED)).then_some(now);
        r.law.pace_mut().acknowledge_early(bytes, idle, rtt, depth);
    }

    /// No sender is left to hear of what is held. ACKs that wait are [cleared](Register::clear_acks) before.
    pub(in crate::gateway) fn drop_held(&mut self, i: FlowId) {
        debug_assert!(!self.table[i].queues_acks() || self.table[i].law.steps().waiting_acks() == 0);
        let before = self.held(i);
        let r = &mut self.table[i];
        r.tx = r.rx;
        (r.held_acks, r.marked) = (0, 0);
        r.echoes.clear();
        r.forget_news();
        self.end_grant(i);
        self.stop_timer(i);
        self.unlist(i, self.now);
        self.note_held(i, before);
    }

    /// The flow's ACKs are not held now, so its rate is not asked.
    pub(in crate::gateway) fn not_asked(&mut self, i: FlowId, now: Time) {
        let depth = self.policy(&self.table[i]).release.depth();
        self.table[i].law.pace_mut().begin_anew(now, depth);
    }

    /// Nothing is held any more. Releases go on while the right edge lags behind.
    pub(in crate::gateway) fn settle(&mut self, i: FlowId, now: Time) {
        let r = &self.table[i];
        if r.takes_turns() {
            return; // its turn comes and finds nothing
        }
        if r.law.pace().lag() > 0 && r.has(flag::ARMED) && !r.has(flag::WAITING) {
            return;
        }
        self.disarm(i, now);
        let r = &mut self.table[i];
        if r.law.pace().lag() > 0 {
            r.law.pace_mut().go_on(now);
            let due = r.timer();
            self.start_timer(i, due);
        }
    }

    /// No release is scheduled any more.
    pub(super) fn disarm(&mut self, i: FlowId, now: Time) {
        self.end_grant(i);
        let r = &mut self.table[i];
        if r.has(flag::ARMED) && r.flags & (flag::WAITING | flag::CLOSED) == 0 {
            r.law.pace_mut().stop(now);
        }
        self.stop_timer(i);
    }

    #[inline]
    pub(in crate::gateway) fn held(&self, i: FlowId) -> Held {
        self.table[i].held_now()
    }

    /// Keeps the class's account of what is held.
    #[inline]
    pub(in crate::gateway) fn note_held(&mut self, i: FlowId, before: Held) {
        let r = &self.table[i];
        self.classes[r.class].note_held(before, r.held_now());
    }

    pub(in crate::gateway) fn park(&mut self, cx: &mut Cx<'_>, i: FlowId, frame: Frame, only_progress: bool) {
        let charge = Charge { packets: if only_progress { PROGRESS } else { 0 }, bytes: frame.len() as u64 };
        let since = self.due_of_ack(i, cx.now);
        let waiting = Waiting { frame: cx.frames.park(frame), charge, since };
        let r = &mut self.table[i];
        let mut acks = r.law.steps().acks();
        acks.push(cx.frames, waiting);
        r.law.steps_mut().set_acks(&acks);
        let class = &mut self.classes[r.class];
        class.ack_queue_bytes += charge.bytes;
        class.ack_queue_bytes_peak = class.ack_queue_bytes_peak.max(class.ack_queue_bytes);
        class.note_data(class.data_bytes);
    }

    /// The ACK that waits longest waits no more. Does it tell nothing but progress?
    pub(in crate::gateway) fn unpark(&mut self, cx: &mut Cx<'_>, i: FlowId) -> Option<(Frame, bool)> {
        let r = &mut self.table[i];
        let mut acks = r.law.steps().acks();
        let waiting = acks.pop(cx.frames)?;
        r.law.steps_mut().set_acks(&acks);
        self.classes[r.class].ack_queue_bytes -= waiting.charge.bytes;
        Some((cx.frames.unpark(waiting.frame), waiting.charge.packets == PROGRESS))
    }

    /// No ACK of the flow waits any more: what they acknowledge is held as a number, what else they tell is
    /// lost, as by any queue.
    pub(in crate::gateway) fn clear_acks(&mut self, cx: &mut Cx<'_>, i: FlowId) {
        if !self.table[i].queues_acks() {
            return;
        }
        let before = self.held(i);
        while let Some((frame, _)) = self.unpark(cx, i) {
            self.absorb(cx, i, frame);
        }
        self.note_held(i, before);
    }

    /// The ACKs that waited in an earlier engine were lost with its pool, and the data with its queues.
    pub(super) fn forget_acks(&mut self, i: FlowId) {
        let r = &mut self.table[i];
        if r.takes_steps() {
            r.law.steps_mut().forget_data();
            r.law.steps_mut().end_probe();
        }
        if r.queues_acks() {
            r.law.steps_mut().set_acks(&List::new());
        }
    }

    /// Returns the fate of an ACK that would leave at once by its `fate`.
    pub(in crate::gateway) fn place(
        &self,
        i: FlowId,
        news: &News,
        fate: Fate,
        segment: &Headers,
        options: &TcpOptions,
    ) -> Fate {
        let (r, ack) = (&self.table[i], segment.tcp.ack);
        let newest = if ack.is_after(r.rx) { ack } else { r.rx };
        let early = newest.since(r.tx);
        // Nothing waits for a sender that has nothing more to send.
        if fate != Fate::AfterFlush || early == 0 || r.is_ending() || !self.is_engaged(i) {
            return fate;
        }
        match news.kind {
            Kind::Closed | Kind::Opens if r.has(flag::SCALE_KNOWN) && self.is_too_much(r, early) => {
                match window::is_news(r, segment.tcp.window, None) {
                    true => Fate::SetBack,
                    false => Fate::Hold,
                }
            }
            // A hole that is told with a window that closes or opens.
            Kind::Sack | Kind::Duplicate if r.has(flag::SCALE_KNOWN) && self.is_too_much(r, early) => {
                Fate::Keep
            }
            // What closes a window or opens it never waits.
            _ if segment.tcp.window == 0 || r.window == 0 => fate,
            Kind::Twice => match options.sack.only_twice(ack) {
                Some((_, right)) if !right.is_after(r.tx) => Fate::SetBack,
                // Its sender has sent the first segment that it has not heard of: its timer has run out.
                Some((left, _)) if !left.is_after(r.tx) && !self.is_too_much(r, early) => Fate::AfterFlush,
                _ => Fate::Keep,
            },
            Kind::Sack | Kind::Duplicate if self.is_too_much(r, early) => Fate::Keep,
            _ => fate,
        }
    }

    /// Returns whether this many bytes would acknowledge too much ahead of its time, of a sender whose window
    /// is not sized.
    pub(in crate::gateway) fn is_too_much(&self, r: &Record, early: u32) -> bool {
        let shared = r.takes_turns();
        let most = match self.policy(r).window {
            // Once a segment has passed with the receiver's own window nothing is bounded by that which is
            // told here.
            Window::Size { .. } if r.has(flag::SCALE_KNOWN) && !shared && self.is_wide(r) => {
                r.law.pace().rate().map(|rate| rate.bytes_in(AHEAD))
            }
            Window::Size { .. } if r.has(flag::SCALE_KNOWN) => None,
            Window::Size { .. } if shared && self.classes.shares.is_early(r, early, self.now) => Some(0),
            Window::Size { .. } => self.window_limit(r).map(u64::from),
            Window::Keep if shared => None, // its data waits in its class's queue
            Window::Keep => r.law.pace().rate().map(|rate| rate.bytes_in(AHEAD)),
        };
        let before = r.kept().ahead();
        most.is_some_and(|most| u64::from(early) + u64::from(before) > most)
    }

    /// Returns whether the sender of a flow with a rate of its own may send much more than its window is
    /// sized for.
    fn is_wide(&self, r: &Record) -> bool {
        let ahead = r.edge.beyond(r.tx);
        let full = r.full_window(&self.policy(r).window, self.rtt(r));
        r.has(flag::EDGE_KNOWN) && full.is_some_and(|full| ahead > full.saturating_mul(2))
    }
}

impl Record {
    /// Returns the bytes and ACKs that the flow holds.
    #[inline]
    pub(in crate::gateway) fn held_now(&self) -> Held {
        let bytes = self.held();
        let acks = match self.queues_acks() {
            true => self.law.steps().waiting_acks(),
            false if bytes > 0 => self.held_acks,
            false => 0,
        };
        Held { bytes, acks }
    }

    /// Counts bytes acknowledged towards the sender, for its class too.
    #[inline]
    pub(in crate::gateway) fn count_acked(&mut self, class: &mut ClassStats, bytes: u32) {
        self.acked += u64::from(bytes);
        class.acked_bytes += u64::from(bytes);
    }

    /// Returns how many of the held ACKs are those of the next `bytes`.
    pub(in crate::gateway) fn acks_of(&self, bytes: u32) -> u32 {
        let held = self.held().max(1);
        if bytes == held {
            return self.held_acks;
        }
        (u64::from(self.held_acks) * u64::from(bytes) / u64::from(held)) as u32
    }

    /// Notes bytes of progress, with ECE or without.
    pub(super) fn note_marks(&mut self, bytes: u32, ece: bool) {
        if ece {
            self.marked = self.marked.saturating_add_unsigned(bytes);
        }
    }

    /// Returns whether the next ACK has to carry ECE.
    pub(in crate::gateway) fn shows_ece(&self) -> bool {
        self.marked > 0
    }

    /// Notes acknowledged bytes, with ECE or without. What was marked too much is taken off later marks, at
    /// most a step: more would hide congestion.
    pub(in crate::gateway) fn told_marks(&mut self, bytes: u32, ece: bool) {
        if ece {
            let step = self.kept().pace().map_or(0, Pace::step);
            let step = step.max(2 * self.shared_mss());
            let least = -i32::try_from(step).unwrap_or(i32::MAX);
            self.marked = self.marked.saturating_sub_unsigned(bytes).max(least);
        }
    }

    /// Returns how far the AccECN counter has moved since the sender saw it.
    pub(in crate::gateway) fn ace_unseen(&self) -> u8 {
        self.ace.wrapping_sub(self.ace_sent) & ACE_MOST
    }

    /// Notes that what an ACK for `ack` tells beyond progress is still to be told.
    pub(in crate::gateway) fn note_news(&mut self, ack: Seq, options: &TcpOptions) {
        if let Some(block) = options.sack.only_twice(ack) {
            if !self.has(flag::HOLE) {
                (self.block, self.flags) = (block, self.flags | flag::TWICE);
            }
        } else if ack != self.rx {
            // It was overtaken: newer ones tell as much.
        } else if let Some(block) = options.sack.beyond(ack) {
            (self.block, self.flags) = (block, self.flags & !flag::TWICE | flag::HOLE);
        } else if !self.has(flag::HOLE) {
            (self.block, self.flags) = ((self.rx, Seq(1)), self.flags & !flag::TWICE | flag::HOLE);
        } else if self.block.0 == self.rx {
            self.block.1 = Seq((self.block.1 .0 + 1).min(DUPLICATES));
        }
    }

    /// Returns whether there is anything to tell beside progress.
    #[inline]
    pub(in crate::gateway) fn has_news(&self) -> bool {
        self.flags & (flag::TWICE | flag::HOLE) != 0
    }

    /// The SACK block that an ACK for `to` is to carry.
    #[inline]
    pub(super) fn block_with(&self, to: Seq) -> Option<(Seq, Seq)> {
        if !self.has_news() {
            return None;
        }
        let twice = self.has(flag::TWICE) && !self.block.1.is_after(to);
        let hole = self.has(flag::HOLE) && to == self.rx && self.block.0 != to;
        (twice || hole).then_some(self.block)
    }

    /// An ACK for `tx` has left with what was to go with it. Returns how many duplicates of it are to follow.
    #[inline]
    pub(in crate::gateway) fn told_news(&mut self) -> u32 {
        if self.flags & (flag::TWICE | flag::HOLE | flag::PEAK) == 0 {
            return 0;
        }
        self.news_left()
    }

    #[cold]
    fn news_left(&mut self) -> u32 {
        let all = self.tx == self.rx;
        let duplicates =
            if all && self.has(flag::HOLE) && self.block.0 == self.tx { self.block.1 .0 } else { 0 };
        if self.has(flag::TWICE) && !self.block.1.is_after(self.tx) {
            self.flags &= !flag::TWICE;
        }
        if all {
            self.flags &= !(flag::HOLE | flag::PEAK);
        }
        duplicates
    }

    /// The receiver has got what was missing, or the first of it.
    #[inline]
    pub(super) fn hole_filled(&mut self) {
        self.flags &= !flag::HOLE;
    }

    /// Forgets what was to be told: it is known, or has no meaning any more.
    pub(in crate::gateway) fn forget_news(&mut self) {
        self.flags &= !(flag::TWICE | flag::HOLE | flag::PEAK);
    }
}

impl ClassStats {
    /// A flow that held so much `before` does so `now`.
    #[inline]
    pub(in crate::gateway) fn note_held(&mut self, before: Held, now: Held) {
        self.held_bytes = self.held_bytes + u64::from(now.bytes) - u64::from(before.bytes);
        self.held_bytes_peak = self.held_bytes_peak.max(self.held_bytes);
        self.held_acks = self.held_acks + u64::from(now.acks) - u64::from(before.acks);
        self.held_acks_peak = self.held_acks_peak.max(self.held_acks);
    }

    /// As [`ClassStats::note_held`], of a flow that does not hold more than before.
    #[inline]
    pub(in crate::gateway) fn note_released(&mut self, before: Held, now: Held) {
        self.held_bytes -= u64::from(before.bytes) - u64::from(now.bytes);
        self.held_acks -= u64::from(before.acks) - u64::from(now.acks);
    }
}
