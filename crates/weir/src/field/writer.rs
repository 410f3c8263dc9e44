//! Writing of reports by a separate thread, so that no engine waits for a disk. The thread runs as the
//! supervisor's user, without capabilities, and can access only the directory of reports.

use crate::output::Target;
use serde::Serialize;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::Arc;
use std::thread::JoinHandle;
use weir_core::time::{Duration, Time};
use weir_io::driver::Report;
use weir_io::log::Seldom;
use weir_io::sys::{clock, sandbox};

/// Interval between reports while engines run.
const EVERY: Duration = Duration::from_secs(1);

/// An engine's end of the channel to the thread. The thread writes reports to a file, each whole or not at
/// all.
pub(super) struct Writer<T> {
    next: Time,
    /// The engine's number.
    number: usize,
    sender: Option<SyncSender<(usize, T)>>,
    /// The thread, if this engine waits for its end.
    thread: Option<JoinHandle<()>>,
}

/// Stack size, with room for merging reports.
const STACK: usize = 512 << 10;

/// State of the thread.
struct Writes<T> {
    target: Arc<Target>,
    receiver: Receiver<(usize, T)>,
    /// Last report of each engine.
    latest: Vec<Option<T>>,
    /// Merges the reports of all engines into one.
    whole: fn(Vec<T>) -> T,
    /// Log of failed writes, limited in rate.
    failed: Seldom,
}

impl<T: Clone + Serialize + Send + 'static> Writer<T> {
    /// Returns the writer of the only engine. Called in the engine's process.
    pub(super) fn new(target: Option<Arc<Target>>) -> Writer<T> {
        let one = |mut all: Vec<T>| all.swap_remove(0);
        Writer::several(target, 1, one).swap_remove(0)
    }

    /// Returns one writer for each engine. `whole` merges their reports, given in the engines' order.
    pub(super) fn several(
        target: Option<Arc<Target>>,
        engines: usize,
        whole: fn(Vec<T>) -> T,
    ) -> Vec<Writer<T>> {
        let (sender, receiver) = sync_channel(engines);
        let sender = target.is_some().then_some(sender);
        let writer = |number| Writer { next: Time::ZERO, number, sender: sender.clone(), thread: None };
        let mut writers: Vec<Writer<T>> = (0..engines).map(writer).collect();
        if let Some(target) = target {
            let latest = (0..engines).map(|_| None).collect();
            let writes = Writes { target, receiver, latest, whole, failed: Seldom::new() };
            // The thread starts while the engine still runs as the supervisor's user, who owns the directory.
            let thread = std::thread::Builder::new().stack_size(STACK).spawn(move || writes.run());
            writers[0].thread =
                thread.inspect_err(|error| tracing::warn!("no reports are written: {error}")).ok();
        }
        writers
    }

    /// Returns whether a report is due or the engine has ended.
    pub(super) fn is_due(&self, report: &Report<'_>) -> bool {
        self.sender.is_some() && (report.now >= self.next || report.last)
    }

    /// Writes a report, with the last ones of the other engines.
    pub(super) fn write(&mut self, report: &Report<'_>, value: T) {
        self.next = report.now + EVERY;
        if !report.last {
            // A report is skipped while the thread is still busy with the last one.
            let _ = self.sender.as_ref().map(|sender| sender.try_send((self.number, value)));
            return;
        }
        if let Some(sender) = self.sender.take() {
            let _ = sender.send((self.number, value));
        }
        if let Some(thread) = self.thread.take() {
            // The thread ends after the last report of the last engine.
            let _ = thread.join();
        }
    }
}

impl<T: Clone + Serialize> Writes<T> {
    /// Writes whenever the first engine reports, and at the end.
    fn run(mut self) {
        if let Err(error) = sandbox::confine_writer(self.target.directory()) {
            tracing::warn!("what writes reports keeps its privileges: {error}");
        }
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
