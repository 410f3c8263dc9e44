//! Errors as Python's exceptions.

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use weir::experiment::config::Errors;

pyo3::create_exception!(
    weir,
    ExperimentError,
    PyValueError,
    "An experiment or a result is wrong. The text is that of `weir check`: each fault with its place.\n\n\
     `faults` is a list of tuples of file, line, column, message and help, which may be None."
);
pyo3::create_exception!(weir, RunError, PyRuntimeError, "A run could not be made.");

/// Returns the exception for the errors of a file.
pub fn wrong(py: Python<'_>, errors: &Errors) -> PyErr {
    let exception = ExperimentError::new_err(errors.to_string());
    let faults: Vec<_> = errors
        .located()
        .into_iter()
        .map(|fault| (fault.file, fault.line, fault.column, fault.message, fault.help))
        .collect();
    match exception.value(py).setattr("faults", faults) {
        Ok(()) => exception,
        Err(error) => error,
    }
}
