//! Running a gateway or an emulator on this host.

mod continued;
pub mod control;
mod emulator;
mod inline;
mod lists;
mod live;
mod paced;
mod queues;
mod report;
mod setup;
pub mod shell;
mod shifts;
mod unlisted;
mod whole;
mod writer;

pub use emulator::run as emulator;
pub use setup::{emulator as emulator_setup, gateway as gateway_setup};

use crate::output::Target;
use crate::result::running::GatewayReport;
pub use control::Version;
use control::{Desk, Remote, Running};
use inline::{Inline, InlineEngine, Server, Start};
use lists::Lists;
use paced::Device;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::Arc;
use weir_core::combined::Combined;
use weir_core::flow::Record;
use weir_core::gateway::{rescue_ack, Accounts, ClassAccount, Compiled, Gateway, GatewayStats, MAX_ACK_LEN};
use weir_core::steer::Slot;
use weir_io::bpf::RuleBook;
use weir_io::driver::Launch;
use weir_io::supervise::{Inherited, Records, Senders, Steered, Supervisor, STATE};
use writer::Writer;

/// Runs a gateway until it is told to stop. `seed` is the secret of the host's hashes. The configuration is
/// read again from `path`. With `json` it writes a [`crate::result::running::GatewayReport`] there, every
/// second and at the end. Fails with all obstacles, and leaves the host unchanged.
pub fn gateway(
    version: Version,
    path: Option<PathBuf>,
    seed: u64,
    json: Option<Target>,
) -> Result<(), String> {
    let inherited = Inherited::take().map_err(|e| e.to_string())?;
    let kept = inherited.as_ref().map(|inherited| control::Kept::read(inherited.operator())).transpose()?;
    let (version, seed) = kept.unwrap_or((version, seed));
    if let Some(rehearsal) = inherited.as_ref().filter(|inherited| inherited.is_rehearsal()) {
        return rehearsal.rehearse(&setup::gateway(&version.file)).map_err(|p| p.to_string());
    }
    let steered = setup::steered(&version.file.gateway);
    let (acks, queued) = (steered.acks().is_some(), setup::has_queues(&version.file.gateway));
    let holds = steered.frames().is_some();
    let driver = setup::gateway_driver(&version.file.driving, &version.file.gateway, queued);
    let setup = setup::gateway(&version.file);
    let supervisor = match inherited {
        Some(inherited) => Supervisor::adopt(&setup, inherited),
        None => Supervisor::prepare(&setup),
    };
    let mut supervisor = supervisor.map_err(|p| p.to_string())?;
    let slots = supervisor.slots();
    let records = acks.then(|| supervisor.records::<Record>("flows", slots.len())).transpose();
    let records = records.map_err(|e| format!("memory for {} flows: {e}", slots.len()))?;
    let kept = acks.then(|| Totals::of(&mut supervisor, !holds)).transpose();
    let kept = kept.map_err(|e| format!("memory for totals: {e}"))?;
    let queues = if queued { 2 * version.file.gateway.classes.len() + 1024 } else { 0 };
    let rows = version.file.gateway.classes.len();
    let memory = continued::Memory::of(&mut supervisor, queues, rows);
    let memory = memory.map_err(|e| format!("memory for totals: {e}"))?;
    let json = json.map(Arc::new);
    tracing::info!(dev = version.file.dev, acks, queues = queued, "shaping");
    paced::tell_beyond(&version.file.gateway, &version.file.dev);
    lists::log(&lists::first(&version.file.notes));
    let running = Running::new(version, path, seed);
    let starts = |launch: &mut Launch<'_>, places: Vec<Vec<usize>>| {
        let books = books(launch);
        let (remotes, service) = Remote::several(places.len());
        let writers = Writer::several(json.clone(), places.len(), whole::whole);
        let (version, restarts, began) = (running.version(), launch.restarts, launch.began);
        let (homes, unlisted) = (launch.homes.take(), launch.unlisted.take());
        if let Some(homes) = homes.as_ref().filter(|_| restarts == 0) {
            homes.replace(&inline::listed(&version))?;
        }
        let letters = launch.letters.take();
        let said = Arc::new(Lists::of(&version));
        let server = letters.map(|letters| Server {
            seed,
            device: Device::of(&version.file.dev),
            restarts,
            letters,
            version,
            service,
            acks,
            queued,
            homes,
            unlisted,
            books: books.clone(),
        });
        let mut serve = server.map(|server| Box::new(move || server.begin()) as Box<dyn FnOnce() + Send>);
        let left = Arc::new(AtomicUsize::new(places.len()));
        let continued = memory.take().ok_or_else(|| io::Error::other("totals taken twice"))?;
        let books = books.into_iter().map(Some).chain(std::iter::repeat(None));
        let start = |((((places, remote), writer), continued), book)| Start {
            book,
            lists: said.clone(),
            restarts,
            began,
            continued,
            writer,
            remote,
            places,
            left: left.clone(),
            serve: serve.take(),
        };
        Ok::<Vec<Start>, io::Error>(
            places.into_iter().zip(remotes).zip(writers).zip(continued).zip(books).map(start).collect(),
        )
    };
    supervisor
        .run(
            |mut launch| {
                let (configs, places): (Vec<_>, Vec<_>) =
                    running.take().into_iter().map(|part| (part.config, part.places)).unzip();
                let shared = records.as_ref().zip(kept.as_ref());
                let controlled = |shared| gateways(&launch, shared, configs, steered);
                let gateways = shared.map(controlled).transpose()?;
                let queues = queued
                    .then(|| queues::node(&running.version(), &Device::of(&running.version().file.dev), seed))
                    .transpose();
                let queues = queues.map_err(io::Error::other)?;
                let starts = starts(&mut launch, places)?;
                match (gateways, queues) {
                    (Some(gateways), Some(queues)) => {
                        let nodes = gateways
                            .into_iter()
                            .zip([queues])
                            .map(|(acks, queues)| Combined::new(acks, queues));
                        launch.run_all(engines(nodes, starts), driver)
                    }
                    (Some(gateways), None) => launch.run_all(engines(gateways, starts), driver),
                    (None, Some(queues)) => launch.run_all(engines([queues], starts), driver),
                    (None, None) => Err(io::Error::other("neither ACKs nor queues")),
                }
            },
            |senders, places| {
                records.iter().for_each(|records| rescue(records, slots, places.clone(), senders))
            },
            || records.iter().for_each(Records::clear),
            &mut Desk::new(&running),
        )
        .map_err(|e| e.to_string())
}

