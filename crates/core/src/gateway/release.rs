//! What is held, and the times at which it goes.
//!
//! A flow that holds something has one timer. It is for a release at the flow's rate; or, where the rate has
//! already been earned, for the moment at which the next ACK may follow the last immediate one
//! ([`flag::WAITING`]: a flow that is not backlogged makes at most 5,000 ACKs a second, each of which costs the
//! hosts more than anything here); or for another try ([`flag::PARKED`]) where the port was blocked or no frame was
//! free. A flow that is over has one too: when it is forgotten.

use super::generate::{write_ack, MAX_ACK_LEN};
use super::handshake::LINGER;
use super::{ack_out, after, Gateway, PortSet, Segment, Verdict};
use crate::ack::{window, Arrival, Pace, Release};
use crate::flow::{flag, Record};
use crate::frame::{Checksum, Frame};
use crate::node::Cx;
use crate::steer::{self, Stamp};
use crate::time::{Duration, Time};
use crate::wire::{Flags, TcpOptions};
use core::sync::atomic::Ordering::Relaxed;

/// Time between two ACKs of a flow that is not backlogged, at most a period.
const GAP: Duration = Duration::from_micros(200);
/// Time between two tries of a release that cannot be carried out, at least.
const RETRY: Duration = Duration::from_millis(1);
/// Release times that a parked flow makes up for: no more is earned while its port is blocked.
const PARKED_CATCH_UP: Duration = Duration::from_millis(5);

/// What a flow holds.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) bytes: u32,
    acks: u32,
}

impl Gateway {
    /// The flow's numbers are those of its slot: whatever has left or passed, the sender knows. What it learnt
    /// ahead of time is owed, unless the engine was away.
    pub(super) fn follow(&mut self, i: u32, now: Time) {
        if !self.table[i].has(flag::SYNCED) {
            return;
        }
        let before = self.held(i);
        let epoch = self.table.epoch();
        let tx = self.slots[i].tx.load(Relaxed);
        let r = &mut self.table[i];
        r.catch_up(&self.slots[i]);
        let absent = core::mem::replace(&mut r.epoch, epoch) != epoch;
        if absent {
            r.pace.forgive();
        }
        if !after(tx, r.tx) {
            return;
        }
        let passed = tx.wrapping_sub(r.tx);
        if after(tx, r.rx) {
            r.pace.progressed(tx.wrapping_sub(r.rx));
            r.rx = tx;
        }
        r.tx = tx;
        r.echoes.release(tx);
        if !absent {
            self.told_early(i, passed, now);
        }
        let r = &mut self.table[i];
        if r.held() == 0 {
            r.held_acks = 0;
            self.disarm(i, now);
        }
        self.count_acked(i, passed);
        if absent {
            self.table[i].pace.forgive(); // what passed meanwhile, too
        }
        self.note_held(i, before);
    }

    /// A record of an earlier engine goes on with what its sender knows; what was made and did not leave is held
    /// still.
    pub(super) fn resume(&mut self, i: u32) {
        let r = &mut self.table[i];
        let slot = &self.slots[i];
        if !r.has(flag::SYNCED) || slot.tag.load(Relaxed) != r.tag {
            slot.close();
            r.flags &= !flag::SYNCED;
            return;
        }
        r.tx = slot.tx.load(Relaxed);
        if after(r.tx, r.rx) {
            r.rx = r.tx;
        }
        r.echoes.release(r.tx);
        if r.held() == 0 {
            r.held_acks = 0;
        }
        if r.held() > 0 || r.has(flag::CLOSED) {
            r.flags |= flag::ARMED | flag::WAITING;
            self.wheel.arm(i, Time::ZERO);
        }
        self.note_held(i, Held { bytes: 0, acks: 0 });
    }

