//! Reports are written by a thread of their own: no engine must wait for a disk.

use crate::output::Target;
use serde::Serialize;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::Arc;
use std::thread::JoinHandle;
use weir_core::time::{Duration, Time};
use weir_io::driver::Report;
use weir_io::log::Seldom;
use weir_io::sys::clock;

/// How often a report is written while engines run.
const EVERY: Duration = Duration::from_secs(1);

/// An engine's way to the thread, which writes reports to a file, each whole or not at all.
pub(super) struct Writer<T> {
    next: Time,
    /// The engine's number.
    number: usize,
    sender: Option<SyncSender<(usize, T)>>,
    /// The thread, which the first engine begins when it is first needed.
    thread: Thread<T>,
}

enum Thread<T> {
    /// Another engine's, or none.
    NotOurs,
    Begins(Box<Writes<T>>),
    Runs(JoinHandle<()>),
}

/// What the thread has.
struct Writes<T> {
    target: Arc<Target>,
    receiver: Receiver<(usize, T)>,
    /// The last that each engine said.
    latest: Vec<Option<T>>,
    /// Makes one report of what all say.
    whole: fn(Vec<T>) -> T,
    /// That a report could not be written.
    failed: Seldom,
}

impl<T: Clone + Serialize + Send + 'static> Writer<T> {
    /// Of the only engine. Called in the engine's process.
    pub(super) fn new(target: Option<Arc<Target>>) -> Writer<T> {
        let one = |mut all: Vec<T>| all.swap_remove(0);
        Writer::several(target, 1, one).swap_remove(0)
    }

    /// One for each of so many engines; `whole` makes one report of what all say, in their order.
    pub(super) fn several(
        target: Option<Arc<Target>>,
        engines: usize,
        whole: fn(Vec<T>) -> T,
    ) -> Vec<Writer<T>> {
        let (sender, receiver) = sync_channel(engines);
        let sender = target.is_some().then_some(sender);
        let writer =
            |number| Writer { next: Time::ZERO, number, sender: sender.clone(), thread: Thread::NotOurs };
        let mut writers: Vec<Writer<T>> = (0..engines).map(writer).collect();
        if let Some(target) = target {
            let latest = (0..engines).map(|_| None).collect();
            writers[0].thread =
                Thread::Begins(Box::new(Writes { target, receiver, latest, whole, failed: Seldom::new() }));
        }
        writers
    }

    /// Is there something to write: is it time, or has the engine ended?
    pub(super) fn is_due(&self, report: &Report<'_>) -> bool {
        self.sender.is_some() && (report.now >= self.next || report.last)
    }

    /// Writes what is said now: with what other engines said last.
    pub(super) fn write(&mut self, report: &Report<'_>, value: T) {
        self.next = report.now + EVERY;
        // The engine has given up its privileges by now, and so has what it starts.
        self.thread = match std::mem::replace(&mut self.thread, Thread::NotOurs) {
            Thread::Begins(writes) => match std::thread::Builder::new().spawn(move || writes.run()) {
                Ok(thread) => Thread::Runs(thread),
                Err(error) => {
                    tracing::warn!("no reports are written: {error}");
                    Thread::NotOurs
                }
            },
            thread => thread,
        };
        if !report.last {
            // A writer that is not done with the last one skips this one.
            let _ = self.sender.as_ref().map(|sender| sender.try_send((self.number, value)));
            return;
        }
        if let Some(sender) = self.sender.take() {
            let _ = sender.send((self.number, value));
        }
        if let Thread::Runs(thread) = std::mem::replace(&mut self.thread, Thread::NotOurs) {
            // Until the last engine has said its last.
            let _ = thread.join();
        }
    }
}

impl<T: Clone + Serialize> Writes<T> {
    /// Writes each time that the first engine says something, and at the end.
    fn run(mut self) {
        while let Ok((number, value)) = self.receiver.recv() {
            self.latest[number] = Some(value);
            if number == 0 {
                self.save();
            }
        }
        if self.latest.len() > 1 {
            self.save();
        }
    }

    fn save(&mut self) {
        let Some(all) = self.latest.iter().cloned().collect() else { return };
        let text = serde_json::to_vec(&(self.whole)(all)).map_err(std::io::Error::from);
        if let Err(error) = text.and_then(|text| self.target.write(&text)) {
            if let Some(times) = self.failed.is_due(clock::now()) {
                let path = self.target.path().display();
                tracing::warn!(%error, %path, times, "the report could not be written, trying again each second");
            }
        }
    }
}
