//! Turns of an ACK by the class's clock: TCP rate control (PostACK paper, section 2.4).
//!
//! The class has one clock, and each turn moves it on by what a full segment costs: so each of `n` flows has
//! a turn in the time in which its share of the rate carries a segment, and one whose neighbours hold nothing
//! has theirs as well.

use super::turns::Visit;
use crate::ack::Window;
use crate::flow::flag;
use crate::gateway::{after, Gateway};
use crate::node::Cx;
use crate::systems::postack::Driver;
use crate::time::{Duration, Time};

impl Gateway {
    /// It is the turn of a flow of the class in this place that holds something: it is released an ACK,
    /// unless its scheme has it skip the turn.
    pub(super) fn visit_step(&mut self, cx: &mut Cx<'_>, i: u32, place: u32) -> Visit {
        let Some(share) = self.classes.share(place) else { return Visit::Stuck };
        let (Some(scheme), queues) = (share.law.scheme(), share.departures.queues) else {
            return Visit::Stuck;
        };
        self.queue_again(i);
        if self.table[i].law.steps().probe().is_none() {
            self.ask_for_probe(i);
        }
        let mut used = 0;
        if !scheme.skips(self.table[i].law.steps_mut(), queues) {
            let Some(turns) = self.step(cx, i, 1) else { return Visit::Stuck };
            scheme.released(self.table[i].law.steps_mut(), queues, turns);
            used = turns;
        }
        match scheme.driver() {
            Driver::Clock => self.spend_turns(i, used.max(1), cx.now),
            Driver::Queue | Driver::Queues | Driver::Delay => {
                self.spend_departures(place, used.max(1), cx.now)
            }
        }
        if used > 0 {
            Visit::Released
        } else {
            Visit::Passed
        }
    }

    /// Charges the flow's class for turns of the flow, each as a full segment.
    fn spend_turns(&mut self, i: u32, turns: u32, now: Time) {
        let r = &self.table[i];
        let (place, segments) = (r.class, r.segments());
        let Some(share) = self.classes.share_mut(place) else { return };
        let cost = share.law.cost(&segments, turns.saturating_mul(u32::from(segments.payload)));
        share.clock.spend(cost, now);
    }

    /// A segment of data that ends at `end` is on its way to its receiver: the acknowledgement of it will
    /// tell the delay of the WAN. Of data that has come from there it would tell that of the LAN, so for
    /// downloads the handshake's stays.
    pub(in crate::gateway) fn note_sent(&mut self, i: u32, end: u32, now: Time) {
        let r = &mut self.table[i];
        let measured = r.takes_steps() && r.has(flag::SYNCED) && !r.has(flag::INWARD);
        if measured && r.law.steps().probe().is_none() && after(end, r.rx) {
            r.law.steps_mut().set_probe(end, now);
        }
        self.watch_data(i, end, now);
    }

    /// The receiver has acknowledged more. The delay of the WAN is an average with the gain of a sender's
    /// smoothed RTT (RFC 6298 section 2.3), as in section 2.4.3 of the paper.
    pub(in crate::gateway) fn note_delay(&mut self, i: u32, now: Time) {
        let r = &mut self.table[i];
        if !r.takes_steps() {
            return;
        }
        if r.law.steps().probe_is_older(MOST_DELAY, now) {
            return self.drop_probe(i);
        }
        if r.law.steps().probe().is_none_or(|end| after(end, r.rx)) {
            return;
        }
        let Some(delay) = r.law.steps_mut().probed(now) else { return };
        let (old, new) = (i64::from(r.rtt_ns), delay.as_nanos() as i64);
        let average = if old == 0 { new } else { old + (new - old) / 8 };
        r.rtt_ns = average.clamp(1, u32::MAX.into()) as u32;
        self.ask_for_probe(i);
    }

    /// The next segment of the flow's data is to be seen, if its window is sized or its scheme needs it.
    pub(in crate::gateway) fn ask_for_probe(&self, i: u32) {
        let r = &self.table[i];
        let sizes = || !r.has(flag::INWARD) && self.policy(r).window != Window::Keep;
        if self.measures && r.takes_steps() && (sizes() || self.watches_data(i)) {
            self.slots[i].ask();
        }
    }

    /// A loss delays the acknowledgement of what comes behind it: that tells nothing of the path (Karn).
    pub(in crate::gateway) fn drop_probe(&mut self, i: u32) {
        if self.table[i].takes_steps() {
            self.table[i].law.steps_mut().end_probe();
            self.ask_for_probe(i);
        }
    }
}

/// The longest delay that is measured: a record can keep no longer one.
const MOST_DELAY: Duration = Duration::from_secs(4);
