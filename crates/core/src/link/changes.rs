//! Changes of the rate of a trace: when, and to what.

use super::trace::Rates;
use crate::rate::Rate;
use crate::time::{Duration, Time};

/// Steps through a trace of rates.
#[derive(Debug)]
pub(super) struct Changes {
    rates: Rates,
    /// When this round of the trace began.
    round: Time,
    /// The next step of the round.
    next: usize,
}

impl Changes {
    /// The trace begins at `epoch`; its first step is the next one.
    pub(super) fn new(rates: Rates, epoch: Time) -> Changes {
        Changes { rates, round: epoch, next: 0 }
    }

    /// When the rate changes next; [`Time::MAX`] if it does no more.
    pub(super) fn next(&self) -> Time {
        match (self.rates.steps.get(self.next), self.rates.period) {
            (Some((at, _)), _) => self.round + *at,
            (None, Some(period)) => self.round + period,
            (None, None) => Time::MAX,
        }
    }

    /// The rate changes: what it is from then on.
    pub(super) fn step(&mut self) -> Option<Rate> {
        if self.next >= self.rates.steps.len() {
            self.round += self.rates.period.unwrap_or(Duration::ZERO);
            self.next = 0;
        }
        let (_, rate) = self.rates.steps.get(self.next)?;
        self.next += 1;
        *rate
    }

    /// Whole rounds until `now` are over, which nothing was sent in. The next step is the one that was next, rounds later.
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
        // The next is at 124; two rounds are over at 147.
        changes.skip_rounds(Time::from_millis(147));
        assert_eq!(changes.next(), Time::from_millis(144));
        let mut once = Changes::new(Rates { period: None, ..steps }, Time::ZERO);
        assert_eq!((once.step(), once.step(), once.next()), (one, none, Time::MAX));
    }
}
