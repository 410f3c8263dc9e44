//! A receiver's view of a paced class: its rate over one or two packets, and the size of its bursts. A
//! capture box on the wire measures the same values.

use super::{Counts, Size, LEAST_ON_WIRE};
use crate::rate::Rate;
use crate::time::Time;

/// A nanosecond at one bit per second, in parts of a bit.
const SECOND: u128 = 1_000_000_000;
/// Longest span of packets over which bandwidth is measured, from one on.
const SPANS: usize = 2;

/// Bandwidth over a number of packets, in bits per second. It counts the bits of these packets from the
/// beginning of the first to the beginning of the one after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The lowest.
    pub min: u64,
    /// The highest.
    pub max: u64,
    sum: u128,
    count: u64,
}

impl Span {
    const EMPTY: Span = Span { min: u64::MAX, max: 0, sum: 0, count: 0 };

    /// Returns the arithmetic mean. It is above the rate wherever packets are not equally far apart.
    pub fn mean(&self) -> Option<u64> {
        (self.count > 0).then(|| (self.sum / u128::from(self.count)) as u64)
    }

    fn record(&mut self, counted: u64, from: Time, to: Time) {
        let bits = u128::from(counted) * 8 * SECOND;
        let bps = (bits / u128::from(to.since(from).as_nanos().max(1))) as u64;
        (self.min, self.max) = (self.min.min(bps), self.max.max(bps));
        self.sum += u128::from(bps);
        self.count += 1;
    }
}

/// An observed packet.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Time,
    counted: u64,
}

/// Measures one class by its packets' starts on the wire.
#[derive(Clone, Debug)]
pub struct Probe {
    counts: Counts,
    target: Rate,
    line: Option<Rate>,
    first: Option<Time>,
    /// Last packets, the newest first.
    last: [Option<Seen>; SPANS],
    packets: u64,
    /// Counted bytes of all packets but the last.
    before_last: u64,
    spans: [Span; SPANS],
    /// Deficit of a token bucket after the last packet, in bits times seconds in parts of a nanosecond, and
    /// its maximum.
    level: u128,
    most: u128,
    largest: u64,
    /// Current and longest run of packets with nothing between them.
    together: u64,
    most_together: u64,
    /// End of the last packet and one filler.
    through: Time,
}

impl Probe {
    /// Returns a probe for a class of this rate, which counts these bytes. `line` is the line's rate if it is
    /// known.
    pub fn new(target: Rate, counts: Counts, line: Option<Rate>) -> Probe {
        Probe {
            counts,
            target,
            line,
            first: None,
            last: [None; SPANS],
            packets: 0,
            before_last: 0,
            spans: [Span::EMPTY; SPANS],
            level: 0,
            most: 0,
            largest: 0,
            together: 0,
            most_together: 0,
            through: Time::ZERO,
        }
    }

    /// Records the start of a packet.
    pub fn record(&mut self, at: Time, size: Size) {
        let counted = size.counted(self.counts);
        let mut together = 0;
        for (span, seen) in self.spans.iter_mut().zip(self.last) {
            let Some(Seen { at: from, counted }) = seen else { break };
            together += counted;
            span.record(together, from, at);
        }
        if let Some(Seen { at: before, counted }) = self.last[0] {
            self.before_last += counted;
            let drained = u128::from(self.target.bps()) * u128::from(at.since(before).as_nanos());
            self.level = self.level.saturating_sub(drained);
        }
        self.level += u128::from(counted) * 8 * SECOND;
        self.most = self.most.max(self.level);
        self.largest = self.largest.max(counted);
        self.together = if self.packets > 0 && at < self.through { self.together + 1 } else { 1 };
        self.most_together = self.most_together.max(self.together);
        if let Some(line) = self.line {
            self.through = at + line.time_for(size.wire() + LEAST_ON_WIRE);
        }
        self.last.rotate_right(1);
        self.last[0] = Some(Seen { at, counted });
        self.first.get_or_insert(at);
        self.packets += 1;
    }

