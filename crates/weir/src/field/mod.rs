//! Running a gateway or an emulator on this host.

mod combined;
pub mod control;
mod engine;
mod live;
mod report;
mod setup;
mod sharing;
pub mod shell;
mod writer;

pub use setup::{emulator as emulator_setup, gateway as gateway_setup};

use crate::experiment::config::wan::WanFile;
use crate::output::Target;
pub use control::Version;
use control::{Desk, Running};
use engine::{EmulatorEngine, GatewayEngine};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use weir_core::flow::Record;
use weir_core::gateway::{rescue_ack, Gateway, MAX_ACK_LEN};
use weir_core::steer::Slot;
use weir_io::supervise::{NoOperator, Records, Senders, Steered, Supervisor, STATE};
use writer::Writer;

/// Runs a gateway until it is told to stop, on a host that its hash's `seed` is a secret to. It is read again from `path`.
/// With `json` it writes a [`crate::result::running::GatewayReport`] there, every second and at the end. Fails with
/// everything that is in the way, the host unchanged.
pub fn gateway(
    version: Version,
    path: Option<PathBuf>,
    seed: u64,
    json: Option<Target>,
) -> Result<(), String> {
    match setup::steered(&version.file.gateway) {
        Steered::Acks(_) => {}
        Steered::All { .. } => return sharing::run(version, path, seed, json),
        Steered::Both { .. } => return combined::run(version, path, seed, json),
    }
    let (driving, max_flows) = (version.file.driving, version.file.gateway.max_flows);
    let supervisor = Supervisor::prepare(&setup::gateway(&version.file)).map_err(|p| p.to_string())?;
    let slots = supervisor.slots();
    let records = Records::<Record>::alloc(max_flows as usize)
        .map_err(|e| format!("memory for {max_flows} flows: {e}"))?;
    let json = json.map(Arc::new);
    tracing::info!(dev = version.file.dev, "shaping");
    let running = Running::new(version, path, seed);
    supervisor
        .run(
            |mut launch| {
                let records = records.take().ok_or_else(|| std::io::Error::other("records taken twice"))?;
                let config = running.take().ok_or_else(|| std::io::Error::other("started twice"))?;
                let gateway = Gateway::with_shared(config, records, launch.slots).counted_in(launch.tallies);
                let letters = launch.letters.take().map(|letters| (letters, running.version()));
                let engine = GatewayEngine::new(gateway, launch.restarts, Writer::new(json.clone()), letters);
                launch.run(engine, setup::gateway_driver(&driving)).map(drop)
            },
            |senders| rescue(&records, slots, senders),
            &mut Desk::new(&running),
        )
        .map_err(|e| e.to_string())
}

/// Runs an emulator until it is told to stop. With `json` it writes an [`crate::result::running::EmulatorReport`] there.
pub fn emulator(file: &WanFile, json: Option<Target>) -> Result<(), String> {
    let supervisor = Supervisor::prepare(&setup::emulator(file)).map_err(|p| p.to_string())?;
    let json = json.map(Arc::new);
    tracing::info!("emulating");
    supervisor
        .run(
            |launch| {
                let writer = Writer::new(json.clone());
                let engine = EmulatorEngine::new(&file.path, file.seed, launch.restarts, writer);
                launch.run(engine, setup::emulator_driver(file)).map(drop)
            },
            |_| {},
            &mut NoOperator,
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
