//! The WAN emulator as an engine of the driver.

use super::writer::Writer;
use super::{report, say_ready, setup};
use crate::experiment::config::wan::WanFile;
use crate::experiment::plan;
use crate::output::Target;
use crate::result::observe;
use crate::result::running::EmulatorReport;
use std::sync::Arc;
use weir_core::link::{self, Path};
use weir_io::driver::{Engine, Report};
use weir_io::supervise::{NoOperator, Supervisor};
use weir_io::sys::clock;

/// Runs an emulator until it is told to stop. With `json` it writes an [`EmulatorReport`] there.
pub fn run(file: &WanFile, json: Option<Target>) -> Result<(), String> {
    let supervisor = Supervisor::prepare(&setup::emulator(file)).map_err(|p| p.to_string())?;
    let json = json.map(Arc::new);
    tracing::info!("emulating");
    supervisor
        .run(
            |launch| {
                let writer = Writer::new(json.clone());
                let engine = EmulatorEngine::new(&file.path, file.seed, launch.restarts, writer);
                launch.run(engine, setup::emulator_driver(file)).map(drop)
            },
            |_, _| {},
            || {},
            &mut NoOperator,
        )
        .map_err(|e| e.to_string())
}

/// Two links side by side, with the driver's counters.
struct EmulatorEngine {
    path: Path,
    splits: bool,
    restarts: u32,
    writer: Writer<EmulatorReport>,
}

impl EmulatorEngine {
    /// Returns the engine. Traces begin now.
    fn new(path: &plan::Path, seed: u64, restarts: u32, writer: Writer<EmulatorReport>) -> Self {
        let splits = [&path.wan_out, &path.wan_back].into_iter().any(setup::is_about_packets);
        let epoch = clock::now();
        // Each direction draws its losses from a seed of its own.
        let out = link::Config { seed, epoch, ..path.wan_out };
        let back = link::Config { seed: seed ^ 0x9E37_79B9_7F4A_7C15, epoch, ..path.wan_back };
        EmulatorEngine { path: Path::new(out, back), splits, restarts, writer }
    }
}

impl Engine for EmulatorEngine {
    type Node = Path;
    fn node(&mut self) -> &mut Path {
        &mut self.path
    }
    fn started(&mut self) {
        say_ready(self.restarts);
    }
    fn splits(&self) -> bool {
        self.splits
    }
    fn report(&mut self, report: &Report<'_>) {
        let EmulatorEngine { path, restarts, writer, .. } = self;
        if !writer.is_due(report) {
            return;
        }
        let said = EmulatorReport {
            schema: crate::result::SCHEMA,
            wall_s: report.wall.as_secs_f64(),
            links: vec![
                observe::link("wan.out", path.out(), report.wall),
                observe::link("wan.back", path.back(), report.wall),
            ],
            degraded: report.degraded.clone(),
            steering: report::steering(report, *restarts),
        };
        writer.write(report, said);
    }
}
