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
    pub(crate) meter: Meter,
}

impl Others {
    /// Returns the time of the last look.
    pub(crate) fn at(&self) -> Time {
        self.at
    }

    /// Bits per second that pass, on average.
    pub(crate) fn bps(&self) -> u64 {
        self.meter.bps()
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
    /// `beyond` have in total.
    pub(crate) fn look_beyond(&mut self, beyond: u64) -> u64 {
        beyond.wrapping_sub(self.beyond.replace(beyond).unwrap_or(beyond))
    }
}
