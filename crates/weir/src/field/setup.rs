//! Translation of a configuration to what is set up on the host: the same for running and for checking.

use crate::experiment::config::gateway::GatewayFile;
use crate::experiment::config::ports::{Attach, Driving, MOST_ENGINES};
use crate::experiment::config::wan::WanFile;
use weir_core::ack::{AckControl, Window};
use weir_core::gateway::{ClassConfig, Config, Direction};
use weir_core::link::{self, Aqm, Damage, Loss};
use weir_core::pace::Target;
use weir_core::rate::Rate;
use weir_core::time::Duration;
use weir_io::driver::{DriverConfig, Spin};
use weir_io::port::PoolConfig;
use weir_io::supervise::{self, Setup, Steered, TakenAcks};

/// Frames that wait in a gateway's queues and are under way at most: 16,384 of 2 KiB each and their parts.
const QUEUES_POOL: PoolConfig = PoolConfig::of_frames(65_536);
/// Below this rate a giant segment of 64 KiB holds up others for longer than a millisecond, and is split.
const SPLIT_BELOW: Rate = Rate::mbit(500);

const _: () = assert!(MOST_ENGINES == supervise::MOST_ENGINES);

/// What a gateway's configuration needs of the host.
pub fn gateway(file: &GatewayFile) -> Setup {
    let steered = steered(&file.gateway);
    let mut setup = Setup::new(supervise::Attach::Dev(file.dev.clone()), steered);
    if steered.acks().is_some() {
        let parts = file.split().parts;
        setup.engines = parts.len() as u32;
        setup.flows = parts[0].config.max_flows;
        setup.tallies = tallies(parts.iter().map(|part| part.places.len()).max().unwrap_or(0));
    }
    if steered.frames().is_some() {
        let reserve = if steered.acks().is_some() { PoolConfig::ACKS.reserve } else { 0 };
        setup.pool = PoolConfig { reserve, ..QUEUES_POOL };
    }
    setup.wait = file.driving.wait;
    setup.control = true;
    setup
}

/// What a gateway takes to user space: ACKs of the directions of which a class controls them, all frames of those in which data
/// waits, or both.
pub(super) fn steered(config: &Config) -> Steered {
    let any = |what: &dyn Fn(&ClassConfig) -> bool| {
        [Direction::Out, Direction::In].map(|d| config.classes.iter().any(|c| c.direction == d && what(c)))
    };
    let [out, inward] = any(&|c| c.share.is_some());
    // What acknowledges the data that windows are told by passes the other way.
    let [out_by_window, in_by_window] =
        any(&|c| c.share.and_then(|s| s.pace).is_some_and(|pace| pace.target == Target::Window));
    let [out, inward] = [out || in_by_window, inward || out_by_window];
    let (acks_in, acks_out) = config.ack_ports();
    let sized = |ack: AckControl| matches!(ack.window, Window::Size { .. });
    let [size_out, size_in] = any(&|c| c.ack.is_some_and(sized));
    let acks = TakenAcks { out: acks_out, inward: acks_in, size_out, size_in };
    match (acks_in || acks_out, out || inward) {
        (true, true) => Steered::Both { acks, out, inward },
        (false, true) => Steered::All { out, inward },
        _ => Steered::Acks(acks),
    }
}

/// Room for twice as many classes as there are, and for a thousand more: a change of configuration cannot make any.
fn tallies(classes: usize) -> u32 {
    u32::try_from(2 * classes + 1024).unwrap_or(u32::MAX)
}

/// What an emulator's configuration needs of the host.
pub fn emulator(file: &WanFile) -> Setup {
    let (attach, steered) = match &file.attach {
        Attach::Dev(dev) => {
            let (out, inward) = file.taken();
            (supervise::Attach::Dev(dev.clone()), Steered::All { out, inward })
        }
        Attach::Pair { lan, wan } => {
            let pair = supervise::Attach::Pair { lan: lan.clone(), wan: wan.clone() };
            (pair, Steered::All { out: true, inward: true })
        }
    };
    let mut setup = Setup::new(attach, steered);
    setup.pool = pool(file);
    setup.wait = file.driving.wait;
    setup
}

/// How the driver of a gateway runs. It does not spin. Without queues its releases are milliseconds apart. With queues it is preferred
/// to other processes, but is no real-time process: what it holds is data, and a frame that leaves late takes nothing from its class,
/// while hosts behind it need the processor's time. Where classes are paced, lateness is what it is about, and it spins as an emulator does.
pub(super) fn gateway_driver(driving: &Driving, config: &Config, queues: bool) -> DriverConfig {
    let priority = if queues { 0 } else { 40 };
    let spin = if paces(config) { Spin::Adaptive } else { Spin::None };
    DriverConfig { session: queues, ..driver(driving, spin, priority) }
}

fn paces(config: &Config) -> bool {
    config.classes.iter().any(|class| class.share.is_some_and(|share| share.pace.is_some()))
}

/// Would a giant segment hold up others in queues of these rates for too long, or be a burst where there are to be none?
pub(super) fn splits(config: &Config) -> bool {
    let most = |c: &ClassConfig| c.share.and_then(|s| if s.parent.is_none() { s.rate } else { s.ceil });
    paces(config) || config.classes.iter().filter_map(most).any(|rate| rate < SPLIT_BELOW)
}

/// How the driver of an emulator runs: its error is how late it wakes. The kernel's packet processing shares its
/// processor and must get its turn for every frame, so it is preferred to others, but no real-time process.
pub(super) fn emulator_driver(file: &WanFile) -> DriverConfig {
    DriverConfig { session: true, ..driver(&file.driving, Spin::Adaptive, 0) }
}

/// Does it matter to a link which packets a giant segment stands for? At a high rate alone it does not.
pub(super) fn is_about_packets(link: &link::Config) -> bool {
    let slow = link.rate.is_some_and(|rate| rate < Rate::mbit(1000));
    let managed = link.mark.is_some() || link.aqm != Aqm::None;
    let whole = link.loss == Loss::None && link.damage == Damage::NONE;
    slow || managed || !whole || link.trace.is_some()
}

fn driver(driving: &Driving, spin: Spin, priority: u8) -> DriverConfig {
    let default = DriverConfig::default();
    DriverConfig {
        batch_delay: driving.batch_delay.unwrap_or(default.batch_delay),
        priority: Some(driving.priority.unwrap_or(priority)).filter(|&p| p > 0),
        cpu: driving.cpu.map(|c| c as usize),
        spin: driving.spin.map_or(spin, Spin::Fixed),
        ..default
    }
}

/// Frames that may be under way on a link without a rate.
const UNLIMITED_PIPE: Duration = Duration::from_millis(50);

/// A pool that holds what is under way and queued on both links, within 16,384 and 262,144 chunks.
pub(super) fn pool(file: &WanFile) -> PoolConfig {
    let frames = |l: &link::Config| {
        // A mix of full frames and ACKs, half as long on average.
        let rate = l.rate.unwrap_or(Rate::mbit(1000));
        let pipe = if l.rate.is_none() { l.delay.max(UNLIMITED_PIPE) } else { l.delay };
        rate.bytes_in(pipe) / 750 + l.queue.most_bytes(rate, 750) / 750
    };
    let wanted = 8192 + frames(&file.path.wan_out) + frames(&file.path.wan_back);
    PoolConfig::of_frames(wanted.clamp(16_384, 262_144) as usize)
}
