//! Translation of a plan to namespaces, cables and settings. Nothing is changed on the host here.
//!
//! ```text
//! cl ── (lan) ── gw ── (wan) ── sv
//! ```
//!
//! Namespaces form a row. The outer two are hosts. Between them is the gateway's box, a bridge or a router,
//! unless the box is the clients' host itself. An emulator is present only if its link has something to
//! emulate.

use crate::execute::hosts::{buffers, group_networks, Addresses};
use crate::experiment::plan::{BoxKind, Ip, Lab, Plan};
use weir_sim::tcp::Recovery;

/// The only interface of a host.
pub const HOST_PORT: &str = "eth0";
/// A bridge's interface towards the clients.
pub const LAN_PORT: &str = "lan";
/// A bridge's interface towards the servers.
pub const WAN_PORT: &str = "wan";

/// Role of a namespace.
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
    /// Returns the suffix of the namespace's name.
    pub const fn suffix(self) -> &'static str {
        match self {
            Place::Clients => "cl",
            Place::Lan => "lan",
            Place::Gateway => "gw",
            Place::Wan => "wan",
            Place::Servers => "sv",
        }
    }

    /// Returns whether it is an end of the row.
    pub const fn is_host(self) -> bool {
        matches!(self, Place::Clients | Place::Servers)
    }
}

/// End of a cable: an interface in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The namespace.
    pub place: Place,
    /// The interface's name.
    pub port: &'static str,
    /// The interface's hardware address.
    pub mac: [u8; 6],
}

impl End {
    fn new(place: Place, port: &'static str) -> End {
        // The address is locally administered. The last two bytes tell readers of captures the place and the
        // port.
        End { place, port, mac: [0x02, 0, 0, 0, place as u8 + 1, u8::from(port == WAN_PORT)] }
    }

    /// Returns the interface's hardware address as text.
    pub fn mac_text(&self) -> String {
        let [a, b, c, d, e, f] = self.mac;
        format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

/// Everything that a lab builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Namespaces from the clients to the servers.
    pub places: Vec<Place>,
    /// Cables from the clients to the servers, each with its end towards the clients and its end towards the
    /// servers.
    pub cables: Vec<(End, End)>,
    /// True if frames pass user space one by one. Hosts must then send them as on the wire.
    pub wire_frames: bool,
    /// The gateway's box and the hosts' protocol.
    pub lab: Lab,
    /// Addresses of the hosts and the box.
    pub addresses: Addresses,
    /// Networks that the clients' host and the servers' host have beside their own addresses.
    pub networks: [Vec<String>; 2],
    /// Largest receive and send buffers of the hosts in bytes, if the default is too small.
    pub buffers: Option<u64>,
    /// ECN setting of the hosts: true if they request it. `None` is Linux's default, which accepts ECN but
    /// does not request it.
    pub ecn: Option<bool>,
    /// SACK on the hosts: off for `recovery = "linux"`.
    pub sack: bool,
    /// True if hosts support Fast Open, for the sockets that request it.
    pub fast_open: bool,
    /// Most segments that the clients' TCP hands down at once, if more than one. The gateway's box cuts them
    /// into the wire's frames.
    pub segmentation: Option<u32>,
}

impl Layout {
    /// Returns the layout that `plan` needs.
    pub fn of(plan: &Plan) -> Layout {
        let lan = !plan.path.lan.is_bare();
        let wan = !plan.path.wan_out.is_bare() || !plan.path.wan_back.is_bare();
        let mut places = vec![Place::Clients];
        places.extend(lan.then_some(Place::Lan));
        places.extend((plan.lab.kind != BoxKind::Host).then_some(Place::Gateway));
        places.extend(wan.then_some(Place::Wan));
        places.push(Place::Servers);
        let port = |place: Place, port| End::new(place, if place.is_host() { HOST_PORT } else { port });
        let cables =
            places.windows(2).map(|pair| (port(pair[0], WAN_PORT), port(pair[1], LAN_PORT))).collect();

        let addresses = Addresses::of(plan.lab.ip);
        // All groups agree: `prerequisites` has checked it.
        let tcp = plan.groups.iter().find(|group| group.protocol.is_tcp()).map(|group| &group.tcp);
        Layout {
            places,
            cables,
            wire_frames: lan || wan,
            lab: plan.lab,
            addresses,
            networks: [false, true].map(|wan| group_networks(plan, wan)),
            buffers: buffers(plan),
            ecn: tcp.and_then(|tcp| tcp.switch("ecn")),
            sack: tcp.is_none_or(|tcp| tcp.recovery() != Some(Recovery::Linux)),
            fast_open: plan.groups.iter().any(|group| group.tcp.opens_fast()),
            segmentation: tcp.and_then(|tcp| tcp.number("tso_segments")).filter(|&n| n > 1).map(|n| n as u32),
        }
    }

