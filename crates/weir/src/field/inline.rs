//! A gateway as one or several engines of the driver. One kind of engine serves gateways that control ACKs,
//! gateways whose classes have queues, and gateways that do both.

use super::continued::Continued;
use super::control::{Ask, Part, Remote, Service, Version};
use super::lists::Lists;
use super::live::{self, Meters};
use super::paced::Device;
use super::queues::{self, QueueMeters};
use super::report::WaysMeter;
use super::shifts::{self, Shift, Side, Sums};
use super::unlisted::Addresses;
use super::writer::Writer;
use super::{report, say_ready, setup};
use crate::experiment::config::engines;
use crate::result::observe;
use crate::result::running::{GatewayClass, GatewayReport, SCHEMA};
use crate::result::traffic::{Counted, Load, Snapshot};
use crate::result::{ClassResult, GatewayResult};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use weir_core::combined::Combined;
use weir_core::gateway::{Changed, Compiled, Direction, Gateway, Prefix, Verdict};
use weir_core::node::{Cx, Node};
use weir_core::quality::Quality;
use weir_core::sharing::Sharing;
use weir_core::steer::Fields;
use weir_core::time::{Duration, Time};
use weir_io::bpf::{Home, Homes, RuleBook, Staged, Unlisted};
use weir_io::driver::{Engine, Report};
use weir_io::supervise::Letters;

/// Node that runs inline, with optional parts.
pub(super) trait Inline: Node {
    /// Returns the part that controls ACKs.
    fn gateway(&self) -> Option<&Gateway> {
        None
    }
    /// Returns the part that controls ACKs, mutably.
    fn gateway_mut(&mut self) -> Option<&mut Gateway> {
        None
    }
    /// Returns the part that queues data.
    fn queues(&self) -> Option<&Sharing> {
        None
    }
    /// Replaces the queues by those of another configuration and returns the old ones. A node without queues
    /// ignores the call.
    fn replace(&mut self, _cx: &mut Cx<'_>, _next: Sharing) -> Option<Sharing> {
        None
    }
    /// Returns the node's totals, with `cpu` as its engine's processor time.
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
        observe::gateway(self.flows.stats(), cpu)
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

/// Next configuration of each part of the node.
pub(super) struct Next {
    acks: Option<(Part, Option<Staged>)>,
    queues: Option<Sharing>,
    lists: Arc<Lists>,
    /// Rows of reports that are sums of other classes then.
    shifts: Vec<Shift>,
}

/// Remains of the old configuration of each part, which the thread drops.
pub(super) type Left = (Option<Changed>, Option<Sharing>);

/// Everything that an engine is made from.
pub(super) struct Start {
    /// Number of engines that ran before this one.
    pub restarts: u32,
    /// Time at which the gateway was set up.
    pub began: Time,
    /// Counters of the earlier engines.
    pub continued: Continued,
    /// Destination of reports.
    pub writer: Writer<GatewayReport>,
    /// Handle by which the engine is changed and queried.
    pub remote: Remote<Next, Left>,
    /// Index in the whole configuration of each class of the part that controls ACKs.
    pub places: Vec<usize>,
    /// The lists of customers and sites, for reports.
    pub lists: Arc<Lists>,
    /// Memory for the engine's rules, if it controls ACKs.
    pub book: Option<Arc<RuleBook>>,
    /// Number of engines that have not started yet.
    pub left: Arc<AtomicUsize>,
    /// Call that begins to serve the supervisor; only the first engine has it.
    pub serve: Option<Box<dyn FnOnce() + Send>>,
}

/// Server of the supervisor's letters, beside all engines.
pub(super) struct Server {
    /// Secret of the host's hashes.
    pub seed: u64,
    /// The interface, read while this process still had the privileges.
    pub device: Device,
    /// Number of engines that ran before these.
    pub restarts: u32,
    pub letters: Letters,
    /// The running version.
    pub version: Arc<Version>,
    pub service: Service<Next, Left>,
    /// True if the engines control ACKs; `queued` is true if they have queues.
    pub acks: bool,
    pub queued: bool,
    /// Kernel map from addresses to engines, if there are several.
    pub homes: Option<Homes>,
    /// Kernel map of addresses that no class takes.
    pub unlisted: Option<Unlisted>,
    /// Memory for the rules of each engine.
    pub books: Vec<Arc<RuleBook>>,
}

impl Server {
    /// Starts serving, on a thread of its own.
    pub(super) fn begin(self) {
        if let Err(error) = std::thread::Builder::new().spawn(move || self.run()) {
            tracing::error!("the engine cannot be asked or changed: {error}");
        }
    }

