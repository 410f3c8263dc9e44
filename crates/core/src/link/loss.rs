//! Losses of the path itself. They are drawn when a frame enters the link, before the queue (as in netem). A
//! lost frame thus takes no room and no time on the link.

use super::burst::{Burst, Bursts};
use super::trace::LossTrace;
use crate::rng::Rng;
use crate::stats::DropReason;
use core::num::NonZeroU64;

/// Denominator of probabilities.
pub const TRILLION: u64 = 1_000_000_000_000;

/// Losses of a direction. A giant frame counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum Loss {
    /// No loss.
    #[default]
    None,
    /// Each frame independently.
    Random {
        /// Probability in units of 10^-12. From [`TRILLION`] on, all frames.
        trillionths: u64,
    },
    /// The last of every `n` frames: the n-th, the 2n-th and so on. 1 is every frame.
    Periodic {
        /// The period in frames.
        n: NonZeroU64,
    },
    /// In bursts, by the model of Gilbert and Elliott.
    Burst(Burst),
    /// Frames that a trace names.
    Trace(LossTrace),
}

impl Loss {
    /// Random loss of `n` in a thousand: `permille(10)` is 1 %.
    pub const fn permille(n: u32) -> Loss {
        Loss::Random { trillionths: n as u64 * (TRILLION / 1000) }
    }
    /// The last of every `n` frames. `None` for 0.
    pub const fn every(n: u64) -> Option<Loss> {
        match NonZeroU64::new(n) {
            Some(n) => Some(Loss::Periodic { n }),
            None => None,
        }
    }
}

/// Run-time state of a [`Loss`].
#[derive(Clone, Debug)]
pub(super) struct Losses {
    loss: Loss,
    rng: Rng,
    /// Frames since the last periodic loss, or since the trace began.
    passed: u64,
    /// Losses of this round of a [`Loss::Trace`].
    lost: usize,
    /// State of a [`Loss::Burst`].
    bursts: Bursts,
}

impl Losses {
    pub(super) fn new(loss: Loss, seed: u64) -> Losses {
        Losses { loss, rng: Rng::new(seed), passed: 0, lost: 0, bursts: Bursts::default() }
    }

    /// Returns the reason if the next frame is lost.
    #[inline]
    pub(super) fn next(&mut self) -> Option<DropReason> {
        if self.loss == Loss::None {
            return None;
        }
        self.draw()
    }

    #[inline(never)]
    fn draw(&mut self) -> Option<DropReason> {
        match self.loss {
            Loss::None => None,
            Loss::Random { trillionths } => {
                (self.rng.below(TRILLION) < trillionths).then_some(DropReason::RandomLoss)
            }
            Loss::Periodic { n } => {
                self.passed = (self.passed + 1) % n;
                (self.passed == 0).then_some(DropReason::PeriodicLoss)
            }
            Loss::Burst(burst) => self.bursts.next(burst, &mut self.rng).then_some(DropReason::BurstLoss),
            Loss::Trace(trace) => self.traced(trace).then_some(DropReason::TraceLoss),
        }
    }

    fn traced(&mut self, trace: LossTrace) -> bool {
        let lost = trace.lost.get(self.lost) == Some(&self.passed);
        self.lost += usize::from(lost);
        self.passed += 1;
        if trace.period.is_some_and(|period| self.passed == period.get()) {
            (self.passed, self.lost) = (0, 0);
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(loss: Loss, seed: u64, frames: u64) -> Vec<u64> {
        let mut l = Losses::new(loss, seed);
        (1..=frames).filter(|_| l.next().is_some()).collect()
    }

    #[test]
    fn periodic_loss_takes_the_last_of_every_n() {
        assert_eq!(losses(Loss::every(3).unwrap(), 1, 10), [3, 6, 9]);
        assert_eq!(losses(Loss::every(1).unwrap(), 1, 3), [1, 2, 3]);
        assert_eq!(losses(Loss::every(u64::MAX).unwrap(), 1, 3), [0; 0]);
        assert_eq!(Loss::every(0), None);
    }

    #[test]
    fn random_loss_is_the_seeds_and_has_its_probability() {
        // Binomial(100,000, 1 %): mean 1000, standard deviation 31.5. The bounds are five of those either
        // way.
        let a = losses(Loss::permille(10), 7, 100_000);
        assert!((843..=1157).contains(&a.len()), "{} of 100,000 lost", a.len());
        assert_eq!(a, losses(Loss::permille(10), 7, 100_000));
        assert_ne!(a, losses(Loss::permille(10), 8, 100_000));
    }

    #[test]
    fn never_and_always() {
        assert_eq!(losses(Loss::Random { trillionths: 0 }, 1, 1000), [0; 0]);
        assert_eq!(losses(Loss::permille(u32::MAX), 1, 1000).len(), 1000);
    }

    /// Frames 2 and 3 of each five, and frames that a list names once.
    #[test]
    fn a_trace_says_which_frames_are_lost() {
        let trace =
            |lost, period| Loss::Trace(LossTrace { name: "t", lost, period: NonZeroU64::new(period) });
        assert_eq!(losses(trace(&[1, 2], 5), 1, 14), [2, 3, 7, 8, 12, 13]);
        assert_eq!(losses(trace(&[0, 6], 0), 1, 14), [1, 7]);
        assert_eq!(losses(trace(&[0], 1), 1, 3), [1, 2, 3]);
        assert_eq!(losses(trace(&[], 4), 1, 14), [0; 0]);
    }
}
