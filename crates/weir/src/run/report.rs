//! What a running gateway or emulator says about itself, as JSON.

use crate::output::Target;
use crate::result::{ClassResult, Counts, GatewayResult, LinkResult};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::mpsc::{sync_channel, SyncSender};
use std::sync::Arc;
use std::thread::JoinHandle;
use weir_core::gateway::{ClassStats, Gateway, GatewayStats, PassReason};
use weir_core::time::{Duration, Time};
use weir_io::driver::Report;

/// What `weir run --json` writes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GatewayReport {
    /// See [`crate::result::SCHEMA`].
    pub schema: u32,
    /// Time since the engine started, in seconds.
    pub wall_s: f64,
    /// Totals.
    pub gateway: GatewayResult,
    /// Classes in the order of the configuration.
    pub classes: Vec<ClassResult>,
    /// More about each class, in the same order.
    pub details: Vec<ClassDetail>,
    /// Flows in its table, at most 10,000; while it runs only if there are at most 1,000.
    pub flows: Vec<GatewayFlow>,
    /// Frames that passed untouched, by reason.
    pub passed: Counts,
    /// How frames came and went.
    pub steering: SteeringReport,
}

/// What a class's release did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClassDetail {
    /// Flows that it took.
    pub flows: u64,
    /// Of those, flows left alone.
    pub flows_passed: u64,
    /// ACKs forwarded as they came.
    pub acks_forwarded: u64,
    /// Bytes acknowledged towards the senders.
    pub acked_bytes: u64,
    /// Bytes held now.
    pub held_bytes: u64,
    /// Transitions into slow start that the detector saw.
    pub slow_starts: u64,
    /// Release times forfeited because the engine woke too late.
    pub missed_releases: u64,
}

/// A flow as the gateway sees it, in the direction of its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GatewayFlow {
    /// Who sends the data.
    pub src: SocketAddr,
    /// Who receives it.
    pub dst: SocketAddr,
    /// Its class.
    pub class: String,
    /// Why it is left alone, if it is.
    pub pass_reason: Option<String>,
    /// Bytes acknowledged by the receiver and held.
    pub held_bytes: u32,
    /// How long the held bytes take at the flow's rate, in microseconds.
    pub held_us: u64,
    /// Bytes acknowledged ahead of the rate.
    pub debt_bytes: u32,
    /// Is its step halved because its sender is in slow start?
    pub slow_start: bool,
    /// Round-trip time beyond the gateway in microseconds, 0 when unknown.
    pub rtt_us: u64,
    /// Window field last forwarded.
    pub window: u16,
    /// Time between releases in microseconds.
    pub period_us: u64,
}

/// What `weir wan --json` writes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EmulatorReport {
    /// See [`crate::result::SCHEMA`].
    pub schema: u32,
    /// Time since it started, in seconds.
    pub wall_s: f64,
    /// Both directions.
    pub links: Vec<LinkResult>,
    /// How frames came and went.
    pub steering: SteeringReport,
}

/// How frames came to the engine and left it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SteeringReport {
    /// Engines that ran before this one.
    pub restarts: u32,
    /// Times the engine had been away so long that frames went past it.
    pub resyncs: u64,
    /// Frames received on each port.
    pub received: Vec<u64>,
    /// Frames sent on each port.
    pub sent: Vec<u64>,
    /// Frames that a port lost before user space saw them.
    pub lost: Vec<u64>,
    /// Copied headers that were lost.
    pub observations_lost: u64,
    /// From when frames were due until they were handed to the device.
    pub lateness_us: Lateness,
}

/// How late frames left, in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Lateness {
    /// The median.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The latest.
    pub max: u64,
}

impl SteeringReport {
    pub(super) fn of(report: &Report<'_>, restarts: u32) -> SteeringReport {
        SteeringReport {
            restarts,
            resyncs: report.resyncs,
            received: report.inputs.iter().map(|input| input.received).collect(),
            sent: report.exits.iter().map(|exit| exit.sent).collect(),
            lost: report.inputs.iter().map(|input| input.lost).collect(),
            observations_lost: 0,
            lateness_us: Lateness {
                p50: report.lateness.quantile(500).as_micros(),
                p99: report.lateness.quantile(990).as_micros(),
                max: report.lateness.max().as_micros(),
            },
        }
    }
}

