//! A gateway as an engine of the driver. One engine serves all three: gateways that control ACKs, gateways whose classes have
//! queues, and gateways that do both.

use super::control::{Remote, Version};
use super::live::Meters;
use super::queues::{self, QueueMeters};
use super::writer::Writer;
use super::{report, say_ready, setup};
use crate::result::observe;
use crate::result::running::{GatewayClass, GatewayReport};
use crate::result::{ClassResult, GatewayResult};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use weir_core::combined::Combined;
use weir_core::gateway::{Changed, Compiled, Gateway, Verdict};
use weir_core::node::{Cx, Node};
use weir_core::sharing::Sharing;
use weir_core::steer::Fields;
use weir_core::time::Duration;
use weir_io::driver::{Engine, Report};
use weir_io::supervise::Letters;

/// A node that runs inline, with the parts that it has.
pub(super) trait Inline: Node {
    /// The part that controls ACKs.
    fn gateway(&self) -> Option<&Gateway> {
        None
    }
    /// The same, to be changed.
    fn gateway_mut(&mut self) -> Option<&mut Gateway> {
        None
    }
    /// The part in which data waits.
    fn queues(&self) -> Option<&Sharing> {
        None
    }
    /// Puts the queues of another configuration in place of its own, which it returns. A node without queues ignores the call.
    fn replace(&mut self, _cx: &mut Cx<'_>, _next: Sharing) -> Option<Sharing> {
        None
    }
    /// Its totals, when its engine took `cpu`.
    fn totals(&self, cpu: Duration) -> GatewayResult;
}

impl Inline for Gateway {
    fn gateway(&self) -> Option<&Gateway> {
        Some(self)
    }
    fn gateway_mut(&mut self) -> Option<&mut Gateway> {
        Some(self)
    }
    fn totals(&self, cpu: Duration) -> GatewayResult {
        observe::gateway(self.stats(), cpu)
    }
}

impl Inline for Sharing {
    fn queues(&self) -> Option<&Sharing> {
        Some(self)
    }
    fn replace(&mut self, cx: &mut Cx<'_>, next: Sharing) -> Option<Sharing> {
        Some(Sharing::replace(self, cx, next))
    }
    fn totals(&self, cpu: Duration) -> GatewayResult {
        observe::sharing(self, cpu)
    }
}

impl Inline for Combined {
    fn gateway(&self) -> Option<&Gateway> {
        Some(Combined::gateway(self))
    }
    fn gateway_mut(&mut self) -> Option<&mut Gateway> {
        Some(Combined::gateway_mut(self))
    }
    fn queues(&self) -> Option<&Sharing> {
        Some(self.sharing())
    }
    fn replace(&mut self, cx: &mut Cx<'_>, next: Sharing) -> Option<Sharing> {
        Some(Combined::replace(self, cx, next))
    }
    fn totals(&self, cpu: Duration) -> GatewayResult {
        observe::combined(self, cpu)
    }
}

/// What a configuration makes for each part of the node.
struct Next {
    acks: Option<Compiled>,
    queues: Option<Sharing>,
}

/// What is left of the configuration before, of each part: the thread drops it.
type Left = (Option<Changed>, Option<Sharing>);

/// What an engine is made with.
pub(super) struct Start {
    /// The secret of the host's hashes.
    pub seed: u64,
    /// Engines that ran before this one.
    pub restarts: u32,
    /// Where reports go.
    pub writer: Writer,
    /// The way to the supervisor, and the configuration that runs.
    pub letters: Option<(Letters, Arc<Version>)>,
}

/// The engine.
pub(super) struct InlineEngine<N> {
    node: N,
    start: Start,
    /// Are giant segments cut?
    splits: bool,
    meters: Meters,
    queue_meters: QueueMeters,
    remote: Option<Remote<Next, Left>>,
}

impl<N: Inline> InlineEngine<N> {
    pub(super) fn new(node: N, start: Start) -> Self {
        let splits = splits(&node);
        let (meters, queue_meters) = Default::default();
        InlineEngine { node, start, splits, meters, queue_meters, remote: None }
    }

