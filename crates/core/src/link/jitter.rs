//! The time that a frame takes beyond the line's delay. It is drawn when the frame enters the line, behind
//! the queue and the rate, so it uses neither.
//!
//! Draws are integers. Except for the uniform law they are quantiles from a table of 4,096, which is made
//! with the link by a pinned software library, so that a seed means the same on any machine. The table ends
//! at nine times the mean of an exponential law and at 3.7 standard deviations of a normal law; one draw in
//! 8,000 would lie beyond these ends. Of a Pareto law a seventh of the variance lies there: the last step, at
//! 30.5 deviations, stands for it, so that mean and deviation of the table are those of the law.

use crate::link::TRILLION;
use crate::rng::Rng;
use crate::time::{Duration, Time};

/// Time that a frame takes beyond the delay, or less than it. Under no law does it come out before it
/// entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Jitter {
    /// Scale of the law. Zero for no jitter.
    pub by: Duration,
    /// The distribution.
    pub law: Law,
    /// Lets frames overtake each other as drawn. Otherwise a frame that would come out before the last one
    /// waits for it, as on a path whose queues make the jitter.
    pub reorders: bool,
}

/// Distribution of jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum Law {
    /// From zero to [`Jitter::by`], both included, each nanosecond with the same probability.
    #[default]
    Uniform,
    /// Exponential with the mean [`Jitter::by`], in 4,096 steps.
    Exponential,
    /// Normal around the delay, with [`Jitter::by`] as the standard deviation, as with netem's `distribution
    /// normal`. In 4,096 steps.
    Normal,
    /// Pareto with the shape 3, moved so that its mean is the delay, with [`Jitter::by`] as its standard
    /// deviation. In 4,096 steps. Most frames come up to 0.58 deviations early, few come very late. (netem's
    /// `distribution pareto` has the same shape and mean. Its deviation is 2/√3 times the configured jitter.)
    Pareto,
}

impl Law {
    /// Every law, by name.
    pub const ALL: [(&'static str, Law); 4] = [
        ("uniform", Law::Uniform),
        ("exponential", Law::Exponential),
        ("normal", Law::Normal),
        ("pareto", Law::Pareto),
    ];
}

/// Frames that come out late, so that others overtake them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Reorder {
    /// Probability in units of 10^-12, for each frame independently.
    pub trillionths: u64,
    /// Extra delay.
    pub by: Duration,
}

impl Jitter {
    /// No jitter.
    pub const NONE: Jitter = Jitter { by: Duration::ZERO, law: Law::Uniform, reorders: false };

    /// Returns whether a frame may come out before one that entered earlier.
    pub fn overtakes(&self) -> bool {
        self.reorders && self.by > Duration::ZERO
    }
}

impl Reorder {
    /// No reordering.
    pub const NONE: Reorder = Reorder { trillionths: 0, by: Duration::ZERO };

    /// Returns whether a frame may come out before one that entered earlier.
    pub fn overtakes(&self) -> bool {
        self.trillionths > 0 && self.by > Duration::ZERO
    }
}

/// Number of quantiles in a table. They are in units of 2^-16.
const QUANTILES: usize = 4096;

/// Run-time state of jitter and reordering.
#[derive(Debug)]
pub(super) struct Lateness {
    jitter: Jitter,
    reorder: Reorder,
    rng: Rng,
    /// Generator for reordering. A late frame does not change the jitter of the others.
    late: Rng,
    /// Quantiles of the law, for `by` = 2^16. Empty for [`Law::Uniform`].
    quantiles: Vec<i32>,
    /// Exit time of the last frame that kept the order.
    last: Time,
}

impl Lateness {
    /// Returns `None` if no frame is ever late.
    pub(super) fn new(jitter: Jitter, reorder: Reorder, seed: u64) -> Option<Lateness> {
        if jitter.by == Duration::ZERO && !reorder.overtakes() {
            return None;
        }
        Some(Lateness {
            jitter,
            reorder,
            rng: Rng::new(seed ^ 0x6a69_7474_6572),
            late: Rng::new(seed ^ 0x0072_656f_7264_6572),
            quantiles: if jitter.by > Duration::ZERO { quantiles(jitter.law) } else { Vec::new() },
            last: Time::ZERO,
        })
    }

    /// Returns the exit time of a frame that enters at `now` with a delay of `delay`.
    pub(super) fn due(&mut self, now: Time, delay: Duration) -> Time {
        let due = self.draw(now, delay);
        let due = if self.jitter.reorders { due } else { due.max(self.last) };
        if self.reorder.overtakes() && self.late.below(TRILLION) < self.reorder.trillionths {
            return due + self.reorder.by;
        }
        self.last = due;
        due
    }

