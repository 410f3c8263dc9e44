//! How far a run is: a bar on a terminal, nothing in a pipe.

use indicatif::{ProgressBar, ProgressStyle};
use weir_core::time::{Duration, Time};

/// The bar of one run. Dropping it takes it off the terminal.
pub struct Progress {
    bar: ProgressBar,
    epoch: Time,
}

impl Progress {
    /// Of a run of length `duration` from `epoch` on. `wanted` is not enough: standard error must be
    /// a terminal too.
    pub fn new(name: &str, duration: Duration, epoch: Time, wanted: bool) -> Progress {
        let bar = if wanted { ProgressBar::new(duration.as_nanos()) } else { ProgressBar::hidden() };
        let total = duration.as_secs_f64();
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} %");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(format!("{name}, {total} s"));
        Progress { bar, epoch }
    }

    /// It is `now`.
    pub fn at(&self, now: Time) {
        self.bar.set_position(now.since(self.epoch).as_nanos());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
