//! Collection of faults while a file is read.

use crate::experiment::config::diag::{Diagnostic, Errors, Fault, Source};
use crate::result::Backend;
use core::ops::Range;
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use weir_core::time::Duration;

/// Collector of faults, of keys that not every world has, and of times that bins of received bytes must
/// divide.
#[derive(Default)]
pub struct Sink {
    faults: RefCell<Vec<Diagnostic>>,
    pub(super) only: RefCell<Vec<Only>>,
    pub(super) times: RefCell<Vec<(Range<usize>, Duration)>>,
    /// Directory of the files named in this one, unless their path is absolute.
    pub(super) directory: PathBuf,
    /// Duration of the run, once it is known.
    pub(super) run: Cell<Option<Duration>>,
}

/// Key or value that only one world supports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Only {
    /// World that supports it.
    pub world: Backend,
    /// Message of the other world.
    pub refusal: Diagnostic,
}

impl Sink {
    /// Creates a sink for this file; the files that it names are beside it.
    pub fn of(source: &Source) -> Sink {
        let directory = Path::new(&source.name).parent().map(Path::to_path_buf).unwrap_or_default();
        Sink { directory, ..Sink::default() }
    }

    /// Notes a fault.
    pub fn push(&self, span: Range<usize>, fault: Fault) {
        self.faults.borrow_mut().push(diagnostic(span, fault));
    }
    /// Returns whether there are no faults so far.
    pub fn is_empty(&self) -> bool {
        self.faults.borrow().is_empty()
    }
    /// Returns the faults, without their places.
    pub fn into_faults(self) -> Vec<Fault> {
        let fault = |d: Diagnostic| Fault { message: d.message, help: d.help };
        // An option is read once for each direction.
        let mut faults: Vec<Fault> = Vec::new();
        for found in self.faults.into_inner().into_iter().map(fault) {
            if !faults.contains(&found) {
                faults.push(found);
            }
        }
        faults
    }
    /// Returns `value`, unless there were faults.
    pub fn finish<T>(self, source: &Source, value: Option<T>) -> Result<(T, Vec<Only>), Errors> {
        let faults = self.faults.into_inner();
        match value {
            Some(v) if faults.is_empty() => Ok((v, self.only.into_inner())),
            _ => Err(Errors::new(source, faults)),
        }
    }
}

pub(super) fn diagnostic(span: Range<usize>, fault: Fault) -> Diagnostic {
    Diagnostic { span, message: fault.message, help: fault.help }
}
