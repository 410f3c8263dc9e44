//! Losses in bursts: two states, good and bad, each with a probability of loss. (E. N. Gilbert, "Capacity of
//! a burst-noise channel", Bell System Technical Journal, 1960, with losses in the bad state alone. E. O.
//! Elliott, "Estimates of error rates for codes on burst-noise channels", 1963, with losses in both.)
//!
//! Each frame is lost with the probability of the current state. Then the state may change for the next
//! frame, as in netem's `loss gemodel`. A path begins in the good state. In the long run the share p / (p +
//! r) of the frames finds the bad state, which lasts 1 / r frames on average.

use super::TRILLION;
use crate::rng::Rng;

/// The model's four probabilities, in units of 10^-12. From [`TRILLION`] on they are certainty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Burst {
    /// Transition to the bad state, after each frame in the good state: p.
    pub enter: u64,
    /// Transition to the good state, after each frame in the bad state: r.
    pub leave: u64,
    /// Loss in the good state: 1 - k in Elliott's terms.
    pub good: u64,
    /// Loss in the bad state: 1 - h.
    pub bad: u64,
}

impl Burst {
    /// Gilbert's simplest model: no loss in the good state, and certain loss in the bad one. The bad state
    /// never comes until `enter` and `leave` are set.
    pub const GILBERT: Burst = Burst { enter: 0, leave: 0, good: 0, bad: TRILLION };

    /// Returns the share of all frames that is lost in the long run, in units of 10^-12, rounded down.
    pub fn mean(&self) -> u64 {
        let [enter, leave, good, bad] =
            [self.enter, self.leave, self.good, self.bad].map(|p| u128::from(p.min(TRILLION)));
        match enter + leave {
            0 => good as u64,
            sum => ((good * leave + bad * enter) / sum) as u64,
        }
    }
}

/// State of the path.
#[derive(Clone, Debug, Default)]
pub(super) struct Bursts {
    bad: bool,
}

impl Bursts {
    /// Returns whether the next frame is lost. Takes two draws for each frame, whatever the state.
    pub(super) fn next(&mut self, burst: Burst, rng: &mut Rng) -> bool {
        let (loss, change) = if self.bad { (burst.bad, burst.leave) } else { (burst.good, burst.enter) };
        let lost = rng.below(TRILLION) < loss;
        self.bad ^= rng.below(TRILLION) < change;
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn losses(burst: Burst, frames: usize) -> Vec<bool> {
        let (mut bursts, mut rng) = (Bursts::default(), Rng::new(5));
        (0..frames).map(|_| bursts.next(burst, &mut rng)).collect()
    }

    #[test]
    fn states_that_always_change_lose_every_other_frame() {
        let burst = Burst { enter: TRILLION, leave: TRILLION, ..Burst::GILBERT };
        assert_eq!(losses(burst, 6), [false, true, false, true, false, true]);
        // The bad state never ends.
        assert_eq!(losses(Burst { leave: 0, ..burst }, 4), [false, true, true, true]);
        assert_eq!(losses(Burst::GILBERT, 4), [false; 4]);
        assert_eq!(losses(Burst { good: TRILLION, bad: 0, ..burst }, 4), [true, false, true, false]);
    }

    /// Compares with the states of the model's definition, for the same draws.
    #[test]
    fn each_frame_draws_its_loss_and_then_the_next_state() {
        let burst =
            Burst { enter: TRILLION / 5, leave: TRILLION / 3, good: TRILLION / 50, bad: TRILLION / 2 };
        let mut rng = Rng::new(5);
        let mut bad = false;
        let expected: Vec<bool> = (0..1000)
            .map(|_| {
                let (loss, change) = (rng.below(TRILLION), rng.below(TRILLION));
                let lost = loss < if bad { burst.bad } else { burst.good };
                bad = if bad { change >= burst.leave } else { change < burst.enter };
                lost
            })
            .collect();
        assert_eq!(losses(burst, 1000), expected);
    }

    /// p = 1 %, r = 25 %: 1/26 of all frames is lost, in bursts of 4 on average.
    #[test]
    fn share_and_length_of_bursts() {
        let burst = Burst { enter: TRILLION / 100, leave: TRILLION / 4, ..Burst::GILBERT };
        assert_eq!(burst.mean(), TRILLION / 26);
        let lost = losses(burst, 1_000_000);
        let total = lost.iter().filter(|lost| **lost).count() as f64;
        let bursts = lost.windows(2).filter(|two| *two == [false, true]).count() as f64;
        // About 9,600 bursts of 4 ± 3.5: the mean is within 3 % (more than five standard deviations: 0.035 ×
        // 5 = 0.18 frames).
        assert!((total / bursts - 4.0).abs() < 0.18, "{}", total / bursts);
        assert!((total / 1e6 - 1.0 / 26.0).abs() < 0.0025, "{total}");
        assert_eq!(Burst { good: TRILLION / 10, enter: 0, leave: 0, ..burst }.mean(), TRILLION / 10);
    }
}
