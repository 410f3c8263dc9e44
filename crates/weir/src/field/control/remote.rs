//! The engine's side: a thread that reads letters and does what takes time, so that the engine never waits.

use super::letter::{FromEngine, ToEngine};
use super::slot::Slot;
use super::Version;
use crate::report::json;
use crate::result::running::GatewayReport;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_core::gateway::{Changed, Compiled, Unchangeable};
use weir_io::supervise::Letters;

/// How often the thread looks whether the engine has done something.
const LOOK: Duration = Duration::from_millis(1);
/// How long the engine may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Rates are those since a look that is at least so long ago.
const APART: Duration = Duration::from_millis(550);

/// A report is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Only of flows of this address.
    pub address: Option<IpAddr>,
}

/// A report, and whether its rates are known: there was a look before.
pub type Look = (GatewayReport, bool);

/// What engine and thread hand to each other.
#[derive(Default)]
struct Shared {
    config: Slot<Compiled>,
    changed: Slot<Result<Changed, Unchangeable>>,
    ask: Slot<Ask>,
    report: Slot<Look>,
}

/// The engine's handle on the thread.
#[derive(Default)]
pub struct Remote {
    shared: Arc<Shared>,
    /// What the thread could not be given yet.
    changed: Option<Result<Changed, Unchangeable>>,
}

impl Remote {
    /// Starts the thread, for an engine that runs this version.
    pub fn new(letters: Letters, version: Arc<Version>) -> Remote {
        let remote = Remote::default();
        let shared = remote.shared.clone();
        std::thread::spawn(move || serve(&letters, version, &shared));
        remote
    }

    /// A configuration to be taken now.
    pub fn config(&mut self) -> Option<Compiled> {
        if let Some(changed) = self.changed.take() {
            self.done(changed);
        }
        self.shared.config.take()
    }

    /// What became of it.
    pub fn done(&mut self, changed: Result<Changed, Unchangeable>) {
        self.changed = self.shared.changed.put(changed).err();
    }

    /// A report to be made now.
    pub fn asked(&self) -> Option<Ask> {
        self.shared.ask.take()
    }

    /// The report. If the thread is at the slot, it asks again.
    pub fn tell(&self, look: Look) {
        let _ = self.shared.report.put(look);
    }
}

/// Serves until the supervisor is gone.
fn serve(letters: &Letters, mut runs: Arc<Version>, shared: &Shared) {
    while let Ok(letter) = letters.wait() {
        let Ok((number, question)) = ToEngine::read(&letter) else { continue };
        let answer = match question {
            ToEngine::Configure { sources, settings } => match configure(shared, &runs, sources, settings) {
                Ok(version) => {
                    runs = version.into();
                    FromEngine::Configured.write(number)
                }
                Err(why) => FromEngine::Refused(&why).write(number),
            },
            ToEngine::Show { address } => match show(shared, Ask { address }) {
                Ok(json) => FromEngine::Report(&json).write(number),
                Err(why) => FromEngine::Refused(&why).write(number),
            },
        };
        if letters.send(&answer).is_err() {
            tracing::warn!("the supervisor could not be answered");
        }
    }
}

/// Has the engine take what these texts say.
fn configure(
    shared: &Shared,
    runs: &Version,
    sources: Vec<crate::experiment::config::Source>,
    settings: crate::experiment::config::Settings,
) -> Result<Version, String> {
    let version = Version::parse(sources, settings).map_err(|e| e.to_string())?;
    let compiled = Compiled::after(version.file.gateway.clone(), &runs.file.gateway);
    put(&shared.config, compiled)?;
    // What is left of the old configuration is dropped here.
    wait(&shared.changed)?.map(|_| version).map_err(|why| why.to_string())
}

fn show(shared: &Shared, ask: Ask) -> Result<String, String> {
    put(&shared.ask, ask)?;
    let (mut report, known) = wait(&shared.report)?;
    if !known {
        std::thread::sleep(APART);
        put(&shared.ask, ask)?;
        report = wait(&shared.report)?.0;
    }
    let text = json::pretty(&report).map_err(|e| e.to_string())?;
    String::from_utf8(text).map_err(|e| e.to_string())
}

fn put<T>(slot: &Slot<T>, mut value: T) -> Result<(), String> {
    let until = Instant::now() + PATIENCE;
    while let Err(back) = slot.put(value) {
        value = back;
        look(until)?;
    }
    Ok(())
}

fn wait<T>(slot: &Slot<T>) -> Result<T, String> {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = slot.take() {
            return Ok(value);
        }
        look(until)?;
    }
}

fn look(until: Instant) -> Result<(), String> {
    std::thread::sleep(LOOK);
    if Instant::now() < until {
        Ok(())
    } else {
        Err("the engine is too busy".to_owned())
    }
}
