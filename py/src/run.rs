//! Result of one run, and the runs of a file.

use crate::fault::{ExperimentError, RunError};
use pyo3::prelude::*;
use weir::result::{Document, RunResult, Status};

/// Result of one run.
#[pyclass(frozen, module = "weir")]
pub struct Run {
    /// The result.
    pub result: RunResult,
}

#[pymethods]
impl Run {
    /// Result as JSON, in the schema of `weir sim --json`.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.result).map_err(|error| RunError::new_err(error.to_string()))
    }

    /// Returns whether the run could not be made, or was interrupted.
    fn failed(&self) -> bool {
        self.result.error.is_some() || self.result.status == Status::Interrupted
    }

    /// Names of its series.
    fn series_names(&self) -> Vec<String> {
        self.result.series.keys().cloned().collect()
    }
}

/// Reads the text of a result file.
#[pyfunction]
pub fn load(py: Python<'_>, text: &str) -> PyResult<Vec<Run>> {
    let document = py.detach(|| Document::parse(text)).map_err(ExperimentError::new_err)?;
    Ok(document.runs().into_iter().map(|result| Run { result }).collect())
}
