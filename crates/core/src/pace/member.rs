//! A paced class at work: its clock and its queue.

use super::size::Size;
use super::{Class, Counts};
use crate::class::{LeafStats, HISTOGRAMS};
use crate::queue::{self, Queue};
use crate::rate::{mul_div, Rate};

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Member {
    rate: Rate,
    pub(super) counts: Counts,
    /// The unit at which its next packet is due, and the part of a unit beyond it, in parts of the rate.
    pub(super) next: u64,
    rem: u64,
    /// The same after the packet that waits first, as far as its size is known: the deadline of that packet.
    planned: (u64, u64),
    /// What that packet counts.
    expects: u64,
    pub(super) queue: Queue,
    pub(super) stats: LeafStats,
}

impl Member {
    /// The class with this number, on a line of which its rate is `rate`.
    pub(super) fn new(number: usize, class: &Class, rate: Rate, config: queue::Config) -> Member {
        let stats = LeafStats { records_delay: number < HISTOGRAMS, ..LeafStats::default() };
        let queue = config.build(rate);
        let counts = class.counts;
        Member { rate, counts, next: 0, rem: 0, planned: (0, 0), expects: 0, queue, stats }
    }

    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// The rate is another one after the next packet. The part of a unit that is carried is rounded down to what the new
    /// rate can express.
    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.rem = mul_div(self.rem, rate.bps(), 0, self.rate.bps()).0;
        self.rate = rate;
        self.expects = 0;
    }

    /// It has had nothing to send until this unit.
    pub(super) fn begin(&mut self, position: u64) {
        if self.next < position {
            (self.next, self.rem) = (position, 0);
        }
    }

    /// The unit after which its next packet comes if it sends so many counted bytes next.
    fn after(&self, counted: u64, line: Rate) -> (u64, u64) {
        let (units, rem) = mul_div(counted, line.bps(), self.rem, self.rate.bps());
        (self.next.saturating_add(units), rem)
    }

    /// The deadline of the packet that waits first, whose size is about this.
    pub(super) fn plan(&mut self, size: Size, line: Rate) -> u64 {
        self.expects = size.counted(self.counts);
        self.planned = self.after(self.expects, line);
        self.planned.0
    }

    /// The deadline as it was planned.
    pub(super) fn deadline(&self) -> u64 {
        self.planned.0
    }

    /// A packet of this size is sent.
    pub(super) fn charge(&mut self, size: Size, line: Rate) {
        let counted = size.counted(self.counts);
        let after = if counted == self.expects { self.planned } else { self.after(counted, line) };
        (self.next, self.rem) = after;
    }
}
