//! Beginning and end of a connection, as its segments tell: SYNs, FINs and RSTs, and the data before them.
//!
//! A RST suspends it until its receiver goes on, acknowledged FINs end it. A flow that is
//! over is kept for a moment, since segments of it are still on their way, and then forgotten.

use super::segment::Headers;
use super::{direction_of, Register};
use crate::ack::window;
use crate::classify::Direction;
use crate::flow::{flag, law_state, FlowId, Key, LawState, Record};
use crate::frame::Frame;
use crate::node::Cx;
use crate::steer::slot_flag;
use crate::time::{Duration, Time};
use crate::track::{opening, Doubt};
use crate::wire::{self, Flags, Seq, TcpOptions};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Time for which a flow that is over is remembered. A lost FIN comes again after a retransmission timeout,
/// which starts at 1 s (RFC 6298 §2).
pub(in crate::gateway) const LINGER: Duration = Duration::from_secs(2);

/// Segment size assumed when a SYN names none (RFC 9293 §3.7.1).
const DEFAULT_MSS: u16 = 536;

/// State of a flow before its law begins.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
struct Opening {
    /// Time at which the last SYN passed; 0 without one.
    syn_at: u64,
    others: [u64; 6],
}

law_state!(Opening, opening, opening_mut);

impl Register {
    /// A new connection: what the record knows is of an earlier one. Nothing is said in that one's name any
    /// more: its sender would answer with a RST.
    pub(in crate::gateway) fn begin(&mut self, cx: &mut Cx<'_>, i: FlowId) {
        self.clear_acks(cx, i);
        self.drop_held(i);
        self.give_back(i, 0, cx.now);
        self.give_up_least(i);
        self.slots[i].close();
        self.measured.begin(i);
        self.table.set_transient(i, true);
        let epoch = self.table.epoch();
        self.table[i].restart(epoch);
    }

    /// Returns whether the ACKs of both ends of this connection come in, as on a router with one interface.
    pub(in crate::gateway) fn is_hairpin(&self, key: &Key) -> bool {
        let goes_out =
            |key: &Key| self.table.find(key).is_some_and(|i| direction_of(&self.table[i]) == Direction::Out);
        goes_out(key) && goes_out(&key.reversed())
    }

    /// The record of the opening that a SYN of the side `whose` answers: one of its own beside that of a
    /// connection that lives, or the connection's.
    pub(in crate::gateway) fn opening_of(
        &self,
        direction: Direction,
        key: &Key,
        whose: u32,
        segment: &Headers,
    ) -> Option<FlowId> {
        let waits = |key: &Key| {
            let fits = |r: &Record| direction_of(r) == direction && r.is_answered(whose, segment);
            self.table.find(key).filter(|&i| fits(&self.table[i]))
        };
        waits(&key.opening()).or_else(|| waits(key))
    }

    pub(in crate::gateway) fn on_sender_syn(
        &mut self,
        at: Time,
        i: FlowId,
        segment: &Headers,
        options: &TcpOptions,
    ) {
        let opens = !segment.has(Flags::ACK);
        self.note_round_trip(i, opens, flag::SENDER_SYN, at);
        let r = &mut self.table[i];
        r.set(flag::SENDER_SCALES, options.window_scale.is_some());
        r.fin = segment.tcp.seq.plus(1);
        self.note_syn(i, segment, options);
        if !opens {
            self.show_ahead(i, options);
        }
    }

    /// A SYN of the data's receiver; if it is `here`, it is sized and forwarded by the caller.
    pub(in crate::gateway) fn on_receiver_syn(
        &mut self,
        at: Time,
        i: FlowId,
        segment: &Headers,
        options: &TcpOptions,
        here: bool,
    ) {
        let opens = !segment.has(Flags::ACK);
        self.note_round_trip(i, opens, flag::RECEIVER_SYN, at);
        let r = &mut self.table[i];
        r.set(flag::RECEIVER_SCALES, options.window_scale.is_some());
        r.scale = options.window_scale.unwrap_or(0);
        r.seq = segment.tcp.seq.plus(1);
        self.note_syn(i, segment, options);
        if !opens && !self.table[i].has(flag::PASSES) && self.sync(i, segment, options, at) {
            self.begin_edges(i, segment, options, 0, here);
        }
    }

