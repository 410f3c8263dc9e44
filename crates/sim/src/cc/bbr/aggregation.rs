//! ACKs that arrive in lumps (wireless links, offloads): estimates the excess of a lump over what the
//! bandwidth explains. The window is raised by it, so that the pipe does not run dry between the lumps.

use super::bandwidth::bytes_in;
use weir_core::time::{Duration, Time};

/// Rounds per half of the maximum filter: the maximum covers five rounds at least and ten at most.
const WINDOW_ROUNDS: u32 = 5;
/// Segments after which an epoch ends at the latest.
const EPOCH_SEGMENTS: u64 = 1 << 20;
/// Time that bounds the excess: never more than the bandwidth delivers in it.
const LONGEST: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    /// Largest excess in bytes of the present five rounds and of the five before.
    extra: [u64; 2],
    index: usize,
    rounds: u32,
    epoch: Time,
    epoch_acked: u64,
}

impl Aggregation {
    /// Returns the bytes to add to the window at `bw` bytes per second.
    pub(super) fn extra(&self, bw: u64) -> u64 {
        self.extra[0].max(self.extra[1]).min(bytes_in(bw, LONGEST))
    }

    /// Restarts counting after idleness.
    pub(super) fn restart(&mut self, now: Time) {
        (self.epoch, self.epoch_acked) = (now, 0);
    }

    /// Counts an ACK that delivered `acked` bytes. An epoch lasts while more is acknowledged than `bw`
    /// explains.
    pub(super) fn update(&mut self, now: Time, acked: u64, bw: u64, round_start: bool, cwnd: u64, mss: u32) {
        if round_start {
            self.rounds += 1;
            if self.rounds >= WINDOW_ROUNDS {
                self.rounds = 0;
                self.index ^= 1;
                self.extra[self.index] = 0;
            }
        }
        let mut expected = bytes_in(bw, now.since(self.epoch));
        let longest = EPOCH_SEGMENTS * u64::from(mss);
        if self.epoch_acked <= expected || self.epoch_acked + acked >= longest {
            self.restart(now);
            expected = 0;
        }
        self.epoch_acked += acked;
        let extra = (self.epoch_acked - expected).min(cwnd);
        self.extra[self.index] = self.extra[self.index].max(extra);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    #[test]
    fn lumps_are_what_exceeds_the_bandwidth() {
        // 1 MB/s in lumps of ten segments each 10 ms: at each lump the previous epoch is used up, so the lump
        // is the excess.
        let mut a = Aggregation::default();
        for i in 0..20 {
            a.update(Time::from_millis(10 * i), 10 * MSS, 1_000_000, i % 4 == 0, 100 * MSS, MSS as u32);
        }
        assert_eq!(a.extra(1_000_000), 10 * MSS);
        // The excess never exceeds what arrives in 100 ms.
        assert_eq!(a.extra(50_000), 5 * MSS);
    }

    #[test]
    fn a_smooth_stream_has_one_ack_of_excess() {
        let mut a = Aggregation::default();
        for i in 0..1000 {
            a.update(Time::from_millis(i), MSS, 1_000_000, i % 100 == 0, 100 * MSS, MSS as u32);
        }
        assert_eq!(a.extra(1_000_000), MSS);
    }

    #[test]
    fn an_excess_is_forgotten_after_ten_rounds() {
        let mut a = Aggregation::default();
        a.update(Time::from_millis(1), 50 * MSS, 1_000_000, true, 100 * MSS, MSS as u32);
        let mut rounds = 0;
        while a.extra(1_000_000) > MSS {
            rounds += 1;
            a.update(Time::from_millis(1 + 100 * rounds), MSS, 1_000_000, true, 100 * MSS, MSS as u32);
            assert!(rounds <= 10);
        }
        assert!(rounds >= 5, "{rounds}");
        // The excess never exceeds the window.
        a.update(Time::from_secs(100), 50 * MSS, 1_000_000, false, 7 * MSS, MSS as u32);
        assert_eq!(a.extra(1_000_000), 7 * MSS);
    }
}