    /// Serves until the supervisor is gone. Writes the list of addresses first after a restart: the earlier
    /// engines may have died while changing it.
    fn run(self) {
        if self.restarts > 0 {
            self.settle(&self.version).unwrap_or_else(|error| tracing::error!("{error}"));
        }
        let mut addresses = Addresses::default();
        let add =
            |report: &mut GatewayReport, ask: &Ask| addresses.add_to(report, ask, self.unlisted.as_ref());
        self.service.run(&self.letters, self.version.clone(), |next, runs| self.make(next, runs), add);
    }

    /// Returns each engine's part of a version that replaces the running one. Addresses are assigned to their
    /// engine before it knows their classes.
    fn make(&self, next: &Version, runs: &Version) -> Result<Vec<Next>, String> {
        let [new, old] = [next, runs].map(|version| version.file.split());
        let compile = |(new, old): (engines::Part, engines::Part)| Part {
            config: Compiled::after(new.config, &old.config),
            places: new.places,
        };
        let [lists, had] = [next, runs].map(|version| Arc::new(Lists::of(version)));
        let queues = || self.queued.then(|| queues::node(next, &self.device, self.seed)).transpose();
        let books = self.books.iter().map(Some).chain(std::iter::repeat(None));
        let parts = new.parts.into_iter().zip(old.parts).zip(books);
        let next_of = |(parts, book): ((engines::Part, engines::Part), Option<&Arc<RuleBook>>)| {
            let shifts = self.shifts([(next, &lists, &parts.0), (runs, &had, &parts.1)]);
            let part: Option<Part> = self.acks.then(|| compile(parts));
            let acks = part.map(|part| {
                let staged = book.map(|book| stage(book, &part.config)).transpose()?;
                Ok::<_, String>((part, staged))
            });
            Ok(Next { acks: acks.transpose()?, queues: queues()?, lists: lists.clone(), shifts })
        };
        let made = parts.map(next_of).collect::<Result<_, String>>()?;
        self.settle(next)?;
        Ok(made)
    }

    /// Returns the rows of an engine that are sums of other classes in the next version than in the running
    /// one. Queues have all classes.
    fn shifts(&self, [new, old]: [(&Version, &Lists, &engines::Part); 2]) -> Vec<Shift> {
        let all = |version: &Version| (0..version.file.gateway.classes.len()).collect::<Vec<_>>();
        let here = [old, new].map(|(version, _, part)| match self.queued {
            true => all(version),
            false => part.places.clone(),
        });
        let side = |(version, lists, _): (_, _, &engines::Part), here| Side { version, lists, here };
        shifts::between(&side(old, &here[0]), &side(new, &here[1]))
    }

    fn settle(&self, version: &Version) -> Result<(), String> {
        self.homes.as_ref().map_or(Ok(()), |homes| homes.replace(&listed(version)).map_err(|e| e.to_string()))
    }
}

/// Writes the rules of a configuration beside the active ones.
fn stage(book: &RuleBook, config: &Compiled) -> Result<Staged, String> {
    let [out, inward] = [Direction::Out, Direction::In].map(|direction| config.rules(direction));
    book.stage([&out, &inward]).map_err(|e| e.to_string())
}

/// Activates the staged rules of the gateway.
fn hold(book: &RuleBook, staged: Staged, gateway: &Gateway) {
    let bounded = [Direction::Out, Direction::In].map(|direction| gateway.flows.is_bounded(direction));
    book.hold(staged, gateway.flows.places(), bounded);
}

/// Returns the list of addresses of a version.
pub(super) fn listed(version: &Version) -> Vec<Home> {
    let home = |(prefix, engine): (Prefix, usize)| {
        let (address, more) = match prefix.addr() {
            IpAddr::V4(address) => (address.to_ipv6_mapped(), 96),
            IpAddr::V6(address) => (address, 0),
        };
        Home { address: address.octets(), bits: prefix.bits() + more, engine: engine as u32 }
    };
    version.file.split().homes.into_iter().map(home).collect()
}

/// Engine that runs a node inline.
pub(super) struct InlineEngine<N> {
    node: N,
    start: Start,
    /// True if giant segments are split.
    splits: bool,
    meters: Meters,
    queue_meters: QueueMeters,
    /// Meters of the link, and of what no class takes.
    ways: [WaysMeter; 2],
    /// Latest time at which counters are next saved for the next engine.
    keep_next: Time,
}

/// Interval at which counters are saved for the next engine, if no client asks for them: with each report of
/// the driver, or more seldom where many classes have queues, so that it takes no more than a hundredth of a
/// processor.
const KEEP: Duration = Duration::from_secs(1);
const KEEP_OF_CLASS: Duration = Duration::from_millis(1);

impl<N: Inline> InlineEngine<N> {
    pub(super) fn new(node: N, start: Start) -> Self {
        if let Some((book, gateway)) = start.book.as_ref().zip(node.gateway()) {
            match stage(book, gateway.flows.compiled()) {
                Ok(staged) => hold(book, staged, gateway),
                Err(why) => tracing::error!("no class has a bound: {why}"),
            }
        }
        let splits = splits(&node);
        let (meters, queue_meters, ways) = Default::default();
        InlineEngine { node, start, splits, meters, queue_meters, ways, keep_next: Time::ZERO }
    }

