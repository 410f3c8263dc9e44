//! Notes on a file beside its faults: keys of one world only, and times that bins must divide.

use super::sink::{diagnostic, Only};
use super::Section;
use crate::experiment::config::diag::Fault;
use crate::result::Backend;
use core::ops::Range;
use weir_core::time::Duration;

impl Section<'_> {
    /// Notes the use of a key that only one world has.
    pub fn note_only(&self, world: Backend, key: &'static str) {
        if let Some((span, _)) = self.entry(key) {
            let other = other(world).name();
            let message = format!("`{}` does not exist in the {other} world", self.full(key));
            let help = format!("it exists in the {} world only", world.name());
            self.only(world, span, Fault::new(message, help));
        }
    }

    /// Notes a value that only one world supports; the fault is for the other world.
    pub fn note_value(&self, world: Backend, key: &'static str, fault: Fault) {
        self.only(world, self.value_span(key), fault);
    }

    fn only(&self, world: Backend, span: Range<usize>, fault: Fault) {
        self.sink.only.borrow_mut().push(Only { world, refusal: diagnostic(span, fault) });
    }

    /// Notes a time that the bins of received bytes must divide.
    pub fn note_time(&self, key: &'static str, time: Duration) {
        self.sink.times.borrow_mut().push((self.value_span(key), time));
    }

    /// Returns the times noted in the file, with their places.
    pub fn times(&self) -> Vec<(Range<usize>, Duration)> {
        self.sink.times.borrow().clone()
    }

    /// Notes a fault about some other part of the file.
    pub fn fault_at(&self, span: Range<usize>, fault: Fault) {
        self.sink.push(span, fault);
    }
}

/// Returns the other world.
fn other(world: Backend) -> Backend {
    match world {
        Backend::Lab => Backend::Sim,
        Backend::Sim => Backend::Lab,
    }
}