    /// From the first SYN to the answer is the round trip to one side, from there to the first
    /// ACK the round trip to the other.
    fn note_round_trip(&mut self, i: FlowId, opens: bool, whose: u32, now: Time) {
        let r = &mut self.table[i];
        if r.has(whose) {
            r.flags |= flag::SYN_REPEATED;
        }
        if !opens {
            r.note_rtt(now);
        }
        r.law.opening_mut().syn_at = now.as_nanos().max(1);
        r.flags |= whose;
    }

    fn note_syn(&mut self, i: FlowId, segment: &Headers, options: &TcpOptions) {
        let answers = segment.has(Flags::ACK);
        let r = &mut self.table[i];
        let mss = options.mss.unwrap_or(DEFAULT_MSS).max(64);
        let both = r.has(flag::SENDER_SYN | flag::RECEIVER_SYN);
        r.mss = if both { r.mss.min(mss) } else { mss };
        r.set(flag::TIMESTAMPS, options.timestamps.is_some());
        let asks = Flags::AE.0 | Flags::CWR.0 | Flags::ECE.0;
        if segment.tcp.flags.0 & asks == asks && !answers {
            r.flags |= flag::ACCECN;
            self.marks.forget(i.index());
        } else if answers && segment.tcp.flags.0 & (Flags::AE.0 | Flags::CWR.0) == 0 {
            r.flags &= !flag::ACCECN; // the answer is classic ECN or none
        }
        if r.has(flag::SENDER_SYN | flag::RECEIVER_SYN) {
            let both = r.has(flag::SENDER_SCALES | flag::RECEIVER_SCALES);
            r.scale = if both { r.scale } else { 0 };
            r.flags |= flag::SCALE_KNOWN;
        }
        self.note_extensions(i, options, answers);
    }

    /// A segment with data, or the right to send some, was seen: of a flow whose ACKs are controlled, it is
    /// looked at. What has nothing to tell costs no look-up.
    pub(in crate::gateway) fn on_data_direction(
        &mut self,
        cx: &mut Cx<'_>,
        from_lan: bool,
        segment: &Headers,
    ) {
        let ends = segment.tcp.flags.intersects(Flags::FIN | Flags::RST);
        if !ends && (!self.measures || segment.tcp.payload_len == 0) {
            return;
        }
        let direction = if from_lan { Direction::Out } else { Direction::In };
        let key = Key::of_data(&segment.packet, &segment.tcp);
        let comes_here =
            |i: &FlowId| direction_of(&self.table[*i]) == direction || !from_lan && self.is_hairpin(&key);
        let known = self.table.find(&key).filter(comes_here);
        if let Some(i) = known.filter(|&i| self.table[i].has(flag::SYNCED)) {
            if self.measures && segment.tcp.payload_len > 0 && self.sender_may_send(i, segment) {
                self.note_sent(i, segment.end(), cx.now);
            }
            if ends {
                self.follow(i, cx.now);
                self.on_data(cx.now, i, segment);
            }
        }
    }

    /// A segment of the sender of flow `i`, whose numbers are known. It leaves as it came, whatever it tells.
    fn on_data(&mut self, now: Time, i: FlowId, segment: &Headers) {
        if !self.sender_may_send(i, segment) {
            return;
        }
        if segment.has(Flags::RST) {
            self.stats.reset += 1;
            self.close(i, now);
        } else if segment.has(Flags::FIN) {
            self.table[i].claim_end(segment.end());
            self.has_ended(i, now);
            self.close_if_done(i, now);
        }
    }

    /// Returns whether its receiver accepts the segment where it is: from what it has acknowledged to its
    /// right edge (RFC 5961 §3.2; the receiver decides itself to answer a RST ahead of RCV.NXT first).
    fn sender_may_send(&self, i: FlowId, segment: &Headers) -> bool {
        let r = &self.table[i];
        let slot = &self.slots[i];
        let edge = slot.edge();
        let unscaled = r.rx.plus(u32::from(r.window.max(1)) << 14);
        let right = if slot.has(slot_flag::SCALED) { edge } else { unscaled };
        !r.rx.is_after(segment.end()) && !segment.tcp.seq.is_after(right)
    }

    /// The connection is over once both FINs were seen and all data is acknowledged.
    #[inline]
    pub(in crate::gateway) fn close_if_done(&mut self, i: FlowId, now: Time) {
        let r = &self.table[i];
        if r.is_done() && r.held() == 0 && !r.has(flag::CLOSED) {
            self.close(i, now);
        }
    }

