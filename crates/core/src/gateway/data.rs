//! Segments of the data's sender, and what they tell.
//!
//! Behind hooks these are copies of the segments that end a connection, and of those that the gateway [asked
//! for](crate::steer::Slot::ask): by their acknowledgements it measures the delay of the WAN. A gateway on
//! its own sees all segments.

use super::{after, direction_of, Direction, Gateway, Headers};
use crate::flow::{flag, Key};
use crate::node::Cx;
use crate::steer::slot_flag;
use crate::time::Time;
use crate::wire::Flags;

impl Gateway {
    /// A segment with data, or the right to send some, was seen: of a flow whose ACKs are controlled, it is
    /// looked at. What has nothing to tell costs no look-up.
    pub(super) fn on_data_direction(&mut self, cx: &mut Cx<'_>, from_lan: bool, segment: &Headers) {
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
