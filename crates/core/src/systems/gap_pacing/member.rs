//! Run-time state of a paced class: its clock and its queue.

use super::size::Size;
use super::{Class, Counts};
use crate::queue::{self, Queue};
use crate::queue::{LeafStats, HISTOGRAMS};
use crate::rate::{mul_div, Rate};

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Member {
    rate: Rate,
    pub(super) counts: Counts,
    /// Unit at which its next packet is due, and the fraction of a unit beyond it, in parts of the rate.
    pub(super) next: u64,
    rem: u64,
    /// Values of `next` and `rem` after the first packet of the queue, as far as its size is known. The first
    /// is that packet's deadline.
    planned: (u64, u64),
    /// Counted bytes of that packet.
    expects: u64,
    pub(super) queue: Queue,
    pub(super) stats: LeafStats,
}

impl Member {
    /// Returns the class with this number, with the rate `rate` on its line.
    pub(super) fn new(number: usize, class: &Class, rate: Rate, config: queue::Config) -> Member {
        let stats = LeafStats { records_delay: number < HISTOGRAMS, ..LeafStats::default() };
        let queue = config.build(rate);
        let counts = class.counts;
        Member { rate, counts, next: 0, rem: 0, planned: (0, 0), expects: 0, queue, stats }
    }

    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// Changes the rate after the next packet. The carried fraction of a unit is rounded down to what the new
    /// rate can express.
    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.rem = mul_div(self.rem, rate.bps(), 0, self.rate.bps()).0;
        self.rate = rate;
        self.expects = 0;
    }

    /// Begins a backlog at this unit, after a time with nothing to send.
    pub(super) fn begin(&mut self, position: u64) {
        if self.next < position {
            (self.next, self.rem) = (position, 0);
        }
    }

    /// Returns the unit at which the class is due again after `counted` bytes.
    fn after(&self, counted: u64, line: Rate) -> (u64, u64) {
        let (units, rem) = mul_div(counted, line.bps(), self.rem, self.rate.bps());
        (self.next.saturating_add(units), rem)
    }

    /// Plans the deadline of the first packet of the queue, whose size is about this.
    pub(super) fn plan(&mut self, size: Size, line: Rate) -> u64 {
        self.expects = size.counted(self.counts);
        self.planned = self.after(self.expects, line);
        self.planned.0
    }

    /// Returns the planned deadline.
    pub(super) fn deadline(&self) -> u64 {
        self.planned.0
    }

    /// Charges a sent packet of this size.
    pub(super) fn charge(&mut self, size: Size, line: Rate) {
        let counted = size.counted(self.counts);
        let after = if counted == self.expects { self.planned } else { self.after(counted, line) };
        (self.next, self.rem) = after;
    }
}
