//! Segments that a connection sends.

use super::{wire_seq, Connection, State, SYN_TIMEOUT};
use crate::tcp::receiver::Receiver;
use crate::tcp::segment::{Segment, SynOptions, ECT0, ECT1, TIMESTAMPS_LEN};
use crate::tcp::sender::Outgoing;
use weir_core::frame::{Frame, Frames};
use weir_core::time::Time;
use weir_core::wire::{Flags, SackBlocks, Timestamps};

/// Receiver of the frames that leave, each at its time.
pub trait Exit {
    /// Takes a frame that leaves at `now`.
    fn leave(&mut self, frames: &mut Frames, now: Time, frame: Frame);
}

/// Collects the frames.
impl Exit for Vec<(Time, Frame)> {
    #[inline(always)]
    fn leave(&mut self, _: &mut Frames, now: Time, frame: Frame) {
        self.push((now, frame));
    }
}

/// Lets a frame leave, if there is one. Returns the number of frames.
#[inline(always)]
fn leave(frames: &mut Frames, now: Time, frame: Option<Frame>, exit: &mut impl Exit) -> u64 {
    let Some(frame) = frame else { return 0 };
    exit.leave(frames, now, frame);
    1
}

impl Connection {
    /// Hands everything that leaves at `now` to `exit`, frame by frame. Returns the number of frames.
    #[inline]
    pub fn send(&mut self, frames: &mut Frames, now: Time, exit: &mut impl Exit) -> u64 {
        let mut sent = 0;
        if self.state == State::Established {
            if core::mem::take(&mut self.ack_due) {
                sent += self.emit_ack(frames, now, 0, exit);
            }
            if !self.tx.rests() {
                while let Some(out) = self.tx.transmit(&self.config, now) {
                    sent += self.emit_data(frames, now, &out, exit);
                }
            }
            if core::mem::take(&mut self.probe_due) {
                sent += self.emit_ack(frames, now, 1, exit);
            }
        } else if core::mem::take(&mut self.life.due) {
            let syn = self.emit_syn(frames, now);
            sent += leave(frames, now, syn, exit);
        }
        // An end that closed second sent its last ACK before it got here. This end may still owe one.
        while self.owes_ack(now) {
            sent += self.emit_ack(frames, now, 0, exit);
        }
        sent
    }

    /// Returns whether an ACK is owed at `now`. Before the connection is open, its SYNs carry the
    /// acknowledgement.
    #[inline]
    fn owes_ack(&self, now: Time) -> bool {
        let open = matches!(self.state, State::Established | State::TimeWait | State::Closed);
        open && self.failure.is_none() && self.rx.as_ref().is_some_and(|rx| rx.owes_ack(now))
    }

    #[inline(never)]
    fn emit_syn(&mut self, frames: &mut Frames, now: Time) -> Option<Frame> {
        if !matches!(self.state, State::SynSent | State::SynReceived) {
            return None;
        }
        let segment = self.syn(now);
        self.header.emit_written(frames, &segment, now)
    }

    fn syn(&mut self, now: Time) -> Segment {
        let answers = self.state == State::SynReceived;
        self.life.first_sent = self.life.first_sent.min(now);
        let wait = SYN_TIMEOUT.saturating_mul(1 << self.life.retries);
        self.life.at = now + wait;
        let ecn = match (answers, self.wants_ecn()) {
            (false, true) => Flags::ECE.with(Flags::CWR),
            (true, _) if self.ecn => Flags::ECE,
            _ => Flags::NONE,
        };
        let ack = if answers { Flags::ACK } else { Flags::NONE };
        let scales = !answers || self.shifts != (0, 0);
        let (fast_open, payload) = self.fast_open();
        Segment {
            seq: self.iss,
            // The SYN acknowledges everything that has arrived.
            ack: self.rx.as_mut().map_or(0, |rx| rx.take_ack(false, &mut SackBlocks::default()).ack),
            payload,
            flags: Flags::SYN.with(ack).with(ecn),
            window: self.config.receive_window.min(0xffff) as u16,
            timestamps: self.timestamps.then(|| self.timestamp(now)),
            syn: SynOptions {
                mss: Some(self.offered_mss()),
                window_scale: scales.then_some(self.shifts.0),
                sack_permitted: self.life.sack,
                fast_open,
            },
            ..Segment::default()
        }
    }

    /// Returns the value of the MSS option.
    pub(super) fn offered_mss(&self) -> u16 {
        let overhead = if self.config.timestamps { TIMESTAMPS_LEN } else { 0 };
        self.config.mss.saturating_add(overhead)
    }

    fn timestamp(&self, now: Time) -> Timestamps {
        let echo = self.rx.as_ref().map_or(0, Receiver::timestamp_to_echo);
        Timestamps { value: self.stamp(now), echo }
    }

    /// Sends a segment of the stream, with the ACK that is owed.
    #[inline(always)]
    fn emit_data(&mut self, frames: &mut Frames, now: Time, out: &Outgoing, exit: &mut impl Exit) -> u64 {
        let mut segment = Segment::default();
        if self.acknowledge(&mut segment, self.stamp(now)).is_none() {
            return 0;
        }
        segment.seq = wire_seq(self.iss, out.piece.start);
        segment.payload = out.piece.len - u32::from(out.fin);
        if out.fin {
            segment.flags |= Flags::FIN;
        }
        if out.push || out.piece.start + u64::from(out.piece.len) >= self.tx.limit {
            segment.flags |= Flags::PSH;
        }
        if out.cwr {
            segment.flags |= Flags::CWR;
        }
        // RFC 3168 §6.1.5: retransmissions are not ECN-capable; those of DCTCP are (RFC 8257 leaves it open).
        if self.ecn && segment.payload > 0 && (!out.again || self.tx.cc.wants_dctcp_ecn()) {
            segment.ecn = if self.config.l4s { ECT1 } else { ECT0 };
        }
        let frame = self.header.emit(frames, &segment, now);
        leave(frames, now, frame, exit)
    }

    /// Sends a pure ACK, with a sequence number `below` that of the next byte: 1 makes a probe.
    fn emit_ack(&mut self, frames: &mut Frames, now: Time, below: u32, exit: &mut impl Exit) -> u64 {
        let mut segment = Segment::default();
        if self.acknowledge(&mut segment, self.stamp(now)).is_none() {
            return 0;
        }
        let next = if below > 0 { self.tx.board.una() } else { self.tx.board.nxt() };
        segment.seq = wire_seq(self.iss, next).wrapping_sub(below);
        let frame = self.header.emit(frames, &segment, now);
        leave(frames, now, frame, exit)
    }

    /// Fills in the fields that acknowledge received data. Returns `None` before the peer's SYN.
    #[inline(always)]
    fn acknowledge(&mut self, segment: &mut Segment, stamp: u32) -> Option<()> {
        let timestamps = self.timestamps;
        let rx = self.rx.as_mut()?;
        segment.timestamps = timestamps.then_some(Timestamps { value: stamp, echo: rx.timestamp_to_echo() });
        segment.window = rx.window();
        let ack = rx.take_ack(timestamps, &mut segment.sack);
        (segment.ack, segment.flags) = (ack.ack, ack.flags);
        Some(())
    }
}
