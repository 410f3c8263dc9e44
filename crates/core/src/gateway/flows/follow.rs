//! Following of a flow by its record: from the segment with which its numbers begin, by what its slot says
//! has left or passed, by an ACK that only tells progress, by segments that passed, and across a change of
//! engines.

use super::held::Held;
use super::plain::seen;
use super::segment::Headers;
use super::{millis, Register};
use crate::ack::window;
use crate::flow::{flag, FlowId, Key, Record};
use crate::frame::{Checksum, Frame};
use crate::node::Cx;
use crate::steer::{self, Action, Seen};
use crate::time::Time;
use crate::wire::{self, Flags, PlainAck, Seq, TcpOptions};
use core::sync::atomic::Ordering::Relaxed;

impl Register {
    /// As `Gateway::takes_plain`, of a frame that is laid out in another way than most; `bytes` are all of
    /// it.
    #[inline(never)]
    pub(in crate::gateway) fn takes_unusual(
        &mut self,
        now: Time,
        from_lan: bool,
        frame: &Frame,
        bytes: &[u8],
    ) -> bool {
        let ack = wire::plain_ack(bytes, frame.checksum == Checksum::Unknown);
        ack.is_some_and(|ack| self.takes(now, from_lan, frame.restamp, &ack))
    }

    /// As `Gateway::takes_plain`, of an ACK that is `counted` among those of its slot that were taken. Each
    /// call is compiled for what is known of it.
    #[inline(always)]
    pub(in crate::gateway) fn takes(
        &mut self,
        now: Time,
        from_lan: bool,
        counted: bool,
        ack: &PlainAck,
    ) -> bool {
        let Some(i) = self.table.find(&Key::of_plain(ack)) else { return false };
        let (seen, state) = (seen(ack, now), (self.generation, self.table.epoch()));
        let Register { table, slots, classes, congestion, stats, hooked, .. } = self;
        let (r, slot) = (&mut table[i], &slots[i]);
        let is_progress = r.is_backlogged(from_lan, seen.ts.is_some())
            && (r.generation, r.epoch) == state
            && !r.is_stale(millis(now))
            && r.is_advanced_by(&seen)
            && slot.is_advanced_by(&seen, r);
        if !is_progress {
            return false;
        }
        let (policy, class, index) = classes.of_flow(r.class);
        if !policy.hold.is_number() || !policy.engages(congestion, index) {
            return false;
        }
        r.catch_up(slot);
        if counted {
            slot.has_come();
        }
        if !*hooked {
            slot.note_next(&seen);
        }
        r.keep(class, ack, now);
        stats.ledger.absorbed += 1;
        self.measure(i, ack.ack, now);
        true
    }

    /// The record's numbers follow the receiver's from here on, and its slot is the kernel's to use once it
    /// is [shown](Register::show). False if the kernel cannot be told now.
    pub(in crate::gateway) fn sync(
        &mut self,
        i: FlowId,
        segment: &Headers,
        options: &TcpOptions,
        now: Time,
    ) -> bool {
        if self.table[i].has(flag::SHOWN) && !self.verdicts.has_room() {
            return false;
        }
        self.drop_held(i);
        self.give_back(i, 0, now);
        let epoch = self.table.epoch();
        let r = &mut self.table[i];
        let from_syn = r.has(flag::SENDER_SYN | flag::RECEIVER_SYN) && !r.has(flag::SYNCED);
        let before_ns = r.rtt_ns;
        if from_syn {
            r.note_rtt(now);
        }
        let total_ns = r.rtt_ns;
        r.epoch = epoch;
        r.flags |= flag::SYNCED;
        r.flags &=
            !(flag::EDGE_KNOWN | flag::EDGE_WAITS | flag::CLOSED | flag::SENDER_FIN | flag::RECEIVER_FIN);
        // What both SYNs said holds for the connection (RFC 7323 section 3.2), whatever one ACK has.
        if !r.has(flag::SENDER_SYN | flag::RECEIVER_SYN) {
            r.set(flag::TIMESTAMPS, options.timestamps.is_some());
        }
        (r.rx, r.tx, r.seq) = (segment.tcp.ack, segment.tcp.ack, segment.end());
        r.window = segment.tcp.window;
        let segments = r.segments();
        let policy = *self.policy(&self.table[i]);
        let r = &mut self.table[i];
        r.law = policy.release.begin(&segments, from_syn, now);
        r.obey(&policy);
        r.doubt.current(now);
        r.set(flag::LOSS, false);
        if from_syn {
            self.note_handshake(i, before_ns, total_ns, now);
        }
        self.restart_account(i);
        true
    }

