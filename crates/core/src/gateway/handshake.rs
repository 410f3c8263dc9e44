//! What SYN, FIN and RST tell about a flow: how it begins and ends. None of them is ever delayed or changed.
//!
//! A SYN changes nothing for a connection that lives until it is answered: its record is kept under a key of
//! its own ([`Key::opening`]) meanwhile. FIN and RST are believed where their receiver accepts them. A flow that
//! is over is kept for a moment, since segments of it are still on their way, and then forgotten.

use super::{after, direction_of, Direction, Gateway, PassReason, Segment};
use crate::ack::{Counts, Pace, RateRelease, Release, Window};
use crate::flow::{flag, Key, Record};
use crate::frame::Frame;
use crate::node::Cx;
use crate::rate::Rate;
use crate::steer::slot_flag;
use crate::time::{Duration, Time};
use crate::wire::{self, Flags, Packet, TcpOptions};

/// Segment size assumed when a SYN names none (RFC 9293 §3.7.1).
const DEFAULT_MSS: u16 = 536;
/// Data that comes with a SYN at most (RFC 7413): a segment.
const FAST_OPEN: u32 = 1460;
/// Bytes of the timestamps option with its padding.
const TIMESTAMPS_LEN: u16 = 12;
/// How long a flow that is over is remembered: a lost FIN comes again after a retransmission timeout, which starts
/// at 1 s (RFC 6298 §2).
pub(super) const LINGER: Duration = Duration::from_secs(2);

impl Gateway {
    /// A SYN, with or without ACK: it opens or answers, in both directions of data. One that is `here` has not
    /// left yet.
    pub(super) fn on_syn(
        &mut self,
        cx: &mut Cx<'_>,
        from_lan: bool,
        segment: &Segment,
        frame: &Frame,
        here: bool,
    ) {
        let bytes = cx.frames.bytes(frame);
        let Ok(options) = wire::tcp_options(bytes, &segment.packet, &segment.tcp) else { return };
        let (data, ack) =
            if from_lan { (Direction::Out, Direction::In) } else { (Direction::In, Direction::Out) };
        let key = Key::of_data(&segment.packet, &segment.tcp);
        if let Some(i) = self.record_of_syn(cx, data, &key, flag::SENDER_SYN, segment) {
            self.on_sender_syn(cx, i, segment, &options);
        }
        let key = key.reversed();
        if let Some(i) = self.record_of_syn(cx, ack, &key, flag::RECEIVER_SYN, segment) {
            self.table[i].template.learn(cx.frames.bytes(frame), &segment.packet);
            self.on_receiver_syn(cx, i, segment, &options, here);
        } else if self.controls(ack, &key).is_none() {
            self.verdicts.pass(key.reversed());
        }
    }

    /// The record that learns from a SYN of the side `whose`: of the connection that it opens, or of the one
    /// whose opening it answers.
    fn record_of_syn(
        &mut self,
        cx: &mut Cx<'_>,
        direction: Direction,
        key: &Key,
        whose: u32,
        segment: &Segment,
    ) -> Option<u32> {
        if segment.has(Flags::ACK) {
            return self.answered(cx, direction, key, whose, segment);
        }
        let known = self.table.find(key).filter(|&i| self.table[i].lives());
        let i = match known {
            Some(i) if self.table[i].began_with(whose, segment) => {
                self.table[i].flags |= flag::SYN_REPEATED;
                return None;
            }
            Some(_) => self.flow_of(cx, direction, &key.opening())?,
            None => self.flow_of(cx, direction, key)?,
        };
        if !self.table[i].opens_with(whose, segment) {
            self.begin(i);
        }
        Some(i)
    }

    /// The record of the opening that a SYN with ACK answers.
    fn answered(
        &mut self,
        cx: &mut Cx<'_>,
        direction: Direction,
        key: &Key,
        whose: u32,
        segment: &Segment,
    ) -> Option<u32> {
        let waits =
            |g: &Gateway, key: &Key| g.table.find(key).filter(|&i| g.table[i].is_answered(whose, segment));
        if let Some(p) = waits(self, &key.opening()) {
            let opening = self.table[p];
            self.table.remove(p);
            let i = self.flow_of(cx, direction, key)?;
            self.begin(i);
            self.table[i].adopt(&opening);
            self.classes[usize::from(opening.class)].flows += 1;
            self.stats.flows = self.table.len();
            return Some(i);
        }
        waits(self, key)
    }

