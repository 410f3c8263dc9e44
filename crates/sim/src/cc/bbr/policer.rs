//! Detector of a policer on the path, which drops above its rate once its bucket is empty. BBR detects it by
//! two intervals between losses, of four rounds at least, with heavy loss and an equal delivery rate. It then
//! sends at that rate for 48 rounds.

use super::bandwidth::per_second;
use weir_core::time::{Duration, Time};

/// Minimum and maximum length of an interval, in rounds.
const MIN_ROUNDS: u32 = 4;
const MAX_ROUNDS: u32 = 4 * MIN_ROUNDS;
/// Loss threshold of an interval, in bytes lost per 256 delivered (20 %).
const LOSS_THRESH: u64 = 50;
/// Tolerance of equal rates: an eighth, or 4 kb/s.
const SAME_PART: u64 = 8;
const SAME_BYTES: u64 = 4_000 / 8;
/// Rounds for which the detected rate is used.
const USE_ROUNDS: u32 = 48;
/// Minimum duration of an interval.
const SHORTEST: Duration = Duration::from_millis(1);

/// Input of the detector from an ACK or a time-out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    pub(super) now: Time,
    pub(super) round_start: bool,
    pub(super) losses: bool,
    pub(super) app_limited: bool,
    /// Total bytes delivered and lost.
    pub(super) delivered: u64,
    pub(super) lost: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    sampling: bool,
    /// True while the detected rate is in use.
    in_use: bool,
    /// Rate of the previous interval, or the rate in use; 0 for none.
    bw: u64,
    rounds: u32,
    since: Time,
    delivered: u64,
    lost: u64,
}

impl Policer {
    /// Returns the rate to send at in bytes per second, if there is a policer.
    pub(super) fn bandwidth(&self) -> Option<u64> {
        self.in_use.then_some(self.bw)
    }

    /// Takes an observation. Returns true when the rate has been used for long enough and probing restarts.
    pub(super) fn observe(&mut self, o: &Observation, probing_bandwidth: bool) -> bool {
        if self.in_use {
            if probing_bandwidth && o.round_start {
                self.rounds += 1;
                if self.rounds >= USE_ROUNDS {
                    self.reset(o);
                    return true;
                }
            }
            return false;
        }
        self.sample(o);
        false
    }

    /// Forgets all rates and intervals.
    pub(super) fn reset(&mut self, o: &Observation) {
        *self = Policer::default();
        self.begin(o);
    }

    fn begin(&mut self, o: &Observation) {
        (self.since, self.delivered, self.lost, self.rounds) = (o.now, o.delivered, o.lost, 0);
    }

    /// Takes a sample. An interval runs from loss to loss.
    fn sample(&mut self, o: &Observation) {
        if !self.sampling {
            if !o.losses {
                return;
            }
            self.begin(o);
            self.sampling = true;
        }
        if o.app_limited {
            return self.reset(o);
        }
        self.rounds += u32::from(o.round_start);
        if self.rounds < MIN_ROUNDS {
            return;
        }
        if self.rounds > MAX_ROUNDS {
            return self.reset(o);
        }
        let (lost, delivered) = (o.lost - self.lost, o.delivered - self.delivered);
        let time = o.now.since(self.since);
        if !o.losses || delivered == 0 || time < SHORTEST {
            return;
        }
        if lost.saturating_mul(256) >= delivered.saturating_mul(LOSS_THRESH) {
            self.interval(per_second(delivered, time), o);
        }
    }

    fn interval(&mut self, bw: u64, o: &Observation) {
        let apart = bw.abs_diff(self.bw);
        if self.bw != 0 && (apart <= self.bw / SAME_PART || apart <= SAME_BYTES) {
            self.bw = (self.bw + bw) / 2;
            self.in_use = true;
            self.rounds = 0;
        } else {
            self.bw = bw;
            self.begin(o);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    /// Feeds 100 ACKs of a segment each in a round of 100 ms, with `lost` segments lost in the middle.
    fn round(p: &mut Policer, o: &mut Observation, lost: u64) -> bool {
        let mut ended = false;
        for i in 0..100 {
            o.now += Duration::from_millis(1);
            o.delivered += MSS;
            o.round_start = i == 0;
            o.losses = i == 50 && lost > 0;
            if o.losses {
                o.lost += lost * MSS;
            }
            ended |= p.observe(o, true);
        }
        ended
    }

    fn start() -> (Policer, Observation) {
        let o = Observation {
            now: Time::from_secs(1),
            round_start: false,
            losses: false,
            app_limited: false,
            delivered: 0,
            lost: 0,
        };
        (Policer::default(), o)
    }

    #[test]
    fn two_lossy_intervals_of_one_rate_are_a_policer() {
        let (mut p, mut o) = start();
        // A fifth is 50 of 256: 20 lost of 100 delivered are enough, and 100 segments in 100 ms are 1 MB/s.
        // An interval begins with a loss and takes four rounds.
        let mut rounds = 0;
        while p.bandwidth().is_none() {
            round(&mut p, &mut o, 20);
            rounds += 1;
            assert!(rounds < 12);
        }
        assert!((9..=10).contains(&rounds), "{rounds}");
        assert!(p.bandwidth().is_some_and(|bw| bw.abs_diff(1_000_000) < 10_000));
        // The rate is in use for 48 rounds.
        for i in 1..48 {
            assert!(!round(&mut p, &mut o, 0), "{i}");
        }
        assert!(round(&mut p, &mut o, 0));
        assert_eq!(p.bandwidth(), None);
    }

    #[test]
    fn few_losses_or_other_rates_are_none() {
        let (mut p, mut o) = start();
        for _ in 0..100 {
            round(&mut p, &mut o, 18);
        }
        assert_eq!(p.bandwidth(), None);
        // Intervals whose rates differ by more than an eighth: every other one waits 200 ms.
        let (mut p, mut o) = start();
        for i in 0..100 {
            round(&mut p, &mut o, 30);
            if i / 4 % 2 == 0 {
                o.now += Duration::from_millis(60);
            }
        }
        assert_eq!(p.bandwidth(), None);
        // Application without data.
        let (mut p, mut o) = start();
        o.app_limited = true;
        for _ in 0..100 {
            round(&mut p, &mut o, 30);
        }
        assert_eq!(p.bandwidth(), None);
    }
}
