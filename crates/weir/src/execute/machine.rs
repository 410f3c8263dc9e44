//! Watches how much of the machine's time is there while something runs in real time.

use crate::result::Machine;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_io::bpf::chirp;
use weir_io::sys::ticks::Ticks;

/// How long the watcher sleeps at a time: short beside what a run must not stand still, long enough to cost nothing.
const NAP: Duration = Duration::from_millis(5);

/// Programs of `weir_chirp` that the kernel has left out since it was loaded; none where it is not loaded.
fn skipped() -> u64 {
    chirp::skipped().unwrap_or(0)
}

/// A watcher at work, until it is finished or dropped.
#[derive(Debug)]
pub struct Watch {
    before: Ticks,
    skipped: u64,
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
        Watch { before: Ticks::now(), skipped: skipped(), done, longest: Some(longest) }
    }

    /// What was seen.
    pub fn finish(mut self) -> Machine {
        let longest = self.end().unwrap_or_default();
        Machine {
            stolen_percent: Ticks::now().since(self.before).stolen_percent(),
            longest_stall_ms: longest.as_secs_f64() * 1e3,
            skipped_programs: skipped().saturating_sub(self.skipped),
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
