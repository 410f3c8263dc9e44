//! Addresses, routes and neighbours of each place, as command lines for `ip` and `nft`.
//!
//! Each host treats the other as a neighbour on its only interface, with anything in between. With a router
//! in between, the neighbour's hardware address is the router's, which routes host by host. Every neighbour
//! is resolved beforehand. Otherwise a first SYN that waits for ARP over an emulated WAN would take two round
//! trips more than the simulator's, or a second if the request is lost.
//!
//! The hosts of groups are whole networks on the clients' or the servers' host. One route (`ip route add
//! local`) makes all addresses of a network local there. One route on each other host leads to the network,
//! for any number of hosts.

use super::topology::{End, Layout, Place, HOST_PORT, LAN_PORT, WAN_PORT};
use crate::experiment::plan::BoxKind;
use std::net::IpAddr;

impl Layout {
    /// Returns lines for `ip` inside `place` that configure it.
    pub fn set_up(&self, place: Place) -> Vec<String> {
        let mut lines = vec!["link set lo up".to_string()];
        match place {
            Place::Clients | Place::Servers => self.host(place, &mut lines),
            Place::Gateway if self.lab.kind.routes() => self.router(&mut lines),
            Place::Gateway => bridge(&mut lines),
            Place::Lan | Place::Wan => {
                lines.extend([LAN_PORT, WAN_PORT].map(|port| format!("link set {port} up")));
            }
        }
        lines
    }

    fn host(&self, place: Place, lines: &mut Vec<String>) {
        let a = self.addresses;
        let [lan, wan] = &self.networks;
        // Servers do not see addresses that a box masquerades.
        let seen = if self.lab.kind == BoxKind::Nat { &[][..] } else { lan };
        let (own, peer, networks, beyond) = match place {
            Place::Clients => (a.client, a.server, lan, wan.as_slice()),
            _ => (a.server, a.client_on_wan(self.lab.kind), wan, seen),
        };
        own_address(own, HOST_PORT, lines);
        lines.extend(networks.iter().map(|network| format!("route add local {network} dev lo")));
        lines.push(format!("link set {HOST_PORT} up"));
        if let Some(segments) = self.segmentation.filter(|_| place == Place::Clients) {
            lines.push(format!("link set {HOST_PORT} gso_max_segs {segments}"));
        }
        reach(peer, self.neighbour(place), HOST_PORT, lines);
        reach_through(beyond, peer, HOST_PORT, lines);
    }

    fn router(&self, lines: &mut Vec<String>) {
        let a = self.addresses;
        let [lan, wan] = &self.networks;
        for (port, own, peer, beyond, towards_servers) in
            [(LAN_PORT, a.box_on_lan, a.client, lan, false), (WAN_PORT, a.box_on_wan, a.server, wan, true)]
        {
            own_address(own, port, lines);
            lines.push(format!("link set {port} up"));
            let host = if towards_servers { Place::Servers } else { Place::Clients };
            reach(peer, self.end(host, !towards_servers), port, lines);
            reach_through(beyond, peer, port, lines);
        }
    }

    /// Returns the end of a cable whose hardware address is the destination of frames from the host at
    /// `place`.
    fn neighbour(&self, place: Place) -> Option<End> {
        match (self.lab.kind.routes(), place) {
            (true, Place::Clients) => self.end(Place::Gateway, false),
            (true, _) => self.end(Place::Gateway, true),
            (false, Place::Clients) => self.end(Place::Servers, false),
            (false, _) => self.end(Place::Clients, true),
        }
    }

    /// Returns the rules for `nft` at the gateway: masquerade, and drop packets that connection tracking
    /// calls invalid.
    pub fn filter(&self) -> Option<String> {
        let chain = |name: &str| {
            format!("chain {name} {{ type filter hook {name} priority filter; ct state invalid counter drop; }}\n")
        };
        (self.lab.kind == BoxKind::Nat).then(|| {
            format!(
                "table inet weir {{\n{}{}chain out {{ type nat hook postrouting priority srcnat; \
                 oifname \"{WAN_PORT}\" masquerade; }}\n}}\n",
                chain("input"),
                chain("forward")
            )
        })
    }
}