    /// Returns the number of packets.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the target rate.
    pub fn target(&self) -> Rate {
        self.target
    }

    /// Returns the rate from the beginning of the first packet to that of the last, in thousandths of a bit
    /// per second. `None` for fewer than two packets.
    pub fn millibits(&self) -> Option<u128> {
        let lasted = self.last[0]?.at.since(self.first?).as_nanos();
        (lasted > 0).then(|| u128::from(self.before_last) * 8 * SECOND * 1000 / u128::from(lasted))
    }

    /// Returns the bandwidth over `n` packets, 1 or 2. `None` if there were too few.
    pub fn over(&self, n: usize) -> Option<Span> {
        self.spans.get(n.checked_sub(1)?).copied().filter(|span| span.count > 0)
    }

    /// Returns the smallest token bucket, filled at the class's rate, that it conforms to, in thousandths of
    /// its largest packet. 1000 means that no packet is early.
    pub fn burst_millipackets(&self) -> u64 {
        let packet = u128::from(self.largest.max(1)) * 8 * SECOND;
        (self.most * 1000 / packet) as u64
    }

    /// Returns the longest run of packets of the class with nothing between them, not even a filler. 0 if the
    /// line's rate is not known.
    pub fn most_together(&self) -> u64 {
        if self.line.is_some() {
            self.most_together
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Charge;
    use crate::time::Duration;

    const FULL: Charge = Charge { packets: 1, bytes: 1514 };

    /// Full packets that begin at these byte times on a line of 1 Gb/s.
    fn seen(target: Rate, bytes: &[u64]) -> Probe {
        let line = Rate::mbit(1000);
        let mut probe = Probe::new(target, Counts::Frame, Some(line));
        bytes.iter().for_each(|&n| probe.record(Time::ZERO + line.time_for(n), Size::of(FULL, 14, 1514)));
        probe
    }

    #[test]
    fn a_steady_class_has_its_rate_over_any_span() {
        // 1518 bytes every 3036 byte times: half the line.
        let probe = seen(Rate::mbit(500), &[0, 3036, 6072, 9108]);
        assert_eq!(probe.millibits(), Some(500_000_000_000));
        for n in [1, 2] {
            let span = probe.over(n).unwrap();
            assert_eq!((span.min, span.max, span.mean()), (500_000_000, 500_000_000, Some(500_000_000)));
        }
        assert_eq!((probe.burst_millipackets(), probe.most_together(), probe.packets()), (1000, 1, 4));
        assert_eq!(probe.over(3), None);
    }

    #[test]
    fn a_packet_that_is_early_makes_a_burst() {
        // The second packet directly behind the first, the third in time again.
        let probe = seen(Rate::mbit(500), &[0, 1538, 6072]);
        // 1518 × 8 bits in 12,304 ns, and in 36,272.
        let one = probe.over(1).unwrap();
        assert_eq!((one.max, one.min), (12_144_000_000_000 / 12_304, 12_144_000_000_000 / 36_272));
        assert_eq!(probe.over(2).unwrap().max, 500_000_000);
        // 1518 − 769 bytes were lacking when the second arrived.
        assert_eq!((probe.burst_millipackets(), probe.most_together()), ((1518 + 749) * 1000 / 1518, 2));
        // 83 bytes between two packets are too few for a filler, 84 are one.
        assert_eq!(seen(Rate::mbit(500), &[0, 1538 + 83]).most_together(), 2);
        assert_eq!(seen(Rate::mbit(500), &[0, 1538 + 84]).most_together(), 1);
    }

    #[test]
    fn nothing_is_said_of_too_few() {
        let probe = seen(Rate::mbit(1), &[0]);
        assert_eq!((probe.millibits(), probe.over(1), probe.burst_millipackets()), (None, None, 1000));
        let mut probe = Probe::new(Rate::mbit(1), Counts::Wire, None);
        (0..3).for_each(|_| probe.record(Time::ZERO + Duration::from_nanos(1), Size::of(FULL, 14, 1514)));
        assert_eq!((probe.most_together(), probe.millibits()), (0, None));
    }
}