    /// A new connection: what the record knows is of an earlier one. Nothing is said in that one's name any more:
    /// its sender would answer with a RST.
    fn begin(&mut self, i: u32) {
        self.drop_held(i);
        self.slots[i].close();
        self.table.set_transient(i, true);
        let epoch = self.table.epoch();
        self.table[i].restart(epoch);
        self.doubts[i as usize] = Default::default();
        self.acked[i as usize] = 0;
    }

    fn on_sender_syn(&mut self, cx: &Cx<'_>, i: u32, segment: &Segment, options: &TcpOptions) {
        let opens = !segment.has(Flags::ACK);
        self.note_round_trip(i, opens, flag::SENDER_SYN, cx.now);
        let r = &mut self.table[i];
        r.set(flag::SENDER_SCALES, options.window_scale.is_some());
        r.fin = segment.tcp.seq.wrapping_add(1);
        self.note_syn(i, segment, options);
    }

    /// A SYN of the data's receiver; if it is `here`, it is sized and forwarded by the caller.
    fn on_receiver_syn(&mut self, cx: &Cx<'_>, i: u32, segment: &Segment, options: &TcpOptions, here: bool) {
        let opens = !segment.has(Flags::ACK);
        self.note_round_trip(i, opens, flag::RECEIVER_SYN, cx.now);
        let r = &mut self.table[i];
        r.set(flag::RECEIVER_SCALES, options.window_scale.is_some());
        r.scale = options.window_scale.unwrap_or(0);
        r.seq = segment.tcp.seq.wrapping_add(1);
        self.note_syn(i, segment, options);
        if !opens && !self.table[i].has(flag::PASSES) && self.sync(i, segment, options, cx.now) {
            self.begin_edges(i, segment, 0, here);
        }
    }

    /// From the first SYN to the answer is the round trip to one side, from there to the first
    /// ACK the round trip to the other.
    fn note_round_trip(&mut self, i: u32, opens: bool, whose: u32, now: Time) {
        let r = &mut self.table[i];
        if r.has(whose) {
            r.flags |= flag::SYN_REPEATED;
        }
        if !opens {
            r.note_rtt(now);
        }
        r.pace.mark = now.as_nanos().max(1);
        r.flags |= whose;
    }

    fn note_syn(&mut self, i: u32, segment: &Segment, options: &TcpOptions) {
        let answers = segment.has(Flags::ACK);
        let r = &mut self.table[i];
        let mss = options.mss.unwrap_or(DEFAULT_MSS).max(64);
        let both = r.has(flag::SENDER_SYN | flag::RECEIVER_SYN);
        r.mss = if both { r.mss.min(mss) } else { mss };
        r.set(flag::TIMESTAMPS, options.timestamps.is_some());
        let asks = Flags::AE.0 | Flags::CWR.0 | Flags::ECE.0;
        if segment.tcp.flags.0 & asks == asks && !answers {
            r.flags |= flag::ACCECN;
        } else if answers && segment.tcp.flags.0 & (Flags::AE.0 | Flags::CWR.0) == 0 {
            r.flags &= !flag::ACCECN; // the answer is classic ECN or none
        }
        if r.has(flag::SENDER_SYN | flag::RECEIVER_SYN) {
            let both = r.has(flag::SENDER_SCALES | flag::RECEIVER_SCALES);
            r.scale = if both { r.scale } else { 0 };
            r.flags |= flag::SCALE_KNOWN;
        }
        // Multipath TCP is decided by the answer; signed headers show at once.
        if options.mptcp && answers {
            self.mark_passing(i, PassReason::Mptcp);
        } else if options.ao {
            self.mark_passing(i, PassReason::TcpAo);
        } else if options.md5 {
            self.mark_passing(i, PassReason::TcpMd5);
        }
    }