    /// A pure ACK whose number is all that it tells.
    pub(super) fn hold(
        &mut self,
        cx: &mut Cx<'_>,
        i: u32,
        segment: &Segment,
        options: &TcpOptions,
        frame: Frame,
    ) {
        let room = self.outbox.has_room(ack_out(&self.table[i]), 1);
        let r = &mut self.table[i];
        let idle = !r.has(flag::ARMED) && room && r.held() > 0 && !r.is_soon(cx.now);
        if idle && r.pace.arrive(cx.now, r.held()) == Arrival::Release {
            let passed = r.rx.wrapping_sub(r.tx);
            r.told_marks(r.held(), segment.has(Flags::ECE));
            r.tx = r.rx;
            r.echoes.clear();
            self.count_acked(i, passed);
            return self.forward_ack(cx, i, segment, frame, segment.tcp.ack);
        }
        r.held_acks += 1;
        self.arm(i, options, idle);
        self.absorb(cx, i, frame);
    }

    /// Progress that came on a segment with payload.
    pub(super) fn schedule(&mut self, cx: &mut Cx<'_>, i: u32, options: &TcpOptions) {
        let r = &mut self.table[i];
        if r.held() == 0 {
            return;
        }
        let idle = !r.has(flag::ARMED) && !r.is_soon(cx.now);
        if idle && r.pace.arrive(cx.now, r.held()) == Arrival::Release {
            let (to, held) = (r.rx, r.held());
            if let Some(t) = options.timestamps {
                r.echoes.push(r.rx, t.echo);
            }
            if self.generate(cx, i, to, cx.now) {
                return;
            }
            self.table[i].pace.refund(held);
            return self.park(i, cx.now);
        }
        self.arm(i, options, idle);
    }

    /// What is held gets a timer, unless it has one: the release that is `scheduled`, or the end of the gap
    /// after the last ACK.
    fn arm(&mut self, i: u32, options: &TcpOptions, scheduled: bool) {
        let r = &mut self.table[i];
        if let Some(t) = options.timestamps {
            r.echoes.push(r.rx, t.echo);
        }
        if scheduled {
            r.flags |= flag::ARMED;
            self.wheel.arm(i, r.timer());
        } else {
            self.wait(i);
        }
    }

    /// What is held waits for the end of the gap after the last ACK, unless it waits already.
    pub(super) fn wait(&mut self, i: u32) {
        let r = &mut self.table[i];
        if !r.has(flag::ARMED) && r.held() > 0 {
            r.flags |= flag::ARMED | flag::WAITING;
            self.wheel.arm(i, r.timer());
        }
    }

    /// Up to one segment ahead of its time, so that the sender sees a counter move.
    pub(super) fn release_early(&mut self, cx: &mut Cx<'_>, i: u32) {
        let r = &mut self.table[i];
        let bytes = r.held().min(u32::from(r.mss));
        let to = r.tx.wrapping_add(bytes);
        if self.generate_early(cx, i, to) && self.table[i].held() == 0 {
            self.settle(i, cx.now);
        }
    }

    /// Makes an ACK up to `to` that does not wait for its time.
    fn generate_early(&mut self, cx: &mut Cx<'_>, i: u32, to: u32) -> bool {
        let bytes = to.wrapping_sub(self.table[i].tx);
        // Before the window is written, which lags behind by what is early.
        self.told_early(i, bytes, cx.now);
        let made = self.generate(cx, i, to, cx.now);
        if !made {
            self.table[i].pace.refund(bytes);
        }
        made
    }

    /// What is held goes before an ACK for `ack` that tells more than progress and follows at once.
    pub(super) fn flush_for(&mut self, cx: &mut Cx<'_>, i: u32, ack: u32) {
        let r = &self.table[i];
        let (held, rx) = (r.held(), r.rx);
        if held > 0 {
            self.generate_early(cx, i, rx);
        }
        if after(ack, rx) {
            self.told_early(i, ack.wrapping_sub(rx), cx.now);
        }
    }

    /// So many bytes are acknowledged ahead of their time.
    fn told_early(&mut self, i: u32, bytes: u32, now: Time) {
        let rtt = self.rtt(&self.table[i]);
        let r = &mut self.table[i];
        let idle = (!r.has(flag::ARMED)).then_some(now);
        r.pace.acknowledge_early(bytes, idle, rtt);
    }

