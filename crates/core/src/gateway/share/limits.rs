//! Windows of flows that share a rate.

use crate::ack::Window;
use crate::flow::{flag, Record};
use crate::gateway::Gateway;
use crate::time::{Duration, Time};

/// What a flow may hold longer than what is meant to wait, before it is released without a window for it.
const TOO_LONG: Duration = Duration::from_millis(50);

impl Gateway {
    /// The most bytes that the window of a flow may be that shares its class's rate, told with an
    /// acknowledgement of `to`. The right edge moves by no more than twice what is released, since what a
    /// sender was not let send before it may send at once.
    pub(in crate::gateway) fn window_of_share(&self, r: &Record, to: u32) -> Option<u32> {
        let (Window::Size { standing_delay }, false) = (self.policy(r).window, self.ends) else {
            return None;
        };
        let share = self.classes.share(r.class)?;
        if r.has(flag::STEPS) {
            return Some(share.law.window_of_segments(share.payload(r), self.rtt(r), r.segments().payload));
        }
        let window = share.window(r, self.rtt(r), standing_delay);
        if !r.has(flag::EDGE_KNOWN) {
            return Some(window.min(share.first_window(
                r.mss,
                share.is_late(&self.table, self.now),
                self.now,
            )));
        }
        let ahead = (r.edge.wrapping_sub(to) as i32).max(0) as u32;
        if r.has(flag::EDGE_WAITS) {
            return Some(window.min(ahead.max(1)));
        }
        let step = to.wrapping_sub(r.tx).saturating_mul(2);
        Some(window.min(ahead.saturating_add(step).max(2 * u32::from(r.mss))))
    }

    /// So many bytes go ahead of the flow's turn. Where the class has nothing to spare for what its sender
    /// might send for them, the right edge stays where it is until then.
    pub(in crate::gateway) fn keep_edge(&mut self, i: u32, bytes: u32, now: Time) {
        let r = &self.table[i];
        let waits = r.has(flag::SHARED | flag::EDGE_KNOWN)
            && !r.has(flag::STEPS)
            && !r.is_ending()
            && matches!(self.policy(r).window, Window::Size { .. })
            && self.is_early(r, bytes, now);
        if waits {
            self.table[i].flags |= flag::EDGE_WAITS;
        }
    }

    /// The window of a flow whose right edge waits, once that has moved by a turn, and the bytes of that
    /// turn; `None` if it need not move any further.
    pub(super) fn edge_of_turn(&self, r: &Record) -> Option<(u32, u32)> {
        let Window::Size { standing_delay } = self.policy(r).window else { return None };
        let share = self.classes.share(r.class).filter(|_| r.has(flag::EDGE_KNOWN) && !self.ends)?;
        let turn = share.law.turn(r.segments().payload);
        let ahead = (r.edge.wrapping_sub(r.tx) as i32).max(0) as u32;
        let limit = share.window(r, self.rtt(r), standing_delay).min(ahead.saturating_add(turn));
        r.edge_moves(Some(limit)).then_some((limit, turn))
    }

    /// Has the flow, its class or one above it nothing to spare now, or would so many bytes be forgiven?
    pub(in crate::gateway) fn is_early(&self, r: &Record, bytes: u32, now: Time) -> bool {
        let Some(share) = self.classes.share(r.class) else { return false };
        let cost = share.law.cost(&r.segments(), bytes);
        let mut classes = core::iter::successors(Some(share), |share| self.classes.share(share.parent()?));
        share.law.flow_max.is_some() && r.law.turn().free_from() > now
            || classes.any(|class| class.is_ahead(cost, now))
    }

    /// Finds what the class of a flow has now, where it borrows.
    pub(in crate::gateway) fn entitle(&mut self, i: u32) {
        let (place, now) = (self.table[i].class, self.now);
        self.tree(place).entitle(place, now);
    }

    /// How much a release of `bytes` takes along of what is held, since the flow's share has collapsed: of
    /// what is too much, as far as the right edge need not move for it.
    pub(super) fn cut(&self, r: &Record, bytes: u32) -> u32 {
        let Window::Size { standing_delay } = self.policy(r).window else { return 0 };
        let Some(share) = self.classes.share(r.class).filter(|_| r.has(flag::EDGE_KNOWN)) else { return 0 };
        let window = share.window(r, self.rtt(r), standing_delay);
        let kept =
            share.payload(r).bytes_in(standing_delay + TOO_LONG).min(1 << 30) as u32 + 4 * u32::from(r.mss);
        let too_much = (r.held() - bytes).saturating_sub(kept);
        let beyond = r.edge.wrapping_sub(r.tx.wrapping_add(bytes)).wrapping_sub(window) as i32;
        too_much.min(beyond.max(0) as u32)
    }
}