    /// The flow's numbers are those of its slot: whatever has left or passed, the sender knows. What it
    /// learnt ahead of time is owed, unless the engine was away.
    #[inline]
    pub(in crate::gateway) fn follow(&mut self, i: FlowId, now: Time) {
        let granted = self.end_grant(i);
        let (epoch, slot, r) = (self.table.epoch(), &self.slots[i], &mut self.table[i]);
        if !r.has(flag::SYNCED) {
            return;
        }
        let tx = slot.tx();
        r.catch_up(slot);
        if r.epoch != epoch || tx.is_after(r.tx) {
            self.follow_to(i, tx, granted, now);
        }
    }

    /// The receiver has got this many bytes more, from `since` to `now`.
    pub(super) fn progressed(&mut self, i: FlowId, bytes: u32, since: Time, now: Time) {
        if self.is_counted(i) {
            return;
        }
        let r = &mut self.table[i];
        if r.takes_turns() {
            self.got(i, bytes, since, now);
        } else {
            r.law.pace_mut().progressed(bytes);
        }
    }

    /// As [`Register::follow`], where something has left or passed, by a grant if the flow was `granted` one,
    /// or the engine was away.
    fn follow_to(&mut self, i: FlowId, tx: Seq, granted: bool, now: Time) {
        let before = self.held(i);
        let epoch = self.table.epoch();
        let r = &mut self.table[i];
        // A gateway that observes is always away, as far as rates are concerned.
        let absent = core::mem::replace(&mut r.epoch, epoch) != epoch || self.config.observe;
        let paced = !r.takes_turns();
        let has_passed = tx.is_after(r.tx);
        if absent {
            self.restart_account(i);
        }
        let r = &mut self.table[i];
        if absent || has_passed {
            // It has overtaken what waits in the ring.
            r.doubt.current(now);
        }
        if absent && paced {
            r.law.pace_mut().forgive();
        }
        if !has_passed {
            return;
        }
        self.measured.sight(i).overtaken(tx.0);
        let r = &mut self.table[i];
        let passed = tx.since(r.tx);
        let since = if granted { r.kept().last_grant().1 } else { now };
        if tx.is_after(r.rx) {
            let bytes = tx.since(r.rx);
            r.rx = tx;
            r.hole_filled();
            r.check_end();
            self.progressed(i, bytes, since, now);
        }
        let r = &mut self.table[i];
        if granted {
            r.window = self.slots[i].window();
            r.doubt.passed(now);
        }
        r.tx = tx;
        r.flags &= !flag::PEAK; // it passed with the receiver's own window
        r.echoes.release(tx);
        if granted && !absent && !paced {
            self.permit_since(i, passed, since, now);
        } else if granted && !absent {
            let r = &self.table[i];
            let (rtt, depth) = (self.rtt(r), self.policy(r).release.depth());
            self.table[i].law.pace_mut().passed(passed, now, rtt, depth);
        } else if !absent {
            self.told_early(i, passed, now);
        }
        let r = &mut self.table[i];
        if r.held() == 0 {
            r.held_acks = 0;
            // ACKs that tell no progress may wait for their times.
            if !(r.takes_steps() && r.has(flag::WAITING)) {
                self.disarm(i, now);
            }
        }
        self.count_acked(i, passed);
        if absent && paced {
            self.table[i].law.pace_mut().forgive(); // what passed meanwhile, too
        }
        self.note_held(i, before);
    }

