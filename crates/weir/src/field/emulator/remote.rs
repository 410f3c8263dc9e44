//! The engine's side of requests to a running emulator: a thread that reads letters, so that the engine never
//! waits.

use crate::field::control::{Late, Slot};
use crate::result::running::EmulatorReport;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_core::link::Config;
use weir_io::supervise::Letters;

/// Interval at which the thread polls the engine's slots.
const LOOK: Duration = Duration::from_millis(1);
/// Longest time that the engine may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Question of the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Question {
    /// Become these links: out, back.
    Change(Box<[Config; 2]>),
    /// Send a report.
    Show,
}

/// Answer of the engine.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    /// The links are changed.
    Changed,
    /// A report.
    Report(Box<EmulatorReport>),
    /// Reason why neither was possible.
    Refused(String),
}

/// A letter: a number, which the answer repeats, and what is said.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Letter<T>(pub u64, pub T);

impl<T: Serialize + for<'a> Deserialize<'a>> Letter<T> {
    /// Serializes the letter.
    pub fn write(&self) -> Vec<u8> {
        // Serialization cannot fail: all fields can be expressed in JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Returns the letter; `None` if it is malformed.
    pub fn read(text: &[u8]) -> Option<Letter<T>> {
        serde_json::from_slice(text).ok()
    }
}

/// Slots between the engine and the thread.
#[derive(Debug, Default)]
pub(super) struct Shared {
    next: Slot<[Config; 2]>,
    changed: Slot<()>,
    ask: Slot<()>,
    report: Slot<EmulatorReport>,
}

/// The engine's handle on the thread.
#[derive(Debug, Default)]
pub(super) struct Remote {
    pub shared: Arc<Shared>,
    changed: Late<()>,
    told: Late<EmulatorReport>,
}

impl Remote {
    /// Returns the links to become now.
    pub fn next(&mut self) -> Option<[Config; 2]> {
        self.changed.again(&self.shared.changed);
        self.shared.next.take()
    }

    /// Notes that the engine has them.
    pub fn changed(&mut self) {
        self.changed.put(&self.shared.changed, ());
    }

    /// Returns whether a report is asked for.
    pub fn is_asked(&mut self) -> bool {
        self.told.again(&self.shared.report);
        self.shared.ask.take().is_some()
    }

    /// Hands over the report.
    pub fn tell(&mut self, report: EmulatorReport) {
        self.told.put(&self.shared.report, report);
    }
}

/// The thread, before it runs.
pub(super) struct Server {
    pub letters: Letters,
    pub shared: Arc<Shared>,
}

impl Server {
    /// Starts serving, on a thread of its own.
    pub fn begin(self) {
        if let Err(error) = std::thread::Builder::new().spawn(move || self.run()) {
            tracing::error!("the emulator cannot be asked or changed: {error}");
        }
    }

    /// Serves until the supervisor is gone.
    fn run(self) {
        while let Ok(letter) = self.letters.wait() {
            let Some(Letter(number, question)) = Letter::<Question>::read(&letter) else { continue };
            let reply = match question {
                Question::Change(links) => {
                    self.exchange(&self.shared.next, *links, &self.shared.changed).map(|()| Reply::Changed)
                }
                Question::Show => self
                    .exchange(&self.shared.ask, (), &self.shared.report)
                    .map(|report| Reply::Report(report.into())),
            };
            let reply = Letter(number, reply.unwrap_or_else(Reply::Refused));
            if self.letters.send(&reply.write()).is_err() {
                tracing::warn!("the supervisor could not be answered");
            }
        }
    }

    /// Puts a value where the engine takes it, and waits for the result.
    fn exchange<A, B>(&self, to: &Slot<A>, value: A, from: &Slot<B>) -> Result<B, String> {
        let until = Instant::now() + PATIENCE;
        // A late result of an exchange that was given up.
        drop(from.take());
        let mut value = Some(value);
        while Instant::now() < until {
            value = value.and_then(|value| to.put(value).err());
            if let Some(found) = from.take() {
                return Ok(found);
            }
            std::thread::sleep(LOOK);
        }
        Err("the engine is too busy".into())
    }
}
