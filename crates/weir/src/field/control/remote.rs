//! The engine's side: a thread that reads letters and does what takes time, so that the engine never waits.

use super::letter::{FromEngine, ToEngine};
use super::slot::Slot;
use super::Version;
use crate::report::json;
use crate::result::running::GatewayReport;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
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
struct Shared<N, O> {
    next: Slot<N>,
    changed: Slot<Result<O, String>>,
    ask: Slot<Ask>,
    report: Slot<Look>,
}

/// The engine's handle on the thread: `N` is what it makes of a configuration for the engine, `O` what that leaves, which the thread drops.
pub struct Remote<N, O> {
    shared: Arc<Shared<N, O>>,
    /// What the thread could not be given yet.
    changed: Option<Result<O, String>>,
}

impl<N: Send + 'static, O: Send + 'static> Remote<N, O> {
    /// Starts the thread, for an engine that runs this version. It makes of another version what the engine takes.
    pub fn new(
        letters: Letters,
        version: Arc<Version>,
        make: impl Fn(&Version, &Version) -> Result<N, String> + Send + 'static,
    ) -> Remote<N, O> {
        let (next, changed, ask, report) = Default::default();
        let shared = Arc::new(Shared { next, changed, ask, report });
        let served = shared.clone();
        std::thread::spawn(move || serve(&letters, version, &served, make));
        Remote { shared, changed: None }
    }

    /// What is to be taken now.
    pub fn next(&mut self) -> Option<N> {
        if let Some(changed) = self.changed.take() {
            self.done(changed);
        }
        self.shared.next.take()
    }

    /// What became of it.
    pub fn done(&mut self, changed: Result<O, String>) {
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
fn serve<N, O>(
    letters: &Letters,
    mut runs: Arc<Version>,
    shared: &Shared<N, O>,
    make: impl Fn(&Version, &Version) -> Result<N, String>,
) {
    while let Ok(letter) = letters.wait() {
        let Ok((number, question)) = ToEngine::read(&letter) else { continue };
        let answer = match question {
            ToEngine::Configure { sources, settings } => {
                let version = Version::parse(sources, settings).map_err(|e| e.to_string());
                match version.and_then(|version| configure(shared, make(&version, &runs)?).map(|()| version))
                {
                    Ok(version) => {
                        runs = version.into();
                        FromEngine::Configured.write(number)
                    }
                    Err(why) => FromEngine::Refused(&why).write(number),
                }
            }
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

/// Has the engine take what comes next.
fn configure<N, O>(shared: &Shared<N, O>, next: N) -> Result<(), String> {
    put(&shared.next, next)?;
    // What is left of the old configuration is dropped here.
    wait(&shared.changed)?.map(drop)
}

fn show<N, O>(shared: &Shared<N, O>, ask: Ask) -> Result<String, String> {
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
