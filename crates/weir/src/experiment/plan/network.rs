//! Links and hosts.

use weir_core::link;
use weir_core::time::Duration;

/// The links of the dumbbell. Their seeds are not set: each world derives its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Between clients and gateway, each direction alike.
    pub lan: link::Config,
    /// From the gateway to the servers.
    pub wan_out: link::Config,
    /// From the servers to the gateway.
    pub wan_back: link::Config,
}

impl Default for Path {
    /// Bare wires.
    fn default() -> Path {
        Path { lan: link::Config::BARE, wan_out: link::Config::BARE, wan_back: link::Config::BARE }
    }
}

impl Path {
    /// Round-trip time with empty queues and without the time that frames take at the links' rates.
    pub fn rtt(&self) -> Duration {
        self.lan.delay + self.lan.delay + self.wan_out.delay + self.wan_back.delay
    }
}

/// `count` hosts that are alike, `name.0`, `name.1`, …, each behind an access link of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostGroup {
    /// The group's name.
    pub name: String,
    /// Beyond the WAN (a server)? Otherwise on the LAN (a client). In a graph they are neither.
    pub wan: bool,
    /// The number of the node of a graph that they are at.
    pub node: Option<usize>,
    /// How many, 1 to 10,000.
    pub count: u32,
    /// From the host into the network.
    pub up: link::Config,
    /// From the network to the host.
    pub down: link::Config,
}