    /// FIN or RST of the data's sender, anything else of it tells nothing.
    pub(super) fn on_sender_segment(&mut self, cx: &mut Cx<'_>, from_lan: bool, segment: &Segment) {
        if !segment.tcp.flags.intersects(Flags::FIN | Flags::RST) {
            return;
        }
        let direction = if from_lan { Direction::Out } else { Direction::In };
        let key = Key::of_data(&segment.packet, &segment.tcp);
        let Some(i) = self.table.find(&key).filter(|&i| direction_of(&self.table[i]) == direction) else {
            return;
        };
        if !self.table[i].has(flag::SYNCED) {
            return;
        }
        self.follow(i, cx.now);
        if !self.sender_may_send(i, segment) {
            return;
        }
        if segment.has(Flags::RST) {
            self.stats.reset += 1;
            self.close(i, cx.now);
        } else {
            let r = &mut self.table[i];
            r.fin = segment.end();
            r.flags |= flag::SENDER_FIN;
            self.close_if_done(i, cx.now);
        }
    }

    /// Is the segment where its receiver accepts it: from what it has acknowledged to its right edge (RFC 5961
    /// §3.2; that a RST ahead of RCV.NXT is answered first is for the receiver to decide)?
    fn sender_may_send(&self, i: u32, segment: &Segment) -> bool {
        let r = &self.table[i];
        let slot = &self.slots[i];
        let edge = slot.edge.load(core::sync::atomic::Ordering::Relaxed);
        let unscaled = r.rx.wrapping_add(u32::from(r.window.max(1)) << 14);
        let right = if slot.has(slot_flag::SCALED) { edge } else { unscaled };
        !after(r.rx, segment.end()) && !after(segment.tcp.seq, right)
    }

    /// A RST of the data's receiver: the sender accepts it at its RCV.NXT alone (RFC 5961 §3.2). It may be
    /// forged all the same, so the next believed ACK revives the flow.
    pub(super) fn on_receiver_reset(&mut self, cx: &mut Cx<'_>, i: u32, segment: &Segment) -> bool {
        if segment.tcp.seq != self.table[i].seq {
            return false;
        }
        if !self.hooked {
            self.flush(cx, i); // it has not passed yet
        }
        self.stats.reset += 1;
        self.close(i, cx.now);
        true
    }

    /// The connection is over once both FINs were seen and all data is acknowledged.
    pub(super) fn close_if_done(&mut self, i: u32, now: Time) {
        let r = &self.table[i];
        if r.is_done() && r.held() == 0 && !r.has(flag::CLOSED) {
            self.close(i, now);
        }
    }

    /// Nothing is said in the flow's name any more, and it is forgotten after [`LINGER`].
    fn close(&mut self, i: u32, now: Time) {
        self.disarm(i, now);
        self.table[i].flags |= flag::CLOSED | flag::ARMED;
        self.table.set_transient(i, true);
        self.wheel.arm(i, now + LINGER);
    }

    /// The receiver goes on after a RST: it was not believed, or forged.
    pub(super) fn revive(&mut self, i: u32, now: Time) {
        self.disarm(i, now);
        self.table[i].set(flag::CLOSED, false);
        self.wait(i);
    }

    /// Forgets a flow, after passing on what it holds. False if that, or telling the kernel, is not possible
    /// now.
    pub(super) fn retire(&mut self, cx: &mut Cx<'_>, i: u32) -> bool {
        let shown = self.table[i].has(flag::SHOWN);
        if shown && !self.verdicts.has_room() || !self.table[i].has(flag::CLOSED) && !self.flush(cx, i) {
            return false;
        }
        self.drop_held(i);
        self.hide(i);
        self.table.remove(i);
        self.stats.flows = self.table.len();
        true
    }