    /// Returns a report on all traffic or on a part of it, and whether rates are known. Queues are not
    /// distinguished by address.
    fn look(&mut self, report: &Report<'_>, ask: &Ask) -> (GatewayReport, bool) {
        let mut said = GatewayReport {
            schema: SCHEMA,
            wall_s: report.now.since(self.start.began).as_secs_f64(),
            degraded: report.degraded.clone(),
            gateway: report::in_this_process(self.totals(report)),
            steering: report::steering(report, self.start.restarts),
            ..GatewayReport::default()
        };
        let mut known = true;
        let mut counted = Vec::new();
        if let Some(gateway) = self.node.gateway() {
            known = self.meters.knows(report.now);
            let part = live::Part { address: ask.address, shown: &ask.shown, places: &self.start.places };
            let seen = self.meters.look(gateway, report.now, &part, report.last);
            (said.classes, said.flows, counted) = (seen.classes, seen.flows, seen.counted);
            said.classes.iter_mut().for_each(|class| class.place = self.start.places[class.place]);
            counted.iter_mut().for_each(|class| class.place = self.start.places[class.place]);
            let stats = gateway.flows.stats();
            said.observes = gateway.flows.config().observe;
            (said.passed, said.events) = (report::passed(stats), report::events(stats));
        }
        if let Some(queues) = self.node.queues() {
            let (mut queued, seen_before) = self.queue_meters.look(queues, report.now);
            self.start.continued.queues(&mut queued);
            counted = with_queues(counted, &queued);
            let count = queued.len();
            let shows = |class: &GatewayClass| queues::shows(&ask.shown, class, count, report.last);
            said.classes = merged(said.classes, queued, shows);
            known &= seen_before;
        }
        let [of_link, of_unlisted] = &mut self.ways;
        known &= of_link.knows(report.now);
        said.snapshot = Snapshot {
            link: of_link.look(report::link(report), report.now),
            unlisted: of_unlisted.look(report::unlisted(report), report.now),
            classes: counted,
            shown: ask.shown.clone(),
            quality: quality(&self.node, report.now),
            carried: self.start.continued.carried(self.start.lists.places()),
            ..Snapshot::default()
        };
        self.start.lists.add_to(&mut said);
        // The counters of frames of a gateway without queues continue by themselves.
        let frames = self.node.queues().is_some();
        self.start.continued.driver(&mut said.gateway, &mut said.steering, frames);
        (said, known)
    }

    /// Returns the totals of this engine. Behind ACKs alone, the account of frames is all engines'.
    fn totals(&self, report: &Report<'_>) -> GatewayResult {
        let mut totals = self.node.totals(report.cpu);
        if self.node.queues().is_some() {
            report::lose_at_exits(&mut totals.frames, &report.exits);
        }
        totals
    }

