//! The engines' side: a thread that reads letters and does slow work, so that no engine waits.

use super::letter::{FromEngine, ToEngine};
use super::slot::{Late, Slot};
use super::Version;
use crate::field::whole::whole;
use crate::report::json;
use crate::result::running::GatewayReport;
use crate::result::traffic::Shown;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_io::supervise::Letters;

/// Interval at which the thread polls the engine's slots.
const LOOK: Duration = Duration::from_millis(1);
/// Longest time that the engine may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Minimum age of the earlier look that rates are computed from.
const APART: Duration = Duration::from_millis(550);

/// Request for a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// Address that the report's flows are limited to.
    pub address: Option<IpAddr>,
    /// Classes that the report shows.
    pub shown: Shown,
}

/// A report, and whether its rates are known, which requires an earlier look.
pub type Look = (GatewayReport, bool);

/// Slots between an engine and the thread.
struct Shared<N, O> {
    next: Slot<N>,
    changed: Slot<Result<O, String>>,
    ask: Slot<Ask>,
    report: Slot<Look>,
}

/// An engine's handle on the thread. `N` is what the thread prepares for the engine from a configuration. `O`
/// is what the change leaves over, which the thread drops.
pub struct Remote<N, O> {
    shared: Arc<Shared<N, O>>,
    changed: Late<Result<O, String>>,
    told: Late<Look>,
}

/// The thread's work for all engines, before it runs.
pub struct Service<N, O> {
    engines: Vec<Arc<Shared<N, O>>>,
}

impl<N, O> Remote<N, O> {
    /// Returns handles for `engines` engines.
    pub fn several(engines: usize) -> (Vec<Remote<N, O>>, Service<N, O>) {
        let shared = || {
            let (next, changed, ask, report) = Default::default();
            Arc::new(Shared { next, changed, ask, report })
        };
        let engines: Vec<_> = (0..engines).map(|_| shared()).collect();
        let handle = |shared: &Arc<Shared<N, O>>| Remote {
            shared: shared.clone(),
            changed: Late::default(),
            told: Late::default(),
        };
        let handles = engines.iter().map(handle).collect();
        (handles, Service { engines })
    }

    /// Returns the change to make now.
    pub fn next(&mut self) -> Option<N> {
        self.changed.again(&self.shared.changed);
        self.shared.next.take()
    }

    /// Reports the result of the change.
    pub fn done(&mut self, changed: Result<O, String>) {
        self.changed.put(&self.shared.changed, changed);
    }

    /// Returns the request for a report, if there is one.
    pub fn asked(&mut self) -> Option<Ask> {
        self.told.again(&self.shared.report);
        self.shared.ask.take()
    }

    /// Hands over the report.
    pub fn tell(&mut self, look: Look) {
        self.told.put(&self.shared.report, look);
    }
}

impl<N, O> Service<N, O> {
    /// Serves until the supervisor is gone, for engines that run version `runs`. `make` returns each engine's
    /// part of another version, in place of the running one. `add` completes reports of all engines, and
    /// returns whether the rates that it adds are known.
    pub fn run(
        &self,
        letters: &Letters,
        mut runs: Arc<Version>,
        make: impl Fn(&Version, &Version) -> Result<Vec<N>, String>,
        mut add: impl FnMut(&mut GatewayReport, &Ask) -> bool,
    ) {
        while let Ok(letter) = letters.wait() {
            let Ok((number, question)) = ToEngine::read(&letter) else { continue };
            let answer = match question {
                ToEngine::Configure { sources, settings } => {
                    let version = Version::parse(sources, settings).map_err(|e| e.to_string());
                    match version.and_then(|version| self.change(&version, &runs, &make).map(|()| version)) {
                        Ok(version) => {
                            runs = version.into();
                            FromEngine::Configured.write(number)
                        }
                        Err(why) => FromEngine::Refused(&why).write(number),
                    }
                }
                ToEngine::Show { address, shown } => match self.show(&Ask { address, shown }, &mut add) {
                    Ok(json) => FromEngine::Report(&json).write(number),
                    Err(why) => FromEngine::Refused(&why).write(number),
                },
            };
            if letters.send(&answer).is_err() {
                tracing::warn!("the supervisor could not be answered");
            }
        }
    }

    /// Changes all engines to another version. If one of several refuses it, all return to the running
    /// version.
    fn change(
        &self,
        next: &Version,
        runs: &Version,
        make: impl Fn(&Version, &Version) -> Result<Vec<N>, String>,
    ) -> Result<(), String> {
        let changed = self.configure(make(next, runs)?);
        if changed.is_err() && self.engines.len() > 1 {
            self.configure(make(runs, next)?)?;
        }
        changed
    }

    /// Hands each engine its next configuration and waits for the results.
    fn configure(&self, next: Vec<N>) -> Result<(), String> {
        self.engines.iter().zip(next).try_for_each(|(engine, next)| put(&engine.next, next))?;
        // The remains of the old configuration are dropped here.
        let changed = self.engines.iter().map(|engine| wait(&engine.changed)?.map(drop));
        changed.fold(Ok(()), Result::and)
    }

    fn show(
        &self,
        ask: &Ask,
        add: &mut impl FnMut(&mut GatewayReport, &Ask) -> bool,
    ) -> Result<String, String> {
        let mut look = || {
            let (reports, known) = self.ask(ask)?;
            let mut report = whole(reports);
            let added = add(&mut report, ask);
            Ok::<Look, String>((report, known && added))
        };
        let (mut report, known) = look()?;
        if !known {
            std::thread::sleep(APART);
            report = look()?.0;
        }
        let text = json::pretty(&report).map_err(|e| e.to_string())?;
        String::from_utf8(text).map_err(|e| e.to_string())
    }

    /// Returns the reports of all engines, and whether all know their rates.
    fn ask(&self, ask: &Ask) -> Result<(Vec<GatewayReport>, bool), String> {
        self.engines.iter().try_for_each(|engine| {
            // What came too late for the request before.
            drop(engine.report.take());
            put(&engine.ask, ask.clone())
        })?;
        let looks: Vec<Look> =
            self.engines.iter().map(|engine| wait(&engine.report)).collect::<Result<_, _>>()?;
        let known = looks.iter().all(|(_, known)| *known);
        Ok((looks.into_iter().map(|(report, _)| report).collect(), known))
    }
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
