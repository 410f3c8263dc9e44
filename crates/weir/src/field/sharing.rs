//! The queues of a gateway as an engine of the driver: all frames of a direction that has some come to it.

use super::report;
use super::writer::Writer;
use super::{say_ready, setup};
use crate::experiment::config::gateway::GatewayFile;
use crate::output::Target;
use crate::result::observe;
use crate::result::running::{GatewayClass, GatewayReport};
use std::sync::Arc;
use weir_core::frame::Frame;
use weir_core::link;
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::sharing::Sharing;
use weir_core::time::Time;
use weir_io::driver::{Engine, Report};
use weir_io::supervise::{NoOperator, Supervisor};

/// Runs until it is told to stop.
pub(super) fn run(file: &GatewayFile, json: Option<Target>) -> Result<(), String> {
    let supervisor = Supervisor::prepare(&setup::gateway(file)).map_err(|p| p.to_string())?;
    let json = json.map(Arc::new);
    tracing::info!(dev = file.dev, "queueing");
    supervisor
        .run(
            |launch| {
                let writer = Writer::new(json.clone());
                let sharing = Sharing::new(file.gateway.clone(), link::Config::NETEM)
                    .map_err(|refused| std::io::Error::other(refused.why.to_string()))?;
                let (restarts, look) = (launch.restarts, Look::default());
                let engine = SharingEngine { sharing, restarts, writer, older: look.clone(), newer: look };
                launch.run(engine, setup::queues_driver(file)).map(drop)
            },
            |_| {},
            &mut NoOperator,
        )
        .map_err(|e| e.to_string())
}

/// Bytes that had left each class.
#[derive(Clone, Default)]
struct Look {
    at: Option<Time>,
    bytes: Vec<u64>,
}

/// The engine.
struct SharingEngine {
    sharing: Sharing,
    restarts: u32,
    writer: Writer,
    older: Look,
    newer: Look,
}

impl Node for SharingEngine {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        self.sharing.handle_frame(cx, port, frame);
    }
    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        self.sharing.poll_transmit(cx, writable)
    }
    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        self.sharing.next_deadline(writable)
    }
}

impl Engine for SharingEngine {
    fn started(&mut self) {
        say_ready(self.restarts);
    }
    fn report(&mut self, report: &Report<'_>) {
        let SharingEngine { sharing, restarts, writer, older, newer } = self;
        if !writer.is_due(report) {
            return;
        }
        let written = GatewayReport {
            schema: crate::result::SCHEMA,
            wall_s: report.wall.as_secs_f64(),
            degraded: report.degraded.clone(),
            gateway: observe::sharing(sharing, report.cpu),
            classes: classes(sharing, report.now, older, newer),
            steering: report::steering(report, *restarts),
            ..GatewayReport::default()
        };
        writer.write(report, written);
    }
}

/// The classes, with the bytes that left each since the look before the last one.
fn classes(sharing: &Sharing, now: Time, older: &mut Look, newer: &mut Look) -> Vec<GatewayClass> {
    let classes = observe::queues(sharing);
    let bytes: Vec<u64> = classes.iter().map(|c| c.queue.as_ref().map_or(0, |q| q.bytes)).collect();
    *older = std::mem::replace(newer, Look { at: Some(now), bytes: bytes.clone() });
    let rate = |i: usize| {
        let then = older.bytes.get(i).copied().unwrap_or(0);
        let lasted = older.at.map_or(0.0, |at| now.since(at).as_secs_f64());
        if lasted > 0.0 {
            (bytes[i] - then) as f64 * 8.0 / lasted
        } else {
            0.0
        }
    };
    let class = |(i, mut class): (usize, crate::result::ClassResult)| {
        class.bps = rate(i);
        GatewayClass { class, bytes: bytes[i], ..GatewayClass::default() }
    };
    classes.into_iter().enumerate().map(class).collect()
}
