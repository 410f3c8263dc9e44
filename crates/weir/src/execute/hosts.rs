//! What the hosts of both worlds have in common: addresses, ports, and buffers where the plan says nothing.

use crate::experiment::plan::{BoxKind, Ip, Plan};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weir_core::link;
use weir_core::time::Duration;

/// Address of the clients' host.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Address of the servers' host.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Who has which address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The clients' host.
    pub client: IpAddr,
    /// The servers' host.
    pub server: IpAddr,
    /// A router between them, towards the servers.
    pub box_on_wan: IpAddr,
    /// The same one, towards the clients.
    pub box_on_lan: IpAddr,
}

impl Addresses {
    /// In `ip`.
    pub fn of(ip: Ip) -> Addresses {
        let [client, server, box_on_wan, box_on_lan] = [1, 2, 3, 4].map(|n| match ip {
            Ip::V4 => Ipv4Addr::new(10, 0, 0, n).into(),
            Ip::V6 => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n.into()).into(),
        });
        Addresses { client, server, box_on_wan, box_on_lan }
    }

    /// The clients' address beyond a box of this kind, where gateway and servers see it.
    pub fn client_on_wan(&self, kind: BoxKind) -> IpAddr {
        match kind {
            BoxKind::Nat => self.box_on_wan,
            BoxKind::Bridge | BoxKind::Router | BoxKind::Host => self.client,
        }
    }
}

/// Client ports are given out from here on, in the order of the plan.
const FIRST_PORT: u16 = 10_000;
/// How many there are.
const PORTS: usize = (u16::MAX - FIRST_PORT) as usize;
/// Largest receive buffer that Linux allows by default for one connection.
pub const DEFAULT_BUFFER: u64 = 6 << 20;

/// Port of the client of the plan's `n`-th flow. They begin anew with each [round](round_of).
pub fn client_port(n: usize) -> u16 {
    FIRST_PORT + (n % PORTS) as u16
}

/// How often the ports of clients were used up before the plan's `n`-th flow. Between flows of different rounds, the
/// server's ports must tell them apart, or the client's address.
pub fn round_of(n: usize) -> usize {
    n / PORTS
}

/// What a connection may need to fill the path: what is in flight plus what queues hold, four times,
/// since the kernel's buffers hold about half of their size in payload and grow in steps, and a gateway
/// holds acknowledgements beside what is in flight. Without a rate on the path the gateway's fastest
/// flow counts. `None` if that fits the default.
pub fn buffers(plan: &Plan) -> Option<u64> {
    let (links, rtt) = match &plan.graph {
        None => (vec![plan.path.lan, plan.path.wan_out, plan.path.wan_back], plan.path.rtt()),
        // No flow takes all links, but none takes more.
        Some(graph) => {
            let links: Vec<link::Config> = graph.directions().map(|(_, link)| *link).collect();
            let rtt = links.iter().fold(Duration::ZERO, |sum, link| sum + link.delay);
            (links, rtt)
        }
    };
    let policies = plan.gateway.iter().flat_map(|g| &g.classes).filter_map(|c| c.ack.as_ref());
    let shaped = policies.map(|a| a.release.rate());
    let rate = links.iter().filter_map(|l| l.rate).min().or(shaped.max())?;
    let queued = |l: &link::Config| l.rate.map_or(0, |rate| l.queue.most_bytes(rate, 1514));
    let needed = links.iter().map(queued).fold(rate.bytes_in(rtt), u64::saturating_add);
    // The kernel keeps sizes in an `int`.
    Some(needed.saturating_mul(4).min(1 << 30)).filter(|&bytes| bytes > DEFAULT_BUFFER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::plan::{FlowGroup, Ports};
    use std::collections::BTreeSet;
    use weir_core::rate::Rate;

    #[test]
    fn no_two_connections_are_between_the_same_ports() {
        let mut plan = Plan::new("t", Duration::from_secs(1));
        let group = |i: u16| FlowGroup {
            count: 10_000,
            ports: Ports::Shared(5001 + i),
            ..FlowGroup::new(&format!("g{i}"))
        };
        plan.groups = (0..7).map(group).collect();
        let pairs: BTreeSet<(u16, u16)> =
            plan.flows().enumerate().map(|(n, f)| (client_port(n), f.server_port)).collect();
        assert_eq!(pairs.len(), 70_000);
    }

    #[test]
    fn long_fat_paths_get_larger_buffers() {
        let mut p = Plan::new("t", Duration::from_secs(1));
        p.path.wan_out.rate = Some(Rate::mbit(1000));
        p.path.wan_out.delay = Duration::from_millis(100);
        p.path.wan_out.queue = link::QueueLimit::Bytes(500_000);
        assert_eq!(buffers(&p), Some(4 * 13_000_000));
        p.path.wan_out.rate = Some(Rate::mbit(10));
        assert_eq!(buffers(&p), None);
    }
}
