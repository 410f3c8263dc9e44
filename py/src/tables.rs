//! Flows, links, classes and series of results as tables, by the catalogue of metrics.
//!
//! Names of columns are those of `flows.csv` and `index.csv`. Where tables are of several runs, the number of
//! the run, its settings and its seed come first.

use crate::run::Run;
use crate::table::{Column, Table, Values};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use serde_json::Value;
use weir::result::metric::{Metric, CLASS, FLOW, LINK};
use weir::result::{ClassResult, FlowResult, LinkResult, RunResult};

/// Runs, as Python hands them over.
type Runs<'py> = Vec<PyRef<'py, Run>>;

/// Table of all flows: a row for each, with its group, class, congestion control and metrics.
#[pyfunction]
#[pyo3(signature = (runs, several=false))]
pub fn flows(runs: Runs<'_>, several: bool) -> Table {
    let rows = Rows::of(&runs, |run| &run.flows);
    let mut columns = rows.identity(several);
    columns.push(rows.text("id", |flow: &FlowResult| &flow.id));
    columns.push(rows.text("group", FlowResult::group));
    columns.push(rows.text("class", |flow| &flow.class));
    columns.push(rows.text("cc", |flow| &flow.cc));
    columns.extend(rows.metrics(FLOW));
    Table::new(columns)
}

/// Table of all links: a row for each direction.
#[pyfunction]
#[pyo3(signature = (runs, several=false))]
pub fn links(runs: Runs<'_>, several: bool) -> Table {
    let rows = Rows::of(&runs, |run| &run.links);
    let mut columns = rows.identity(several);
    columns.push(rows.text("name", |link: &LinkResult| &link.name));
    columns.extend(rows.metrics(LINK));
    Table::new(columns)
}

/// Table of all classes of the gateway.
#[pyfunction]
#[pyo3(signature = (runs, several=false))]
pub fn classes(runs: Runs<'_>, several: bool) -> Table {
    let rows = Rows::of(&runs, |run| &run.classes);
    let mut columns = rows.identity(several);
    columns.push(rows.text("name", |class: &ClassResult| &class.name));
    columns.extend(rows.metrics(CLASS));
    Table::new(columns)
}

/// Series of a flow or a link over time.
#[pyfunction]
pub fn series(run: PyRef<'_, Run>, name: &str) -> PyResult<Table> {
    let Some(series) = run.result.series.get(name) else {
        let names: Vec<&str> = run.result.series.keys().map(String::as_str).collect();
        return Err(PyKeyError::new_err(format!("{name}: the series are {}", names.join(", "))));
    };
    let known = |v: &f64| Some(*v).filter(|v| !v.is_nan());
    let times = Values::Number(series.t_s.iter().map(known).collect());
    let columns = series.columns.iter().map(|(name, column)| {
        Column::new(name.clone(), "", Values::Number(column.0.iter().map(known).collect()))
    });
    Ok(Table::new(
        [Column::new("t_s", "Time since the start of the run.", times)].into_iter().chain(columns).collect(),
    ))
}

/// Things of several runs, each with the index of its run.
struct Rows<'a, T> {
    runs: Vec<&'a RunResult>,
    rows: Vec<(usize, &'a T)>,
}

impl<'a, T> Rows<'a, T> {
    fn of(runs: &'a Runs<'_>, of: impl Fn(&'a RunResult) -> &'a Vec<T>) -> Rows<'a, T> {
        let runs: Vec<&RunResult> = runs.iter().map(|run| &run.result).collect();
        let rows =
            runs.iter().enumerate().flat_map(|(n, run)| of(run).iter().map(move |row| (n, row))).collect();
        Rows { runs, rows }
    }

    fn text(&self, name: &str, of: impl Fn(&'a T) -> &'a str) -> Column {
        let text = |text: &'a str| Some(text.to_string()).filter(|text| !text.is_empty());
        Column::new(name, "", Values::Text(self.rows.iter().map(|(_, row)| text(of(row))).collect()))
    }

    /// Columns of the metrics that have a value of their own. Unmeasured values are `None`.
    fn metrics(&self, catalogue: &'static [Metric<T>]) -> Vec<Column> {
        let with_value = catalogue.iter().filter(|metric| metric.value.is_some());
        with_value
            .map(|metric| {
                let values = self.rows.iter().map(|(_, row)| metric.together(&[row])).collect();
                Column::new(metric.name, metric.about, Values::Number(values))
            })
            .collect()
    }

    /// Columns that tell the runs apart: number, settings, seed.
    fn identity(&self, several: bool) -> Vec<Column> {
        if !several {
            return Vec::new();
        }
        let count =
            |of: &dyn Fn(usize) -> u64| Values::Count(self.rows.iter().map(|(n, _)| of(*n)).collect());
        let mut names: Vec<&String> = self.runs.iter().flat_map(|run| run.settings.keys()).collect();
        names.sort();
        names.dedup();
        let mut columns = vec![Column::new("run", "Number of the run, from 1.", count(&|n| n as u64 + 1))];
        columns.extend(names.into_iter().filter(|name| *name != "seed").map(|name| self.setting(name)));
        columns.push(Column::new("seed", "Seed of all random numbers.", count(&|n| self.runs[n].seed)));
        columns
    }

    /// Column of a setting: numbers or flags where all runs have such, texts otherwise.
    fn setting(&self, name: &str) -> Column {
        let setting =
            |run: &RunResult| run.settings.get(name).and_then(|value| serde_json::to_value(value).ok());
        let by_run: Vec<Option<Value>> = self.runs.iter().map(|run| setting(run)).collect();
        let all = |is: fn(&Value) -> bool| by_run.iter().flatten().all(is);
        let values = self.rows.iter().map(|(n, _)| by_run[*n].as_ref());
        let values = if all(Value::is_number) {
            Values::Number(values.map(|value| value?.as_f64()).collect())
        } else if all(Value::is_boolean) {
            Values::Flag(values.map(|value| value?.as_bool()).collect())
        } else {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
            Values::Text(values.map(|value| value.map(text)).collect())
        };
        Column::new(name, "Setting of the sweep, in its base unit.", values)
    }
}
