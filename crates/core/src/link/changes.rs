//! Changes of the rate of a trace, and their times.

use super::trace::Rates;
use crate::rate::Rate;
use crate::time::{Duration, Time};

/// Steps through a trace of rates.
#[derive(Debug)]
pub(super) struct Changes {
    rates: Rates,
    /// Start of this round of the trace.
    round: Time,
    /// Next step of the round.
    next: usize,
}

impl Changes {
    /// Returns the changes of a trace that begins at `epoch`. Its first step is the next one.
    pub(super) fn new(rates: Rates, epoch: Time) -> Changes {
        Changes { rates, round: epoch, next: 0 }
    }

    /// Returns the time of the next change. [`Time::MAX`] after the last one.
    pub(super) fn next(&self) -> Time {
        match (self.rates.steps.get(self.next), self.rates.period) {
            (Some((at, _)), _) => self.round + *at,
            (None, Some(period)) => self.round + period,
            (None, None) => Time::MAX,
        }
    }

    /// Takes the next step, and returns the rate from then on.
    pub(super) fn step(&mut self) -> Option<Rate> {
        if self.next >= self.rates.steps.len() {
            self.round += self.rates.period.unwrap_or(Duration::ZERO);
            self.next = 0;
        }
        let (_, rate) = self.rates.steps.get(self.next)?;
        self.next += 1;
        *rate
    }

    /// Skips whole rounds until `now`, in which no frame was sent. The next step is the same one, rounds
    /// later.
    pub(super) fn skip_rounds(&mut self, now: Time) {
        if let Some(period) = self.rates.period {
            let rounds = now.since(self.next()).as_nanos() / period.as_nanos().max(1);
            self.round += period.saturating_mul(rounds);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_repeat_with_the_period() {
        let ms = Duration::from_millis;
        const STEPS: &[(Duration, Option<Rate>)] =
            &[(Duration::ZERO, Some(Rate::mbit(1))), (Duration::from_millis(4), None)];
        let steps = Rates { name: "t", steps: STEPS, period: Some(ms(10)) };
        let mut changes = Changes::new(steps, Time::from_millis(100));
        let mut took = |n: usize| -> Vec<(u64, Option<Rate>)> {
            (0..n).map(|_| (changes.next().as_nanos() / 1_000_000, changes.step())).collect()
        };
        let (one, none) = (Some(Rate::mbit(1)), None);
        assert_eq!(took(5), [(100, one), (104, none), (110, one), (114, none), (120, one)]);
        // The next is at 124. Two rounds are over at 147.
        changes.skip_rounds(Time::from_millis(147));
        assert_eq!(changes.next(), Time::from_millis(144));
        let mut once = Changes::new(Rates { period: None, ..steps }, Time::ZERO);
        assert_eq!((once.step(), once.step(), once.next()), (one, none, Time::MAX));
    }
}