/// Totals of gateways and classes that outlive engines.
struct Totals {
    gateways: Records<GatewayStats>,
    /// Accounts of classes, `each` for each gateway.
    classes: Records<ClassAccount>,
    each: usize,
    /// True if accounts of frames outlive engines.
    frames: bool,
}

impl Totals {
    fn of(supervisor: &mut Supervisor, frames: bool) -> io::Result<Totals> {
        let (engines, classes) = (supervisor.engines(), supervisor.tallies());
        let each = classes / engines;
        let gateways = supervisor.records("totals of gateways", engines)?;
        let classes = supervisor.records("totals of classes", classes)?;
        Ok(Totals { gateways, classes, each, frames })
    }

    /// Returns the totals of each engine's gateway, once in each process.
    fn take(&self) -> Option<impl Iterator<Item = Accounts>> {
        let classes = self.classes.take()?.chunks_mut(self.each);
        let both = self.gateways.take()?.iter_mut().zip(classes);
        // Queues restart empty, so the account of frames behind them restarts too.
        let frames = self.frames;
        Some(both.map(move |(totals, classes)| Accounts { totals, classes, frames }))
    }
}

/// Returns the memory for each engine's rules, if it has any.
fn books(launch: &mut Launch<'_>) -> Vec<Arc<RuleBook>> {
    let others = launch.others.iter_mut().filter_map(|other| other.rules.take());
    launch.rules.take().into_iter().chain(others).map(Arc::new).collect()
}

/// Returns the gateway of each engine, with its part of the memory.
fn gateways(
    launch: &Launch<'_>,
    (records, totals): (&Records<Record>, &Totals),
    configs: Vec<Compiled>,
    steered: Steered,
) -> io::Result<Vec<Gateway>> {
    let twice = || io::Error::other("records taken twice");
    let (records, accounts) = (records.take().ok_or_else(twice)?, totals.take().ok_or_else(twice)?);
    let hooked = steered.acks().map_or((false, false), |acks| (acks.inward, acks.out));
    let all = std::iter::once(launch).chain(&launch.others);
    let parts = records.chunks_mut(launch.slots.len()).zip(accounts).zip(all).zip(configs);
    let gateways = parts.map(|(((records, accounts), launch), config)| {
        let gateway = Gateway::with_accounts(config, records, launch.slots, Some(accounts));
        gateway
            .hooked_at(hooked)
            .counted_in(launch.tallies)
            .bounded_in(launch.bounds)
            .unread_bounded_in(launch.unread)
            .flows_bounded_in(launch.flow_bounds)
            .seen_in(launch.sights)
            .spilled_in(launch.spills)
    });
    Ok(gateways.collect())
}

