//! Links and hosts.

use weir_core::link;
use weir_core::time::Duration;

/// The links of the dumbbell. Their seeds are unset; each world derives its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Path {
    /// Link between clients and gateway, equal in both directions.
    pub lan: link::Config,
    /// Link from the gateway to the servers.
    pub wan_out: link::Config,
    /// Link from the servers to the gateway.
    pub wan_back: link::Config,
}

impl Default for Path {
    /// Returns bare wires.
    fn default() -> Path {
        Path { lan: link::Config::BARE, wan_out: link::Config::BARE, wan_back: link::Config::BARE }
    }
}

impl Path {
    /// Returns the round-trip time with empty queues and without transmission times.
    pub fn rtt(&self) -> Duration {
        self.lan.delay + self.lan.delay + self.wan_out.delay + self.wan_back.delay
    }
}

/// Group of `count` equal hosts, `name.0`, `name.1`, …, each behind an access link of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostGroup {
    /// Name of the group.
    pub name: String,
    /// True for hosts beyond the WAN (servers), false for hosts on the LAN (clients). Meaningless in a graph.
    pub wan: bool,
    /// Number of the graph's node that the hosts are at.
    pub node: Option<usize>,
    /// Number of hosts, 1 to 10,000.
    pub count: u32,
    /// Access link from the host into the network.
    pub up: link::Config,
    /// Access link from the network to the host.
    pub down: link::Config,
}
