//! The WAN emulator as an engine of the driver.

mod desk;
mod remote;

use super::report::WaysMeter;
use super::writer::Writer;
use super::{report, say_ready, setup};
use crate::experiment::config::link::words;
use crate::experiment::config::wan::WanFile;
use crate::experiment::plan;
use crate::output::Target;
use crate::result::observe;
use crate::result::running::{EmulatorReport, LinkNow};
use desk::EmulatorDesk;
use remote::{Remote, Server};
use std::sync::Arc;
use weir_core::link::{self, Link, Path};
use weir_core::node::Cx;
use weir_core::time::{Duration, Time};
use weir_io::driver::{Engine, Report};
use weir_io::supervise::Supervisor;
use weir_io::sys::clock;

/// Runs an emulator until it is told to stop. With `json` it writes an [`EmulatorReport`] there.
pub fn run(file: &WanFile, json: Option<Target>) -> Result<(), String> {
    let supervisor = Supervisor::prepare(&setup::emulator(file)).map_err(|p| p.to_string())?;
    let json = json.map(Arc::new);
    let running = desk::Running::new(file);
    tracing::info!("emulating");
    supervisor
        .run(
            |mut launch| {
                let writer = Writer::new(json.clone());
                let remote = Remote::default();
                let letters = launch.letters.take();
                let serve = letters.map(|letters| Server { letters, shared: remote.shared.clone() });
                let engine = EmulatorEngine {
                    remote,
                    serve,
                    ..EmulatorEngine::new(&running.path(), file.seed, launch.restarts, writer)
                };
                launch.run(engine, setup::emulator_driver(file)).map(drop)
            },
            |_, _| {},
            || {},
            &mut EmulatorDesk::new(&running),
        )
        .map_err(|e| e.to_string())
}

/// Interval between looks at the counters that rates are made of.
const LOOK: Duration = Duration::from_secs(1);

/// Two links side by side, with the driver's counters.
struct EmulatorEngine {
    path: Path,
    splits: bool,
    restarts: u32,
    writer: Writer<EmulatorReport>,
    meter: WaysMeter,
    next_look: Time,
    remote: Remote,
    /// Thread that serves the supervisor, before it runs.
    serve: Option<Server>,
}

/// Returns the seed of what comes in: each direction draws its losses from a seed of its own.
const fn inward(seed: u64) -> u64 {
    seed ^ 0x9E37_79B9_7F4A_7C15
}

impl EmulatorEngine {
    /// Returns the engine. Traces begin now.
    fn new(path: &plan::Path, seed: u64, restarts: u32, writer: Writer<EmulatorReport>) -> Self {
        let epoch = clock::now();
        let out = link::Config { seed, epoch, ..path.wan_out };
        let back = link::Config { seed: inward(seed), epoch, ..path.wan_back };
        EmulatorEngine {
            path: Path::new(out, back),
            splits: splits(&[path.wan_out, path.wan_back]),
            restarts,
            writer,
            meter: WaysMeter::default(),
            next_look: Time::ZERO,
            remote: Remote::default(),
            serve: None,
        }
    }

    fn links(&self) -> [(&'static str, &Link); 2] {
        [("wan.out", self.path.out()), ("wan.back", self.path.back())]
    }

    fn look(&mut self, report: &Report<'_>) -> EmulatorReport {
        let ways = self.links().map(|(_, link)| link.stats()).map(|stats| (stats.bytes, stats.packets));
        let loads = self.meter.look(ways, report.now);
        let now = |((name, link), bps): ((&str, &Link), f64)| LinkNow {
            kind: "emulator".into(),
            name: name.into(),
            does: words(link.config()),
            bps,
            target_bps: link.config().rate.map(|rate| rate.bps()),
            queue_packets: link.queue_packets(),
            queue_bytes: link.queue_bytes(),
        };
        EmulatorReport {
            schema: crate::result::SCHEMA,
            wall_s: report.wall.as_secs_f64(),
            links: self.links().map(|(name, link)| observe::link(name, link, report.wall)).into(),
            now: self.links().into_iter().zip(loads.map(|load| load.bps)).map(now).collect(),
            degraded: report.degraded.clone(),
            steering: report::steering(report, self.restarts),
        }
    }
}

/// Returns whether giant segments are split for links of these configurations.
fn splits(links: &[link::Config]) -> bool {
    links.iter().any(setup::is_about_packets)
}

impl Engine for EmulatorEngine {
    type Node = Path;
    fn node(&mut self) -> &mut Path {
        &mut self.path
    }
    fn started(&mut self) {
        // The engine has dropped its privileges by now, and the new thread inherits that.
        if let Some(server) = self.serve.take() {
            server.begin();
        }
        say_ready(self.restarts);
    }
    fn change(&mut self, cx: &mut Cx<'_>) -> bool {
        if let Some([out, back]) = self.remote.next() {
            self.path.change(cx, out, back);
            self.splits = splits(&[out, back]);
            self.remote.changed();
        }
        false
    }
    fn splits(&self) -> bool {
        self.splits
    }
    fn report(&mut self, report: &Report<'_>) {
        let (due, asked) = (self.writer.is_due(report), self.remote.is_asked());
        if !due && !asked && report.now < self.next_look {
            return;
        }
        self.next_look = report.now + LOOK;
        let said = self.look(report);
        if asked {
            self.remote.tell(said.clone());
        }
        if due {
            self.writer.write(report, said);
        }
    }
}
