//! Grants where ACKs follow the data of a class that has hardly any waiting.
//!
//! An ACK of a flow without data in the queue of its class goes at once (`departures`). Where that is so most
//! of the time, since the class is not what limits its flows, each ACK would come here for nothing but to be
//! sent on. So the hooks let them pass, as far as a grant goes: of all flows of a class together no more than
//! the class sends in half a millisecond. That is what its queue can get beyond what it would have had. The
//! grant of a flow ends as soon as more than one packet of it waits, and where the queue is not empty for a
//! quarter of the time none is made.

use super::departures::Departures;
use super::grants::portion;
use crate::ack::Turns;
use crate::flow::flag;
use crate::gateway::grant::Look;
use crate::gateway::Gateway;
use crate::time::{Duration, Time};

/// What is granted of a class's rate, as time.
const AHEAD: Duration = Duration::from_micros(500);
/// How much of the time something waits is found over so long at least.
const SPAN: Duration = Duration::from_millis(1);
/// Nothing waits for one of so many parts of the time, at least, where there are grants.
const PARTS: u64 = 4;

impl Gateway {
    /// The next ACKs of a flow whose class releases them as its data leaves may pass, if hardly any data
    /// waits in the class. `last` is how the flow was when its last grant was looked at.
    pub(super) fn grant_idle(&mut self, i: u32, now: Time, last: Option<Look>) {
        let Some(share) = self.classes.share(self.table[i].class) else { return };
        let list = &share.departures;
        let follows = share.law.turns == Turns::Departures;
        if !follows || !list.is_idle(now) {
            return;
        }
        let most = share.law.rate.bytes_in(AHEAD).saturating_sub(share.granted);
        let Some(used) = self.used(i, now, last) else { return };
        let (bytes, within) = portion(used, most);
        self.grant_bytes(i, bytes, within, now);
    }

    /// More than one packet of the flow waits in the queue of its class: its ACKs wait from now on, unless
    /// hardly anything does.
    pub(super) fn end_idle_grant(&mut self, i: u32, now: Time) {
        let r = &self.table[i];
        let idle = self.classes.share(r.class).is_some_and(|share| share.departures.is_idle(now));
        if r.has(flag::GRANTED) && !idle {
            self.follow(i, now);
        }
    }
}

impl Departures {
    /// Does nothing wait for a good part of the time?
    fn is_idle(&self, now: Time) -> bool {
        self.load.is_low(self.busy, now)
    }
}

/// How much of the time something waits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    /// Since when the time is counted.
    from: Time,
    /// Until when.
    until: Time,
    /// How long something has waited.
    busy: Duration,
    /// What the last whole span said.
    high: bool,
}

impl Load {
    /// Something waited until `now`, or nothing did.
    pub(super) fn note(&mut self, busy: bool, now: Time) {
        if busy {
            self.busy = self.busy + now.since(self.until);
        }
        self.until = now;
        if now.since(self.from) >= SPAN {
            (self.high, self.busy, self.from) = (self.is_high(), Duration::ZERO, now);
        }
    }

    /// Does nothing wait for a good part of the time, where something does `now` or not?
    fn is_low(mut self, busy: bool, now: Time) -> bool {
        self.note(busy, now);
        !self.high
    }

    fn is_high(&self) -> bool {
        let idle = self.until.since(self.from) - self.busy;
        idle.saturating_mul(PARTS) < self.until.since(self.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_is_empty_for_a_quarter_of_the_time_is_idle() {
        let us = Time::from_micros;
        let mut load = Load::default();
        assert!(load.is_low(false, us(5_000)), "nothing has come yet");
        for (busy, at) in [(false, 5_000), (true, 5_750), (false, 6_000)] {
            load.note(busy, us(at));
        }
        assert!(load.is_low(false, us(6_100)));
        for (busy, at) in [(true, 6_751), (false, 7_000)] {
            load.note(busy, us(at));
        }
        assert!(!load.is_low(false, us(7_500)), "until another millisecond is over");
        assert!(load.is_low(false, us(8_000)));
        assert!(!load.is_low(true, us(8_000)), "something waits since 7 ms");
    }

    #[test]
    fn what_waited_until_a_queue_ran_empty_counts() {
        let us = Time::from_micros;
        let mut d = Departures::default();
        d.note(true, us(5_000));
        d.run_empty(us(5_800));
        d.note(true, us(6_000));
        assert!(!d.is_idle(us(6_000)), "something has waited for 800 us of the last millisecond");
        d.run_empty(us(6_700));
        d.note(true, us(7_000));
        assert!(d.is_idle(us(7_000)), "for 700 us");
    }
}
