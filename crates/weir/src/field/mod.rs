//! Running a gateway or an emulator on this host.

pub mod control;
mod emulator;
mod inline;
mod live;
mod queues;
mod report;
mod setup;
pub mod shell;
mod writer;

pub use emulator::run as emulator;
pub use setup::{emulator as emulator_setup, gateway as gateway_setup};

use crate::output::Target;
pub use control::Version;
use control::{Desk, Running};
use inline::{InlineEngine, Start};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use weir_core::combined::Combined;
use weir_core::flow::Record;
use weir_core::gateway::{rescue_ack, Gateway, MAX_ACK_LEN};
use weir_core::steer::Slot;
use weir_io::driver::Launch;
use weir_io::supervise::{Records, Senders, Supervisor, STATE};
use writer::Writer;

/// Runs a gateway until it is told to stop. `seed` is the secret of the host's hashes, and the configuration is read again from
/// `path`. With `json` it writes a [`crate::result::running::GatewayReport`] there, every second and at the end. Fails with
/// everything that is in the way, the host unchanged.
pub fn gateway(
    version: Version,
    path: Option<PathBuf>,
    seed: u64,
    json: Option<Target>,
) -> Result<(), String> {
    let steered = setup::steered(&version.file.gateway);
    let (acks, queued) = (steered.acks().is_some(), steered.frames().is_some());
    let driver = setup::gateway_driver(&version.file.driving, queued);
    let max_flows = version.file.gateway.max_flows;
    let supervisor = Supervisor::prepare(&setup::gateway(&version.file)).map_err(|p| p.to_string())?;
    let slots = supervisor.slots();
    let records = acks.then(|| Records::<Record>::alloc(max_flows as usize)).transpose();
    let records = records.map_err(|e| format!("memory for {max_flows} flows: {e}"))?;
    let json = json.map(Arc::new);
    tracing::info!(dev = version.file.dev, acks, queues = queued, "shaping");
    let running = Running::new(version, path, seed);
    let controlled = |launch: &Launch<'_>, records: &Records<Record>| {
        let records = records.take().ok_or_else(|| io::Error::other("records taken twice"))?;
        let config = running.take().ok_or_else(|| io::Error::other("started twice"))?;
        Ok::<_, io::Error>(Gateway::with_shared(config, records, launch.slots).counted_in(launch.tallies))
    };
    supervisor
        .run(
            |mut launch| {
                let version = running.version();
                let gateway = records.as_ref().map(|records| controlled(&launch, records)).transpose()?;
                let queues = queued.then(|| queues::node(&version, seed)).transpose();
                let queues = queues.map_err(io::Error::other)?;
                let writer = Writer::new(json.clone());
                let letters = launch.letters.take().map(|letters| (letters, version));
                let start = Start { seed, restarts: launch.restarts, writer, letters };
                match (gateway, queues) {
                    (Some(gateway), Some(queues)) => {
                        let node = Combined::new(gateway, queues);
                        launch.run(InlineEngine::new(node, start), driver).map(drop)
                    }
                    (Some(gateway), None) => launch.run(InlineEngine::new(gateway, start), driver).map(drop),
                    (None, Some(queues)) => launch.run(InlineEngine::new(queues, start), driver).map(drop),
                    (None, None) => Err(io::Error::other("neither ACKs nor queues")),
                }
            },
            |senders| records.iter().for_each(|records| rescue(records, slots, senders)),
            &mut Desk::new(&running),
        )
        .map_err(|e| e.to_string())
}

/// Removes what an abnormal end left: of one interface, or everything. Says what it removed.
pub fn down(dev: Option<&str>) -> Result<Vec<String>, String> {
    weir_io::supervise::down(STATE.as_ref(), dev).map_err(|p| p.to_string())
}

/// What the gateway on `dev`, or the only one, answers to a request: a JSON document.
pub fn ask(dev: Option<&str>, request: &str) -> Result<String, String> {
    let answer = weir_io::supervise::ask(STATE.as_ref(), dev, request).map_err(|e| e.to_string())?;
    String::from_utf8(answer).map_err(|e| e.to_string())
}

/// Tells whoever started this that frames are taken: a line on standard output.
fn say_ready(restarts: u32) {
    if restarts == 0 {
        // Nobody may be reading.
        let _ = writeln!(std::io::stdout(), "{}", crate::output::READY);
    }
}

/// Sends what an engine that is dead or hangs held: one ACK per flow. What could not be sent stays held.
fn rescue(records: &Records<Record>, slots: &[Slot], senders: &Senders) {
    let (mut lan, mut wan) = (Vec::new(), Vec::new());
    for (i, slot) in slots.iter().enumerate().filter(|(_, slot)| slot.is_open()) {
        let (record, mut buf) = (records.copy(i), [0; MAX_ACK_LEN]);
        if let Some(len) = rescue_ack(&record, slot, &mut buf) {
            let inward = record.has(weir_core::flow::flag::INWARD);
            if inward { &mut wan } else { &mut lan }.push(buf[..len].to_vec());
        }
    }
    // The slots tell what has left.
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