/// Returns an engine for each node.
fn engines<N: Inline>(nodes: impl IntoIterator<Item = N>, starts: Vec<Start>) -> Vec<InlineEngine<N>> {
    nodes.into_iter().zip(starts).map(|(node, start)| InlineEngine::new(node, start)).collect()
}

/// Removes the remains of an abnormal end, of one interface or of all. Returns what it removed.
pub fn down(dev: Option<&str>) -> Result<Vec<String>, String> {
    weir_io::supervise::down(STATE.as_ref(), dev).map_err(|p| p.to_string())
}

/// Returns whether an emulator runs on `dev`.
pub fn is_emulator(dev: &str) -> bool {
    let answer = ask(Some(dev), "show").ok().and_then(|text| serde_json::from_str(&text).ok());
    answer.is_some_and(|answer: serde_json::Value| answer.get("emulator").is_some())
}

/// Interfaces whose gateways and emulators run in this network namespace.
pub fn running() -> Result<Vec<String>, String> {
    weir_io::supervise::running(STATE.as_ref()).map_err(|e| e.to_string())
}

/// Fails for users whom no gateway answers.
pub fn may_ask() -> Result<(), String> {
    weir_io::supervise::may_ask().map_err(|e| e.to_string())
}

/// Sends a request to the gateway on `dev`, or to the only one. Returns its answer, a JSON document.
pub fn ask(dev: Option<&str>, request: &str) -> Result<String, String> {
    let answer = weir_io::supervise::ask(STATE.as_ref(), dev, request).map_err(|e| e.to_string())?;
    String::from_utf8(answer).map_err(|e| e.to_string())
}

/// Longest wait for a gateway that executes another version, on a slow machine.
const WHILE_UPGRADED: std::time::Duration = std::time::Duration::from_secs(600);

/// Asks the gateway on `dev` to execute the program at `path` in place of its own. Returns its answer, which
/// the new program gives.
pub fn upgrade(dev: &str, path: &Path) -> Result<String, String> {
    let request = format!("upgrade {}", path.display());
    let answer = weir_io::supervise::within(WHILE_UPGRADED, STATE.as_ref(), Some(dev), &request);
    String::from_utf8(answer.map_err(|e| e.to_string())?).map_err(|e| e.to_string())
}

/// Asks the gateway on `dev`, or the only one, for a report by a request that begins with `show`.
pub fn report(dev: Option<&str>, request: &str) -> Result<GatewayReport, String> {
    #[derive(serde::Deserialize)]
    struct Shown {
        #[serde(default)]
        text: String,
        report: Option<GatewayReport>,
    }
    let shown: Shown = serde_json::from_str(&ask(dev, request)?)
        .map_err(|e| format!("the gateway's answer cannot be read: {e}"))?;
    shown.report.ok_or(shown.text)
}

/// Tells the parent process, by a line on standard output, that the gateway takes frames.
fn say_ready(restarts: u32) {
    if restarts == 0 {
        let say = || {
            // A missing reader is ignored.
            let _ = writeln!(std::io::stdout(), "{}", crate::output::READY);
        };
        // Writing may block, so a thread beside the engine does it.
        if let Err(error) = std::thread::Builder::new().spawn(say) {
            tracing::warn!("`{}` could not be said: {error}", crate::output::READY);
        }
    }
}

/// Sends one held ACK per flow of a dead or hanging engine that has these slots. ACKs that cannot be sent
/// stay held.
fn rescue(records: &Records<Record>, slots: &[Slot], places: Range<usize>, senders: &Senders) {
    let (mut lan, mut wan) = (Vec::new(), Vec::new());
    for (i, slot) in places.map(|i| (i, &slots[i])).filter(|(_, slot)| slot.is_open()) {
        let (record, mut buf) = (records.copy(i), [0; MAX_ACK_LEN]);
        if let Some(len) = rescue_ack(&record, slot, &mut buf) {
            let inward = record.has(weir_core::flow::flag::INWARD);
            if inward { &mut wan } else { &mut lan }.push(buf[..len].to_vec());
        }
    }
    // The slots record which ACKs have left.
    let sent = senders.send(&lan, &wan);
    let count = sent.lan.iter().chain(&sent.wan).filter(|sent| **sent).count();
    let held = lan.len() + wan.len();
    if count < held {
        tracing::warn!(flows = held - count, "held acknowledgements could not be sent: they stay held");
    }
    if count > 0 {
        tracing::info!(flows = count, "sent what the engine held");
    }
}
