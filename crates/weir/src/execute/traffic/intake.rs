//! The receiving end of a flow, with its account of each read.

use super::{Amount, Bins, Gap, Received};

/// Account of a receiver. The times of calls never go backwards.
pub(super) struct Intake {
    got: Received,
    amount: Amount,
    gap_after: u64,
}

impl Intake {
    /// Returns an empty account of a flow that carries `amount`.
    pub fn new(amount: Amount, bin_ns: u64, gap_after: u64) -> Intake {
        let got = Received {
            bytes: 0,
            bytes_in_time: 0,
            first_ns: None,
            last_ns: None,
            complete_ns: None,
            eof_ns: None,
            longest_gap: None,
            bins: Bins::new(bin_ns),
        };
        Intake { got, amount, gap_after }
    }

    /// Records a read of `bytes` at `at`.
    pub fn read(&mut self, at: u64, bytes: u64) {
        let got = &mut self.got;
        got.bytes += bytes;
        got.first_ns.get_or_insert(at);
        got.bins.record(at, bytes);
        if !matches!(self.amount, Amount::UntilNs(until) if at > until) {
            got.bytes_in_time = got.bytes;
        }
        if got.complete_ns.is_none() && matches!(self.amount, Amount::Bytes(all) if got.bytes >= all) {
            got.complete_ns = Some(at);
        }
        self.close_gap(at);
        self.got.last_ns = Some(at);
    }

    /// Records a read of the end of data at `at`.
    pub fn eof(&mut self, at: u64) {
        self.got.eof_ns.get_or_insert(at);
    }

    /// Returns whether all of the flow's bytes have arrived.
    pub fn complete(&self) -> bool {
        self.got.complete_ns.is_some()
    }

    /// Returns the account at `end`. An unfinished flow has a gap that lasts until then.
    pub fn finish(mut self, end: u64) -> Received {
        let open_until = match self.amount {
            Amount::Bytes(_) if self.complete() => None,
            Amount::Bytes(_) => Some(end),
            Amount::UntilNs(until) => Some(end.min(until)),
        };
        if let Some(at) = open_until {
            self.close_gap(at);
        }
        self.got
    }

    fn close_gap(&mut self, at: u64) {
        let Some(from) = self.got.last_ns else { return };
        let len_ns = at.saturating_sub(from);
        if at > self.gap_after && self.got.longest_gap.is_none_or(|g| len_ns > g.len_ns) {
            self.got.longest_gap = Some(Gap { from_ns: from, len_ns });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finite_flow_is_complete_at_its_last_byte() {
        let mut i = Intake::new(Amount::Bytes(30), 10, 0);
        i.read(5, 10);
        i.read(17, 10);
        assert!(!i.complete());
        i.read(19, 10);
        i.eof(25);
        let r = i.finish(1000);
        assert_eq!((r.first_ns, r.complete_ns, r.last_ns, r.eof_ns), (Some(5), Some(19), Some(19), Some(25)));
        assert_eq!(r.longest_gap, Some(Gap { from_ns: 5, len_ns: 12 }));
        assert_eq!((r.bytes, r.bytes_in_time, r.bins.bytes), (30, 30, vec![10, 20]));
    }

    #[test]
    fn gaps_before_the_mark_do_not_count() {
        let mut i = Intake::new(Amount::UntilNs(100), 10, 40);
        i.read(1, 1);
        i.read(39, 1);
        i.read(50, 1);
        i.read(55, 1);
        assert_eq!(i.finish(60).longest_gap, Some(Gap { from_ns: 39, len_ns: 11 }));
    }

    #[test]
    fn a_flow_that_falls_silent_has_a_gap_until_its_end() {
        let mut i = Intake::new(Amount::UntilNs(100), 10, 0);
        i.read(1, 1);
        i.read(20, 1);
        let r = i.finish(500);
        assert_eq!(r.longest_gap, Some(Gap { from_ns: 20, len_ns: 80 }));
    }

    #[test]
    fn bytes_after_the_time_are_late() {
        let mut i = Intake::new(Amount::UntilNs(100), 10, 0);
        i.read(99, 3);
        i.read(101, 4);
        let r = i.finish(200);
        assert_eq!((r.bytes, r.bytes_in_time), (7, 3));
    }
}
