//! The gateway and the emulators as separate processes: a configuration as JSON on standard input, and a
//! report as JSON ([`crate::field`]) when SIGTERM ends them.

use super::topology::{Layout, Place, LAN_PORT, WAN_PORT};
use crate::experiment::config::gateway::GatewayFile;
use crate::experiment::config::ports::{Attach, Driving};
use crate::experiment::config::wan::WanFile;
use crate::experiment::plan::{Path, Plan};
use serde::{Deserialize, Serialize};
use weir_core::gateway;
use weir_core::link;
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// Device that a process of the lab runs.
#[derive(Debug, Serialize, Deserialize)]
pub enum Device {
    /// The gateway.
    Gateway(Box<GatewayFile>),
    /// An emulator.
    Emulator(Box<WanFile>),
}

impl Device {
    /// Returns the name for messages and files.
    pub fn name(&self) -> &'static str {
        match self {
            Device::Gateway(_) => "gateway",
            Device::Emulator(_) => "emulator",
        }
    }
}

/// Assigns each device a processor of its own, as far as there are enough. Virtual devices have one backlog
/// per processor, so a sender that moves between processors reorders frames.
fn driving(number: usize) -> Driving {
    Driving { cpu: u32::try_from(number % processors()).ok(), ..Driving::default() }
}

/// Returns how long an emulator spins on this number of processors, if not its default. On a single one it
/// would starve the hosts.
fn spin_on(processors: usize) -> Option<Duration> {
    (processors == 1).then_some(Duration::ZERO)
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Returns the configuration of the gateway's process.
pub fn gateway(config: &gateway::Config, layout: &Layout, engines: Option<u32>) -> GatewayFile {
    let (_, dev) = layout.gateway();
    let driving = Driving { engines, ..driving(0) };
    GatewayFile {
        dev: dev.to_string(),
        driving,
        customers: Vec::new(),
        sites: Vec::new(),
        notes: Vec::new(),
        gateway: config.clone(),
    }
}

/// Returns the configuration of the emulator at `place`.
pub fn emulator(plan: &Plan, place: Place, spin: Option<Duration>) -> WanFile {
    let (wan_out, wan_back, number) = match place {
        Place::Lan => (plan.path.lan, plan.path.lan, 2),
        _ => (plan.path.wan_out, plan.path.wan_back, 1),
    };
    WanFile {
        attach: Attach::Pair { lan: LAN_PORT.to_string(), wan: WAN_PORT.to_string() },
        driving: Driving { spin: spin.or(spin_on(processors())), ..driving(number) },
        seed: plan.seed,
        path: Path { wan_out, wan_back, ..Path::default() },
    }
}

/// Returns an emulator that takes every frame that leaves by the box's interface and emulates almost nothing.
/// Giant segments stay whole at this rate.
pub fn on_box(layout: &Layout) -> WanFile {
    let (_, dev) = layout.gateway();
    let rate = Some(Rate::mbit(100_000));
    let wan_out = link::Config { rate, queue: link::QueueLimit::Packets(100_000), ..link::Config::BARE };
    let path = Path { wan_out, ..Path::default() };
    WanFile { attach: Attach::Dev(dev.to_string()), driving: driving(0), seed: 1, path }
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;
    use super::*;

    #[test]
    fn an_emulator_on_the_box_takes_what_leaves() {
        assert_eq!(on_box(&Layout::of(&plan())).taken(), (true, false));
    }

    #[test]
    fn on_an_only_processor_emulators_do_not_spin() {
        assert_eq!((spin_on(1), spin_on(2)), (Some(Duration::ZERO), None));
    }

    #[test]
    fn the_emulator_of_the_lan_is_the_same_both_ways() {
        let mut p = plan();
        p.path.lan.delay = Duration::from_micros(1500);
        p.path.wan_out.delay = Duration::from_millis(3);
        let lan = emulator(&p, Place::Lan, None).path;
        assert_eq!((lan.wan_out, lan.wan_back), (p.path.lan, p.path.lan));
        let wan = emulator(&p, Place::Wan, Some(Duration::ZERO));
        assert_eq!((wan.path.wan_out, wan.path.wan_back), (p.path.wan_out, p.path.wan_back));
        assert_eq!(wan.driving.spin, Some(Duration::ZERO));
    }
}