/// Most flows in the last report.
const MAX_FLOWS: usize = 10_000;
/// With more flows than this, only the last report lists them.
const MAX_FLOWS_LIVE: u32 = 1_000;

pub(super) fn passed(stats: &GatewayStats) -> Counts {
    PassReason::ALL
        .iter()
        .map(|&r| (r.name().to_string(), stats.passed[r as usize]))
        .filter(|&(_, n)| n > 0)
        .collect()
}

pub(super) fn details(gateway: &Gateway) -> Vec<ClassDetail> {
    let detail = |s: &ClassStats| ClassDetail {
        flows: s.flows,
        flows_passed: s.flows_passed,
        acks_forwarded: s.acks_forwarded,
        acked_bytes: s.acked_bytes,
        held_bytes: s.held_bytes,
        slow_starts: s.slow_starts,
        missed_releases: s.missed_releases,
    };
    gateway.class_stats().iter().map(detail).collect()
}

pub(super) fn flows(gateway: &Gateway, last: bool) -> Vec<GatewayFlow> {
    if !last && gateway.stats().flows > MAX_FLOWS_LIVE {
        return Vec::new();
    }
    gateway
        .flows()
        .take(MAX_FLOWS)
        .map(|f| GatewayFlow {
            src: (f.key.src_ip(), f.key.src_port).into(),
            dst: (f.key.dst_ip(), f.key.dst_port).into(),
            class: gateway.config().classes[f.class].name.clone(),
            pass_reason: f.pass.map(|p| p.name().to_string()),
            held_bytes: f.held_bytes,
            held_us: f.held_delay.as_micros(),
            debt_bytes: f.debt_bytes,
            slow_start: f.slow_start,
            rtt_us: f.rtt.as_micros(),
            window: f.window_sent,
            period_us: f.period.as_micros(),
        })
        .collect()
}

/// How often a report is written while the engine runs.
const EVERY: Duration = Duration::from_secs(1);

/// Writes reports to a file, each whole or not at all, in a thread of its own: the engine's thread must
/// not wait for a disk.
pub(super) struct Writer {
    next: Time,
    thread: Option<(SyncSender<Document>, JoinHandle<()>)>,
}

/// A report on its way to the writing thread.
type Document = Box<dyn FnOnce() -> serde_json::Result<Vec<u8>> + Send>;

impl Writer {
    /// Called in the engine's process.
    pub(super) fn new(target: Option<Arc<Target>>) -> Writer {
        let thread = target.map(|target| {
            let (sender, receiver) = sync_channel::<Document>(1);
            let thread =
                std::thread::spawn(move || receiver.into_iter().for_each(|make| save(&target, make)));
            (sender, thread)
        });
        Writer { next: Time::ZERO, thread }
    }

    /// Writes what `make` makes, if it is time or the engine has ended. `make` is told whether it may
    /// take its time.
    pub(super) fn write<T: Serialize + Send + 'static>(
        &mut self,
        report: &Report<'_>,
        make: impl FnOnce(bool) -> T,
    ) {
        let Some((sender, _)) = &self.thread else { return };
        if report.now < self.next && !report.last {
            return;
        }
        self.next = report.now + EVERY;
        let value = make(report.last);
        let document: Document = Box::new(move || serde_json::to_vec(&value));
        if !report.last {
            // A writer that is not done with the last one skips this one.
            let _ = sender.try_send(document);
            return;
        }
        let Some((sender, thread)) = self.thread.take() else { return };
        let _ = sender.send(document);
        drop(sender);
        let _ = thread.join();
    }
}

fn save(target: &Target, make: Document) {
    let written = make().map_err(std::io::Error::from).and_then(|text| target.write(&text));
    if let Err(error) = written {
        tracing::warn!(%error, path = %target.path().display(), "the report could not be written");
    }
}
