//! From a plan to namespaces, cables and settings; nothing is touched here.
//!
//! ```text
//! cl ── (lan) ── gw ── (wan) ── sv
//! ```
//!
//! Every namespace is a place in a row. The outer two are hosts in one IP network, everything between
//! is a bridge: the gateway's, or an emulator, which is there only if its link has something to
//! emulate.

use crate::hosts::{buffers, CLIENT, SERVER};
use crate::plan::Plan;
use weir_core::gateway::Direction;

/// Length of their network's prefix.
const PREFIX: u8 = 24;
/// The only interface of a host.
pub const HOST_PORT: &str = "eth0";
/// A bridge's interface towards the clients.
pub const LAN_PORT: &str = "lan";
/// A bridge's interface towards the servers.
pub const WAN_PORT: &str = "wan";

/// What a namespace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The clients' host.
    Clients,
    /// The emulator of the LAN.
    Lan,
    /// The gateway.
    Gateway,
    /// The emulator of the WAN.
    Wan,
    /// The servers' host.
    Servers,
}

impl Place {
    /// The end of its namespace's name.
    pub const fn suffix(self) -> &'static str {
        match self {
            Place::Clients => "cl",
            Place::Lan => "lan",
            Place::Gateway => "gw",
            Place::Wan => "wan",
            Place::Servers => "sv",
        }
    }

    /// Is it an end of the row?
    pub const fn is_host(self) -> bool {
        matches!(self, Place::Clients | Place::Servers)
    }
}

/// An end of a cable: an interface in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The namespace.
    pub place: Place,
    /// Its interface.
    pub port: &'static str,
    /// The interface's address.
    pub mac: [u8; 6],
}

impl End {
    fn new(place: Place, port: &'static str) -> End {
        // Locally administered; the last two say where, for people who read captures.
        End { place, port, mac: [0x02, 0, 0, 0, place as u8 + 1, u8::from(port == WAN_PORT)] }
    }

    /// The interface's address as text.
    pub fn mac_text(&self) -> String {
        let [a, b, c, d, e, f] = self.mac;
        format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

/// What is to be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Namespaces from the clients to the servers.
    pub places: Vec<Place>,
    /// Cables from the clients to the servers: end towards the clients, end towards the servers.
    pub cables: Vec<(End, End)>,
    /// Whether frames go through user space one by one, so that hosts must send them as the wire
    /// would have them.
    pub wire_frames: bool,
    /// Hosts that send nothing but ACKs. Their checksums are completed by themselves, as a network
    /// card would have.
    pub complete_checksums: Vec<Place>,
    /// Largest receive and send buffers of the hosts in bytes, if the default is too small.
    pub buffers: Option<u64>,
}

impl Layout {
    /// The lab that `plan` needs.
    pub fn of(plan: &Plan) -> Layout {
        let lan = !plan.path.lan.is_bare();
        let wan = !plan.path.wan_out.is_bare() || !plan.path.wan_back.is_bare();
        let mut places = vec![Place::Clients];
        places.extend(lan.then_some(Place::Lan));
        places.push(Place::Gateway);
        places.extend(wan.then_some(Place::Wan));
        places.push(Place::Servers);
        let port = |place: Place, port| End::new(place, if place.is_host() { HOST_PORT } else { port });
        let cables =
            places.windows(2).map(|pair| (port(pair[0], WAN_PORT), port(pair[1], LAN_PORT))).collect();

        let sends = |d: Direction| plan.groups.iter().any(|g| g.direction == d);
        let mut complete_checksums = Vec::new();
        if plan.gateway.is_some() {
            complete_checksums.extend((!sends(Direction::Out)).then_some(Place::Clients));
            complete_checksums.extend((!sends(Direction::In)).then_some(Place::Servers));
        }
        Layout { places, cables, wire_frames: lan || wan, complete_checksums, buffers: buffers(plan) }
    }

    /// The end of a cable at `place` towards the servers, or towards the clients.
    pub fn end(&self, place: Place, towards_servers: bool) -> Option<End> {
        let ends = self.cables.iter().map(|&(near, far)| if towards_servers { near } else { far });
        ends.into_iter().find(|end| end.place == place)
    }

    /// Lines for `ip` in the initial namespace that lay the cables; `name` names namespaces.
    pub fn lay_cables(&self, name: impl Fn(Place) -> String) -> Vec<String> {
        let side =
            |end: &End| format!("name {} address {} netns {}", end.port, end.mac_text(), name(end.place));
        self.cables
            .iter()
            .map(|(near, far)| format!("link add {} type veth peer {}", side(near), side(far)))
            .collect()
    }

