//! The core's nodes as engines of the driver.

use super::control::{Remote, Version};
use super::live::Meters;
use super::report;
use super::writer::Writer;
use super::{say_ready, setup};
use crate::experiment::plan;
use crate::result::observe;
use crate::result::running::{EmulatorReport, GatewayReport};
use std::net::IpAddr;
use std::sync::Arc;
use weir_core::gateway::{Changed, Compiled, Gateway, Verdict};
use weir_core::link::{self, Path};
use weir_core::node::Cx;
use weir_core::steer::Fields;
use weir_io::driver::{Engine, Report};
use weir_io::supervise::Letters;
use weir_io::sys::clock;

/// The gateway.
pub(super) struct GatewayEngine {
    gateway: Gateway,
    restarts: u32,
    writer: Writer,
    meters: Meters,
    /// The way to the supervisor, until the thread has it that serves it.
    letters: Option<(Letters, Arc<Version>)>,
    remote: Option<Remote<Compiled, Changed>>,
}

impl GatewayEngine {
    pub(super) fn new(
        gateway: Gateway,
        restarts: u32,
        writer: Writer,
        letters: Option<(Letters, Arc<Version>)>,
    ) -> Self {
        GatewayEngine { gateway, restarts, writer, meters: Meters::default(), letters, remote: None }
    }

    /// What is said of it now, or of what an address has to do with it.
    fn look(&mut self, report: &Report<'_>, address: Option<IpAddr>) -> GatewayReport {
        let (classes, flows) = self.meters.look(&self.gateway, report.now, address, report.last);
        let stats = self.gateway.stats();
        GatewayReport {
            schema: crate::result::SCHEMA,
            wall_s: report.wall.as_secs_f64(),
            degraded: report.degraded.clone(),
            gateway: report::in_this_process(observe::gateway(stats, report.cpu)),
            classes,
            flows,
            passed: report::passed(stats),
            events: report::events(stats),
            steering: report::steering(report, self.restarts),
        }
    }
}

impl Engine for GatewayEngine {
    type Node = Gateway;
    fn node(&mut self) -> &mut Gateway {
        &mut self.gateway
    }
    fn started(&mut self) {
        // It has given up its privileges by now, and so has the thread.
        let compile = |next: &Version, runs: &Version| {
            Ok(Compiled::after(next.file.gateway.clone(), &runs.file.gateway))
        };
        self.remote = self.letters.take().map(|(letters, version)| Remote::new(letters, version, compile));
        say_ready(self.restarts);
    }
    fn change(&mut self, _: &mut Cx<'_>) -> bool {
        let Some((remote, config)) = self.remote.as_mut().and_then(|r| r.next().map(|c| (r, c))) else {
            return false;
        };
        let changed = self.gateway.reconfigure(config);
        let reclassified = changed.as_ref().is_ok_and(|changed| changed.reclassified);
        remote.done(changed.map_err(|why| why.to_string()));
        self.meters.forget_classes();
        reclassified
    }
    fn counted(&self) -> [Fields; 2] {
        self.gateway.counted_fields()
    }
    fn resync(&mut self, _: &mut Cx<'_>) {
        self.gateway.resync();
    }
    fn stop(&mut self, cx: &mut Cx<'_>) -> bool {
        self.gateway.stop(cx)
    }
    fn verdicts(&mut self, out: &mut Vec<Verdict>) {
        let room = out.capacity() - out.len();
        out.extend(self.gateway.verdicts(room));
    }
    fn report(&mut self, report: &Report<'_>) {
        if self.writer.is_due(report) {
            let written = self.look(report, None);
            self.writer.write(report, written);
        }
        if let Some(ask) = self.remote.as_ref().and_then(Remote::asked) {
            let known = self.meters.knows(report.now);
            let told = self.look(report, ask.address);
            self.remote.iter().for_each(|remote| remote.tell((told.clone(), known)));
        }
    }
}

/// The emulator: two links side by side.
pub(super) struct EmulatorEngine {
    path: Path,
    splits: bool,
    restarts: u32,
    writer: Writer,
}

impl EmulatorEngine {
    /// Traces begin now.
    pub(super) fn new(path: &plan::Path, seed: u64, restarts: u32, writer: Writer) -> Self {
        let splits = [&path.wan_out, &path.wan_back].into_iter().any(setup::is_about_packets);
        let epoch = clock::now();
        // Each direction draws its own losses.
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