    /// Lets frames that keep the order come out at `due` at the earliest.
    pub(super) fn keep_behind(&mut self, due: Time) {
        self.last = self.last.max(due);
    }

    fn draw(&mut self, now: Time, delay: Duration) -> Time {
        let by = self.jitter.by.as_nanos();
        match self.jitter.law {
            _ if by == 0 => now + delay,
            Law::Uniform => now + delay + Duration::from_nanos(self.rng.below(by.saturating_add(1))),
            Law::Exponential | Law::Normal | Law::Pareto => {
                let quantile = self.quantiles[self.rng.below(QUANTILES as u64) as usize];
                let nanos = (u128::from(by) * u128::from(quantile.unsigned_abs())) >> 16;
                let off = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
                if quantile < 0 {
                    now + delay.saturating_sub(off)
                } else {
                    now + delay + off
                }
            }
        }
    }
}

/// Returns the middle of each of [`QUANTILES`] equal parts of a law.
fn quantiles(law: Law) -> Vec<i32> {
    let above = (0..QUANTILES).map(|i| 1.0 - (i as f64 + 0.5) / QUANTILES as f64);
    match law {
        Law::Uniform => Vec::new(),
        Law::Exponential => above.map(|p| scaled(-libm::log(p))).collect(),
        Law::Normal => normal(&above.skip(QUANTILES / 2).collect::<Vec<f64>>()),
        Law::Pareto => pareto(above),
    }
}

/// Quantiles of a Pareto distribution of the shape 3 with the mean 0 and the standard deviation 1: the values
/// that are exceeded with these probabilities, of which the last is the tail's.
fn pareto(above: impl Iterator<Item = f64>) -> Vec<i32> {
    // Mean 3/2 and variance 3/4 for the smallest value 1.
    let law: Vec<f64> = above.map(|p| (libm::pow(p, -1.0 / 3.0) - 1.5) / libm::sqrt(0.75)).collect();
    let (n, rest) = (QUANTILES as f64, &law[..QUANTILES - 1]);
    let (sum, squares) = rest.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    // The variance is 1 for the last value x with (1 - 1/n) x² - 2 sum/n x + squares - sum²/n - n = 0.
    let (a, b, c) = (1.0 - 1.0 / n, -2.0 * sum / n, squares - sum * sum / n - n);
    let last = (libm::sqrt(b * b - 4.0 * a * c) - b) / (2.0 * a);
    let mean = (sum + last) / n;
    rest.iter().chain([&last]).map(|x| scaled(x - mean)).collect()
}

/// Returns `x` in units of 2^-16, rounded to the nearest.
fn scaled(x: f64) -> i32 {
    let nearest = (libm::fabs(x) * 65_536.0 + 0.5) as i32;
    if x < 0.0 {
        -nearest
    } else {
        nearest
    }
}

