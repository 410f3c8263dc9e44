//! How large a window may be: rate × (round-trip time + standing delay).
//!
//! Release alone cannot bound what is held, since the sender's window grows until something stops it. The
//! first right edge that a sender sees counts as much as every later one, because an edge never moves
//! back: the window of the SYN-ACK is sized like the others. Where the data's receiver is the client
//! that is its first ACK.

use super::{Gateway, Segment};
use crate::ack::{window, Release, Window};
use crate::flow::{flag, Record};
use crate::frame::Frame;
use crate::node::Cx;
use crate::wire::{self, Flags};

impl Gateway {
    /// The most bytes a flow's window may be, if its class sizes windows and its scale is known.
    pub(super) fn window_limit(&self, r: &Record) -> Option<u32> {
        let ack = self.policy(r);
        let (Window::Size { standing_delay }, Release::Rate(_)) = (ack.window, ack.release) else {
            return None;
        };
        // Releases are a period apart, so what waits for them is at least two steps.
        let standing = standing_delay.max(r.pace.period().saturating_mul(2));
        let bytes = r.pace.rate()?.bytes_in(self.rtt(r) + standing);
        let mss = u64::from(r.mss.max(1));
        Some((bytes.div_ceil(mss) * mss).min(1 << 30) as u32)
    }

    /// See [`window::on_grid`].
    pub(super) fn on_grid(&self, i: u32, to: u32) -> u32 {
        let r = &self.table[i];
        window::on_grid(r, to, self.window_limit(r))
    }

    /// Sizes the window of a SYN-ACK of the data's receiver, which is on its way to the sender. Its field is not
    /// scaled (RFC 7323 §2.2), so that at most 64 KiB are to be had.
    pub(super) fn size_syn_ack(&mut self, cx: &mut Cx<'_>, i: u32, segment: &Segment, frame: &Frame) {
        let limit = self.window_limit(&self.table[i]);
        let r = &mut self.table[i];
        let (ack, own) = (segment.tcp.ack, segment.tcp.window);
        let first = r.has(flag::SYNCED | flag::SCALE_KNOWN) && r.tx == ack && segment.has(Flags::ACK);
        if !first || r.has(flag::PASSES) {
            return;
        }
        let goal = limit.map_or(r.right, |bytes| ack.wrapping_add(bytes));
        let field = window::fit(ack, 0, goal, ack.wrapping_add(u32::from(own)));
        r.window_sent = field;
        r.edge = ack.wrapping_add(u32::from(field));
        r.flags |= flag::EDGE_KNOWN;
        if field != own {
            wire::set_window(cx.frames.bytes_mut(frame), &segment.packet, field, frame.checksum);
        }
    }
}