    /// Returns the end of a cable at `place` towards the servers, or towards the clients.
    pub fn end(&self, place: Place, towards_servers: bool) -> Option<End> {
        let ends = self.cables.iter().map(|&(near, far)| if towards_servers { near } else { far });
        ends.into_iter().find(|end| end.place == place)
    }

    /// Returns lines for `ip` in the initial namespace that create the cables; `name` names namespaces.
    pub fn lay_cables(&self, name: impl Fn(Place) -> String) -> Vec<String> {
        let side =
            |end: &End| format!("name {} address {} netns {}", end.port, end.mac_text(), name(end.place));
        self.cables
            .iter()
            .map(|(near, far)| format!("link add {} type veth peer {}", side(near), side(far)))
            .collect()
    }

    /// Returns the gateway's place, and its interface towards the WAN.
    pub fn gateway(&self) -> (Place, &'static str) {
        match self.lab.kind {
            BoxKind::Host => (Place::Clients, HOST_PORT),
            BoxKind::Bridge | BoxKind::Router | BoxKind::Nat => (Place::Gateway, WAN_PORT),
        }
    }

    /// Returns values below `/proc/sys/net` for `place`.
    pub fn sysctls(&self, place: Place) -> Vec<(&'static str, String)> {
        let speaks =
            self.lab.ip == Ip::V6 && (place.is_host() || place == Place::Gateway && self.lab.kind.routes());
        let disabled = u8::from(!speaks).to_string();
        // Router solicitations and other IPv6 frames are in no plan.
        let mut out = vec![
            ("ipv6/conf/all/disable_ipv6", disabled.clone()),
            ("ipv6/conf/default/disable_ipv6", disabled),
        ];
        if speaks {
            out.push(("ipv6/conf/default/router_solicitations", "0".to_string()));
            out.push(("ipv6/conf/default/accept_dad", "0".to_string()));
        }
        if place == Place::Gateway && self.lab.kind.routes() {
            out.push(match self.lab.ip {
                Ip::V4 => ("ipv4/ip_forward", "1".to_string()),
                Ip::V6 => ("ipv6/conf/all/forwarding", "1".to_string()),
            });
        }
        if place == Place::Gateway {
            // The host's packet filters must not affect an experiment.
            out.push(("bridge/bridge-nf-call-iptables", "0".to_string()));
            out.push(("bridge/bridge-nf-call-ip6tables", "0".to_string()));
        }
        if place.is_host() {
            // A flow must not start with metrics of an earlier one.
            out.push(("ipv4/tcp_no_metrics_save", "1".to_string()));
            // An accepted connection begins with the host's default and gets its own control afterwards. A
            // socket that BBR paced stays paced (`sk_pacing_status`) under any later control.
            out.push(("ipv4/tcp_congestion_control", "reno".to_string()));
            // Both hosts support it; their sockets decide which flows use it.
            out.extend(self.fast_open.then(|| ("ipv4/tcp_fastopen", "3".to_string())));
            out.extend((!self.sack).then(|| ("ipv4/tcp_sack", "0".to_string())));
            out.extend(self.ecn.map(|on| ("ipv4/tcp_ecn", u8::from(on).to_string())));
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
    fn hosts_have_no_sack_where_the_recovery_has_none() {
        let sysctls = |recovery| {
            let mut p = plan();
            p.groups[0].tcp.set_recovery(recovery);
            Layout::of(&p).sysctls(Place::Servers)
        };
        let off = ("ipv4/tcp_sack", "0".to_string());
        assert!(sysctls(Recovery::Linux).contains(&off) && !sysctls(Recovery::Rack).contains(&off));
    }

    #[test]
    fn a_bare_path_has_three_namespaces_and_keeps_its_offloads() {
        let layout = Layout::of(&plan());
        assert_eq!(layout.places, [Place::Clients, Place::Gateway, Place::Servers]);
        assert!(!layout.wire_frames);
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
    fn accepted_connections_begin_without_pacing() {
        let layout = Layout::of(&plan());
        let begins = ("ipv4/tcp_congestion_control", "reno".to_string());
        for (place, host) in [(Place::Clients, true), (Place::Servers, true), (Place::Gateway, false)] {
            assert_eq!(layout.sysctls(place).contains(&begins), host, "{place:?}");
        }
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
}
