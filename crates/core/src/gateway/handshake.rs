//! News of SYNs about a flow. None is ever delayed or changed.
//!
//! A SYN changes nothing for a connection that lives until it is answered: its record is kept under a key of
//! its own ([`Key::opening`]) meanwhile.

use super::{direction_of, Direction, Gateway, Headers};
use crate::flow::{flag, law_state, Key, LawState, Record};
use crate::frame::Frame;
use crate::node::Cx;
use crate::time::{Duration, Time};
use crate::track::{opening, Doubt};
use crate::wire::{self, Flags, TcpOptions};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

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

impl Gateway {
    /// A SYN, with or without ACK: it opens or answers, in both directions of data. One that is `here` has
    /// not left yet.
    pub(super) fn on_syn(
        &mut self,
        cx: &mut Cx<'_>,
        from_lan: bool,
        segment: &Headers,
        frame: &Frame,
        here: bool,
    ) {
        let bytes = cx.frames.bytes(frame);
        let options = wire::read_options(bytes, &segment.packet, &segment.tcp);
        let (data, ack) =
            if from_lan { (Direction::Out, Direction::In) } else { (Direction::In, Direction::Out) };
        let key = Key::of_data(&segment.packet, &segment.tcp);
        // Hooks keep a SYN that they have no budget for, and show it with its answer.
        let kept = self.hooked && !segment.has(Flags::ACK);
        let at = if kept { frame.received.min(cx.now) } else { cx.now };
        if let Some(i) = self.record_of_syn(cx, data, &key, flag::SENDER_SYN, segment) {
            self.on_sender_syn(at, i, segment, &options);
        }
        let key = key.reversed();
        if let Some(i) = self.record_of_syn(cx, ack, &key, flag::RECEIVER_SYN, segment) {
            self.table[i].template.learn(cx.frames.bytes(frame), &segment.packet);
            self.on_receiver_syn(at, i, segment, &options, here);
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
        segment: &Headers,
    ) -> Option<u32> {
        if segment.has(Flags::ACK) {
            return self.answered(cx, direction, key, whose, segment);
        }
        let known = self.table.find(key);
        if known.is_some_and(|i| direction_of(&self.table[i]) != direction) {
            return None; // it came in on the wrong side
        }
        let known = known.filter(|&i| self.table[i].lives());
        let i = match known {
            Some(i) if self.table[i].began_with(whose, segment) => {
                self.table[i].flags |= flag::SYN_REPEATED;
                return None;
            }
            Some(_) => self.flow_of(cx, direction, &key.opening())?,
            None => self.flow_of(cx, direction, key)?,
        };
        if !self.table[i].opens_with(whose, segment) {
            self.begin(cx, i);
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
        segment: &Headers,
    ) -> Option<u32> {
        let waits = |g: &Gateway, key: &Key| {
            let fits = |r: &Record| direction_of(r) == direction && r.is_answered(whose, segment);
            g.table.find(key).filter(|&i| fits(&g.table[i]))
        };
        if let Some(p) = waits(self, &key.opening()) {
            let opening = self.table[p];
            self.remove(p);
            let i = self.flow_of(cx, direction, key)?;
            self.begin(cx, i);
            self.table[i].adopt(&opening);
            let class = self.table[i].class;
            self.classes[class].flows += 1;
            return Some(i);
        }
        waits(self, key)
    }

    /// A new connection: what the record knows is of an earlier one. Nothing is said in that one's name any
    /// more: its sender would answer with a RST.
    fn begin(&mut self, cx: &mut Cx<'_>, i: u32) {
        self.clear_acks(cx, i);
        self.drop_held(i);
        self.give_back(i, 0, cx.now);
        self.give_up_least(i);
        self.slots[i].close();
        self.table.set_transient(i, true);
        let epoch = self.table.epoch();
        self.table[i].restart(epoch);
    }

    fn on_sender_syn(&mut self, at: Time, i: u32, segment: &Headers, options: &TcpOptions) {
        let opens = !segment.has(Flags::ACK);
        self.note_round_trip(i, opens, flag::SENDER_SYN, at);
        let r = &mut self.table[i];
        r.set(flag::SENDER_SCALES, options.window_scale.is_some());
        r.fin = segment.tcp.seq.wrapping_add(1);
        self.note_syn(i, segment, options);
        if !opens {
            self.show_ahead(i, options);
        }
    }

    /// A SYN of the data's receiver; if it is `here`, it is sized and forwarded by the caller.
    fn on_receiver_syn(&mut self, at: Time, i: u32, segment: &Headers, options: &TcpOptions, here: bool) {
        let opens = !segment.has(Flags::ACK);
        self.note_round_trip(i, opens, flag::RECEIVER_SYN, at);
        let r = &mut self.table[i];
        r.set(flag::RECEIVER_SCALES, options.window_scale.is_some());
        r.scale = options.window_scale.unwrap_or(0);
        r.seq = segment.tcp.seq.wrapping_add(1);
        self.note_syn(i, segment, options);
        if !opens && !self.table[i].has(flag::PASSES) && self.sync(i, segment, options, at) {
            self.begin_edges(i, segment, options, 0, here);
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
        r.law.opening_mut().syn_at = now.as_nanos().max(1);
        r.flags |= whose;
    }

    fn note_syn(&mut self, i: u32, segment: &Headers, options: &TcpOptions) {
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
        self.note_extensions(i, options, answers);
    }
}

impl Record {
    /// Is it a connection, or passed as one, that a stray SYN must not end?
    fn lives(&self) -> bool {
        self.has(flag::PASSES) || self.has(flag::SYNCED) && !self.is_done()
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
    fn began_with(&self, whose: u32, segment: &Headers) -> bool {
        let start = segment.tcp.seq.wrapping_add(1);
        let now = if whose == flag::SENDER_SYN { self.rx } else { self.seq };
        self.has(whose) && now == start
    }

    /// Is this the SYN of the opening under way, sent again?
    fn opens_with(&self, whose: u32, segment: &Headers) -> bool {
        let both = flag::SENDER_SYN | flag::RECEIVER_SYN;
        !self.has(flag::SYNCED)
            && self.flags & both == whose
            && self.start(whose) == segment.tcp.seq.wrapping_add(1)
    }

    /// Does this SYN of the side `whose` answer the other's? It acknowledges the SYN, and data that came with
    /// it at most (RFC 7413).
    fn is_answered(&self, whose: u32, segment: &Headers) -> bool {
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
    fn adopt(&mut self, opening: &Record) {
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
        (self.rx, self.tx, self.seq, self.edge, self.right, self.fin) = (0, 0, 0, 0, 0, 0);
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
}
