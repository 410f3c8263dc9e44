//! Following of a flow by its record: from the segment with which its numbers begin, by what its slot says
//! has left or passed, and across a change of engines.

use super::held::Held;
use super::{after, Gateway, Headers};
use crate::flow::flag;
use crate::time::Time;
use crate::wire::TcpOptions;
use core::sync::atomic::Ordering::Relaxed;

impl Gateway {
    /// The record's numbers follow the receiver's from here on, and its slot is the kernel's to use once it
    /// is [shown](Gateway::show). False if the kernel cannot be told now.
    pub(super) fn sync(&mut self, i: u32, segment: &Headers, options: &TcpOptions, now: Time) -> bool {
        if self.table[i].has(flag::SHOWN) && !self.verdicts.has_room() {
            return false;
        }
        self.drop_held(i);
        self.give_back(i, 0, now);
        let epoch = self.table.epoch();
        let r = &mut self.table[i];
        let from_syn = r.has(flag::SENDER_SYN | flag::RECEIVER_SYN) && !r.has(flag::SYNCED);
        if from_syn {
            r.note_rtt(now);
        }
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
        true
    }

    /// The flow's numbers are those of its slot: whatever has left or passed, the sender knows. What it
    /// learnt ahead of time is owed, unless the engine was away.
    #[inline]
    pub(super) fn follow(&mut self, i: u32, now: Time) {
        let granted = self.end_grant(i);
        let (epoch, slot, r) = (self.table.epoch(), &self.slots[i], &mut self.table[i]);
        if !r.has(flag::SYNCED) {
            return;
        }
        let tx = slot.tx();
        r.catch_up(slot);
        if r.epoch != epoch || after(tx, r.tx) {
            self.follow_to(i, tx, granted, now);
        }
    }

    /// The receiver has got so many bytes more, from `since` to `now`.
    pub(super) fn progressed(&mut self, i: u32, bytes: u32, since: Time, now: Time) {
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

    /// As [`Gateway::follow`], where something has left or passed, by a grant if the flow was `granted` one,
    /// or the engine was away.
    fn follow_to(&mut self, i: u32, tx: u32, granted: bool, now: Time) {
        let before = self.held(i);
        let epoch = self.table.epoch();
        let r = &mut self.table[i];
        let absent = core::mem::replace(&mut r.epoch, epoch) != epoch;
        let paced = !r.takes_turns();
        let has_passed = after(tx, r.tx);
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
        let passed = tx.wrapping_sub(r.tx);
        let since = if granted { r.kept().last_grant().1 } else { now };
        if after(tx, r.rx) {
            let bytes = tx.wrapping_sub(r.rx);
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
    pub(super) fn resume(&mut self, i: u32) {
        let r = &mut self.table[i];
        let slot = &self.slots[i];
        if !r.has(flag::SYNCED) || slot.tag.load(Relaxed) != r.tag {
            slot.close();
            // Whoever passes until it is clean is followed, and this one cannot be.
            r.flags &= if r.has(flag::SYNCED) { !(flag::SYNCED | flag::PASSES) } else { !flag::SYNCED };
            return;
        }
        slot.begin();
        self.forget_acks(i);
        let (r, slot) = (&mut self.table[i], &self.slots[i]);
        let told = slot.tx();
        if self.classes.outlive() {
            // ACKs that passed, or were sent, without an engine; less what the last one counted and could not
            // send.
            let passed = i64::from(told.wrapping_sub(r.tx) as i32);
            r.acked = r.acked.saturating_add_signed(passed);
            let class = &mut self.classes[r.class];
            class.acked_bytes = class.acked_bytes.saturating_add_signed(passed);
        }
        r.tx = told;
        if after(r.tx, r.rx) {
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
}
