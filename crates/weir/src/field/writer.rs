//! The thread that writes reports: the engine's own thread must not wait for a disk.

use crate::output::Target;
use serde::Serialize;
use std::sync::mpsc::{sync_channel, SyncSender};
use std::sync::Arc;
use std::thread::JoinHandle;
use weir_core::time::{Duration, Time};
use weir_io::driver::Report;

/// How often a report is written while the engine runs.
const EVERY: Duration = Duration::from_secs(1);

/// Writes reports to a file, each whole or not at all.
pub(super) struct Writer {
    next: Time,
    target: Option<Arc<Target>>,
    thread: Option<(SyncSender<Document>, JoinHandle<()>)>,
}

/// A report on its way to the writing thread.
type Document = Box<dyn FnOnce() -> serde_json::Result<Vec<u8>> + Send>;

impl Writer {
    /// Called in the engine's process.
    pub(super) fn new(target: Option<Arc<Target>>) -> Writer {
        Writer { next: Time::ZERO, target, thread: None }
    }

    /// The thread, begun when it is first needed: the engine has given up its privileges by then, and so has what
    /// it starts.
    fn sender(&mut self) -> Option<&SyncSender<Document>> {
        if let Some(target) = self.target.take() {
            let (sender, receiver) = sync_channel::<Document>(1);
            let thread =
                std::thread::spawn(move || receiver.into_iter().for_each(|make| save(&target, make)));
            self.thread = Some((sender, thread));
        }
        self.thread.as_ref().map(|(sender, _)| sender)
    }

    /// Is there something to write: is it time, or has the engine ended?
    pub(super) fn is_due(&self, report: &Report<'_>) -> bool {
        let writes = self.target.is_some() || self.thread.is_some();
        writes && (report.now >= self.next || report.last)
    }

    /// Writes what is said now.
    pub(super) fn write<T: Serialize + Send + 'static>(&mut self, report: &Report<'_>, value: T) {
        self.next = report.now + EVERY;
        let Some(sender) = self.sender() else { return };
        let document: Document = Box::new(move || serde_json::to_vec(&value));
        if !report.last {
            // A writer that is not done with the last one skips this one.
            let _ = sender.try_send(document);
            return;
        }
        let Some((sender, thread)) = self.thread.take() else { return };
        let _ = sender.send(document);
        drop(sender);
        let _ = thread.join();
    }
}

fn save(target: &Target, make: Document) {
    let written = make().map_err(std::io::Error::from).and_then(|text| target.write(&text));
    if let Err(error) = written {
        tracing::warn!(%error, path = %target.path().display(), "the report could not be written");
    }
}