    /// A record of an earlier engine goes on with what its sender knows; what was made and did not leave is
    /// held still.
    pub(super) fn resume(&mut self, i: FlowId) {
        let r = &mut self.table[i];
        let slot = &self.slots[i];
        if !r.has(flag::SYNCED) || slot.tag.load(Relaxed) != r.tag {
            slot.close();
            // Flows that pass until they are clean are followed, and this one cannot be.
            r.flags &= if r.has(flag::SYNCED) { !(flag::SYNCED | flag::PASSES) } else { !flag::SYNCED };
            return;
        }
        slot.begin();
        self.measured.sight(i).cancel();
        self.forget_acks(i);
        let (r, slot) = (&mut self.table[i], &self.slots[i]);
        let told = slot.tx();
        if self.classes.outlive() {
            // ACKs that passed, or were sent, without an engine; less what the last one counted and could not
            // send.
            let passed = i64::from(told.ahead_of(r.tx));
            r.acked = r.acked.saturating_add_signed(passed);
            let class = &mut self.classes[r.class];
            class.acked_bytes = class.acked_bytes.saturating_add_signed(passed);
        }
        r.tx = told;
        if r.tx.is_after(r.rx) {
            (r.rx, r.window) = (r.tx, slot.window());
            r.forget_news();
        }
        r.echoes.release(r.tx);
        if r.held() == 0 {
            r.held_acks = 0;
        }
        self.follow_law(i, Time::ZERO);
        let r = &mut self.table[i];
        if r.takes_turns() && !r.has(flag::CLOSED) {
            if r.held() > 0 || r.has(flag::EDGE_WAITS) {
                self.enlist(i, Time::ZERO);
                self.blocked.since_ever();
            }
        } else if r.held() > 0 || r.has(flag::CLOSED) {
            self.stop_timer(i);
            let r = &mut self.table[i];
            r.flags |= flag::WAITING;
            self.start_timer(i, Time::ZERO);
            self.blocked.since_ever();
        } else if r.law.pace().lag() > 0 {
            // A sender that was told of no room hears of it from here alone.
            let due = r.timer();
            self.start_timer(i, due);
            self.blocked.since_ever();
        }
        self.note_held(i, Held { bytes: 0, acks: 0 });
    }

    /// Returns whether a hook, which this gateway is itself, deals with a segment of a flow that it was shown
    /// and does not report it. Such a segment changes nothing in the gateway, so that it does the same behind
    /// hooks.
    pub(in crate::gateway) fn is_unreported(&self, i: FlowId, seen: &Seen) -> bool {
        !self.hooked
            && !seen.is_pure()
            && seen.flags & (steer::ACK | steer::RST) == steer::ACK
            && self.table[i].has(flag::SYNCED)
            && self.slots[i].deals_with(seen)
    }

    /// Returns what a hook has done with a segment that is here, or what it would do: of a flow that it was
    /// not `shown` it takes ACKs without payload.
    pub(in crate::gateway) fn action(&self, i: FlowId, seen: &Seen, shown: bool) -> Action {
        if !self.hooked && shown {
            self.see_granted(i, seen, self.now);
            return self.slots[i].believed(seen);
        }
        if !seen.is_pure() {
            self.note_passed(i, seen);
            return Action::Copy;
        }
        if !shown {
            self.slots[i].believed(seen); // noted here alone
        }
        Action::Take
    }

    /// A segment passes, or has passed, as it came. Where there are hooks, the gateway notes it on its side.
    pub(in crate::gateway) fn note_passed(&self, i: FlowId, seen: &Seen) {
        match self.hooked {
            true => self.slots[i].note_left(seen),
            false => self.slots[i].note_passed(seen),
        }
    }

    /// A segment passed as it came: its sender knows its acknowledgement. What that tells ahead of its time
    /// is owed. `tx` is what the sender knew before.
    pub(in crate::gateway) fn on_passed(
        &mut self,
        cx: &mut Cx<'_>,
        i: FlowId,
        segment: &Headers,
        frame: &Frame,
        tx: Seq,
    ) {
        self.follow(i, cx.now);
        self.learn(i, cx, segment, frame);
        let r = &mut self.table[i];
        if r.has(flag::ACCECN) && !r.rx.is_after(segment.tcp.ack) {
            r.ace_sent = r.ace;
            self.marks.of(i.index()).all_left();
        }
        if !tx.is_after(segment.tcp.ack) {
            self.table[i].doubt.current(cx.now);
        }
        if segment.has(Flags::FIN) {
            self.table[i].flags |= flag::RECEIVER_FIN;
            self.close_if_done(i, cx.now);
        }
    }

