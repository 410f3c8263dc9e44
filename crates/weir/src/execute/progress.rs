//! Progress of one or several runs: a bar on a terminal, nothing in a pipe.

use indicatif::{ProgressBar, ProgressStyle};
use weir_core::time::Duration;

/// Progress bar of a run, or of several simultaneous runs. Dropping it removes it from the terminal.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Returns a bar for a run of `duration` in its own time. It is visible if `wanted` and if standard error
    /// is a terminal.
    pub fn new(name: &str, duration: Duration, wanted: bool) -> Progress {
        let bar = if wanted { ProgressBar::new(duration.as_nanos()) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} %");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(format!("{name}, {} s", duration.as_secs_f64()));
        Progress { bar }
    }

    /// Sets the progress to `done`.
    pub fn at(&self, done: Duration) {
        self.bar.set_position(done.as_nanos());
    }

    /// Adds `more` to the progress. May be called from several threads.
    pub fn add(&self, more: Duration) {
        self.bar.inc(more.as_nanos());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