    /// The record's numbers follow the receiver's from here on, and its slot is the kernel's to use once it is
    /// [shown](Gateway::show). False if the kernel cannot be told now.
    pub(super) fn sync(&mut self, i: u32, segment: &Segment, options: &TcpOptions, now: Time) -> bool {
        if self.table[i].has(flag::SHOWN) && !self.verdicts.has_room() {
            return false;
        }
        self.drop_held(i);
        let epoch = self.table.epoch();
        let Release::Rate(policy) = self.policy(&self.table[i]).release;
        let r = &mut self.table[i];
        let from_syn = r.has(flag::SENDER_SYN | flag::RECEIVER_SYN) && !r.has(flag::SYNCED);
        if from_syn {
            r.note_rtt(now);
        }
        r.epoch = epoch;
        r.flags |= flag::SYNCED;
        r.flags &= !(flag::EDGE_KNOWN | flag::CLOSED | flag::SENDER_FIN | flag::RECEIVER_FIN);
        r.set(flag::TIMESTAMPS, options.timestamps.is_some());
        (r.rx, r.tx, r.seq) = (segment.tcp.ack, segment.tcp.ack, segment.end());
        r.ts_value = options.timestamps.map_or(0, |t| t.value);
        r.window = segment.tcp.window;
        let payload = segment_payload(r);
        let rate = payload_rate(&policy, payload, &segment.packet, r.has(flag::TIMESTAMPS));
        r.pace = Pace::new(&policy, rate, payload, from_syn, now);
        true
    }

    /// Opens the flow's slot with the record's numbers. The kernel is told now, or, where so many connections are
    /// opened that most may be forged, with the first segment that shows that this one is not.
    pub(super) fn show(&mut self, i: u32) {
        let sized = matches!(self.policy(&self.table[i]).window, Window::Size { .. });
        let r = &mut self.table[i];
        r.tag = r.tag.wrapping_add(1).max(1);
        let mut flags = 0;
        if r.has(flag::SCALE_KNOWN) {
            flags |= slot_flag::SCALED | u32::from(r.scale) << slot_flag::SCALE_SHIFT;
            flags |= if sized { slot_flag::SIZED } else { 0 };
        }
        flags |= if r.has(flag::TIMESTAMPS) { slot_flag::TIMESTAMPS } else { 0 };
        let sent = if r.has(flag::EDGE_KNOWN) { r.edge } else { r.right };
        self.slots[i].open(r.tag, flags, r.tx, r.seq, r.ts_value, r.right, sent, r.window);
        let limit = self.window_limit(&self.table[i]);
        self.slots[i].width.store(limit.unwrap_or(0), core::sync::atomic::Ordering::Relaxed);
        if self.table[i].has(flag::SHOWN) || self.verdicts.may_tell_early(self.now) {
            self.table[i].set(flag::SHOWN, false); // the entry that the kernel has is replaced
            self.tell(i);
        }
    }

    /// Tells the kernel of the flow's slot, unless it knows. Until there is room its segments are those of an
    /// unknown flow.
    pub(super) fn tell(&mut self, i: u32) {
        if !self.table[i].has(flag::SHOWN) && self.verdicts.has_room() {
            self.table[i].flags |= flag::SHOWN;
            self.verdicts.push(self.shape(i));
        }
    }
}

impl Record {
    /// Is it a connection, or passed as one, that a stray SYN must not end?
    fn lives(&self) -> bool {
        self.has(flag::PASSES) || self.has(flag::SYNCED) && !self.is_done()
    }

    /// Both sides have sent all they have, and the receiver has acknowledged it.
    pub(super) fn is_done(&self) -> bool {
        self.has(flag::SENDER_FIN | flag::RECEIVER_FIN | flag::SYNCED) && !after(self.fin, self.rx)
    }

    /// Sequence number after the SYN of the side `whose`.
    fn start(&self, whose: u32) -> u32 {
        if whose == flag::SENDER_SYN {
            self.fin
        } else {
            self.seq
        }
    }

    /// Is this SYN the one that opened the connection, of which the other side has acknowledged nothing more?
    fn began_with(&self, whose: u32, segment: &Segment) -> bool {
        let start = segment.tcp.seq.wrapping_add(1);
        let now = if whose == flag::SENDER_SYN { self.rx } else { self.seq };
        self.has(whose) && now == start
    }

    /// Is this the SYN of the opening under way, sent again?
    fn opens_with(&self, whose: u32, segment: &Segment) -> bool {
        let both = flag::SENDER_SYN | flag::RECEIVER_SYN;
        !self.has(flag::SYNCED)
            && self.flags & both == whose
            && self.start(whose) == segment.tcp.seq.wrapping_add(1)
    }

