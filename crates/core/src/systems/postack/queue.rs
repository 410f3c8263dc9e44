//! State of a class's queue, as the gateway knows it by the events of the queue.

use crate::time::{Duration, Time};

/// Shortest span over which the part of the time in which something waits is found.
const SPAN: Duration = Duration::from_millis(1);
/// Nothing waits for one of this many parts of the time, at least, where there are grants.
const PARTS: u64 = 4;

/// State of a class's queue, as reported.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Departures {
    /// Packets that have left, wrapping.
    pub(crate) count: u32,
    /// Flows of which something waits.
    pub(crate) flows: u32,
    /// Something waits.
    pub(crate) busy: bool,
    /// Number of these queues: flows count what waits in others as nothing.
    pub(crate) queues: u16,
    /// With one queue: packets in it that no flow of the class has sent.
    pub(crate) others: u32,
    /// With one queue: turns that flows have.
    pub(crate) turns: i32,
    /// With one queue: when the next turn may come while it is empty.
    pub(crate) next_idle: Time,
    /// Part of the time in which something waits.
    pub(crate) load: Load,
}

impl Departures {
    /// Something waits from `now` on, or nothing does.
    pub(crate) fn note(&mut self, busy: bool, now: Time) {
        self.load.note(self.busy, now);
        self.busy = busy;
    }

    /// Nothing waits from `now` on: whatever flows have sent is gone.
    pub(crate) fn run_empty(&mut self, now: Time) {
        self.note(false, now);
        (self.others, self.turns) = (0, self.turns.max(0));
        self.queues = self.queues.wrapping_add(1);
    }

    /// Returns whether nothing waits for a good part of the time.
    pub(crate) fn is_idle(&self, now: Time) -> bool {
        self.load.is_low(self.busy, now)
    }
}

/// Part of the time in which something waits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    /// Time from which on it is counted.
    from: Time,
    /// Time up to which it is counted.
    until: Time,
    /// Time for which something has waited.
    busy: Duration,
    /// Result of the last whole span.
    high: bool,
}

impl Load {
    /// Something waited until `now`, or nothing did.
    pub(crate) fn note(&mut self, busy: bool, now: Time) {
        if busy {
            self.busy = self.busy + now.since(self.until);
        }
        self.until = now;
        if now.since(self.from) >= SPAN {
            (self.high, self.busy, self.from) = (self.is_high(), Duration::ZERO, now);
        }
    }

    /// Returns whether nothing waits for a good part of the time, where something does `now` or not.
    pub(crate) fn is_low(mut self, busy: bool, now: Time) -> bool {
        self.note(busy, now);
        !self.high
    }

    pub(crate) fn is_high(&self) -> bool {
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
