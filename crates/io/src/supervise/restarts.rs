//! Restarts: the time of the next engine's start, and of the log's line about the last one's end.
//!
//! After an engine that ran, the next one starts at once, because nothing is shaped without an engine. This
//! also holds when a machine that stands still has engines killed as hung again and again. After engines that
//! end right after their start, each waits twice as long as the one before, from 10 ms to 1 s. So hundreds of
//! processes a second do not make the cause worse, and an engine runs within a second of its end.

use std::collections::VecDeque;
use weir_core::time::{Duration, Time};

const FIRST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(1);
/// Least life of an engine that ran. Hanging engines are killed later than this.
const RAN: Duration = Duration::from_millis(50);
/// Life below which an engine died young. The next constant is the number of such engines in turn that is no
/// chance.
const YOUNG: Duration = Duration::from_secs(2);
const THIRD: u32 = 3;
/// Time after which the same reason is logged again, or the life of an engine after which it is.
const AGAIN: Duration = Duration::from_secs(60);
/// Engines that hang within this time are no chance if they are as many as the next constant says.
pub(super) const HANGS: Duration = Duration::from_secs(10);
const OFTEN: usize = 3;
/// Most reasons that are remembered.
const MOST: usize = 8;

/// History of the previous engines.
#[derive(Debug)]
pub(super) struct Restarts {
    /// Wait of the next engine if the one before it never ran.
    next: Duration,
    /// Number of engines in turn that died young.
    quick: u32,
    /// Times at which the last engines were found hanging.
    hung: VecDeque<Time>,
    /// Reasons logged in the last minute, with their times.
    said: VecDeque<(String, Time)>,
}

impl Restarts {
    pub const fn new() -> Restarts {
        Restarts { next: Duration::ZERO, quick: 0, hung: VecDeque::new(), said: VecDeque::new() }
    }

    /// Returns the wait of the next engine after one that ran for `lived`, zero if it never did.
    pub fn wait_after(&mut self, lived: Duration) -> Duration {
        if lived >= RAN {
            self.next = Duration::ZERO;
        }
        let wait = self.next;
        self.next = wait.saturating_mul(2).max(FIRST).min(LONGEST);
        wait
    }

    /// Returns whether memory that outlives engines may be what ends them, after one more that ran for
    /// `lived`. True after every three in turn that died young.
    pub fn suspects_memory(&mut self, lived: Duration) -> bool {
        self.quick = if lived < YOUNG { self.quick + 1 } else { 0 };
        let third = self.quick == THIRD;
        if third {
            self.quick = 0;
        }
        third
    }

    /// Records that an engine hung. Returns whether engines do so again and again.
    pub fn hung(&mut self, now: Time) -> bool {
        self.hung.retain(|at| now.since(*at) < HANGS);
        self.hung.truncate(OFTEN - 1);
        self.hung.push_front(now);
        self.hung.len() == OFTEN
    }

    /// Returns whether to log this reason of an engine's end, after it ran for `lived`.
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
        // In a minute of that: 8 starts in 1.27 s, then one a second.
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
    fn three_that_hang_within_ten_seconds_are_often() {
        let restarts = &mut Restarts::new();
        let hung = [0, 4, 11, 13, 20, 22].map(|s| restarts.hung(Time::from_secs(s)));
        assert_eq!(hung, [false, false, false, true, true, true]);
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
        // Another reason does not make this one news.
        assert!(said("killed", 0, 120));
        assert!(!said("no files", 0, 120) && !said("killed", 0, 120));
        // After a long run the same reason is news.
        assert!(said("no files", 60, 121));
    }
}