fn own_address(own: IpAddr, port: &str, lines: &mut Vec<String>) {
    let prefix = if own.is_ipv4() { 32 } else { 128 };
    // Duplicate address detection would take a second and send frames that no plan has.
    let dad = if own.is_ipv4() { "" } else { " nodad" };
    lines.push(format!("addr add {own}/{prefix} dev {port}{dad}"));
}

fn reach(peer: IpAddr, by: Option<End>, port: &str, lines: &mut Vec<String>) {
    lines.push(format!("route add {peer} dev {port}"));
    if let Some(mac) = by.map(|end| end.mac_text()) {
        lines.push(format!("neigh replace {peer} lladdr {mac} dev {port} nud permanent"));
    }
}

/// Adds routes to the networks behind a neighbour, which must be resolved before.
fn reach_through(networks: &[String], neighbour: IpAddr, port: &str, lines: &mut Vec<String>) {
    lines.extend(networks.iter().map(|n| format!("route add {n} via {neighbour} dev {port} onlink")));
}

fn bridge(lines: &mut Vec<String>) {
    lines.push("link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0".into());
    for port in [LAN_PORT, WAN_PORT] {
        lines.push(format!("link set {port} master br0 up"));
    }
    lines.push("link set br0 up".into());
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;
    use super::*;
    use crate::experiment::plan::{HostGroup, Ip};

    #[test]
    fn servers_see_the_address_of_a_masquerading_box() {
        let mut p = plan();
        p.lab.kind = BoxKind::Nat;
        let layout = Layout::of(&p);
        let up = layout.set_up(Place::Servers);
        assert!(up.contains(&"route add 10.0.0.3 dev eth0".to_string()), "{up:?}");
        let mac = layout.end(Place::Gateway, true).unwrap().mac_text();
        assert!(
            up.contains(&format!("neigh replace 10.0.0.3 lladdr {mac} dev eth0 nud permanent")),
            "{up:?}"
        );
        assert!(layout.filter().unwrap().contains("oifname \"wan\" masquerade"));
        p.lab.kind = BoxKind::Router;
        assert_eq!(Layout::of(&p).filter(), None);
        assert!(Layout::of(&p).set_up(Place::Servers).contains(&"route add 10.0.0.1 dev eth0".to_string()));
    }

    #[test]
    fn hosts_of_groups_are_networks() {
        let mut p = plan();
        let bare = weir_core::link::Config::BARE;
        let group =
            HostGroup { name: "homes".into(), wan: false, node: None, count: 2_000, up: bare, down: bare };
        p.hosts = vec![group];
        p.lab.kind = BoxKind::Router;
        let layout = Layout::of(&p);
        let has = |place, line: &str| layout.set_up(place).iter().any(|l| l == line);
        assert!(has(Place::Clients, "route add local 10.1.0.0/16 dev lo"));
        assert!(has(Place::Servers, "route add 10.1.0.0/16 via 10.0.0.1 dev eth0 onlink"));
        assert!(has(Place::Gateway, "route add 10.1.0.0/16 via 10.0.0.1 dev lan onlink"));
        assert!(!layout.set_up(Place::Servers).iter().any(|l| l.contains("local")));
        // Behind masquerading, servers do not see the group's addresses.
        p.lab.kind = BoxKind::Nat;
        assert!(!Layout::of(&p).set_up(Place::Servers).iter().any(|l| l.contains("10.1.0.0")));
    }

    #[test]
    fn a_host_is_its_own_box() {
        let mut p = plan();
        (p.lab.kind, p.lab.ip) = (BoxKind::Host, Ip::V6);
        let layout = Layout::of(&p);
        assert_eq!(layout.places, [Place::Clients, Place::Servers]);
        assert_eq!(layout.gateway(), (Place::Clients, HOST_PORT));
        let up = layout.set_up(Place::Clients);
        assert!(up.contains(&"addr add fd00::1/128 dev eth0 nodad".to_string()), "{up:?}");
        assert!(
            up.contains(&"neigh replace fd00::2 lladdr 02:00:00:00:05:00 dev eth0 nud permanent".to_string())
        );
    }
}
