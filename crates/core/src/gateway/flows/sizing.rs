//! The size of a window: rate × (round-trip time + standing delay) at most.
//!
//! Release alone cannot bound what is held, since the sender's window grows until something stops it. The
//! first right edge that a sender sees counts as much as every later one, because an edge never moves
//! back: the window of the SYN-ACK is sized like the others. Where the data's receiver is the client
//! that is its first ACK.

use super::segment::Headers;
use super::Register;
use crate::ack::{window, Window};
use crate::flow::{flag, FlowId, Key, Record};
use crate::frame::Frame;
use crate::node::Cx;
use crate::steer::{after, Slot};
use crate::time::{Duration, Time};
use crate::wire::{self, Flags, TcpOptions};

/// The largest window there is (RFC 7323 §2.3).
pub(super) const MOST: u64 = 1 << 30;

impl Register {
    /// The most bytes a flow's window may be, if its class sizes windows and its scale is known.
    #[inline]
    pub(in crate::gateway) fn window_limit(&self, r: &Record) -> Option<u32> {
        self.window_limit_at(r, r.tx)
    }

    /// Returns the limit of the window that is told with an acknowledgement of `to`.
    pub(in crate::gateway) fn window_limit_at(&self, r: &Record, to: u32) -> Option<u32> {
        if r.takes_turns() {
            return self.window_of_share(r, to);
        }
        if self.ends {
            return None;
        }
        r.window_limit(&self.policy(r).window, self.rtt(r))
    }

    /// Is the right edge that may be told now right of the one that was?
    pub(in crate::gateway) fn edge_moves(&self, i: FlowId) -> bool {
        let r = &self.table[i];
        r.edge_moves(self.window_limit(r))
    }

    /// A sender whose window was sized from its first right edge on cannot get ahead of the releases by more
    /// than the advertised window, in slow start or not, so its steps are full from the beginning
    /// (`docs/ack-shaper.md`).
    pub(in crate::gateway) fn bound(&mut self, i: FlowId) {
        let r = &self.table[i];
        if !r.has(flag::EDGE_KNOWN) || r.takes_turns() {
            return;
        }
        let bounds = self.policy(r).release.is_bounded_by_window();
        let Some(limit) = self.window_limit(&self.table[i]) else { return };
        let r = &mut self.table[i];
        // An edge is rounded up to a unit of the window.
        if bounds && r.edge.wrapping_sub(r.tx) < limit + (1 << r.scale) {
            r.law.pace_mut().bounded();
        }
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
        r.right = ack.wrapping_add(u32::from(window) << scale);
        if r.has(flag::SCALE_KNOWN) {
            let goal = limit.map_or(r.right, |bytes| ack.wrapping_add(bytes));
            let field = window::fit(ack, scale, goal, r.right);
            r.edge = ack.wrapping_add(u32::from(field) << scale);
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
        let field = window::fit(r.tx, 0, r.edge, r.tx.wrapping_add(u32::from(own)));
        if field != own {
            wire::set_window(cx.frames.bytes_mut(frame), &segment.packet, field, frame.checksum);
        }
    }

    /// As [`Register::window_limit_at`], of a flow that shares its class's rate.
    fn window_of_share(&self, r: &Record, to: u32) -> Option<u32> {
        let times = self.times(r).filter(|_| !self.ends)?;
        self.classes.shares.window(&self.table, r, times, to, self.now)
    }

    /// The round-trip time of a flow, and how long what is acknowledged may wait, if its window is sized.
    pub(in crate::gateway) fn times(&self, r: &Record) -> Option<(Duration, Duration)> {
        match self.policy(r).window {
            Window::Size { standing_delay } => Some((self.rtt(r), standing_delay)),
            Window::Keep => None,
        }
    }

    /// Lets bytes go ahead of the flow's turn. Where the class has nothing to spare for what its sender might
    /// send for them, the right edge stays where it is until then.
    pub(in crate::gateway) fn keep_edge(&mut self, i: FlowId, bytes: u32, now: Time) {
        let r = &self.table[i];
        let waits = r.takes_turns()
            && r.has(flag::EDGE_KNOWN)
            && !r.takes_steps()
            && !r.is_ending()
            && self.times(r).is_some()
            && self.classes.shares.is_early(r, bytes, now);
        if waits {
            self.table[i].flags |= flag::EDGE_WAITS;
        }
    }

    /// Finds what the class of a flow has now, where it borrows.
    pub(super) fn entitle(&mut self, i: FlowId) {
        let (place, now) = (self.table[i].class, self.now);
        self.tree(place).entitle(place, now);
    }
}

impl Record {
    /// Is the right edge that may be told now, with a window of at most `limit` bytes, right of the one that
    /// was?
    pub(in crate::gateway) fn edge_moves(&self, limit: Option<u32>) -> bool {
        self.window != 0 && window::is_news(self, self.window, limit)
    }

    /// The most bytes that the window may be of a flow with a rate of its own and this round-trip time, by
    /// its policy.
    #[inline(always)]
    pub(in crate::gateway) fn window_limit(&self, policy: &Window, rtt: Duration) -> Option<u32> {
        Some(self.full_window(policy, rtt)?.saturating_sub(self.law.pace().lag()).max(1))
    }

    /// As [`Record::window_limit`], of a flow that owes nothing.
    #[inline(always)]
    pub(super) fn full_window(&self, policy: &Window, rtt: Duration) -> Option<u32> {
        let Window::Size { standing_delay } = *policy else { return None };
        // Releases are a period apart, so what waits for them is at least two steps.
        let standing = standing_delay.max(self.law.pace().period().saturating_mul(2));
        let bytes = self.law.pace().rate()?.bytes_in(rtt + standing);
        let (bytes, mss) = (bytes.min(MOST) as u32, u32::from(self.mss.max(1)));
        Some((bytes.div_ceil(mss) * mss).min(MOST as u32))
    }

    /// The receiver's numbers and both right edges are those of the slot.
    #[inline(always)]
    pub(in crate::gateway) fn catch_up(&mut self, slot: &Slot) {
        self.seq = slot.nxt();
        let (own, sent) = (slot.edge(), slot.sent());
        if self.has(flag::SCALE_KNOWN) && after(own, self.right) {
            self.right = own;
        }
        if self.has(flag::EDGE_KNOWN) && after(sent, self.edge) {
            self.edge = sent;
        }
    }
}