    /// Releases of this flow whose time came before `now` are carried out before it is looked at.
    pub(super) fn run_missed(&mut self, cx: &mut Cx<'_>, i: u32) {
        let Release::Rate(policy) = self.policy(&self.table[i]).release;
        for _ in 0..1_000 {
            let r = &self.table[i];
            let runs = r.has(flag::ARMED) && r.flags & (flag::PARKED | flag::CLOSED) == 0;
            if !runs || r.timer() >= cx.now || cx.now.since(r.timer()) > policy.catch_up {
                return;
            }
            self.wheel.disarm(i);
            self.table[i].set(flag::ARMED, false);
            self.release(cx, i, PortSet::ALL);
        }
    }

    /// The time of a flow, just taken off the wheel, has come.
    pub(super) fn release(&mut self, cx: &mut Cx<'_>, i: u32, writable: PortSet) {
        if self.table[i].has(flag::CLOSED) {
            return self.forget(cx, i);
        }
        self.follow(i, cx.now);
        let out = ack_out(&self.table[i]);
        if self.table[i].held() == 0 && self.table[i].pace.lag() == 0 {
            self.table[i].flags &= !(flag::WAITING | flag::PARKED);
            self.table[i].pace.stop(cx.now);
        } else if !writable.contains(out) || self.outbox.busy(out) {
            self.park(i, cx.now);
        } else if self.table[i].has(flag::WAITING) {
            self.end_gap(cx, i);
        } else {
            self.tick(cx, i);
        }
        self.close_if_done(i, cx.now);
    }

    /// The next ACK may follow the last.
    fn end_gap(&mut self, cx: &mut Cx<'_>, i: u32) {
        let before = self.held(i);
        let r = &mut self.table[i];
        let at = r.timer();
        let late = r.has(flag::PARKED) || cx.now.since(at) > RETRY;
        let at = if late { cx.now } else { at };
        r.flags &= !(flag::WAITING | flag::PARKED);
        if r.pace.arrive(at, before.bytes) == Arrival::Schedule {
            r.flags |= flag::ARMED;
            self.wheel.arm(i, r.timer());
        } else if !self.generate(cx, i, self.table[i].rx, at) {
            self.table[i].pace.refund(before.bytes);
            self.table[i].flags |= flag::WAITING;
            self.park(i, cx.now);
        }
        self.note_held(i, before);
    }

    /// A release time of a backlogged flow.
    fn tick(&mut self, cx: &mut Cx<'_>, i: u32) {
        let Release::Rate(policy) = self.policy(&self.table[i]).release;
        let rtt = self.rtt(&self.table[i]);
        let before = self.held(i);
        let r = &mut self.table[i];
        let class = &mut self.classes[usize::from(r.class)];
        let parked = r.has(flag::PARKED);
        r.set(flag::PARKED, false);
        let made_up = PARKED_CATCH_UP.max(r.pace.period().saturating_mul(2));
        let catch_up = if parked { policy.catch_up.min(made_up) } else { policy.catch_up };
        class.missed_releases += r.pace.skip_missed(cx.now, catch_up);
        let at = Time::from_nanos(r.pace.due);
        let lags = r.pace.lag() > 0;
        let tick = r.pace.tick(&policy, rtt, r.mss, before.bytes);
        class.slow_starts += u64::from(tick.entered_slow_start);
        let wanted = r.tx.wrapping_add(tick.release);
        let to = self.on_grid(i, wanted);
        let kept = wanted.wrapping_sub(to);
        self.table[i].pace.refund(kept);
        let tells = tick.release > 0 || lags && self.edge_moves(i);
        if tells && !self.generate(cx, i, to, at) {
            self.table[i].pace.refund(tick.release - kept);
            self.park(i, cx.now);
        }
        let r = &mut self.table[i];
        if r.held() == 0 && r.pace.lag() == 0 {
            r.pace.stop(at);
        } else if !r.has(flag::ARMED) {
            r.flags |= flag::ARMED;
            self.wheel.arm(i, Time::from_nanos(r.pace.due));
        }
        self.note_held(i, before);
    }

    /// The release cannot be carried out now: another try follows.
    fn park(&mut self, i: u32, now: Time) {
        let r = &mut self.table[i];
        r.flags |= flag::ARMED | flag::PARKED;
        self.wheel.arm(i, now + r.pace.period().max(RETRY));
    }

