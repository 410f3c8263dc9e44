//! Result of one run, and the runs of a file.

use crate::fault::{ExperimentError, RunError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use weir::result::{Document, RunResult, Status};

/// Result of one run.
#[pyclass(frozen, module = "weir._weir")]
pub struct Run {
    /// The result.
    pub result: RunResult,
}

#[pymethods]
impl Run {
    /// Result as JSON, in the schema of `weir sim --json`.
    fn json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let text = py.detach(|| serde_json::to_vec(&self.result));
        text.map(|text| PyBytes::new(py, &text)).map_err(|error| RunError::new_err(error.to_string()))
    }

    /// Name of the experiment.
    #[getter]
    fn experiment(&self) -> &str {
        &self.result.experiment
    }

    /// World of the run, `sim` or `lab`.
    #[getter]
    fn world(&self) -> &'static str {
        self.result.world.name()
    }

    /// End of the run: `ok`, `failed` or `interrupted`.
    #[getter]
    fn status(&self) -> &'static str {
        self.result.status.name()
    }

    /// Reason why the run could not be made.
    #[getter]
    fn error(&self) -> Option<&str> {
        self.result.error.as_deref()
    }

    /// Seed of all random numbers.
    #[getter]
    fn seed(&self) -> u64 {
        self.result.seed
    }

    /// Returns whether the run could not be made, or was interrupted.
    fn failed(&self) -> bool {
        self.result.error.is_some() || self.result.status == Status::Interrupted
    }

    /// Names of its series.
    fn series_names(&self) -> Vec<String> {
        self.result.series.keys().cloned().collect()
    }

    /// Run with this JSON, by which runs come from other processes.
    #[staticmethod]
    fn read(py: Python<'_>, text: &[u8]) -> PyResult<Run> {
        match <[Run; 1]>::try_from(load(py, text)?) {
            Ok([run]) => Ok(run),
            Err(runs) => Err(ExperimentError::new_err(format!("{} runs, not one", runs.len()))),
        }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((py.get_type::<Run>().getattr("read")?, (self.json(py)?,)))
    }
}

/// Reads the text of a result file.
#[pyfunction]
pub fn load(py: Python<'_>, text: &[u8]) -> PyResult<Vec<Run>> {
    let document = py.detach(|| {
        let text = std::str::from_utf8(text).map_err(|error| format!("no JSON: {error}"))?;
        Document::parse(text)
    });
    Ok(document.map_err(ExperimentError::new_err)?.runs().into_iter().map(|result| Run { result }).collect())
}
