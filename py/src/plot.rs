//! Figures of results, by the chart writer of `weir … --out`.

use crate::fault::RunError;
use crate::run::Run;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use weir::output::Target;
use weir::report::chart::{self, Size};
use weir::result::RunResult;

/// Figure of results. Notebooks show it as it is.
#[pyclass(frozen, module = "weir")]
pub struct Figure {
    figure: chart::Figure,
}

#[pymethods]
impl Figure {
    /// The figure as the text of an SVG document, for a "screen", a "column" of a paper or its whole "page".
    #[pyo3(signature = (width="screen"))]
    fn svg(&self, py: Python<'_>, width: &str) -> PyResult<String> {
        let size = size(width)?;
        py.detach(|| self.figure.svg(size)).map_err(RunError::new_err)
    }

    /// The figure as a PDF document of one page, as large as the figure.
    #[pyo3(signature = (width="column"))]
    fn pdf(&self, py: Python<'_>, width: &str) -> PyResult<Vec<u8>> {
        let size = size(width)?;
        py.detach(|| self.figure.pdf(size)).map_err(RunError::new_err)
    }

    /// Writes the figure as SVG or PDF, by the end of the file's name: as wide as a "column" of a paper (3.5
    /// inches, with words of 7 points), as a "page" (7.16 inches), or for a "screen". The file is whole, or
    /// as it was before.
    #[pyo3(signature = (path, width="column"))]
    fn save(&self, py: Python<'_>, path: PathBuf, width: &str) -> PyResult<()> {
        let document = match path.extension().and_then(|end| end.to_str()) {
            Some("svg") => self.svg(py, width)?.into_bytes(),
            Some("pdf") => self.pdf(py, width)?,
            _ => return Err(PyValueError::new_err(format!("{}: figures are .svg or .pdf", path.display()))),
        };
        // A link is followed, as by other programs that save.
        let path = path.canonicalize().unwrap_or(path);
        let target = Target::new(&path).map_err(PyOSError::new_err)?;
        Ok(py.detach(|| target.write(&document))?)
    }

    fn _repr_svg_(&self, py: Python<'_>) -> PyResult<String> {
        self.svg(py, "screen")
    }
}

fn size(width: &str) -> PyResult<Size> {
    match width {
        "screen" => Ok(Size::Screen),
        "column" => Ok(Size::Column),
        "page" => Ok(Size::Page),
        other => {
            Err(PyValueError::new_err(format!(r#"width "{other}": it is "screen", "column" or "page""#)))
        }
    }
}

/// Runs, as Python hands them over.
type Runs<'py> = Vec<PyRef<'py, Run>>;

/// Makes a figure without the interpreter's lock.
fn made(
    py: Python<'_>,
    runs: &Runs<'_>,
    title: &str,
    make: impl FnOnce(&[RunResult]) -> Result<chart::Figure, String> + Send,
) -> PyResult<Figure> {
    let runs: Vec<RunResult> = runs.iter().map(|run| run.result.clone()).collect();
    let figure = py.detach(|| make(&runs)).map_err(PyValueError::new_err)?;
    Ok(Figure { figure: figure.titled(title) })
}

fn one(runs: &[RunResult]) -> Result<&RunResult, String> {
    runs.first().ok_or_else(|| "no run".to_string())
}

/// Draws a column of series over time.
#[pyfunction]
pub fn plot_series(
    py: Python<'_>,
    runs: Runs<'_>,
    what: &str,
    of: Vec<String>,
    title: &str,
) -> PyResult<Figure> {
    made(py, &runs, title, |runs| chart::Figure::over_time(one(runs)?, what, &of))
}

/// Draws the distribution of a metric or of a column of series.
#[pyfunction]
pub fn plot_cdf(
    py: Python<'_>,
    runs: Runs<'_>,
    what: &str,
    of: Vec<String>,
    title: &str,
) -> PyResult<Figure> {
    made(py, &runs, title, |runs| chart::Figure::distribution(runs, what, &of))
}

/// Draws a quantity over a setting.
#[pyfunction]
pub fn plot_sweep(py: Python<'_>, runs: Runs<'_>, over: &str, what: &str, title: &str) -> PyResult<Figure> {
    made(py, &runs, title, |runs| chart::Figure::over_setting(runs, over, what))
}

/// Draws the goodput of flows over time, and how equal it is.
#[pyfunction]
pub fn plot_fairness(py: Python<'_>, runs: Runs<'_>, title: &str) -> PyResult<Figure> {
    made(py, &runs, title, |runs| chart::Figure::fairness(one(runs)?))
}

/// Draws the throughput of a link over the delay of its queue.
#[pyfunction]
pub fn plot_queue(
    py: Python<'_>,
    runs: Runs<'_>,
    link: &str,
    by: Option<&str>,
    title: &str,
) -> PyResult<Figure> {
    made(py, &runs, title, |runs| chart::Figure::queue(runs, link, by))
}
