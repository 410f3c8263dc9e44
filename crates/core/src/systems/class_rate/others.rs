//! Packets of a class that ACKs cannot slow.

use super::meter::Meter;
use super::ShareRelease;
use crate::steer::Counted;
use crate::time::Time;

/// Measurement of unresponsive traffic.
#[derive(Default)]
pub(crate) struct Others {
    pub(crate) counted: Counted,
    /// True if `counted` has been what the tally said.
    pub(crate) begun: bool,
    /// Time of the last look.
    pub(crate) at: Time,
    /// Bytes of TCP beyond what senders were permitted, at that time.
    pub(crate) beyond: Option<u64>,
    /// Rate of the traffic. What is free for the flows is theirs after a round trip only, and windows that
    /// are still small would keep them from it.
    meter: Meter,
    /// Rate of TCP beyond what senders were permitted.
    meter_beyond: Meter,
}

/// Rates of what passes beside the turns of flows, in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beside {
    /// Unresponsive traffic.
    pub(crate) others: u64,
    /// TCP beyond what senders were permitted.
    pub(crate) beyond: u64,
}

impl Beside {
    /// Returns both together.
    pub(crate) fn sum(self) -> u64 {
        self.others + self.beyond
    }

    /// Returns these rates where one of several parts was `before` and is `after`.
    pub(crate) fn with(self, before: Beside, after: Beside) -> Beside {
        Beside {
            others: (self.others + after.others).saturating_sub(before.others),
            beyond: (self.beyond + after.beyond).saturating_sub(before.beyond),
        }
    }
}

impl Others {
    /// Returns the time of the last look.
    pub(crate) fn at(&self) -> Time {
        self.at
    }

    /// Bits per second of unresponsive traffic, on average.
    pub(crate) fn bps(&self) -> u64 {
        self.meter.bps()
    }

    /// Returns the rates of what passes beside the turns of flows, on average.
    pub(crate) fn rates(&self) -> Beside {
        Beside { others: self.meter.bps(), beyond: self.meter_beyond.bps() }
    }

    /// Returns what has passed since the last look, in the units of `law`, and the time of that look.
    pub(crate) fn look(&mut self, law: &ShareRelease, counted: Counted, now: Time) -> (u64, Time) {
        let passed = counted.since(core::mem::replace(&mut self.counted, counted));
        let cost = law.counts.cost_of_packets(passed.packets, passed.bytes);
        let before = self.at;
        self.at = before.max(now);
        self.meter.note(cost, now);
        (cost, before)
    }

    /// Returns the bytes of TCP that have passed since the last look beyond what senders were permitted, if
    /// `beyond` have in total, in the units of `law`.
    pub(crate) fn look_beyond(&mut self, law: &ShareRelease, beyond: u64, now: Time) -> u64 {
        let passed = beyond.wrapping_sub(self.beyond.replace(beyond).unwrap_or(beyond));
        let cost = law.counts.counted_by_hooks(passed);
        self.meter_beyond.note(cost, now);
        cost
    }
}
