//! What a frame takes longer than the line's delay, drawn as it enters the line: behind the queue and the rate, so that it
//! takes nothing of either.
//!
//! Draws are integers. An exponential one is a quantile of a table that is made with the link, by a software logarithm; the
//! table ends at nine times the mean, which one draw in 8,000 would pass.

use crate::link::TRILLION;
use crate::rng::Rng;
use crate::time::{Duration, Time};

/// How long a frame takes beyond the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Jitter {
    /// As the law says; zero for none.
    pub by: Duration,
    /// The distribution.
    pub law: Law,
    /// Frames overtake each other where their draws say so. Otherwise one that would come out before the last one
    /// waits for it, as on a path whose queues make the jitter.
    pub reorders: bool,
}

/// How jitter is distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Law {
    /// From zero to [`Jitter::by`], both included, each nanosecond alike.
    #[default]
    Uniform,
    /// Exponential with the mean [`Jitter::by`], in 4,096 steps.
    Exponential,
}

impl Law {
    /// Every law, by name.
    pub const ALL: [(&'static str, Law); 2] = [("uniform", Law::Uniform), ("exponential", Law::Exponential)];
}

/// Frames that come out late, so that others overtake them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Reorder {
    /// Probability in units of 10^-12, for each frame independently.
    pub trillionths: u64,
    /// How much later.
    pub by: Duration,
}

impl Jitter {
    /// None.
    pub const NONE: Jitter = Jitter { by: Duration::ZERO, law: Law::Uniform, reorders: false };

    /// May a frame come out before one that came earlier?
    pub fn overtakes(&self) -> bool {
        self.reorders && self.by > Duration::ZERO
    }
}

impl Reorder {
    /// None.
    pub const NONE: Reorder = Reorder { trillionths: 0, by: Duration::ZERO };

    /// May a frame come out before one that came earlier?
    pub fn overtakes(&self) -> bool {
        self.trillionths > 0 && self.by > Duration::ZERO
    }
}

/// Quantiles of the exponential distribution with mean 2^16.
const QUANTILES: usize = 4096;

/// Jitter and reordering at work.
#[derive(Debug)]
pub(super) struct Lateness {
    jitter: Jitter,
    reorder: Reorder,
    rng: Rng,
    /// Of jitter alone: whether one frame is late does not change what the others draw.
    late: Rng,
    /// Of [`Law::Exponential`].
    quantiles: Vec<u32>,
    /// When the last frame that kept the order comes out.
    last: Time,
}

impl Lateness {
    /// `None` if no frame is ever late.
    pub(super) fn new(jitter: Jitter, reorder: Reorder, seed: u64) -> Option<Lateness> {
        if jitter.by == Duration::ZERO && !reorder.overtakes() {
            return None;
        }
        let exponential = jitter.law == Law::Exponential && jitter.by > Duration::ZERO;
        Some(Lateness {
            jitter,
            reorder,
            rng: Rng::new(seed ^ 0x6a69_7474_6572),
            late: Rng::new(seed ^ 0x0072_656f_7264_6572),
            quantiles: if exponential { quantiles() } else { Vec::new() },
            last: Time::ZERO,
        })
    }

    /// When a frame comes out that would be due at `in_time` if it were not late.
    pub(super) fn due(&mut self, in_time: Time) -> Time {
        let due = in_time + self.draw();
        let due = if self.jitter.reorders { due } else { due.max(self.last) };
        if self.reorder.overtakes() && self.late.below(TRILLION) < self.reorder.trillionths {
            return due + self.reorder.by;
        }
        self.last = due;
        due
    }

    fn draw(&mut self) -> Duration {
        let by = self.jitter.by.as_nanos();
        if by == 0 {
            return Duration::ZERO;
        }
        match self.jitter.law {
            Law::Uniform => Duration::from_nanos(self.rng.below(by.saturating_add(1))),
            Law::Exponential => {
                let quantile = self.quantiles[self.rng.below(QUANTILES as u64) as usize];
                let nanos = (u128::from(by) * u128::from(quantile)) >> 16;
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
        }
    }
}

/// The middle of each of [`QUANTILES`] equal parts.
fn quantiles() -> Vec<u32> {
    let part = |i: usize| (i as f64 + 0.5) / QUANTILES as f64;
    (0..QUANTILES).map(|i| (-libm::log(1.0 - part(i)) * 65_536.0 + 0.5) as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn lateness(jitter: Jitter, reorder: Reorder) -> Lateness {
        Lateness::new(jitter, reorder, 5).expect("something is late")
    }

    fn draws(law: Law, by: u64, n: usize) -> Vec<u64> {
        let mut late = lateness(Jitter { by: Duration::from_nanos(by), law, reorders: true }, Reorder::NONE);
        (0..n).map(|_| late.due(Time::ZERO).as_nanos()).collect()
    }

    #[test]
    fn uniform_from_nothing_to_the_most() {
        let got = draws(Law::Uniform, 3, 4000);
        // Each a quarter: 1000, standard deviation 27.
        for n in 0..=3 {
            let times = got.iter().filter(|&&d| d == n).count();
            assert!((860..1140).contains(&times), "{n}: {times}");
        }
        assert!(got.iter().all(|&d| d <= 3));
    }

    #[test]
    fn exponential_mean_and_quantiles() {
        let n = 100_000;
        let got = draws(Law::Exponential, 10 * MS, n);
        // The standard deviation of the mean is 10 ms / √n = 31.6 us: four of them.
        let mean = got.iter().sum::<u64>() / n as u64;
        assert!(mean.abs_diff(10 * MS) < 127_000, "{mean}");
        // A half above the mean times ln 2, 1 % above it times ln 100; the most is ln 8192.
        let above = |ns: u64| got.iter().filter(|&&d| d > ns).count() as f64 / n as f64;
        assert!((above(6_931_472) - 0.5).abs() < 0.007, "{}", above(6_931_472));
        assert!((above(46_051_702) - 0.01).abs() < 0.0015, "{}", above(46_051_702));
        assert_eq!(got.iter().max().map(|d| d / 10_000), Some(9010));
    }

    #[test]
    fn nothing_is_late_without_a_reason() {
        let some = Reorder { trillionths: 1, by: Duration::ZERO };
        assert!(Lateness::new(Jitter::NONE, some, 1).is_none());
        assert!(Lateness::new(Jitter { reorders: true, ..Jitter::NONE }, Reorder::NONE, 1).is_none());
        let never = Reorder { trillionths: 0, by: Duration::from_millis(1) };
        assert!(Lateness::new(Jitter::NONE, never, 1).is_none());
    }

    #[test]
    fn what_is_late_does_not_hold_up_the_others_nor_change_their_draws() {
        let jitter = Jitter { by: Duration::from_millis(1), law: Law::Uniform, reorders: false };
        let tenth = Reorder { trillionths: TRILLION / 10, by: Duration::from_millis(50) };
        let (mut with, mut without) = (lateness(jitter, tenth), lateness(jitter, Reorder::NONE));
        let mut late = 0;
        for n in 0..1000 {
            let at = Time::from_micros(n * 2000);
            let (a, b) = (with.due(at), without.due(at));
            // 2 ms apart, so that no frame waits for the one before it.
            late += usize::from(a == b + tenth.by);
            assert!(a == b || a == b + tenth.by);
        }
        // Binomial(1000, 10 %): 100, standard deviation 9.5.
        assert!((62..138).contains(&late), "{late}");
    }
}
