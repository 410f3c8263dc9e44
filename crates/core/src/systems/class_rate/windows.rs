//! Windows of flows that share a class's rate.

use super::Share;
use crate::flow::{flag, Record};
use crate::rate::Rate;
use crate::time::{Duration, Time};

/// How far ahead of the rate what is permitted may be for first windows to be as large as they are otherwise.
const CROWDED: Duration = Duration::from_millis(20);
/// Segments of a first window where it is further, or flows that have begun are late for their turns.
const FEW: u32 = 1;

impl Share {
    /// Is the most that it may send used up, or would some of these bytes be forgiven?
    pub(crate) fn is_ahead(&self, bytes: u64, now: Time) -> bool {
        let clock = &self.clock;
        self.is_bounded() && (clock.due() > now || clock.clone().charge_since(bytes, now, now) > 0)
    }

    /// What a flow has of the rate, as payload.
    pub(crate) fn payload(&self, r: &Record) -> Rate {
        let each = self.each_of(r.has(flag::GUARANTEED));
        self.law.payload(self.law.of_flow(each), &r.segments())
    }

    /// The first window of a flow: few segments where what is permitted is far ahead of the rate, since so
    /// many flows begin at once, or where others are `late` for their turns. The rest waits for turns of its
    /// own, in order of arrival: first windows alone would take all of the rate, and those that wait would
    /// time out.
    pub(crate) fn first_window(&self, mss: u16, late: bool, now: Time) -> u32 {
        let ahead = self.node().map_or(self.clock.due(), |node| node.ahead);
        if late && !self.law.is_of_acks() || ahead > now + CROWDED {
            return FEW * u32::from(mss);
        }
        self.law.first_window(mss)
    }

    pub(crate) fn window(&self, r: &Record, rtt: Duration, standing: Duration) -> u32 {
        self.law.window(self.payload(r), rtt, standing, r.mss)
    }
}