    /// Nothing is said in the flow's name any more, and it is forgotten after [`LINGER`].
    pub(in crate::gateway) fn close(&mut self, i: FlowId, now: Time) {
        self.disarm(i, now);
        self.unlist(i, now);
        self.give_back(i, 0, now);
        self.give_up_least(i);
        self.table[i].flags |= flag::CLOSED;
        self.table.set_transient(i, true);
        self.start_timer(i, now + LINGER);
    }

    /// The connection goes on after a RST that its end did not accept, or after a FIN that was none.
    pub(in crate::gateway) fn revive(&mut self, i: FlowId, now: Time) {
        self.disarm(i, now);
        let r = &mut self.table[i];
        r.set(flag::CLOSED, false);
        r.doubt.retracted();
        self.wait(i, now);
    }

    /// The flow's first right edges, from a segment whose window field counts in units of `1 << scale`, and
    /// its slot with them. The field goes to the sender sized, if this `sizes` it, or as it came.
    pub(super) fn begin_edges(
        &mut self,
        i: FlowId,
        segment: &Headers,
        options: &TcpOptions,
        scale: u8,
        sizes: bool,
    ) {
        self.entitle(i);
        let limit = self.window_limit(&self.table[i]).filter(|_| sizes);
        let r = &mut self.table[i];
        let (ack, scale, window) = (segment.tcp.ack, u32::from(scale), segment.tcp.window);
        r.window = window;
        r.right = ack.plus(u32::from(window) << scale);
        if r.has(flag::SCALE_KNOWN) {
            let goal = limit.map_or(r.right, |bytes| ack.plus(bytes));
            let field = window::fit(ack, scale, goal, r.right);
            r.edge = ack.plus(u32::from(field) << scale);
            r.flags |= flag::EDGE_KNOWN;
        }
        self.bound(i);
        self.permit_first(i, self.now);
        self.show(i, options);
        self.ask_for_probe(i);
    }

    /// Sizes the window of a SYN-ACK of the data's receiver, which is on its way to the sender. Its field is
    /// not scaled (RFC 7323 §2.2), so that at most 64 KiB are to be had.
    pub(in crate::gateway) fn size_syn_ack(
        &mut self,
        cx: &mut Cx<'_>,
        from_lan: bool,
        segment: &Headers,
        frame: &Frame,
    ) {
        let Some(i) = self.table.find(&Key::of_ack(&segment.packet, &segment.tcp)) else { return };
        let r = &self.table[i];
        let own = segment.tcp.window;
        let shown = r.has(flag::SYNCED | flag::EDGE_KNOWN) && r.tx == segment.tcp.ack;
        let answers = segment.has(Flags::ACK) && r.has(flag::INWARD) == from_lan;
        if !shown || !answers || self.window_limit(r).is_none() {
            return;
        }
        let field = window::fit(r.tx, 0, r.edge, r.tx.plus(u32::from(own)));
        if field != own {
            wire::set_window(cx.frames.bytes_mut(frame), &segment.packet, field, frame.checksum);
        }
    }
}

impl Record {
    /// Returns whether it is a connection, or passed as one, that a stray SYN must not end.
    pub(in crate::gateway) fn lives(&self) -> bool {
        self.has(flag::PASSES) || self.has(flag::SYNCED) && !self.is_done()
    }

    /// Sequence number after the SYN of the side `whose`.
    fn start(&self, whose: u32) -> Seq {
        if whose == flag::SENDER_SYN {
            self.fin
        } else {
            self.seq
        }
    }

    /// Returns whether an acknowledgement is of the sender's SYN alone.
    pub(super) fn opens_acknowledged(&self, ack: Seq) -> bool {
        self.flags & (flag::SENDER_SYN | flag::SENDER_FIN) == flag::SENDER_SYN && self.fin == ack
    }

    /// Returns whether this SYN is the one that opened the connection, of which the other side has
    /// acknowledged nothing more.
    pub(in crate::gateway) fn began_with(&self, whose: u32, segment: &Headers) -> bool {
        let start = segment.tcp.seq.plus(1);
        let now = if whose == flag::SENDER_SYN { self.rx } else { self.seq };
        self.has(whose) && now == start
    }