    /// The receiver has acknowledged as much as this, with ECE or without.
    pub(in crate::gateway) fn progress(&mut self, i: FlowId, ack: Seq, ece: bool) {
        let r = &mut self.table[i];
        if ack.is_after(r.rx) {
            let bytes = ack.since(r.rx);
            r.note_marks(bytes, ece);
            r.rx = ack;
            r.hole_filled();
            r.check_end();
            self.progressed(i, bytes, self.now, self.now);
            self.note_delay(i, self.now);
            self.measure(i, ack, self.now);
        }
    }

    /// Keeps what generated ACKs are made of.
    pub(in crate::gateway) fn learn(&mut self, i: FlowId, cx: &Cx<'_>, segment: &Headers, frame: &Frame) {
        if segment.tcp.window == 0 && self.table[i].window != 0 {
            self.note_zero_window(i);
        }
        let r = &mut self.table[i];
        r.template.learn(cx.frames.bytes(frame), &segment.packet);
        if r.rx.is_after(segment.tcp.ack) {
            return; // an old segment: its window and flags are history
        }
        window::received(r, segment.tcp.ack, segment.tcp.window);
        let pure = segment.tcp.payload_len == 0;
        // A pure ACK carries neither AE nor CWR otherwise.
        if r.has(flag::ACCECN) || segment.tcp.flags.ace() & 6 != 0 && pure {
            self.learn_counters(i, segment, cx.frames.bytes(frame), pure);
        }
    }

    /// Keeps the counters of an AccECN flow's segment. One with payload leaves with its own.
    #[cold]
    fn learn_counters(&mut self, i: FlowId, segment: &Headers, bytes: &[u8], pure: bool) {
        let r = &mut self.table[i];
        if !r.has(flag::ACCECN) {
            r.flags |= flag::ACCECN;
            self.marks.forget(i.index());
        }
        let own = segment.counters(bytes, r.opens_acknowledged(segment.tcp.ack));
        r.ace = own.ace as u8;
        if pure {
            r.ace_sent = self.marks.of(i.index()).came(own);
        } else {
            r.ace_sent = r.ace;
            self.marks.of(i.index()).left(own);
        }
    }

    /// A segment of an AccECN flow leaves with its own counters.
    #[cold]
    pub(in crate::gateway) fn tell_counters(&mut self, i: FlowId, segment: &Headers, bytes: &[u8]) {
        let r = &mut self.table[i];
        let own = segment.counters(bytes, r.opens_acknowledged(segment.tcp.ack));
        r.ace_sent = own.ace as u8;
        self.marks.of(i.index()).left(own);
    }

    /// The most bytes a flow's window may be, if its class sizes windows and its scale is known.
    #[inline]
    pub(in crate::gateway) fn window_limit(&self, r: &Record) -> Option<u32> {
        self.window_limit_at(r, r.tx)
    }

    /// Returns the limit of the window that is told with an acknowledgement of `to`.
    pub(in crate::gateway) fn window_limit_at(&self, r: &Record, to: Seq) -> Option<u32> {
        if r.takes_turns() {
            return self.window_of_share(r, to);
        }
        if self.ends {
            return None;
        }
        r.window_limit(&self.policy(r).window, self.rtt(r))
    }

    /// Returns whether the right edge that may be told now is right of the last one.
    pub(in crate::gateway) fn edge_moves(&self, i: FlowId) -> bool {
        let r = &self.table[i];
        r.edge_moves(self.window_limit(r))
    }

    /// A sender whose window was sized from its first right edge on cannot get ahead of the releases by more
    /// than the advertised window, in slow start or not, so its steps are full from the beginning
    /// (`docs/ack-shaper.md`).
    pub(in crate::gateway) fn bound(&mut self, i: FlowId) {
        let r = &self.table[i];
        if !r.has(flag::EDGE_KNOWN) || r.takes_turns() {
            return;
        }
        let bounds = self.policy(r).release.is_bounded_by_window();
        let Some(limit) = self.window_limit(&self.table[i]) else { return };
        let r = &mut self.table[i];
        // An edge is rounded up to a unit of the window.
        if bounds && r.edge.since(r.tx) < limit + (1 << r.scale) {
            r.law.pace_mut().bounded();
        }
    }
}