    /// A flow that is over is forgotten, as soon as the kernel can be told.
    fn forget(&mut self, cx: &mut Cx<'_>, i: u32) {
        if !self.retire(cx, i) {
            self.table[i].flags |= flag::ARMED;
            self.wheel.arm(i, cx.now + LINGER);
        }
    }

    /// Passes on everything that the flow holds, at once. False if that is not possible now: it stays held.
    pub(super) fn flush(&mut self, cx: &mut Cx<'_>, i: u32) -> bool {
        self.follow(i, cx.now);
        let before = self.held(i);
        if before.bytes == 0 || self.table[i].has(flag::CLOSED) {
            return true;
        }
        if !self.generate_early(cx, i, self.table[i].rx) {
            return false;
        }
        self.settle(i, cx.now);
        self.note_held(i, before);
        true
    }

    /// Nobody is left to hear of what is held.
    pub(super) fn drop_held(&mut self, i: u32) {
        let before = self.held(i);
        let r = &mut self.table[i];
        r.tx = r.rx;
        (r.held_acks, r.marked) = (0, 0);
        r.echoes.clear();
        if r.has(flag::ARMED) {
            self.wheel.disarm(i);
        }
        r.flags &= !(flag::ARMED | flag::WAITING | flag::PARKED);
        self.note_held(i, before);
    }

    /// Nothing is held any more. Releases go on while the right edge lags behind.
    pub(super) fn settle(&mut self, i: u32, now: Time) {
        let r = &self.table[i];
        let runs = r.has(flag::ARMED) && r.flags & (flag::WAITING | flag::PARKED) == 0;
        if r.pace.lag() > 0 && runs {
            return;
        }
        self.disarm(i, now);
        let r = &mut self.table[i];
        if r.pace.lag() > 0 {
            r.flags |= flag::ARMED;
            r.pace.go_on(now);
            self.wheel.arm(i, r.timer());
        }
    }

    /// No release is scheduled any more.
    pub(super) fn disarm(&mut self, i: u32, now: Time) {
        let r = &mut self.table[i];
        if r.has(flag::ARMED) {
            self.wheel.disarm(i);
            if r.flags & (flag::WAITING | flag::CLOSED) == 0 {
                r.pace.stop(now);
            }
        }
        r.flags &= !(flag::ARMED | flag::WAITING | flag::PARKED);
    }

    /// Makes an ACK up to `to` and sends it off as due at `at`. False when there is no frame or no room for it:
    /// what is held stays held.
    pub(super) fn generate(&mut self, cx: &mut Cx<'_>, i: u32, to: u32, at: Time) -> bool {
        let limit = self.window_limit(&self.table[i]);
        self.slots[i].width.store(limit.unwrap_or(0), Relaxed);
        let out = ack_out(&self.table[i]);
        if !self.outbox.has_room(out, 1) {
            return false;
        }
        let Some(frame) = cx.frames.make(MAX_ACK_LEN, at) else {
            self.stats.pool_exhausted += 1;
            return false;
        };
        let r = &mut self.table[i];
        r.catch_up(&self.slots[i]);
        let released = to.wrapping_sub(r.tx);
        let mut field = window::advertise(r, to, limit);
        if !self.hooked {
            if let Stamp::Send { window, .. } = self.slots[i].stamp(to, field) {
                field = window;
            }
        }
        let ece = r.shows_ece();
        let len = write_ack(r, to, field, ece, cx.frames.bytes_mut(&frame));
        let mut frame = cx.frames.truncate(frame, len);
        (frame.checksum, frame.restamp) = (Checksum::Valid, true);
        let gone = u64::from(r.held_acks) * u64::from(released) / u64::from(r.held().max(1));
        r.held_acks -= gone as u32;
        r.tx = to;
        r.ace_sent = r.ace;
        r.told_marks(released, ece);
        r.echoes.release(to);
        self.classes[usize::from(r.class)].acks_generated += 1;
        self.count_acked(i, released);
        self.stats.ledger.made += 1;
        self.outbox.push(cx, &mut self.stats.ledger, out, at, frame);
        true
    }