    /// Lines for `ip` inside `place` that put it into service.
    pub fn set_up(&self, place: Place) -> Vec<String> {
        let mut lines = vec!["link set lo up".to_string()];
        let (own, peer, peer_mac) = match place {
            Place::Clients => (CLIENT, SERVER, self.end(Place::Servers, false)),
            Place::Servers => (SERVER, CLIENT, self.end(Place::Clients, true)),
            Place::Gateway => {
                lines.push("link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0".into());
                for port in [LAN_PORT, WAN_PORT] {
                    lines.push(format!("link set {port} master br0 up"));
                }
                lines.push("link set br0 up".into());
                return lines;
            }
            Place::Lan | Place::Wan => {
                lines.extend([LAN_PORT, WAN_PORT].map(|port| format!("link set {port} up")));
                return lines;
            }
        };
        lines.push(format!("addr add {own}/{PREFIX} dev {HOST_PORT}"));
        lines.push(format!("link set {HOST_PORT} up"));
        // Resolved beforehand: a first SYN that waits for ARP over an emulated WAN would take two
        // round trips more than the simulator's, or a second if the request is lost.
        if let Some(mac) = peer_mac.map(|end| end.mac_text()) {
            lines.push(format!("neigh replace {peer} lladdr {mac} dev {HOST_PORT} nud permanent"));
        }
        lines
    }

    /// Values below `/proc/sys/net` for `place`.
    pub fn sysctls(&self, place: Place) -> Vec<(&'static str, String)> {
        let mut out = vec![
            // Nobody here speaks IPv6, and router solicitations would be frames that no plan has.
            ("ipv6/conf/all/disable_ipv6", "1".to_string()),
            ("ipv6/conf/default/disable_ipv6", "1".to_string()),
        ];
        if place == Place::Gateway {
            // The host's packet filters are no part of an experiment.
            out.push(("bridge/bridge-nf-call-iptables", "0".to_string()));
            out.push(("bridge/bridge-nf-call-ip6tables", "0".to_string()));
        }
        if place.is_host() {
            // A flow must not start with what an earlier one learnt.
            out.push(("ipv4/tcp_no_metrics_save", "1".to_string()));
            if let Some(bytes) = self.buffers {
                out.push(("ipv4/tcp_rmem", format!("4096 131072 {bytes}")));
                out.push(("ipv4/tcp_wmem", format!("4096 16384 {bytes}")));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;
    use super::*;
    use weir_core::rate::Rate;
    use weir_core::time::Duration;

    #[test]
    fn a_bare_path_has_three_namespaces_and_keeps_its_offloads() {
        let layout = Layout::of(&plan());
        assert_eq!(layout.places, [Place::Clients, Place::Gateway, Place::Servers]);
        assert!(!layout.wire_frames && layout.complete_checksums.is_empty());
        assert_eq!(layout.buffers, None);
        let lines = layout.lay_cables(|p| format!("x-{}", p.suffix()));
        assert_eq!(
            lines[0],
            "link add name eth0 address 02:00:00:00:01:00 netns x-cl type veth \
             peer name lan address 02:00:00:00:03:00 netns x-gw"
        );
        assert_eq!(lines.len(), 2);
        let up = layout.set_up(Place::Servers);
        assert!(up.contains(&"neigh replace 10.0.0.1 lladdr 02:00:00:00:01:00 dev eth0 nud permanent".into()));
    }

    #[test]
    fn a_link_with_something_to_emulate_has_a_namespace() {
        let mut p = plan();
        p.path.wan_back.delay = Duration::from_millis(5);
        let layout = Layout::of(&p);
        assert_eq!(layout.places, [Place::Clients, Place::Gateway, Place::Wan, Place::Servers]);
        assert!(layout.wire_frames);
        p.path.lan.rate = Some(Rate::mbit(100));
        assert_eq!(Layout::of(&p).places.len(), 5);
        assert_eq!(Layout::of(&p).end(Place::Lan, true).unwrap().port, WAN_PORT);
    }

    #[test]
    fn hosts_that_only_acknowledge_complete_their_checksums() {
        let mut p = plan();
        p.gateway = Some(weir_core::gateway::Config::default());
        assert_eq!(Layout::of(&p).complete_checksums, [Place::Servers]);
        p.groups[0].direction = Direction::In;
        assert_eq!(Layout::of(&p).complete_checksums, [Place::Clients]);
    }
}
