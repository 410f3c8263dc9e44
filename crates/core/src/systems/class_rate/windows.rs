//! Windows of flows that share a class's rate.

use super::{Share, Shares};
use crate::flow::{flag, Record, Table};
use crate::packet::wire::Seq;
use crate::rate::Rate;
use crate::time::{Duration, Time};

/// Largest lead of permissions over the rate at which first windows are as large as otherwise.
const CROWDED: Duration = Duration::from_millis(20);
/// Segments of a first window where it is further, or flows that have begun are late for their turns.
const FEW: u32 = 1;

/// Longest time beyond the meant one that a flow may hold bytes before it is released without a window for
/// it.
const TOO_LONG: Duration = Duration::from_millis(50);

/// The round-trip time of a flow, and the time for which acknowledged bytes may wait.
type Times = (Duration, Duration);

impl Shares {
    /// Returns the most bytes that a flow's window may be, told with an acknowledgement of `to`. The right
    /// edge moves by no more than twice what is released, since what a sender was not let send before it may
    /// send at once.
    pub(crate) fn window(
        &self,
        table: &Table,
        r: &Record,
        (rtt, standing): Times,
        to: Seq,
        now: Time,
    ) -> Option<u32> {
        let share = self.get(r.class)?;
        if r.takes_steps() {
            return Some(share.law.window_of_segments(share.payload(r), rtt, r.shared_payload()));
        }
        let window = share.window(r, rtt, standing);
        if !r.has(flag::EDGE_KNOWN) {
            return Some(window.min(share.first_window(r.shared_mss(), share.is_late(table, now), now)));
        }
        let ahead = r.edge.beyond(to);
        if r.has(flag::EDGE_WAITS) {
            return Some(window.min(ahead.max(1)));
        }
        let step = to.since(r.tx).saturating_mul(2);
        Some(window.min(ahead.saturating_add(step).max(2 * r.shared_mss())))
    }

    /// Returns the window of a flow whose right edge waits, once that has moved by a turn, and the bytes of
    /// that turn.
    pub(crate) fn edge_of_turn(&self, r: &Record, (rtt, standing): Times) -> Option<(u32, u32)> {
        let share = self.get(r.class).filter(|_| r.has(flag::EDGE_KNOWN))?;
        let turn = r.law.turn().bytes(share.law.turn(), r.shared_payload());
        let ahead = r.edge.beyond(r.tx);
        Some((share.window(r, rtt, standing).min(ahead.saturating_add(turn)), turn))
    }

    /// Returns whether the flow, its class or one above it has nothing to spare now, or some of these bytes
    /// would be forgiven.
    pub(crate) fn is_early(&self, r: &Record, bytes: u32, now: Time) -> bool {
        let Some(share) = self.get(r.class) else { return false };
        let cost = share.law.cost(&r.segments(), bytes);
        let mut classes = core::iter::successors(Some(share), |share| self.get(share.parent()?));
        share.law.flow_max.is_some() && r.law.turn().free_from() > now
            || classes.any(|class| class.is_ahead(cost, now))
    }

    /// Returns how much a release of `bytes` takes along of what is held, since the flow's share has
    /// collapsed: of what is too much, as far as the right edge need not move for it. A sender that has not
    /// sent up to its right edge would send as much again.
    pub(crate) fn cut(&self, r: &Record, (rtt, standing): Times, bytes: u32) -> u32 {
        let Some(share) = self.get(r.class).filter(|_| r.has(flag::EDGE_KNOWN)) else { return 0 };
        let window = share.window(r, rtt, standing);
        let kept = share.payload(r).bytes_in(standing + TOO_LONG).min(1 << 30) as u32 + 4 * r.shared_mss();
        let too_much = (r.held() - bytes).saturating_sub(kept);
        let beyond = r.edge.since(r.tx.plus(bytes)).wrapping_sub(window) as i32;
        let cut = too_much.min(beyond.max(0) as u32);
        if cut > 0 && share.has_room_to_send(r, (rtt, standing)) {
            return 0;
        }
        cut
    }
}

impl Share {
    /// Returns whether the most that it may send is used up, or some of these bytes would be written off.
    fn is_ahead(&self, bytes: u64, now: Time) -> bool {
        let clock = &self.clock;
        self.is_bounded() && (clock.due() > now || clock.clone().charge_since(bytes, now, now) > 0)
    }

    /// Returns a flow's part of the rate, as payload.
    pub(crate) fn payload(&self, r: &Record) -> Rate {
        let each = self.each_of(r.has(flag::GUARANTEED));
        self.law.payload(self.law.of_flow(each), &r.segments())
    }

    /// The first window of a flow: few segments where what is permitted is far ahead of the rate, since so
    /// many flows begin at once, or where others are `late` for their turns. The rest waits for turns of its
    /// own, in order of arrival: first windows alone would take all of the rate, and those that wait would
    /// time out.
    fn first_window(&self, mss: u32, late: bool, now: Time) -> u32 {
        let ahead = self.node().map_or(self.clock.due(), |node| node.ahead);
        if late && !self.law.is_of_acks() || ahead > now + CROWDED {
            return FEW * mss;
        }
        self.law.first_window(mss)
    }

    /// Returns whether the right edge is further ahead of what has arrived than the class's whole rate takes
    /// it. It was not sized, then, and the sender's own window binds.
    fn has_room_to_send(&self, r: &Record, (rtt, standing): Times) -> bool {
        let all = self.law.payload(self.law.of_flow(self.most), &r.segments());
        let open = r.edge.beyond(r.rx);
        open > self.law.window(all, rtt, standing, r.shared_mss()) + 4 * r.shared_mss()
    }

    fn window(&self, r: &Record, rtt: Duration, standing: Duration) -> u32 {
        self.law.window(self.payload(r), rtt, standing, r.shared_mss())
    }
}