    /// Returns whether this is the SYN of the opening under way, sent again.
    pub(in crate::gateway) fn opens_with(&self, whose: u32, segment: &Headers) -> bool {
        let both = flag::SENDER_SYN | flag::RECEIVER_SYN;
        !self.has(flag::SYNCED) && self.flags & both == whose && self.start(whose) == segment.tcp.seq.plus(1)
    }

    /// Returns whether this SYN of the side `whose` answers the other's. It acknowledges the SYN, and data
    /// that came with it at most (RFC 7413).
    pub(in crate::gateway) fn is_answered(&self, whose: u32, segment: &Headers) -> bool {
        let others = (flag::SENDER_SYN | flag::RECEIVER_SYN) & !whose;
        !self.has(flag::SYNCED) && self.has(others) && opening::answers(self.start(others), segment.tcp.ack)
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

    /// Adopts what an opening under a key of its own has learnt.
    pub(in crate::gateway) fn adopt(&mut self, opening: &Record) {
        let learnt = flag::SENDER_SYN
            | flag::RECEIVER_SYN
            | flag::SENDER_SCALES
            | flag::RECEIVER_SCALES
            | flag::TIMESTAMPS
            | flag::ACCECN
            | flag::SYN_REPEATED;
        self.flags |= opening.flags & learnt;
        (self.mss, self.scale) = (opening.mss, opening.scale);
        (self.seq, self.fin, self.rtt_ns) = (opening.seq, opening.fin, opening.rtt_ns);
        self.law = opening.law;
        self.doubt = opening.doubt;
        self.template = opening.template;
    }

    /// Forgets all but who it is: a new connection begins.
    fn restart(&mut self, epoch: u16) {
        let keep = flag::USED | flag::INWARD | flag::TRANSIENT | flag::SHOWN;
        self.flags &= keep;
        self.epoch = epoch;
        self.rtt_ns = 0;
        self.mss = 1460;
        (self.held_acks, self.marked) = (0, 0);
        self.echoes.clear();
        (self.law, self.doubt, self.acked) = (LawState::default(), Doubt::default(), 0);
        (self.rx, self.tx, self.seq, self.edge, self.right, self.fin) = Default::default();
        (self.window, self.scale, self.ace, self.ace_sent) = (0, 0, 0, 0);
    }

    /// Adds the time since the last handshake segment to the round trip, unless one was repeated.
    pub(super) fn note_rtt(&mut self, now: Time) {
        let syn_at = self.law.opening().syn_at;
        if syn_at != 0 && !self.has(flag::SYN_REPEATED) {
            let part = now.since(Time::from_nanos(syn_at));
            let sum = Duration::from_nanos(u64::from(self.rtt_ns)) + part;
            self.rtt_ns = sum.as_nanos().clamp(1, u64::from(u32::MAX)) as u32;
        }
    }

    /// The sender says that it sends nothing at or behind `end`. That is a claim of the end that is limited:
    /// it counts once in a connection, up to `end`, and is void when it says something else, or when the
    /// receiver acknowledges more.
    fn claim_end(&mut self, end: Seq) {
        if self.has(flag::SENDER_FIN) && self.fin != end {
            self.doubt.retracted();
        }
        self.fin = end;
        self.flags |= flag::SENDER_FIN;
        self.check_end();
    }

    /// Nothing follows a FIN (RFC 9293 §3.10.7.4), so an acknowledgement behind it shows that it was none.
    #[inline]
    pub(super) fn check_end(&mut self) {
        if self.has(flag::SENDER_FIN) && self.rx.is_after(self.fin) {
            self.flags &= !flag::SENDER_FIN;
            self.doubt.retracted();
        }
    }

    /// Returns whether the sender has nothing more to send, as far as it may be believed. Acknowledgements
    /// that it gets let it send nothing then.
    #[inline]
    pub(in crate::gateway) fn is_ending(&self) -> bool {
        self.has(flag::SENDER_FIN) && !self.doubt.has_retracted()
    }

    /// Both sides have sent all they have, and the receiver has acknowledged it.
    pub(in crate::gateway) fn is_done(&self) -> bool {
        self.has(flag::SENDER_FIN | flag::RECEIVER_FIN | flag::SYNCED) && !self.fin.is_after(self.rx)
    }
}