    /// A report on all of it, or on what an address has to do with it, and whether rates are known. Queues are not told apart by
    /// addresses.
    fn look(&mut self, report: &Report<'_>, address: Option<IpAddr>) -> (GatewayReport, bool) {
        let mut said = GatewayReport {
            schema: crate::result::SCHEMA,
            wall_s: report.wall.as_secs_f64(),
            degraded: report.degraded.clone(),
            gateway: report::in_this_process(self.node.totals(report.cpu)),
            steering: report::steering(report, self.start.restarts),
            ..GatewayReport::default()
        };
        let mut known = true;
        if let Some(gateway) = self.node.gateway() {
            known = self.meters.knows(report.now);
            (said.classes, said.flows) = self.meters.look(gateway, report.now, address, report.last);
            let stats = gateway.stats();
            (said.passed, said.events) = (report::passed(stats), report::events(stats));
        }
        if let Some(queues) = self.node.queues() {
            let (queued, seen_before) = self.queue_meters.look(queues, report.now);
            said.classes = merged(said.classes, queued);
            known &= seen_before;
        }
        (said, known)
    }

    /// Takes another configuration, in all parts or in none.
    fn take(&mut self, cx: &mut Cx<'_>, next: Next) -> Result<Left, String> {
        let acks = match (self.node.gateway_mut(), next.acks) {
            (Some(gateway), Some(config)) => {
                Some(gateway.reconfigure(config).map_err(|why| why.to_string())?)
            }
            _ => None,
        };
        let queues = next.queues.and_then(|queues| self.node.replace(cx, queues));
        self.splits = splits(&self.node);
        self.meters.forget_classes();
        self.queue_meters = QueueMeters::default();
        Ok((acks, queues))
    }
}

/// Are giant segments cut for this node?
fn splits(node: &impl Inline) -> bool {
    node.queues().is_some_and(|queues| setup::splits(queues.config()))
}

/// One list of what the control of ACKs and the queues tell of each class, in the order of the configuration. A class without a queue
/// is in it if the gateway lists it.
fn merged(controlled: Vec<GatewayClass>, queued: Vec<GatewayClass>) -> Vec<GatewayClass> {
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

impl<N: Inline> Engine for InlineEngine<N> {
    type Node = N;
    fn node(&mut self) -> &mut N {
        &mut self.node
    }
    fn started(&mut self) {
        let seed = self.start.seed;
        let (acks, queued) = (self.node.gateway().is_some(), self.node.queues().is_some());
        let make = move |next: &Version, runs: &Version| {
            let acks = acks.then(|| Compiled::after(next.file.gateway.clone(), &runs.file.gateway));
            let queues = queued.then(|| queues::node(next, seed)).transpose()?;
            Ok(Next { acks, queues })
        };
        // The engine has given up its privileges by now, and so has the thread that begins here.
        let letters = self.start.letters.take();
        self.remote = letters.map(|(letters, version)| Remote::new(letters, version, make));
        say_ready(self.start.restarts);
    }
    fn change(&mut self, cx: &mut Cx<'_>) -> bool {
        let Some(next) = self.remote.as_mut().and_then(Remote::next) else { return false };
        let left = self.take(cx, next);
        let changed = left.as_ref().ok().and_then(|(acks, _)| acks.as_ref());
        let reclassified = changed.is_some_and(|changed| changed.reclassified);
        if let Some(remote) = &mut self.remote {
            remote.done(left);
        }
        reclassified
    }
    fn counted(&self) -> [Fields; 2] {
        self.node.gateway().map_or([Fields::NONE; 2], Gateway::counted_fields)
    }
    fn resync(&mut self, _: &mut Cx<'_>) {
        self.node.gateway_mut().into_iter().for_each(Gateway::resync);
    }
    fn stop(&mut self, cx: &mut Cx<'_>) -> bool {
        self.node.gateway_mut().is_none_or(|gateway| gateway.stop(cx))
    }
    fn splits(&self) -> bool {
        self.splits
    }
    fn verdicts(&mut self, out: &mut Vec<Verdict>) {
        let room = out.capacity() - out.len();
        out.extend(self.node.gateway_mut().into_iter().flat_map(|gateway| gateway.verdicts(room)));
    }
    fn report(&mut self, report: &Report<'_>) {
        if self.start.writer.is_due(report) {
            let (written, _) = self.look(report, None);
            self.start.writer.write(report, written);
        }
        if let Some(ask) = self.remote.as_ref().and_then(Remote::asked) {
            let told = self.look(report, ask.address);
            self.remote.iter().for_each(|remote| remote.tell(told.clone()));
        }
    }
}
