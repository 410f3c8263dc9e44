//! What SYN, FIN and RST tell about a flow. None of them is ever delayed or changed.

use super::{after, direction_of, Direction, Gateway, PassReason, Segment};
use crate::ack::{Counts, Pace, RateRelease, Release};
use crate::flow::{flag, Key, Record};
use crate::frame::{Checksum, Frame};
use crate::node::Cx;
use crate::rate::Rate;
use crate::time::{Duration, Time};
use crate::wire::{self, Flags, Packet, TcpOptions};

/// Segment size assumed when a SYN names none (RFC 9293 §3.7.1).
const DEFAULT_MSS: u16 = 536;
/// Bytes of the timestamps option with its padding.
const TIMESTAMPS_LEN: u16 = 12;
/// A FIN or RST further than this from where the flow is belongs to no live connection.
const PLAUSIBLE: i32 = 1 << 27;

impl Gateway {
    /// A segment of the data's sender, or a copy of its headers.
    pub(super) fn on_data_direction(
        &mut self,
        cx: &mut Cx<'_>,
        from_lan: bool,
        segment: &Segment,
        head: usize,
        frame: &Frame,
    ) {
        let control = Flags::SYN.0 | Flags::FIN.0 | Flags::RST.0;
        if segment.tcp.flags.0 & control == 0 {
            return;
        }
        let direction = if from_lan { Direction::Out } else { Direction::In };
        let key = Key::of_data(&segment.packet, &segment.tcp);
        let bytes = cx.frames.bytes(frame);
        if frame.checksum == Checksum::Unknown
            && head == frame.len()
            && wire::checksum::verify(bytes, head, &segment.packet) == Checksum::Invalid
        {
            return;
        }
        if segment.has(Flags::SYN) {
            let Ok(options) = wire::tcp_options(bytes, &segment.packet, &segment.tcp) else {
                return;
            };
            if let Some(i) = self.flow_of(cx, direction, &key) {
                self.on_sender_syn(cx, i, segment, &options);
            }
        } else if let Some(i) = self.table.find(&key) {
            self.on_sender_end(cx, i, segment);
        }
    }

    fn on_sender_syn(&mut self, cx: &mut Cx<'_>, i: u32, segment: &Segment, options: &TcpOptions) {
        let opens = !segment.has(Flags::ACK);
        if opens {
            self.begin(cx, i, flag::SENDER_SYN);
        }
        if self.table[i].has(flag::SYNCED) {
            return; // a late copy of a SYN-ACK
        }
        self.note_round_trip(i, opens, flag::SENDER_SYN, cx.now);
        let r = &mut self.table[i];
        r.set(flag::SENDER_SCALES, options.window_scale.is_some());
        r.fin = segment.end();
        self.note_syn(i, segment, options);
    }

    /// A SYN of the data's receiver; it comes through the gateway and is forwarded by the caller.
    pub(super) fn on_receiver_syn(
        &mut self,
        cx: &mut Cx<'_>,
        i: u32,
        segment: &Segment,
        options: &TcpOptions,
    ) {
        let opens = !segment.has(Flags::ACK);
        if opens {
            self.begin(cx, i, flag::RECEIVER_SYN);
        }
        if self.table[i].has(flag::SYNCED) {
            return;
        }
        self.note_round_trip(i, opens, flag::RECEIVER_SYN, cx.now);
        let r = &mut self.table[i];
        r.set(flag::RECEIVER_SCALES, options.window_scale.is_some());
        r.scale = options.window_scale.unwrap_or(0);
        r.seq = segment.end();
        if let Some(t) = options.timestamps {
            r.ts_value = t.value;
        }
        self.note_syn(i, segment, options);
        if !opens {
            self.sync(i, &segment.packet, segment.tcp.ack, cx.now);
            // The window of a SYN is not scaled (RFC 7323 §2.2).
            let r = &mut self.table[i];
            r.window = segment.tcp.window;
            r.right = segment.tcp.ack.wrapping_add(u32::from(segment.tcp.window));
        }
    }

    /// A SYN without ACK: a new connection, unless it repeats the one under way.
    fn begin(&mut self, cx: &mut Cx<'_>, i: u32, whose: u32) {
        let r = &self.table[i];
        if !r.has(flag::SYNCED)
            && !r.has(flag::CLOSED)
            && r.flags & (flag::SENDER_SYN | flag::RECEIVER_SYN) & !whose == 0
        {
            return;
        }
        if !r.has(flag::CLOSED) {
            self.flush(cx, i);
        }
        self.disarm(i, cx.now);
        self.table.set_transient(i, true);
        let direction = direction_of(&self.table[i]);
        let key = self.table[i].key;
        let epoch = self.table.epoch();
        self.table[i].restart(epoch);
        self.verdict(direction, &key, false);
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
        r.mss = r.mss.min(options.mss.unwrap_or(DEFAULT_MSS)).max(64);
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
            self.let_pass(i, PassReason::Mptcp);
        } else if options.ao {
            self.let_pass(i, PassReason::TcpAo);
        } else if options.md5 {
            self.let_pass(i, PassReason::TcpMd5);
        }
    }

    /// FIN or RST of the data's sender.
    fn on_sender_end(&mut self, cx: &mut Cx<'_>, i: u32, segment: &Segment) {
        let r = &mut self.table[i];
        if r.has(flag::SYNCED) && (segment.tcp.seq.wrapping_sub(r.tx) as i32).abs() > PLAUSIBLE {
            return;
        }
        if segment.has(Flags::RST) {
            // Nobody is left who could use what is held.
            self.overtake(i, cx.now);
            self.close(i);
        } else {
            r.fin = segment.end();
            r.flags |= flag::SENDER_FIN;
            self.close_if_done(i);
        }
    }

    /// The connection is over once both FINs were seen and all data is acknowledged.
    pub(super) fn close_if_done(&mut self, i: u32) {
        let r = &self.table[i];
        if r.has(flag::SENDER_FIN | flag::RECEIVER_FIN | flag::SYNCED) && r.held() == 0 && !after(r.fin, r.rx)
        {
            self.close(i);
        }
    }

    pub(super) fn close(&mut self, i: u32) {
        self.table[i].flags |= flag::CLOSED;
        self.table.set_transient(i, true);
    }

    /// The record's numbers follow the receiver's from here on.
    pub(super) fn sync(&mut self, i: u32, packet: &Packet, ack: u32, now: Time) {
        self.disarm(i, now);
        let epoch = self.table.epoch();
        let Release::Rate(policy) = self.policy(&self.table[i]).release;
        let r = &mut self.table[i];
        let from_syn =
            r.has(flag::SENDER_SYN | flag::RECEIVER_SYN) && !r.has(flag::SYNCED) && r.epoch == epoch;
        if from_syn {
            r.note_rtt(now);
        }
        r.epoch = epoch;
        r.flags |= flag::SYNCED;
        r.flags &= !flag::EDGE_KNOWN;
        (r.rx, r.tx, r.right) = (ack, ack, ack);
        r.held_acks = 0;
        r.echoes.clear();
        let segment = segment_payload(r);
        let rate = payload_rate(&policy, segment, packet, r.has(flag::TIMESTAMPS));
        r.pace = Pace::new(&policy, rate, segment, from_syn, now);
    }
}

impl Record {
    /// Forgets all but who it is: a new connection begins.
    fn restart(&mut self, epoch: u32) {
        let keep = flag::USED | flag::INWARD | flag::TRANSIENT;
        self.flags &= keep;
        self.epoch = epoch;
        self.rtt_ns = 0;
        self.mss = 1460;
        self.held_acks = 0;
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
