//! Progress of one or several runs: a bar on a terminal, nothing in a pipe.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Instant;
use weir_core::time::Duration;

/// Progress bar of a run, or of several simultaneous runs. Dropping it removes it from the terminal.
pub struct Progress {
    bar: ProgressBar,
    began: Instant,
    /// True once the bar is drawn, or if it never is.
    settled: Arc<AtomicBool>,
    /// Steps of the bar for each nanosecond of a run's own time.
    scale: f64,
    /// Flag: the bar belongs to another.
    part: bool,
}

/// Time after which a run is long enough for a bar.
const LONG: std::time::Duration = std::time::Duration::from_secs(3);

impl Progress {
    /// Returns a bar for a run of `duration` in its own time. It is visible after three seconds, if `wanted`
    /// and if standard error is a terminal.
    pub fn new(name: &str, duration: Duration, wanted: bool) -> Progress {
        let message = format!("{name}, {} s", duration.as_secs_f64());
        Progress::of(message, duration.as_nanos(), wanted)
    }

    /// Returns a bar for `count` steps, likewise.
    pub fn counting(name: &str, count: usize) -> Progress {
        Progress::of(name.to_owned(), count as u64, true)
    }

    /// Returns a bar for runs that take this many seconds by the clock, likewise.
    pub fn by_the_clock(name: &str, seconds: f64) -> Progress {
        Progress::of(name.to_owned(), (seconds * 1e9) as u64, true)
    }

    fn of(message: String, length: u64, wanted: bool) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} %, {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(message);
        let settled = Arc::new(AtomicBool::new(!wanted));
        Progress { bar, began: Instant::now(), settled, scale: 1.0, part: false }
    }

    /// Returns the part of this bar for a run of `duration` in its own time that takes this many seconds.
    pub fn part(&self, duration: Duration, seconds: f64) -> Progress {
        let scale = seconds * 1e9 / duration.as_nanos().max(1) as f64;
        let (bar, settled) = (self.bar.clone(), self.settled.clone());
        Progress { bar, began: self.began, settled, scale, part: true }
    }

    /// Shows the bar again below a line that `say` prints.
    pub fn aside(&self, say: impl FnOnce()) {
        self.bar.suspend(say);
    }

    /// Counts a step.
    pub fn step(&self) {
        self.bar.inc(1);
        self.appear();
    }

    /// Sets the progress to `done`.
    pub fn at(&self, done: Duration) {
        self.bar.set_position(done.as_nanos());
        self.appear();
    }

    /// Adds `more` to the progress. May be called from several threads.
    pub fn add(&self, more: Duration) {
        self.bar.inc((more.as_nanos() as f64 * self.scale) as u64);
        self.appear();
    }

    fn appear(&self) {
        if self.began.elapsed() >= LONG && !self.settled.swap(true, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if !self.part {
            self.bar.finish_and_clear();
        }
    }
}
