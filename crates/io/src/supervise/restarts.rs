//! Restarts: when the next engine is started, and when the log says why the last one is gone.
//!
//! After an engine that ran the next one is started at once, also where a machine that stands still had it killed as hung, again and
//! again: while none runs, nothing is shaped. Where one after the other ends as soon as it has started, each waits twice as
//! long as the one before it, from 10 ms to 1 s: what made them end is not made worse by hundreds of processes a
//! second, and an engine runs within a second of its being over.

use std::collections::VecDeque;
use weir_core::time::{Duration, Time};

const FIRST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(1);
/// An engine that lived for so long ran: what hangs is killed later than this.
const RAN: Duration = Duration::from_millis(50);
/// An engine that lived for less died young, and so many of them in turn are no chance.
const YOUNG: Duration = Duration::from_secs(2);
const THIRD: u32 = 3;
/// The same reason is said again after this, or when the engine had run for so long.
const AGAIN: Duration = Duration::from_secs(60);
/// Reasons remembered.
const MOST: usize = 8;

/// What is remembered of the engines before.
#[derive(Debug)]
pub(super) struct Restarts {
    /// How long the next engine has to wait if the one before it never ran.
    next: Duration,
    /// Engines in turn that did not live for long.
    quick: u32,
    /// Reasons that were said in the last minute, and when.
    said: VecDeque<(String, Time)>,
}

impl Restarts {
    pub const fn new() -> Restarts {
        Restarts { next: Duration::ZERO, quick: 0, said: VecDeque::new() }
    }

    /// How long the next engine has to wait after one that ran for `lived`, nothing if it never did.
    pub fn wait_after(&mut self, lived: Duration) -> Duration {
        if lived >= RAN {
            self.next = Duration::ZERO;
        }
        let wait = self.next;
        self.next = wait.saturating_mul(2).max(FIRST).min(LONGEST);
        wait
    }

    /// May memory that outlives engines be what ends them, now that one more has ended, which ran for `lived`? After each
    /// three that died young.
    pub fn suspects_memory(&mut self, lived: Duration) -> bool {
        self.quick = if lived < YOUNG { self.quick + 1 } else { 0 };
        let third = self.quick == THIRD;
        if third {
            self.quick = 0;
        }
        third
    }

    /// Is it to be said now that an engine is gone for this reason, after it ran for `lived`?
    pub fn is_news(&mut self, reason: &str, lived: Duration, now: Time) -> bool {
        self.said.retain(|(_, at)| now.since(*at) < AGAIN);
        let news = lived >= AGAIN || self.said.iter().all(|(said, _)| said != reason);
        if news {
            self.said.truncate(MOST - 1);
            self.said.push_front((reason.to_owned(), now));
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: Duration = Duration::ZERO;

    fn ms(restarts: &mut Restarts, lived: Duration) -> u64 {
        restarts.wait_after(lived).as_nanos() / 1_000_000
    }

    #[test]
    fn engines_that_end_at_once_wait_longer_and_longer() {
        let restarts = &mut Restarts::new();
        let waits: Vec<u64> = (0..10).map(|_| ms(restarts, ZERO)).collect();
        assert_eq!(waits, [0, 10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        // In a minute of that: 8 in 1.27 s, then one a second.
        let mut restarts = Restarts::new();
        let (mut now, mut started) = (ZERO, 0);
        while now < Duration::from_secs(60) {
            now = now + restarts.wait_after(ZERO) + Duration::from_millis(1);
            started += 1;
        }
        assert_eq!(started, 67);
    }

    #[test]
    fn after_one_that_ran_the_next_starts_at_once() {
        let restarts = &mut Restarts::new();
        for _ in 0..3 {
            assert_eq!(ms(restarts, Duration::from_millis(80)), 0);
        }
        for wait in [10, 20, 40, 80, 160] {
            assert_eq!(ms(restarts, Duration::from_millis(49)), wait);
        }
        assert_eq!(ms(restarts, Duration::from_millis(50)), 0);
        assert_eq!(ms(restarts, ZERO), 10);
    }

    #[test]
    fn three_that_died_young_in_turn_make_memory_suspect() {
        let restarts = &mut Restarts::new();
        let mut after = |lived: [u64; 6]| lived.map(|ms| restarts.suspects_memory(Duration::from_millis(ms)));
        assert_eq!(after([0, 1_999, 2_000, 0, 0, 1_999]), [false, false, false, false, false, true]);
        assert_eq!(after([0, 0, 0, 0, 0, 0]), [false, false, true, false, false, true]);
    }

    #[test]
    fn a_reason_is_said_once_a_minute() {
        let restarts = &mut Restarts::new();
        let mut said = |reason, lived, second| {
            restarts.is_news(reason, Duration::from_secs(lived), Time::ZERO + Duration::from_secs(second))
        };
        assert!(said("no files", 0, 1));
        assert!(!said("no files", 0, 1) && !said("no files", 59, 60));
        assert!(said("no files", 0, 61));
        assert!(!said("no files", 0, 120));
        // One that is said does not make another one news.
        assert!(said("killed", 0, 120));
        assert!(!said("no files", 0, 120) && !said("killed", 0, 120));
        // That of an engine that ran for long is another one.
        assert!(said("no files", 60, 121));
    }
}
