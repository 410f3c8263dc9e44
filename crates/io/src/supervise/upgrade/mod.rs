//! Upgrade in place: the supervisor executes another version of Weir in its own process.
//!
//! ```text
//! client: upgrade PATH ─> supervisor ── fork ─> rehearsal: PATH with the same arguments, only checks
//!                            │ fits
//!                            ├ writes the state (handover) and keeps descriptors open
//!                            └ execve(PATH) ─> adopts, loads and exchanges programs, forks an engine
//! ```
//!
//! - The process keeps its number, so the service manager sees no end. Interfaces, links of programs, locks,
//!   the socket and its clients are the same.
//! - The engine of before runs until the new programs are loaded.
//! - Programs with the same layout of maps and records go on with all flows and counters: the next engine
//!   takes over as from one that has died.
//! - Others begin with empty records. Their engine begins beside the old one. Once it beats, the programs are
//!   exchanged, and the old one flushes what it holds and ends.
//! - Whole frames come to one engine only, so the old one is killed before the next one begins. Frames are
//!   lost for a moment, which is less than an unshaped one would cost.
//! - Bounds are kept meanwhile, with or without an engine. Those of other programs begin without room.
//! - A program that fails its rehearsal changes nothing. One that fails after it was executed leaves the host
//!   as any supervisor that was killed: the engine flushes and ends, and the programs come off.

mod adopt;
mod rehearsal;

pub(super) use rehearsal::{Rehearsal, Verdict};

use super::handover::{Handover, LeftSite, LeftStore, Sizes, FORMAT, LAYOUT, VARIABLE, VERSION};
use super::process::Process;
use super::{Operator, Supervisor};
use crate::bpf::LeftLink;
use crate::sys::clock;
use crate::sys::inherit::Heir;
use crate::sys::process::Execution;
use std::convert::Infallible;
use std::io;
use std::path::Path;
use weir_core::time::{Duration, Time};

/// Time for which bounds are kept without an engine, until the next one beats.
const BOUNDED: Duration = Duration::from_secs(2);

/// Engine of the program before, and what it has left.
#[derive(Debug)]
pub(super) struct Predecessor {
    /// `None` once it was told to end.
    process: Option<Process>,
    /// Cookies and roles of the sockets of it and of its supervisor.
    senders: Vec<(u64, u32)>,
    /// True if its records and maps are those of the next engine.
    same: bool,
}

impl Supervisor {
    /// Does the next step of an upgrade that a client has asked for. It does not return from the last one.
    pub(super) fn upgrade(&mut self, engine: &Process, operator: &mut impl Operator) {
        let Some(path) = self.control.upgrade() else { return };
        if let Err(why) = self.try_upgrade(&path, engine, operator) {
            self.rehearsal = None;
            self.control.refuse_upgrade(operator, &format!("nothing has changed: {why}"));
        }
    }

    fn try_upgrade(
        &mut self,
        path: &Path,
        engine: &Process,
        operator: &mut impl Operator,
    ) -> Result<(), String> {
        if !self.site.is_whole() {
            return Err("an interface is gone, or its programs are not attached".into());
        }
        let state = operator.state().ok_or("this gateway cannot be upgraded while it runs")?;
        let Some(rehearsal) = &mut self.rehearsal else {
            let (handover, _) = self.handover(engine, state, true);
            let rehearsal = handover.write().and_then(|state| Rehearsal::start(path, &state));
            self.rehearsal = Some(rehearsal.map_err(|error| format!("{}: {error}", path.display()))?);
            return Ok(());
        };
        match rehearsal.verdict() {
            // A request under way is answered first.
            _ if self.control.is_waiting() => Ok(()),
            None => Ok(()),
            Some(Verdict::Unfit(why)) => Err(format!("{}: {why}", path.display())),
            Some(Verdict::Fit(version)) => {
                let took = rehearsal.took();
                self.rehearsal = None;
                let Err(error) = self.execute(path, (&version, took), engine, state);
                Err(format!("{}: {error}", path.display()))
            }
        }
    }

    /// Executes the new program, which takes over. `took` is the time of its rehearsal.
    fn execute(
        &mut self,
        path: &Path,
        (version, took): (&str, Duration),
        engine: &Process,
        state: String,
    ) -> io::Result<Infallible> {
        tracing::info!("version {version} takes over from {VERSION}: executing {}", path.display());
        // The thread that copies the log ends with this program.
        if crate::log::opened().is_some_and(|log| !log.drain()) {
            return Err(io::Error::other("standard error takes no lines, which this program would lose"));
        }
        let (handover, mut heir) = self.handover(engine, state, false);
        let state = handover.write()?;
        let execution = Execution::again(path).with(VARIABLE, heir.gets(&state).to_string());
        self.service.is_upgraded();
        // The next program may end this engine before its own beats, and cannot write to maps of another
        // layout. It loads what its rehearsal has loaded.
        self.site.programs.keep_bounds(clock::now() + took + took + BOUNDED);
        let error = heir.keep(true).map_or_else(|error| error, |()| execution.execute());
        self.site.programs.keep_bounds(Time::ZERO);
        heir.keep(false)?;
        self.service.stays();
        Err(error)
    }

    /// Composes the state, and lists the descriptors that go with it.
    fn handover(&self, engine: &Process, operator: String, rehearsal: bool) -> (Handover, Heir) {
        let mut heir = Heir::default();
        let site = &self.site;
        let handover = Handover {
            format: FORMAT,
            layout: LAYOUT.into(),
            version: VERSION.into(),
            rehearsal,
            operator,
            sizes: Sizes::of(&site.setup),
            site: site.leave(&mut heir),
            instance: site.locks.instance.clone(),
            locks: site.locks.held.iter().filter_map(|lock| lock.leave(&mut heir)).collect(),
            engine: Some(engine.leave(&mut heir)),
            dying: self.dying.iter().map(|process| process.leave(&mut heir)).collect(),
            stores: self
                .stores
                .iter()
                .map(|store| LeftStore { name: store.name.clone(), fd: heir.gets(&store.file) })
                .collect(),
            count: self.count,
            began: self.began.as_nanos(),
            ..self.control.leave(&mut heir)
        };
        (handover, heir)
    }
}

impl LeftSite {
    /// Names of the BPF programs on interfaces.
    fn programs(&self) -> impl Iterator<Item = &str> {
        let of_places = self.places.iter().map(|place| &place.attached);
        let of_home = self.home.iter().map(|(_, attached)| attached);
        let of_pair = self.internal.iter().flat_map(|(_, attached)| attached);
        of_places.chain(of_home).chain(of_pair).flatten().map(LeftLink::program)
    }
}
