//! Watches how much of the machine's time is there while something runs in real time.

use crate::result::Machine;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the watcher sleeps at a time: short beside what a run must not stand still, long enough to cost nothing.
const NAP: Duration = Duration::from_millis(5);

/// A watcher at work, until it is finished or dropped.
#[derive(Debug)]
pub struct Watch {
    before: Times,
    done: Arc<AtomicBool>,
    longest: Option<JoinHandle<Duration>>,
}

impl Watch {
    /// Begins to watch.
    pub fn begin() -> Watch {
        let done = Arc::new(AtomicBool::new(false));
        let seen = done.clone();
        let longest = std::thread::spawn(move || {
            let mut longest = Duration::ZERO;
            while !seen.load(Ordering::Relaxed) {
                let before = Instant::now();
                std::thread::sleep(NAP);
                longest = longest.max(before.elapsed().saturating_sub(NAP));
            }
            longest
        });
        Watch { before: Times::now(), done, longest: Some(longest) }
    }

    /// What was seen.
    pub fn finish(mut self) -> Machine {
        let longest = self.end().unwrap_or_default();
        Machine {
            stolen_percent: Times::now().stolen_percent(self.before),
            longest_stall_ms: longest.as_secs_f64() * 1e3,
        }
    }

    fn end(&mut self) -> Option<Duration> {
        self.done.store(true, Ordering::Relaxed);
        self.longest.take()?.join().ok()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Clock ticks of all processors together since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Times {
    all: u64,
    stolen: u64,
}

impl Times {
    fn now() -> Times {
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        Times::of(&text).unwrap_or_default()
    }

    /// From `/proc/stat`, whose first line is user, nice, system, idle, iowait, irq, softirq, steal and what guests had, which
    /// user and nice contain (proc_stat(5)).
    fn of(text: &str) -> Option<Times> {
        let fields = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let ticks: Vec<u64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
        Some(Times { all: ticks.iter().sum(), stolen: *ticks.get(7)? })
    }

    fn stolen_percent(self, before: Times) -> f64 {
        match self.all.saturating_sub(before.all) {
            0 => 0.0,
            all => self.stolen.saturating_sub(before.stolen) as f64 * 100.0 / all as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_a_share_of_all() {
        let before = Times::of("cpu  100 10 50 800 20 5 15 0 40 0\ncpu0 1 1").unwrap();
        assert_eq!(before, Times { all: 1000, stolen: 0 });
        let after = Times::of("cpu  130 10 60 860 20 5 15 100 40 0\n").unwrap();
        assert!((after.stolen_percent(before) - 50.0).abs() < 1e-9);
        assert_eq!(after.stolen_percent(after), 0.0);
        for strange in ["", "cpu", "cpu  1 2 3", "intr 1 2 3 4 5 6 7 8 9"] {
            assert_eq!(Times::of(strange), None, "{strange}");
        }
    }
}
