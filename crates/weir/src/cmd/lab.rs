//! `weir lab`: runs a plan in network namespaces. What is then done with the result (checks, table,
//! files) is the same as for the simulator and not done here.

use crate::lab::{self, Options};
use crate::plan::Plan;
use crate::result::{RunResult, Status};
use std::path::PathBuf;

/// What the command line says beyond the experiment.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// Name of the lab, for looking into it while it runs; see [`Options::id`].
    pub id: Option<String>,
    /// Directory for captures.
    pub pcap: Option<PathBuf>,
}

/// Runs `plan`, which `experiment` (the text of its file) says. SIGINT and SIGTERM end it early, with
/// what there is. Faults of flows and processes go to standard error, and make the status `failed`.
pub fn measure(plan: &Plan, experiment: &str, arguments: Arguments) -> Result<RunResult, String> {
    let options = Options::with_signals().map_err(|e| format!("signals: {e}"))?;
    let options = Options { id: arguments.id, pcap: arguments.pcap, ..options };
    let outcome = lab::run(plan, experiment, &options)?;
    for fault in &outcome.faults {
        eprintln!("weir lab: {fault}");
    }
    Ok(outcome.result)
}

/// What the command exits with: 0 for a run whose checks hold, 1 for one that failed, 2 for one that
/// says nothing because it did not run to its end.
pub fn exit_code(result: &RunResult) -> u8 {
    match result.status {
        Status::Ok => 0,
        Status::Failed => 1,
        Status::Interrupted => 2,
    }
}