    /// Updates the counters that outlive the engine.
    fn keep(&mut self, report: &Report<'_>) {
        let mut steering = report::steering(report, self.start.restarts);
        let mut totals = self.totals(report);
        let mut count = 0;
        if let Some(queues) = self.node.queues() {
            count = queues.config().classes.len() as u64;
            let (mut queued, _) = self.queue_meters.look(queues, report.now);
            self.start.continued.queues(&mut queued);
        }
        let frames = self.node.queues().is_some();
        self.start.continued.driver(&mut totals, &mut steering, frames);
        self.keep_next = report.now + KEEP_OF_CLASS.saturating_mul(count).min(KEEP);
    }

    /// Changes the configuration in all parts or in none.
    fn take(&mut self, cx: &mut Cx<'_>, next: Next) -> Result<Left, String> {
        let before = (!next.shifts.is_empty()).then(|| self.sums());
        let acks = match (self.node.gateway_mut(), next.acks) {
            (Some(gateway), Some((part, staged))) => {
                let changed = gateway.flows.reconfigure(part.config).map_err(|why| why.to_string())?;
                if let Some((book, staged)) = self.start.book.as_ref().zip(staged) {
                    hold(book, staged, gateway);
                }
                self.start.places = part.places;
                Some(changed)
            }
            _ => None,
        };
        let queues = next.queues.and_then(|queues| self.node.replace(cx, queues));
        self.start.lists = next.lists;
        self.splits = splits(&self.node);
        self.meters.forget_classes();
        self.queue_meters = QueueMeters::default();
        if let Some(before) = before {
            let carried = before.carried(&self.sums(), &next.shifts);
            self.start.continued.carry(&carried);
        }
        Ok((acks, queues))
    }

