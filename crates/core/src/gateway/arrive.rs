//! Frames as they come in: here themselves, or as copies of their headers.
//!
//! Behind hooks copies are of the segments that end a connection, and of those that the gateway [asked
//! for](crate::steer::Slot::ask): by their acknowledgements it measures the delay of the WAN. A gateway on
//! its own sees all segments.

#[cfg(test)]
mod tests;

use super::flows::segment::{is_broken, parse, pass_reason};
use super::flows::stats::PassReason;
use super::Gateway;
use crate::frame::{Checksum, Frame};
use crate::node::{Cx, Port, LAN, WAN};
use crate::packet::mark;
use crate::stats::DropReason;
use crate::steer::Judgement;
use crate::wire::{self, Flags};

/// Way in which the gateway sees a segment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Copied {
    /// It passed as it came.
    Passed,
    /// It passed with its acknowledgement set back.
    SetBack,
}

/// Most bytes of a copy of a frame's headers, as the programs in the kernel copy.
const HEAD: usize = 192;

impl Gateway {
    /// A frame that is here.
    #[inline]
    pub(super) fn on_frame(&mut self, cx: &mut Cx<'_>, from_lan: bool, frame: Frame) {
        if self.takes_plain(cx, from_lan, &frame) {
            return cx.frames.absorb(frame);
        }
        self.on_segment(cx, from_lan, frame);
    }

    /// Returns whether a packet may pass that ACKs cannot slow. It may be marked.
    #[inline(never)]
    fn judge_other(&self, cx: &mut Cx<'_>, from_lan: bool, frame: &Frame) -> bool {
        let judgement = self.flows.judge_other(cx, from_lan, frame);
        if judgement == Judgement::Marked {
            mark::mark(cx.frames.bytes_mut(frame));
        }
        judgement != Judgement::Dropped
    }

    /// A frame that is here and is not dealt with in short.
    #[inline(never)]
    fn on_segment(&mut self, cx: &mut Cx<'_>, from_lan: bool, mut frame: Frame) {
        let out = if from_lan { WAN } else { LAN };
        let segment = match parse(cx.frames.bytes(&frame), frame.len()) {
            Ok(s) => s,
            Err(reject) => {
                if !self.judge_other(cx, from_lan, &frame) {
                    self.flows.stats.ledger.drops.count(DropReason::Policed);
                    return cx.drop(frame, DropReason::Policed);
                }
                return self.pass(cx, out, frame, pass_reason(reject));
            }
        };
        self.flows.stats.user_data_bytes += u64::from(segment.tcp.payload_len);
        if frame.checksum == Checksum::Unknown {
            frame.checksum = wire::checksum::verify_frame(cx.frames, &frame, &segment.packet);
        }
        // Hooks have judged what they take.
        if !self.flows.hooked && !self.flows.admits_data(cx, from_lan, &segment, &frame) {
            self.flows.stats.ledger.drops.count(DropReason::Policed);
            return cx.drop(frame, DropReason::Policed);
        }
        if frame.checksum == Checksum::Invalid {
            return self.pass(cx, out, frame, PassReason::BadChecksum);
        }
        if segment.has(Flags::SYN) {
            self.on_syn(cx, from_lan, &segment, &frame, true);
            self.flows.size_syn_ack(cx, from_lan, &segment, &frame);
            return self.forward(cx, out, frame);
        }
        self.flows.on_data_direction(cx, from_lan, &segment);
        // As it leaves it says something else.
        let counted = core::mem::take(&mut frame.restamp);
        match self.flow_of_ack(cx, from_lan, &segment) {
            Ok(i) => {
                if counted {
                    self.flows.slots[i].has_come();
                }
                self.on_ack_direction(cx, i, &segment, frame)
            }
            Err(reason) => self.pass(cx, out, frame, reason),
        }
    }

    /// The headers of a segment that passed.
    pub(super) fn on_copy(&mut self, cx: &mut Cx<'_>, from_lan: bool, copied: Copied, frame: Frame) {
        self.flows.stats.observed += 1;
        let bytes = cx.frames.bytes(&frame);
        let parsed = parse(bytes, frame.len()).ok().filter(|s| !is_broken(bytes, &frame, &s.packet));
        if let Some(segment) = parsed {
            if segment.has(Flags::SYN) {
                self.on_syn(cx, from_lan, &segment, &frame, false);
            } else {
                self.flows.on_data_direction(cx, from_lan, &segment);
                if let Ok(i) = self.flow_of_ack(cx, from_lan, &segment) {
                    self.on_ack_copy(cx, i, &segment, copied, &frame);
                }
            }
        } else if copied == Copied::Passed {
            self.flows.count_shown(cx, from_lan, &frame);
        }
        self.flows.stats.ledger.absorbed += 1;
        cx.frames.absorb(frame);
    }

    /// A frame that is here passes as it came, at once, in a gateway that observes: as hooks do, with a copy
    /// of its headers. Bounds count what they would drop. Flows are followed as those are whose segments pass
    /// without the engine, so nothing is held, and nothing is owed.
    pub(super) fn observe(&mut self, cx: &mut Cx<'_>, from_lan: bool, mut frame: Frame) {
        let out = if from_lan { WAN } else { LAN };
        let segment = match parse(cx.frames.bytes(&frame), frame.len()) {
            Ok(segment) => segment,
            Err(reject) => {
                self.flows.judge_other(cx, from_lan, &frame);
                return self.pass(cx, out, frame, pass_reason(reject));
            }
        };
        self.flows.stats.user_data_bytes += u64::from(segment.tcp.payload_len);
        self.flows.admits_data(cx, from_lan, &segment, &frame);
        if frame.checksum == Checksum::Unknown {
            frame.checksum = wire::checksum::verify_frame(cx.frames, &frame, &segment.packet);
        }
        if frame.checksum == Checksum::Invalid {
            return self.pass(cx, out, frame, PassReason::BadChecksum);
        }
        if let Some(copy) = cx.frames.copy_head(&frame, HEAD, cx.now) {
            self.flows.stats.ledger.made += 1;
            self.on_copy(cx, from_lan, Copied::Passed, copy);
        }
        self.forward(cx, out, frame);
    }

    /// Forwards a frame of no flow.
    pub(super) fn pass(&mut self, cx: &mut Cx<'_>, out: Port, frame: Frame, reason: PassReason) {
        self.flows.stats.passed[reason as usize] += 1;
        self.forward(cx, out, frame);
    }

    pub(super) fn forward(&mut self, cx: &mut Cx<'_>, out: Port, frame: Frame) {
        self.outbox.push(cx, &mut self.flows.stats.ledger, out, cx.now, frame);
    }

    /// Deals with a frame that is here, if it is an ACK of that kind: it is to be absorbed. False: nothing
    /// has happened.
    #[inline]
    pub(super) fn takes_plain(&mut self, cx: &Cx<'_>, from_lan: bool, frame: &Frame) -> bool {
        #[cfg(test)]
        if self.always_long {
            return false;
        }
        let bytes = cx.frames.bytes(frame);
        if bytes.len() != frame.len() || frame.checksum == Checksum::Invalid {
            return false;
        }
        let verified = frame.checksum == Checksum::Unknown;
        let usual = <&[u8; wire::USUAL_ACK]>::try_from(bytes).ok();
        match usual.and_then(|bytes| wire::usual_ack(bytes, verified)) {
            Some(ack) => self.flows.takes(cx.now, from_lan, frame.restamp, &ack),
            None => self.flows.takes_unusual(cx.now, from_lan, frame, bytes),
        }
    }
}
