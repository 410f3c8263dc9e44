//! Progress of one or several runs: a bar on a terminal, nothing in a pipe.

use indicatif::{ProgressBar, ProgressStyle};
use weir_core::time::Duration;

/// Progress bar of a run, or of several simultaneous runs. Dropping it removes it from the terminal.
pub struct Progress {
    bar: ProgressBar,
    /// Steps of the bar for each nanosecond of a run's own time.
    scale: f64,
    /// Flag: the bar belongs to another.
    part: bool,
}

impl Progress {
    /// Returns a bar for a run of `duration` in its own time. It is visible if `wanted` and if standard error
    /// is a terminal.
    pub fn new(name: &str, duration: Duration, wanted: bool) -> Progress {
        let bar = if wanted { ProgressBar::new(duration.as_nanos()) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} %");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(format!("{name}, {} s", duration.as_secs_f64()));
        Progress { bar, scale: 1.0, part: false }
    }

    /// Returns a bar for runs that take this many seconds by the clock, with the time left.
    pub fn by_the_clock(name: &str, seconds: f64) -> Progress {
        let bar = ProgressBar::new((seconds * 1e9) as u64);
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} %, {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(name.to_string());
        Progress { bar, scale: 1.0, part: false }
    }

    /// Returns the part of this bar for a run of `duration` in its own time that takes this many seconds.
    pub fn part(&self, duration: Duration, seconds: f64) -> Progress {
        let scale = seconds * 1e9 / duration.as_nanos().max(1) as f64;
        Progress { bar: self.bar.clone(), scale, part: true }
    }

    /// Shows the bar again below a line that `say` prints.
    pub fn aside(&self, say: impl FnOnce()) {
        self.bar.suspend(say);
    }

    /// Sets the progress to `done`.
    pub fn at(&self, done: Duration) {
        self.bar.set_position(done.as_nanos());
    }

    /// Adds `more` to the progress. May be called from several threads.
    pub fn add(&self, more: Duration) {
        self.bar.inc((more.as_nanos() as f64 * self.scale) as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if !self.part {
            self.bar.finish_and_clear();
        }
    }
}
