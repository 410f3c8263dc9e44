//! Private extension of the Python package `weir`: runs, result files, and tables as Arrow streams.
//!
//! - `run`: a result of one run, and the runs of a file;
//! - `make`: runs in virtual time, without the interpreter's lock;
//! - `own`: congestion controls and queue disciplines that are Python classes;
//! - `tables`: flows, links, classes and series of results, by the catalogue of metrics;
//! - `table`: columns, and their export by Arrow's C stream interface;
//! - `plot`: figures of results;
//! - `fault`: errors as Python's exceptions.

mod fault;
mod make;
mod own;
mod plot;
mod run;
mod table;
mod tables;

/// Extension module.
#[pyo3::pymodule]
mod _weir {
    #[pymodule_export]
    use super::fault::{ExperimentError, RunError};
    #[pymodule_export]
    use super::make::{check_for_lab, processors, simulate, simulate_kept, version, Sweep};
    #[pymodule_export]
    use super::own::{
        add_congestion_control, add_queue_discipline, AckInfo, PacketInfo, QueueLength, Window,
    };
    #[pymodule_export]
    use super::plot::{plot_cdf, plot_fairness, plot_queue, plot_series, plot_sweep, Figure};
    #[pymodule_export]
    use super::run::{load, Run};
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::tables::{classes, flows, links, series};
}
