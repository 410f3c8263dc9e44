//! Running a gateway or an emulator between two interfaces of this host.

mod engine;
mod report;

pub use report::{ClassDetail, EmulatorReport, GatewayFlow, GatewayReport, Lateness, SteeringReport};

use crate::plan;
use engine::{EmulatorEngine, GatewayEngine};
use report::Writer;
use std::io::Write;
use std::num::NonZeroU64;
use std::path::PathBuf;
use weir_core::flow::Record;
use weir_core::gateway::{rescue_ack, Config, MAX_ACK_LEN};
use weir_core::link;
use weir_core::time::Duration;
use weir_io::bpf::XdpMode;
use weir_io::driver::DriverConfig;
use weir_io::port::PoolConfig;
use weir_io::supervise::{BridgeUse, Records, Senders, Setup, Steered, Supervisor};

/// The `[ports]` of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Interface towards the LAN.
    pub lan: String,
    /// Interface towards the WAN.
    pub wan: String,
    /// Where XDP runs; `None`: in the driver if it can.
    pub xdp: Option<XdpMode>,
    /// Whether frames must be (`true`), must not be (`false`) or may be handed over without a copy.
    pub zero_copy: Option<bool>,
    /// How the driver runs.
    pub driver: DriverConfig,
}

impl Ports {
    /// Two interfaces with defaults for the rest.
    pub fn new(lan: &str, wan: &str) -> Ports {
        Ports {
            lan: lan.into(),
            wan: wan.into(),
            xdp: None,
            zero_copy: None,
            driver: DriverConfig::default(),
        }
    }
}

/// Runs a gateway until it is told to stop. With `json` it writes a [`GatewayReport`] there, every
/// second and at the end. Fails with everything that is in the way, the host unchanged.
pub fn gateway(ports: &Ports, config: &Config, json: Option<PathBuf>) -> Result<(), String> {
    let (lan, wan) = config.ack_ports();
    if !lan && !wan {
        return Err("no class controls anything: give one an `ack` policy".into());
    }
    let mut setup = Setup::new(&ports.lan, &ports.wan, Steered::Acks { lan, wan }, BridgeUse::Kernel);
    setup.xdp = ports.xdp;
    setup.verdicts = config.max_flows.max(1024);
    setup.pool.zero_copy = ports.zero_copy != Some(false);
    let supervisor = Supervisor::prepare(&setup).map_err(|p| p.to_string())?;
    let records = Records::<Record>::alloc(config.max_flows as usize)
        .map_err(|e| format!("memory for {} flows: {e}", config.max_flows))?;
    tracing::info!(lan = ports.lan, wan = ports.wan, "shaping");
    supervisor
        .run(
            |launch| {
                let records = records.take().ok_or_else(|| std::io::Error::other("records taken twice"))?;
                let writer = Writer::new(json.clone());
                let engine = GatewayEngine::new(config.clone(), records, launch.restarts, writer);
                say_ready(launch.restarts);
                launch.run(engine, ports.driver).map(drop)
            },
            |senders| rescue(&records, senders),
        )
        .map_err(|e| e.to_string())
}

/// Tells whoever started this that frames are taken: a line on standard output.
fn say_ready(restarts: u32) {
    if restarts == 0 {
        // Nobody may be reading.
        let _ = writeln!(std::io::stdout(), "{}", crate::traffic::READY);
    }
}

/// Sends what a dead engine held: one ACK per flow.
fn rescue(records: &Records<Record>, senders: &Senders) {
    let (mut lan, mut wan) = (Vec::new(), Vec::new());
    records.with(|records| {
        for record in records.iter_mut() {
            let mut buf = [0; MAX_ACK_LEN];
            if let Some(len) = rescue_ack(record, &mut buf) {
                let inward = record.has(weir_core::flow::flag::INWARD);
                if inward { &mut wan } else { &mut lan }.push(buf[..len].to_vec());
                record.tx = record.rx;
            }
        }
    });
    for (sender, frames) in [(&senders.lan, lan), (&senders.wan, wan)] {
        if let Err(error) = sender.send(&frames) {
            tracing::warn!(%error, "held acknowledgements could not be sent");
        } else if !frames.is_empty() {
            tracing::info!(flows = frames.len(), "sent what the engine held");
        }
    }
}

/// What `weir wan` runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Emulator {
    /// Name of the links in the report: `NAME.out` and `NAME.back`.
    pub name: String,
    /// Seed of random loss.
    pub seed: u64,
    /// From the LAN port to the WAN port.
    pub out: plan::Link,
    /// From the WAN port to the LAN port.
    pub back: plan::Link,
}

/// Frames that may be under way on a link without a rate.
const UNLIMITED_PIPE: Duration = Duration::from_millis(50);

/// Runs an emulator until it is told to stop. With `json` it writes an [`EmulatorReport`] there.
pub fn emulator(ports: &Ports, emulator: &Emulator, json: Option<PathBuf>) -> Result<(), String> {
    let mut setup = Setup::new(&ports.lan, &ports.wan, Steered::Full, BridgeUse::None);
    setup.xdp = ports.xdp;
    setup.pool = pool(emulator, ports.zero_copy != Some(false));
    let supervisor = Supervisor::prepare(&setup).map_err(|p| p.to_string())?;
    tracing::info!(lan = ports.lan, wan = ports.wan, "emulating");
    supervisor
        .run(
            |launch| {
                let writer = Writer::new(json.clone());
                say_ready(launch.restarts);
                launch.run(EmulatorEngine::new(emulator, writer), ports.driver).map(drop)
            },
            |_| {},
        )
        .map_err(|e| e.to_string())
}

/// A pool that holds what is under way and queued on both links, within 16,384 and 262,144 chunks.
fn pool(emulator: &Emulator, zero_copy: bool) -> PoolConfig {
    let frames = |l: &plan::Link| {
        // A mix of full frames and ACKs, half as long on average.
        let rate = l.rate.unwrap_or(weir_core::rate::Rate::mbit(1000));
        let pipe = if l.rate.is_none() { l.delay.max(UNLIMITED_PIPE) } else { l.delay };
        let queue = match l.queue {
            plan::Queue::Packets(n) => n,
            plan::Queue::Bytes(n) => n / 750,
        };
        rate.bytes_in(pipe) / 750 + queue
    };
    let wanted = 8192 + frames(&emulator.out) + frames(&emulator.back);
    PoolConfig {
        chunks: wanted.clamp(16_384, 262_144) as usize,
        reserve: 0,
        zero_copy,
        ..PoolConfig::default()
    }
}

/// The core's configuration of a link of a plan.
pub fn link_config(l: &plan::Link, seed: u64) -> link::Config {
    link::Config {
        rate: l.rate,
        delay: l.delay,
        loss: match l.loss {
            plan::Loss::None => link::Loss::None,
            plan::Loss::Random(p) => link::Loss::Random { trillionths: p.trillionths() },
            plan::Loss::Every(n) => {
                NonZeroU64::new(n).map_or(link::Loss::None, |n| link::Loss::Periodic { n })
            }
        },
        queue: queue_limit(l.queue),
        mark: l.mark.map(queue_limit),
        overhead: l.overhead,
        burst: l.burst,
        seed,
    }
}

fn queue_limit(queue: plan::Queue) -> link::QueueLimit {
    match queue {
        plan::Queue::Packets(n) => link::QueueLimit::Packets(n.min(u64::from(u32::MAX)) as u32),
        plan::Queue::Bytes(n) => link::QueueLimit::Bytes(n),
    }
}
