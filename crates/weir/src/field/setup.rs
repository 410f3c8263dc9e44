//! Translation of a configuration to the setup of the host, for running and for checking.

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

/// Pool for frames in a gateway's queues and under way: at most 16,384 of 2 KiB each and their parts.
const QUEUES_POOL: PoolConfig = PoolConfig::of_frames(65_536);
/// Bytes of memory of a gateway without flows, and of each flow that it has room for, measured: two
/// processes, the record of the flow, its place in index, order and timers.
const NODE: u64 = 9 << 20;
const FLOW: u64 = 400;
/// Rate below which giant segments are split: one of 64 KiB would delay other packets by more than a
/// millisecond.
const SPLIT_BELOW: Rate = Rate::mbit(500);

const _: () = assert!(MOST_ENGINES == supervise::MOST_ENGINES);

/// Returns the setup that a gateway's configuration needs on the host.
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
    setup.node = NODE + u64::from(setup.engines) * u64::from(file.split().parts[0].config.max_flows) * FLOW;
    setup.wait = file.driving.wait;
    setup.control = true;
    setup
}

/// Returns the traffic that a gateway takes to user space: the ACKs in directions with classes that control
/// them, all frames in directions that queue data, or both.
pub(super) fn steered(config: &Config) -> Steered {
    let any = |what: &dyn Fn(&ClassConfig) -> bool| {
        [Direction::Out, Direction::In].map(|d| config.classes.iter().any(|c| c.direction == d && what(c)))
    };
    let [out, inward] = any(&|c| c.share.is_some());
    // Windows are learned from ACKs, which travel in the opposite direction of the data.
    let [out_by_window, in_by_window] =
        any(&|c| c.share.and_then(|s| s.pace).is_some_and(|pace| pace.target == Target::Window));
    let [out, inward] = [out || in_by_window, inward || out_by_window];
    let (acks_in, acks_out) = config.ack_ports();
    let sized = |ack: AckControl| matches!(ack.window, Window::Size { .. });
    let [size_out, size_in] = any(&|c| c.ack.is_some_and(sized));
    let observe = config.observe;
    let [spills_out, spills_in] = spilling(config);
    let (spill_out, spill_in) = (spills_out && !out, spills_in && !inward);
    let acks = TakenAcks { out: acks_out, inward: acks_in, size_out, size_in, spill_out, spill_in, observe };
    let [out, inward] = [out || spill_out, inward || spill_in];
    match (acks_in || acks_out, out || inward) {
        (true, true) => Steered::Both { acks, out, inward },
        (false, true) => Steered::All { out, inward },
        _ => Steered::Acks(acks),
    }
}

/// Returns whether flows of some class may spill, of uploads and downloads.
fn spilling(config: &Config) -> [bool; 2] {
    [Direction::Out, Direction::In].map(|direction| !config.observe && config.spills(direction))
}

/// Returns whether some class has a queue, or frames leave at rates of windows.
pub(super) fn has_queues(config: &Config) -> bool {
    config.classes.iter().any(|class| class.share.is_some())
}

/// Returns the room for twice the present classes and 1,024 more, because a change of configuration cannot
/// add room.
fn tallies(classes: usize) -> u32 {
    u32::try_from(2 * classes + 1024).unwrap_or(u32::MAX)
}

/// Returns the setup that an emulator's configuration needs on the host.
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
    setup.control = true;
    setup
}

/// Returns the settings of a gateway's driver. A gateway without queues does not spin, because its releases
/// are milliseconds apart. With queues it has a higher priority than other processes but is no real-time
/// process. It holds data, a late frame costs its class nothing, and the hosts behind it need processor time.
/// With paced classes lateness matters, so it spins like an emulator.
pub(super) fn gateway_driver(driving: &Driving, config: &Config, queues: bool) -> DriverConfig {
    let priority = if queues { 0 } else { 40 };
    let spin = if paces(config) { Spin::Adaptive } else { Spin::None };
    DriverConfig { session: queues, ..driver(driving, spin, priority) }
}

fn paces(config: &Config) -> bool {
    config.classes.iter().any(|class| class.share.is_some_and(|share| share.pace.is_some()))
}

/// Returns whether giant segments would delay other packets too long at these rates, or would be bursts in
/// paced classes.
pub(super) fn splits(config: &Config) -> bool {
    let most = |c: &ClassConfig| c.share.and_then(|s| if s.parent.is_none() { s.rate } else { s.ceil });
    // Asked once: each answer looks at all classes.
    let spilling = [Direction::Out, Direction::In].map(|direction| config.spills(direction));
    let spills = |c: &ClassConfig| spilling[usize::from(c.direction == Direction::In)];
    let spilled = |c: &ClassConfig| c.ack.map(|ack| ack.release.rate()).filter(|_| spills(c));
    let rates = config.classes.iter().filter_map(|class| most(class).or_else(|| spilled(class)));
    paces(config) || rates.into_iter().any(|rate| rate < SPLIT_BELOW)
}

/// Returns the settings of an emulator's driver. Its error is the lateness of its wake-ups. The kernel's
/// packet processing shares its processor and is needed for every frame. So the driver has a higher priority
/// than other processes but is no real-time process.
pub(super) fn emulator_driver(file: &WanFile) -> DriverConfig {
    DriverConfig { session: true, ..driver(&file.driving, Spin::Adaptive, 0) }
}

/// Returns whether a link must treat the packets of a giant segment individually. A high rate alone does not
/// require it.
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

/// Minimum delay for the pool's size on a link without a rate.
const UNLIMITED_PIPE: Duration = Duration::from_millis(50);

/// Returns a pool for the frames under way and queued on both links, within 16,384 and 262,144 chunks.
pub(super) fn pool(file: &WanFile) -> PoolConfig {
    let frames = |l: &link::Config| {
        // Full frames mixed with ACKs are half as long on average.
        let rate = l.rate.unwrap_or(Rate::mbit(1000));
        let pipe = if l.rate.is_none() { l.delay.max(UNLIMITED_PIPE) } else { l.delay };
        rate.bytes_in(pipe) / 750 + l.queue.most_bytes(rate, 750) / 750
    };
    let wanted = 8192 + frames(&file.path.wan_out) + frames(&file.path.wan_back);
    PoolConfig::of_frames(wanted.clamp(16_384, 262_144) as usize)
}
