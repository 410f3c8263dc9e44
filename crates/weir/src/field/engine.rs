//! The core's nodes as engines of the driver.

use super::live::Meters;
use super::report;
use super::say_ready;
use super::writer::Writer;
use crate::experiment::plan;
use crate::result::observe;
use crate::result::running::{EmulatorReport, GatewayReport};
use weir_core::flow::Record;
use weir_core::frame::{Frame, Frames};
use weir_core::gateway::{Config, Gateway, Verdict};
use weir_core::link::{self, Path};
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::steer::Slot;
use weir_core::time::Time;
use weir_io::driver::{Engine, Report};
use weir_io::sys::clock;

/// The gateway.
pub(super) struct GatewayEngine {
    gateway: Gateway,
    restarts: u32,
    writer: Writer,
    meters: Meters,
}

impl GatewayEngine {
    pub(super) fn new(
        config: Config,
        records: &'static mut [Record],
        slots: &'static [Slot],
        restarts: u32,
        writer: Writer,
    ) -> Self {
        GatewayEngine {
            gateway: Gateway::with_shared(config, records, slots),
            restarts,
            writer,
            meters: Meters::default(),
        }
    }
}

impl Node for GatewayEngine {
    fn announce(&self, frames: &Frames, coming: &[(Time, Port, Frame)]) {
        self.gateway.announce(frames, coming);
    }
    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        self.gateway.handle_frame(cx, port, frame);
    }
    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        self.gateway.poll_transmit(cx, writable)
    }
    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        self.gateway.next_deadline(writable)
    }
}

impl Engine for GatewayEngine {
    fn started(&mut self) {
        say_ready(self.restarts);
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
        let GatewayEngine { gateway, meters, restarts, writer } = self;
        writer.write(report, || {
            let (classes, flows) = meters.look(gateway, report.now);
            GatewayReport {
                schema: crate::result::SCHEMA,
                wall_s: report.wall.as_secs_f64(),
                degraded: report.degraded.clone(),
                gateway: observe::gateway(gateway.stats(), report.cpu),
                classes,
                flows,
                passed: report::passed(gateway.stats()),
                events: report::events(gateway.stats()),
                steering: report::steering(report, *restarts),
            }
        });
    }
}

/// The emulator: two links side by side.
pub(super) struct EmulatorEngine {
    path: Path,
    restarts: u32,
    writer: Writer,
}

impl EmulatorEngine {
    /// Traces begin now.
    pub(super) fn new(path: &plan::Path, seed: u64, restarts: u32, writer: Writer) -> Self {
        let epoch = clock::now();
        // Each direction draws its own losses.
        let out = link::Config { seed, epoch, ..path.wan_out };
        let back = link::Config { seed: seed ^ 0x9E37_79B9_7F4A_7C15, epoch, ..path.wan_back };
        EmulatorEngine { path: Path::new(out, back), restarts, writer }
    }
}

impl Node for EmulatorEngine {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        self.path.handle_frame(cx, port, frame);
    }
    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        self.path.poll_transmit(cx, writable)
    }
    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        self.path.next_deadline(writable)
    }
}

impl Engine for EmulatorEngine {
    fn started(&mut self) {
        say_ready(self.restarts);
    }
    fn report(&mut self, report: &Report<'_>) {
        let EmulatorEngine { path, restarts, writer } = self;
        writer.write(report, || EmulatorReport {
            schema: crate::result::SCHEMA,
            wall_s: report.wall.as_secs_f64(),
            links: vec![
                observe::link("wan.out", path.out(), report.wall),
                observe::link("wan.back", path.back(), report.wall),
            ],
            degraded: report.degraded.clone(),
            steering: report::steering(report, *restarts),
        });
    }
}
