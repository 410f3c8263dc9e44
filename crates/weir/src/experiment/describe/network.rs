//! Links and hosts in words.

use crate::experiment::config::link;
use crate::experiment::plan::{HostGroup, Path};

pub(super) fn path(p: &Path) -> Vec<String> {
    let links = [("lan", &p.lan), ("wan.out", &p.wan_out), ("wan.back", &p.wan_back)];
    let mut out = vec![format!("path: round trip {}", p.rtt())];
    out.extend(links.map(|(name, l)| format!("  {name:<9} {}", link::words(l))));
    out
}

/// Hosts of `[[host]]`.
pub(super) fn hosts(groups: &[HostGroup]) -> Vec<String> {
    let line = |h: &HostGroup| {
        let names = super::numbered(&h.name, h.count);
        let side = if h.wan { "beyond the WAN" } else { "on the LAN" };
        match h.up == h.down {
            true => format!("  {names} {side}: {}", link::words(&h.up)),
            false => format!("  {names} {side}: up {}; down {}", link::words(&h.up), link::words(&h.down)),
        }
    };
    let count: u64 = groups.iter().map(|h| u64::from(h.count)).sum();
    let head = (count > 0).then(|| format!("hosts: {count}, besides the two of the path"));
    head.into_iter().chain(groups.iter().map(line)).collect()
}
