//! Setting the host up: offloads that would hand the engine giant segments, and the bridge that
//! carries what the engine does not take.

use super::changes::{Change, Changes, Interface};
use crate::sys::ethtool::Ethtool;
use crate::sys::link::{self, Link};
use std::io;

/// Merge received segments into giant ones before XDP sees them.
const MERGED_BEFORE_XDP: [&str; 2] = ["rx-lro", "rx-gro-hw"];

/// Merge them after, or send giant ones.
const SEGMENTATION: [&str; 7] = [
    "rx-gro",
    "rx-gro-list",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-generic-segmentation",
];

/// Switches off what merges or splits segments on a port whose frames come to user space; with
/// `all`, also what only matters when every frame does.
pub(super) fn offloads_off(changes: &mut Changes, link: &Link, all: bool) -> io::Result<()> {
    let tool = Ethtool::open(&link.name)?;
    let wanted = |name: &str| MERGED_BEFORE_XDP.contains(&name) || all && SEGMENTATION.contains(&name);
    for feature in tool.features()? {
        if !wanted(&feature.name) || !feature.on || !feature.changeable {
            continue;
        }
        let interface = Interface::from(link);
        changes.record(Change::Offload { interface, feature: feature.name.clone(), was: true })?;
        tool.set_feature(&feature.name, false)
            .map_err(|e| io::Error::new(e.kind(), format!("{}: {}: {e}", link.name, feature.name)))?;
        tracing::info!("{}: {} is off while Weir runs", link.name, feature.name);
    }
    Ok(())
}

/// Where the two interfaces stand, and so what is to be done about a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bridging {
    /// Both are in this bridge.
    Present(u32),
    /// Neither is anywhere: one is to be made.
    Missing,
}

/// Decides about the bridge; what stands in the way otherwise. `has_address` tells of addresses.
pub(super) fn bridging(
    lan: &Link,
    wan: &Link,
    masters: &[Link],
    has_address: impl Fn(&Link) -> bool,
) -> Result<Bridging, Vec<String>> {
    if let (Some(a), Some(b)) = (lan.master, wan.master) {
        if a == b && masters.iter().any(|m| m.index == a && m.kind == "bridge") {
            return Ok(Bridging::Present(a));
        }
    }
    let mut problems = Vec::new();
    for port in [lan, wan] {
        if let Some(master) = port.master {
            let name = masters.iter().find(|m| m.index == master).map_or("?", |m| m.name.as_str());
            problems.push(format!(
                "{} belongs to {name}: both interfaces have to be in one bridge, or in none",
                port.name
            ));
        } else if has_address(port) {
            problems.push(format!(
                "{} has an IP address: an interface in a bridge cannot use it; move it or remove it",
                port.name
            ));
        }
    }
    if problems.is_empty() {
        Ok(Bridging::Missing)
    } else {
        Err(problems)
    }
}

/// Name of the bridge between two interfaces, the same at every start.
pub(super) fn bridge_name(lan: &str, wan: &str) -> String {
    // FNV-1a: short and stable; nothing hangs on it but the name.
    let bytes = lan.bytes().chain([b'-']).chain(wan.bytes());
    let hash = bytes.fold(0x811c_9dc5u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    format!("weir-{hash:08x}")
}

/// Makes a bridge of the two interfaces.
pub(super) fn make_bridge(changes: &mut Changes, lan: &Link, wan: &Link) -> io::Result<()> {
    let name = bridge_name(&lan.name, &wan.name);
    changes.record(Change::Bridge { name: name.clone() })?;
    link::create_bridge(&name)?;
    // The bridge is a wire, not a host: it has nothing to say for itself.
    let quiet = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
    if let Err(error) = std::fs::write(&quiet, "1") {
        tracing::debug!("{quiet}: {error}");
    }
    let bridge = link::find(&name)?.ok_or(io::ErrorKind::NotFound)?;
    for port in [lan, wan] {
        link::set_master(port.index, Some(bridge.index))?;
    }
    link::set_up(bridge.index, true)?;
    tracing::info!("bridge {name} joins {} and {} while Weir runs", lan.name, wan.name);
    Ok(())
}

/// Warns of filters that break bridges in practice.
pub(super) fn warn_of_filters() {
    for family in ["iptables", "ip6tables"] {
        let knob = format!("/proc/sys/net/bridge/bridge-nf-call-{family}");
        if std::fs::read_to_string(&knob).is_ok_and(|v| v.trim() == "1") {
            tracing::warn!("{knob} is 1: {family} rules may drop what the bridge forwards");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(name: &str, index: u32, master: Option<u32>) -> Link {
        Link { name: name.into(), index, master, ..Link::default() }
    }

    #[test]
    fn a_bridge_is_used_made_or_refused() {
        let bridge = Link { kind: "bridge".into(), ..link("br0", 9, None) };
        let bond = Link { kind: "bond".into(), ..link("bond0", 8, None) };
        let masters = [bridge, bond];
        let decide = |a, b, address: &'static str| {
            let (lan, wan) = (link("lan0", 1, a), link("wan0", 2, b));
            bridging(&lan, &wan, &masters, |l| l.name == address)
        };
        assert_eq!(decide(Some(9), Some(9), "lan0"), Ok(Bridging::Present(9)));
        assert_eq!(decide(None, None, ""), Ok(Bridging::Missing));
        assert!(decide(None, None, "wan0").unwrap_err()[0].starts_with("wan0 has an IP address"));
        assert!(decide(Some(9), None, "").unwrap_err()[0].starts_with("lan0 belongs to br0"));
        assert_eq!(decide(Some(8), Some(8), "").unwrap_err().len(), 2);
    }

    #[test]
    fn names_fit_an_interface() {
        assert_eq!(bridge_name("lan0", "wan0").len(), 13);
        assert_ne!(bridge_name("a", "b"), bridge_name("b", "a"));
    }
}
