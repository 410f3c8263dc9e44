//! A gateway that controls ACKs and has queues, as an engine of the driver: segments come to it by the ring, and all frames of the
//! directions that have queues.

use super::control::{Desk, Remote, Running, Version};
use super::live::Meters;
use super::sharing::{self, Looks};
use super::writer::Writer;
use super::{report, rescue, say_ready, setup};
use crate::output::Target;
use crate::result::observe;
use crate::result::running::{GatewayClass, GatewayReport};
use crate::result::ClassResult;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use weir_core::combined::Combined;
use weir_core::flow::Record;
use weir_core::gateway::{Changed, Compiled, Gateway, Verdict};
use weir_core::node::Cx;
use weir_core::sharing::Sharing;
use weir_core::steer::Fields;
use weir_io::driver::{Engine, Report};
use weir_io::supervise::{Letters, Records, Supervisor};

/// Runs until it is told to stop. Arguments are those of [`super::gateway`].
pub(super) fn run(
    version: Version,
    path: Option<PathBuf>,
    seed: u64,
    json: Option<Target>,
) -> Result<(), String> {
    let driver = setup::queues_driver(&version.file);
    let max_flows = version.file.gateway.max_flows;
    let supervisor = Supervisor::prepare(&setup::gateway(&version.file)).map_err(|p| p.to_string())?;
    let slots = supervisor.slots();
    let records = Records::<Record>::alloc(max_flows as usize)
        .map_err(|e| format!("memory for {max_flows} flows: {e}"))?;
    let json = json.map(Arc::new);
    tracing::info!(dev = version.file.dev, "shaping and queueing");
    let running = Running::new(version, path, seed);
    supervisor
        .run(
            |mut launch| {
                let records = records.take().ok_or_else(|| std::io::Error::other("records taken twice"))?;
                let config = running.take().ok_or_else(|| std::io::Error::other("started twice"))?;
                let version = running.version();
                let gateway = Gateway::with_shared(config, records, launch.slots).counted_in(launch.tallies);
                let queues = sharing::sharing(&version, seed).map_err(std::io::Error::other)?;
                let engine = CombinedEngine {
                    splits: setup::splits(queues.config()),
                    node: Combined::new(gateway, queues),
                    restarts: launch.restarts,
                    writer: Writer::new(json.clone()),
                    meters: Meters::default(),
                    looks: Looks::default(),
                    seed,
                    letters: launch.letters.take().map(|letters| (letters, version)),
                    remote: None,
                };
                launch.run(engine, driver).map(drop)
            },
            |senders| rescue(&records, slots, senders),
            &mut Desk::new(&running),
        )
        .map_err(|e| e.to_string())
}

/// What a configuration makes for the engine.
type Next = (Compiled, Sharing);
/// What is left of the one before.
type Left = (Changed, Sharing);

/// The engine.
struct CombinedEngine {
    node: Combined,
    /// Are giant segments cut?
    splits: bool,
    restarts: u32,
    writer: Writer,
    meters: Meters,
    looks: Looks,
    seed: u64,
    /// The way to the supervisor, until the thread has it that serves it.
    letters: Option<(Letters, Arc<Version>)>,
    remote: Option<Remote<Next, Left>>,
}

impl CombinedEngine {
    /// What is said of it now, or of what an address has to do with it, and whether rates are known.
    fn look(&mut self, report: &Report<'_>, address: Option<IpAddr>) -> (GatewayReport, bool) {
        let gateway = self.node.gateway();
        let knows = self.meters.knows(report.now);
        let (controlled, flows) = self.meters.look(gateway, report.now, address, report.last);
        let (queued, known) = self.looks.look(self.node.sharing(), report.now);
        let stats = gateway.stats();
        let said = GatewayReport {
            schema: crate::result::SCHEMA,
            wall_s: report.wall.as_secs_f64(),
            degraded: report.degraded.clone(),
            gateway: observe::combined(&self.node, report.cpu),
            classes: together(controlled, queued),
            flows,
            passed: report::passed(stats),
            events: report::events(stats),
            steering: report::steering(report, self.restarts),
        };
        (said, knows && known)
    }

    /// Takes another configuration, in both parts or in none.
    fn take(&mut self, cx: &mut Cx<'_>, (config, queues): Next) -> Result<Left, String> {
        let changed = self.node.gateway_mut().reconfigure(config).map_err(|why| why.to_string())?;
        let old = self.node.replace(cx, queues);
        self.splits = setup::splits(self.node.sharing().config());
        self.meters.forget_classes();
        self.looks = Looks::default();
        Ok((changed, old))
    }
}

/// The classes in the order of the configuration, each with what its queue and its control of ACKs tell. What has no queue is
/// there if the gateway lists it.
fn together(controlled: Vec<GatewayClass>, queued: Vec<GatewayClass>) -> Vec<GatewayClass> {
    let name = |class: GatewayClass| (class.class.name.clone(), class);
    let mut controlled: HashMap<String, GatewayClass> = controlled.into_iter().map(name).collect();
    let both = |queued: GatewayClass| match controlled.remove(&queued.class.name) {
        // What its ACKs have told says more of a class than what left its queue.
        Some(class) if queued.class.queue.is_none() || class.flows > 0 => {
            let result = ClassResult { queue: queued.class.queue, ..class.class };
            GatewayClass { class: result, ..class }
        }
        _ => queued,
    };
    queued.into_iter().map(both).collect()
}

impl Engine for CombinedEngine {
    type Node = Combined;
    fn node(&mut self) -> &mut Combined {
        &mut self.node
    }
    fn started(&mut self) {
        let seed = self.seed;
        let make = move |next: &Version, runs: &Version| {
            let compiled = Compiled::after(next.file.gateway.clone(), &runs.file.gateway);
            Ok((compiled, sharing::sharing(next, seed)?))
        };
        self.remote = self.letters.take().map(|(letters, version)| Remote::new(letters, version, make));
        say_ready(self.restarts);
    }
    fn change(&mut self, cx: &mut Cx<'_>) -> bool {
        let Some(next) = self.remote.as_mut().and_then(Remote::next) else { return false };
        let left = self.take(cx, next);
        let reclassified = left.as_ref().is_ok_and(|(changed, _)| changed.reclassified);
        if let Some(remote) = &mut self.remote {
            remote.done(left);
        }
        reclassified
    }
    fn counted(&self) -> [Fields; 2] {
        self.node.gateway().counted_fields()
    }
    fn resync(&mut self, _: &mut Cx<'_>) {
        self.node.gateway_mut().resync();
    }
    fn stop(&mut self, cx: &mut Cx<'_>) -> bool {
        self.node.gateway_mut().stop(cx)
    }
    fn splits(&self) -> bool {
        self.splits
    }
    fn verdicts(&mut self, out: &mut Vec<Verdict>) {
        let room = out.capacity() - out.len();
        out.extend(self.node.gateway_mut().verdicts(room));
    }
    fn report(&mut self, report: &Report<'_>) {
        if self.writer.is_due(report) {
            let (written, _) = self.look(report, None);
            self.writer.write(report, written);
        }
        if let Some(ask) = self.remote.as_ref().and_then(Remote::asked) {
            let told = self.look(report, ask.address);
            self.remote.iter().for_each(|remote| remote.tell(told.clone()));
        }
    }
}
