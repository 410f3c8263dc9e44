//! Frames as they come in: here themselves, or as copies of their headers; and what segments of the data's
//! sender tell.
//!
//! Behind hooks copies are of the segments that end a connection, and of those that the gateway [asked
//! for](crate::steer::Slot::ask): by their acknowledgements it measures the delay of the WAN. A gateway on
//! its own sees all segments.

use super::segment::Headers;
use super::segment::{is_broken, parse, pass_reason};
use super::{after, direction_of, Direction, Gateway, PassReason, LAN, WAN};
use crate::flow::{flag, Key};
use crate::frame::{Checksum, Frame};
use crate::node::{Cx, Port};
use crate::stats::DropReason;
use crate::steer::slot_flag;
use crate::time::Time;
use crate::wire::{self, Flags};

/// Way in which the gateway sees a segment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Copied {
    /// It passed as it came.
    Passed,
    /// It passed with its acknowledgement set back.
    SetBack,
}

impl Gateway {
    /// A frame that is here.
    #[inline]
    pub(super) fn on_frame(&mut self, cx: &mut Cx<'_>, from_lan: bool, frame: Frame) {
        if self.takes_plain(cx, from_lan, &frame) {
            return cx.frames.absorb(frame);
        }
        self.on_segment(cx, from_lan, frame);
    }

    /// A frame that is here and is not dealt with in short.
    #[inline(never)]
    fn on_segment(&mut self, cx: &mut Cx<'_>, from_lan: bool, mut frame: Frame) {
        let out = if from_lan { WAN } else { LAN };
        let segment = match parse(cx.frames.bytes(&frame), frame.len()) {
            Ok(s) => s,
            Err(reject) => {
                if !self.passes_other(cx, from_lan, &frame) {
                    self.stats.ledger.drops.count(DropReason::Policed);
                    return cx.drop(frame, DropReason::Policed);
                }
                return self.pass(cx, out, frame, pass_reason(reject));
            }
        };
        self.stats.user_data_bytes += u64::from(segment.tcp.payload_len);
        if frame.checksum == Checksum::Unknown {
            frame.checksum = wire::checksum::verify_frame(cx.frames, &frame, &segment.packet);
        }
        if !self.admits_data(cx, from_lan, &segment, frame.len()) {
            self.stats.ledger.drops.count(DropReason::Policed);
            return cx.drop(frame, DropReason::Policed);
        }
        if frame.checksum == Checksum::Invalid {
            return self.pass(cx, out, frame, PassReason::BadChecksum);
        }
        if segment.has(Flags::SYN) {
            self.on_syn(cx, from_lan, &segment, &frame, true);
            self.size_syn_ack(cx, from_lan, &segment, &frame);
            return self.forward(cx, out, frame);
        }
        self.on_data_direction(cx, from_lan, &segment);
        // As it leaves it says something else.
        let counted = core::mem::take(&mut frame.restamp);
        match self.flow_of_ack(cx, from_lan, &segment) {
            Ok(i) => {
                if counted {
                    self.slots[i].has_come();
                }
                self.on_ack_direction(cx, i, &segment, frame)
            }
            Err(reason) => self.pass(cx, out, frame, reason),
        }
    }

    /// The headers of a segment that passed.
    pub(super) fn on_copy(&mut self, cx: &mut Cx<'_>, from_lan: bool, copied: Copied, frame: Frame) {
        self.stats.observed += 1;
        let bytes = cx.frames.bytes(&frame);
        let parsed = parse(bytes, frame.len()).ok().filter(|s| !is_broken(bytes, &frame, &s.packet));
        if let Some(segment) = parsed {
            if segment.has(Flags::SYN) {
                self.on_syn(cx, from_lan, &segment, &frame, false);
            } else {
                self.on_data_direction(cx, from_lan, &segment);
                if let Ok(i) = self.flow_of_ack(cx, from_lan, &segment) {
                    self.on_ack_copy(cx, i, &segment, copied, &frame);
                }
            }
        } else if copied == Copied::Passed {
            self.count_shown(cx, from_lan, &frame);
        }
        self.stats.ledger.absorbed += 1;
        cx.frames.absorb(frame);
    }

    /// Forwards a frame that is nobody's.
    pub(super) fn pass(&mut self, cx: &mut Cx<'_>, out: Port, frame: Frame, reason: PassReason) {
        self.stats.passed[reason as usize] += 1;
        self.forward(cx, out, frame);
    }

    pub(super) fn forward(&mut self, cx: &mut Cx<'_>, out: Port, frame: Frame) {
        self.outbox.push(cx, &mut self.stats.ledger, out, cx.now, frame);
    }

    /// A segment with data, or the right to send some, was seen: of a flow whose ACKs are controlled, it is
    /// looked at. What has nothing to tell costs no look-up.
    fn on_data_direction(&mut self, cx: &mut Cx<'_>, from_lan: bool, segment: &Headers) {
        let ends = segment.tcp.flags.intersects(Flags::FIN | Flags::RST);
        if !ends && (!self.measures || segment.tcp.payload_len == 0) {
            return;
        }
        let direction = if from_lan { Direction::Out } else { Direction::In };
        let key = Key::of_data(&segment.packet, &segment.tcp);
        let known = self.table.find(&key).filter(|&i| direction_of(&self.table[i]) == direction);
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
    fn on_data(&mut self, now: Time, i: u32, segment: &Headers) {
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

    /// Is the segment where its receiver accepts it: from what it has acknowledged to its right edge (RFC
    /// 5961 §3.2; that a RST ahead of RCV.NXT is answered first is for the receiver to decide)?
    fn sender_may_send(&self, i: u32, segment: &Headers) -> bool {
        let r = &self.table[i];
        let slot = &self.slots[i];
        let edge = slot.edge();
        let unscaled = r.rx.wrapping_add(u32::from(r.window.max(1)) << 14);
        let right = if slot.has(slot_flag::SCALED) { edge } else { unscaled };
        !after(r.rx, segment.end()) && !after(segment.tcp.seq, right)
    }
}