/// Returns quantiles of the standard normal distribution: the values exceeded with these probabilities, which
/// decrease from a half, and their negatives. Newton's method leads from each to the next: P(X > x) is convex
/// above zero, so no step goes too far.
fn normal(above: &[f64]) -> Vec<i32> {
    use core::f64::consts::{FRAC_1_SQRT_2, PI};
    let mut x = 0.0;
    let upper = above.iter().map(|p| {
        for _ in 0..8 {
            // P(X > x) = erfc(x / √2) / 2, whose derivative is minus the density.
            let density = libm::exp(-x * x / 2.0) / libm::sqrt(2.0 * PI);
            let step = (libm::erfc(x * FRAC_1_SQRT_2) / 2.0 - p) / density;
            x += step;
            if step < 1e-7 {
                break;
            }
        }
        scaled(x)
    });
    let upper: Vec<i32> = upper.collect();
    upper.iter().rev().map(|x| -x).chain(upper.iter().copied()).collect()
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
        (0..n).map(|_| late.due(Time::ZERO, Duration::ZERO).as_nanos()).collect()
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
        // A half above the mean times ln 2, 1 % above it times ln 100. The most is ln 8192.
        let above = |ns: u64| got.iter().filter(|&&d| d > ns).count() as f64 / n as f64;
        assert!((above(6_931_472) - 0.5).abs() < 0.007, "{}", above(6_931_472));
        assert!((above(46_051_702) - 0.01).abs() < 0.0015, "{}", above(46_051_702));
        assert_eq!(got.iter().max().map(|d| d / 10_000), Some(9010));
    }

    /// Returns the deviations from the delay, in nanoseconds.
    fn deviations(law: Law, by: u64, n: usize) -> Vec<i64> {
        let delay = Duration::from_secs(100);
        let jitter = Jitter { by: Duration::from_nanos(by), law, reorders: true };
        let mut late = lateness(jitter, Reorder::NONE);
        (0..n).map(|_| late.due(Time::ZERO, delay).as_nanos() as i64 - 100_000 * MS as i64).collect()
    }

    fn mean(of: impl ExactSizeIterator<Item = i64>) -> f64 {
        let n = of.len() as f64;
        of.sum::<i64>() as f64 / n
    }

    #[test]
    fn normal_mean_deviation_and_quantiles() {
        let n = 100_000;
        let got = deviations(Law::Normal, 10 * MS, n);
        // The standard deviation of the mean is 10 ms / √n = 31.6 us, that of the variance √(2/n) of it. Four
        // of each.
        assert!(mean(got.iter().copied()).abs() < 127_000.0);
        let variance = got.iter().map(|&d| (d as f64 / 1e7).powi(2)).sum::<f64>() / n as f64;
        assert!((variance - 1.0).abs() < 0.018, "{variance}");
        // In a normal distribution 15.87 % lie above one standard deviation and 2.275 % below minus two.
        let share = |is: &dyn Fn(i64) -> bool| got.iter().filter(|d| is(**d)).count() as f64 / n as f64;
        assert!((share(&|d| d > 10_000_000) - 0.158_655).abs() < 0.005);
        assert!((share(&|d| d < -20_000_000) - 0.022_750).abs() < 0.002);
        // Symmetric; the last of 4,096 is the quantile at 1 - 1/8192, 3.668329 (Python's
        // `statistics.NormalDist`).
        let most = got.iter().max().unwrap();
        assert_eq!((most / 1000, *got.iter().min().unwrap()), (36_683, -most));
    }

    #[test]
    fn tables_have_the_mean_and_the_deviation_of_their_law() {
        // The exponential law's mean and deviation are 1; the others' 0 and 1. What lies beyond the ends of
        // the exponential and of the normal table is 0.1 % of the variance, and one in 65,536 is how finely
        // values are told.
        for (law, expected) in [(Law::Exponential, 1.0), (Law::Normal, 0.0), (Law::Pareto, 0.0)] {
            let table: Vec<f64> = quantiles(law).iter().map(|&q| f64::from(q) / 65_536.0).collect();
            let n = table.len() as f64;
            let mean = table.iter().sum::<f64>() / n;
            let deviation = (table.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
            assert!((mean - expected).abs() < 2e-4, "{law:?}: mean {mean}");
            assert!((deviation - 1.0).abs() < 1e-3, "{law:?}: deviation {deviation}");
        }
    }

    #[test]
    fn pareto_mean_and_tail() {
        let n = 100_000;
        let got = deviations(Law::Pareto, 10 * MS, n);
        assert!(mean(got.iter().copied()).abs() < 127_000.0);
        // In standard deviations of √0.75: X > 2 is d > 0.577, with probability 2^-3. X > 5 is d > 4.041,
        // with 5^-3.
        let above = |ns: i64| got.iter().filter(|&&d| d > ns).count() as f64 / n as f64;
        assert!((above(5_773_503) - 0.125).abs() < 0.004, "{}", above(5_773_503));
        assert!((above(40_414_519) - 0.008).abs() < 0.0012, "{}", above(40_414_519));
        // The smallest is 1 - 1.5, half of a deviation's 0.866, and 0.0011 for the mean of the table.
        assert_eq!(got.iter().min().unwrap() / 10_000, -578);
    }

    #[test]
    fn nothing_comes_out_before_it_entered() {
        let jitter = Jitter { by: Duration::from_millis(10), law: Law::Normal, reorders: true };
        let mut late = lateness(jitter, Reorder::NONE);
        let (now, delay) = (Time::from_millis(7), Duration::from_millis(2));
        let got: Vec<Time> = (0..1000).map(|_| late.due(now, delay)).collect();
        assert_eq!(got.iter().min(), Some(&now));
        // P(X < -0.2) = 42 %: standard deviation 1.6 %.
        let at_once = got.iter().filter(|&&t| t == now).count();
        assert!((356..=486).contains(&at_once), "{at_once}");
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
            let (a, b) = (with.due(at, Duration::ZERO), without.due(at, Duration::ZERO));
            // 2 ms apart, so that no frame waits for the one before it.
            late += usize::from(a == b + tenth.by);
            assert!(a == b || a == b + tenth.by);
        }
        // Binomial(1000, 10 %): 100, standard deviation 9.5.
        assert!((62..138).contains(&late), "{late}");
    }
}