    /// Returns the sums of all classes that rows of reports have.
    fn sums(&mut self) -> Sums {
        let mut counted = self.node.gateway().map_or_else(Vec::new, live::counted);
        counted.iter_mut().for_each(|class| class.place = self.start.places[class.place]);
        if let Some(queues) = self.node.queues() {
            let mut queued = queues::classes(queues);
            self.start.continued.queues(&mut queued);
            counted = with_queues(counted, &queued);
        }
        Sums::of(counted, self.start.lists.places())
    }
}

/// Returns the distributions of round-trip times of all classes, if the node controls ACKs.
fn quality(node: &impl Inline, now: Time) -> [Quality; 2] {
    node.gateway()
        .map_or_else(Default::default, |gateway| gateway.flows.quality_of_all().map(|way| way.at(now)))
}

/// Returns whether giant segments are split for this node.
fn splits(node: &impl Inline) -> bool {
    let spilled = || node.gateway().is_some_and(|gateway| setup::splits(gateway.flows.config()));
    node.queues().is_some_and(|queues| setup::splits(queues.config())) || spilled()
}

/// Returns the rate that a class may have: that of its place in the tree of queues, or else that of its ACKs.
fn target(queued: &GatewayClass, of_acks: u64) -> u64 {
    Some(queued.class.target_bps).filter(|&bps| bps > 0).unwrap_or(of_acks)
}

/// Replaces the counters of classes with queues by those of their queues.
fn with_queues(controlled: Vec<Counted>, queued: &[GatewayClass]) -> Vec<Counted> {
    let mut controlled: HashMap<usize, Load> = controlled.into_iter().map(|c| (c.place, c.load)).collect();
    let both = |(place, class): (usize, &GatewayClass)| {
        let acks = controlled.remove(&place).unwrap_or_default();
        let load = queues::load(class).map_or(acks, |load| acks.with_queue(&load));
        Counted { place, load: Load { target_bps: target(class, load.target_bps), ..load } }
    };
    queued.iter().enumerate().map(both).collect()
}

/// Merges the reports of the part that controls ACKs and of the queues into one list of classes, in the
/// configuration's order. Classes are listed that the gateway lists, and those that `shows` tells.
fn merged(
    controlled: Vec<GatewayClass>,
    queued: Vec<GatewayClass>,
    shows: impl Fn(&GatewayClass) -> bool,
) -> Vec<GatewayClass> {
    let place = |class: GatewayClass| (class.place, class);
    let mut controlled: HashMap<usize, GatewayClass> = controlled.into_iter().map(place).collect();
    let both = |queued: GatewayClass| match controlled.remove(&queued.place) {
        // The gateway's figures cover the class's ACKs and tell more than those of its queue.
        Some(class) if queued.class.queue.is_none() || class.flows > 0 => {
            let target_bps = target(&queued, class.class.target_bps);
            let admission = queued.class.admission.or(class.class.admission);
            let result = ClassResult { queue: queued.class.queue, admission, target_bps, ..class.class };
            Some(GatewayClass { class: result, ..class })
        }
        Some(_) => Some(queued),
        None => shows(&queued).then_some(queued),
    };
    queued.into_iter().filter_map(both).collect()
}

impl<N: Inline> Engine for InlineEngine<N> {
    type Node = N;
    fn node(&mut self) -> &mut N {
        &mut self.node
    }
    fn started(&mut self) {
        // The engine has dropped its privileges by now, and the new thread inherits that.
        if let Some(serve) = self.start.serve.take() {
            serve();
        }
        if self.start.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            say_ready(self.start.restarts);
        }
    }
    fn change(&mut self, cx: &mut Cx<'_>) -> bool {
        let Some(next) = self.start.remote.next() else { return false };
        let left = self.take(cx, next);
        let changed = left.as_ref().ok().and_then(|(acks, _)| acks.as_ref());
        let reclassified = changed.is_some_and(|changed| changed.reclassified);
        self.start.remote.done(left);
        reclassified
    }
    fn counted(&self) -> [Fields; 2] {
        self.node.gateway().map_or([Fields::NONE; 2], |gateway| gateway.flows.counted_fields())
    }
    fn resync(&mut self, cx: &mut Cx<'_>) {
        let Some(gateway) = self.node.gateway_mut() else { return };
        gateway.flows.resync();
        gateway.resync_spilled(cx);
    }
    fn sent(&mut self, now: Time) {
        self.node.gateway_mut().into_iter().for_each(|gateway| gateway.settle_spilled(now));
    }
    fn stop(&mut self, cx: &mut Cx<'_>) -> bool {
        self.node.gateway_mut().is_none_or(|gateway| gateway.stop(cx))
    }
    fn splits(&self) -> bool {
        self.splits
    }
    fn verdicts(&mut self, out: &mut Vec<Verdict>) {
        let room = out.capacity() - out.len();
        out.extend(self.node.gateway_mut().into_iter().flat_map(|gateway| gateway.flows.verdicts(room)));
    }
    fn report(&mut self, report: &Report<'_>) {
        if self.start.writer.is_due(report) {
            let (written, _) = self.look(report, &Ask::default());
            self.start.writer.write(report, written);
        } else if report.now >= self.keep_next {
            self.keep(report);
        }
        if let Some(ask) = self.start.remote.asked() {
            let told = self.look(report, &ask);
            self.start.remote.tell(told);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::ClassQueue;

    fn class(place: usize, target_bps: u64, flows: u64, queue: Option<ClassQueue>) -> GatewayClass {
        let class = ClassResult { target_bps, queue, ..ClassResult::default() };
        GatewayClass { class, place, flows, ..GatewayClass::default() }
    }

    /// Class 1 is held by its ACKs below class 0 of the queues, class 2 by ACKs alone.
    #[test]
    fn a_class_is_listed_by_its_acks_or_by_its_queue_with_the_rate_that_it_may_have() {
        let queue = || Some(ClassQueue::default());
        let queued = || {
            let queues = [class(0, 50, 0, None), class(1, 20, 0, queue()), class(2, 0, 0, None)];
            queues.into_iter().chain([class(3, 30, 0, queue())]).collect::<Vec<_>>()
        };
        let controlled = vec![class(1, 8, 3, None), class(2, 7, 1, None)];
        let places = |shows: fn(&GatewayClass) -> bool| -> Vec<(usize, u64, u64)> {
            let listed = merged(controlled.clone(), queued(), shows);
            listed.iter().map(|c| (c.place, c.class.target_bps, c.flows)).collect()
        };
        assert_eq!(places(|_| false), [(1, 20, 3), (2, 7, 1)]);
        assert_eq!(places(|class| class.place == 3), [(1, 20, 3), (2, 7, 1), (3, 30, 0)]);
        let load = |target_bps| Load { target_bps, ..Load::default() };
        let counted = [(1, 8), (2, 7)].map(|(place, bps)| Counted { place, load: load(bps) });
        let all = with_queues(counted.into(), &queued());
        assert_eq!(all.iter().map(|c| c.load.target_bps).collect::<Vec<_>>(), [50, 20, 7, 30]);
    }
}