    /// Forwards an ACK of the receiver with `ack` in its ACK field and the window that may go with it.
    pub(super) fn forward_ack(
        &mut self,
        cx: &mut Cx<'_>,
        i: u32,
        segment: &Segment,
        mut frame: Frame,
        ack: u32,
    ) {
        let r = &self.table[i];
        if after(r.tx, ack) {
            return self.forward_untouched(cx, i, frame); // it was overtaken, and tells something all the same
        }
        let limit = self.window_limit(r);
        let r = &mut self.table[i];
        let out = ack_out(r);
        r.ace_sent = r.ace;
        // A window that is kept is touched only where the acknowledgement is.
        let field = if limit.is_none() && ack == segment.tcp.ack {
            window::forwarded(r, ack, segment.tcp.window);
            segment.tcp.window
        } else {
            window::advertise(r, ack, limit)
        };
        let rewritten = field != segment.tcp.window || ack != segment.tcp.ack;
        if rewritten {
            steer::set_back(cx.frames, &frame, &segment.packet, ack, field);
        }
        frame.restamp = true;
        if !self.hooked {
            let stamp = self.slots[i].stamp(ack, field);
            if !steer::restamp(cx.frames, &frame, &segment.packet, &segment.tcp, stamp) {
                return self.absorb(cx, i, frame); // nothing new after a FIN
            }
        }
        let class = &mut self.classes[usize::from(self.table[i].class)];
        class.acks_rewritten += u64::from(rewritten);
        class.acks_forwarded += u64::from(!rewritten);
        self.forward(cx, out, frame);
    }

    /// Forwards a segment of the receiver as it came.
    pub(super) fn forward_untouched(&mut self, cx: &mut Cx<'_>, i: u32, frame: Frame) {
        let r = &self.table[i];
        self.classes[usize::from(r.class)].acks_forwarded += 1;
        self.forward(cx, ack_out(r), frame);
    }

    pub(super) fn absorb(&mut self, cx: &mut Cx<'_>, i: u32, frame: Frame) {
        self.classes[usize::from(self.table[i].class)].acks_absorbed += 1;
        self.stats.ledger.absorbed += 1;
        cx.frames.absorb(frame);
    }

    pub(super) fn held(&self, i: u32) -> Held {
        let r = &self.table[i];
        Held { bytes: r.held(), acks: if r.held() > 0 { r.held_acks } else { 0 } }
    }

    /// Keeps the class's account of what is held.
    pub(super) fn note_held(&mut self, i: u32, before: Held) {
        let now = self.held(i);
        let c = &mut self.classes[usize::from(self.table[i].class)];
        c.held_bytes = c.held_bytes + u64::from(now.bytes) - u64::from(before.bytes);
        c.held_bytes_peak = c.held_bytes_peak.max(c.held_bytes);
        c.held_acks = c.held_acks + u64::from(now.acks) - u64::from(before.acks);
        c.held_acks_peak = c.held_acks_peak.max(c.held_acks);
    }

    /// The kernel's entry for the flow.
    pub(super) fn shape(&self, i: u32) -> Verdict {
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
    pub(super) fn show_again(&mut self) {
        while self.unshown < self.table.capacity() && self.verdicts.has_room() {
            let i = self.unshown;
            if self.table[i].has(flag::USED | flag::SHOWN | flag::SYNCED) {
                let shape = self.shape(i);
                self.verdicts.push(shape);
            }
            self.unshown += 1;
        }
    }
}

impl Record {
    /// When the flow's timer is due, unless it is parked.
    fn timer(&self) -> Time {
        let due = Time::from_nanos(self.pace.due);
        if self.has(flag::WAITING) {
            due + gap(&self.pace)
        } else {
            due
        }
    }

    /// Would an ACK now follow the last immediate one too soon?
    fn is_soon(&self, now: Time) -> bool {
        now < Time::from_nanos(self.pace.due) + gap(&self.pace)
    }
}

/// Time between two ACKs of a flow that is not backlogged. Credit is earned meanwhile, so its rate is the same.
fn gap(pace: &Pace) -> Duration {
    GAP.min(pace.period())
}
