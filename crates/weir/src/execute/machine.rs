//! Monitoring of the machine's available processor time during a run in real time.

use crate::result::Machine;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_io::bpf::chirp;
use weir_io::sys::ticks::Ticks;

/// Sleep of the watcher: shorter than a stall that would matter to a run, long enough to cost almost nothing.
const NAP: Duration = Duration::from_millis(5);

/// Returns the number of `weir_chirp`'s callbacks that the kernel has skipped since it was loaded, or 0 if it
/// is not loaded.
fn skipped() -> u64 {
    chirp::skipped().unwrap_or(0)
}

/// Running watcher, until it is finished or dropped.
#[derive(Debug)]
pub struct Watch {
    before: Ticks,
    skipped: u64,
    done: Arc<AtomicBool>,
    longest: Option<JoinHandle<Duration>>,
}

impl Watch {
    /// Starts to watch.
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

    /// Stops and returns the observations.
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
