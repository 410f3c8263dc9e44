//! Progress of one run or several: a bar on a terminal, nothing in a pipe.

use indicatif::{ProgressBar, ProgressStyle};
use weir_core::time::Duration;

/// The bar of a run, or of several runs at once. Dropping it takes it off the terminal.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Of something that lasts `duration` of its own time. `wanted` is not enough: standard error must be a
    /// terminal too.
    pub fn new(name: &str, duration: Duration, wanted: bool) -> Progress {
        let bar = if wanted { ProgressBar::new(duration.as_nanos()) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} %");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(format!("{name}, {} s", duration.as_secs_f64()));
        Progress { bar }
    }

    /// So much of it is done.
    pub fn at(&self, done: Duration) {
        self.bar.set_position(done.as_nanos());
    }

    /// So much more of it is done. May be called from several threads.
    pub fn add(&self, more: Duration) {
        self.bar.inc(more.as_nanos());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
