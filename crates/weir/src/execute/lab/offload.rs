//! Offloads of virtual interfaces that the lab disables.

use super::namespace::Namespace;
use weir_io::sys::ethtool::Ethtool;

/// Offloads that make frames longer than on the wire, or leave their checksums incomplete.
pub const ALL: [&str; 6] = [
    "tx-checksum-ip-generic",
    "tx-tcp-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-generic-segmentation",
    "rx-gro",
];

/// Disables `offloads` of `interface` in `namespace`.
pub fn switch_off(namespace: &Namespace, interface: &str, offloads: &[&str]) -> Result<(), String> {
    let switch = || {
        let tool = Ethtool::open(interface)?;
        offloads.iter().try_for_each(|name| tool.set_feature(name, false))
    };
    namespace
        .inside(switch)
        .and_then(|done| done)
        .map_err(|e| format!("{}: {interface}: offloads: {e}", namespace.name()))
}