    /// Does this SYN of the side `whose` answer the other's? It acknowledges the SYN, and data that came with it
    /// at most (RFC 7413).
    fn is_answered(&self, whose: u32, segment: &Segment) -> bool {
        let others = (flag::SENDER_SYN | flag::RECEIVER_SYN) & !whose;
        let data = segment.tcp.ack.wrapping_sub(self.start(others));
        !self.has(flag::SYNCED) && self.has(others) && data <= FAST_OPEN
    }

    /// Nothing of the handshake holds for this connection.
    pub(super) fn forget_handshake(&mut self) {
        let handshake = flag::SENDER_SYN
            | flag::RECEIVER_SYN
            | flag::SENDER_SCALES
            | flag::RECEIVER_SCALES
            | flag::SCALE_KNOWN
            | flag::ACCECN
            | flag::SYN_REPEATED;
        self.flags &= !handshake;
        (self.scale, self.rtt_ns) = (0, 0);
    }

    /// What an opening under a key of its own has learnt.
    fn adopt(&mut self, opening: &Record) {
        let learnt = flag::SENDER_SYN
            | flag::RECEIVER_SYN
            | flag::SENDER_SCALES
            | flag::RECEIVER_SCALES
            | flag::TIMESTAMPS
            | flag::ACCECN
            | flag::SYN_REPEATED;
        self.flags |= opening.flags & learnt;
        (self.class, self.mss, self.scale) = (opening.class, opening.mss, opening.scale);
        (self.seq, self.fin, self.rtt_ns) = (opening.seq, opening.fin, opening.rtt_ns);
        self.pace = opening.pace;
        self.template = opening.template;
    }

    /// Forgets all but who it is: a new connection begins.
    fn restart(&mut self, epoch: u32) {
        let keep = flag::USED | flag::INWARD | flag::TRANSIENT | flag::SHOWN;
        self.flags &= keep;
        self.epoch = epoch;
        self.rtt_ns = 0;
        self.mss = 1460;
        (self.held_acks, self.marked) = (0, 0);
        self.echoes.clear();
        self.pace = Pace::default();
        (self.rx, self.tx, self.seq, self.edge, self.right, self.fin) = (0, 0, 0, 0, 0, 0);
        (self.window, self.window_sent, self.scale, self.ace, self.ace_sent) = (0, 0, 0, 0, 0);
    }

    /// Adds the time since the last handshake segment to the round trip, unless one was repeated.
    fn note_rtt(&mut self, now: Time) {
        if self.pace.mark != 0 && !self.has(flag::SYN_REPEATED) {
            let part = now.since(Time::from_nanos(self.pace.mark));
            let sum = Duration::from_nanos(u64::from(self.rtt_ns)) + part;
            self.rtt_ns = sum.as_nanos().clamp(1, u64::from(u32::MAX)) as u32;
        }
    }
}

/// Payload bytes of a full segment of the flow.
fn segment_payload(r: &Record) -> u16 {
    if r.has(flag::TIMESTAMPS) || !r.has(flag::SENDER_SYN | flag::RECEIVER_SYN) {
        r.mss.saturating_sub(TIMESTAMPS_LEN).max(1)
    } else {
        r.mss
    }
}

/// The payload rate that a rate counting headers allows, by the flow's own segment size.
fn payload_rate(policy: &RateRelease, segment: u16, p: &Packet, timestamps: bool) -> Rate {
    let ip = if p.version == 6 { 40 } else { 20 };
    let tcp = 20 + if timestamps { u64::from(TIMESTAMPS_LEN) } else { 0 };
    let ethernet = 14 + 4 + 4 * u64::from(p.vlan.count);
    let overhead = match policy.counts {
        Counts::Payload => 0,
        Counts::Ip => ip + tcp,
        Counts::Frame => ip + tcp + ethernet,
        Counts::Wire => ip + tcp + ethernet + 20,
    };
    let segment = u64::from(segment);
    let bps = u128::from(policy.rate.bps()) * u128::from(segment) / u128::from(segment + overhead);
    Rate::from_bps(bps as u64).unwrap_or(policy.rate)
}
