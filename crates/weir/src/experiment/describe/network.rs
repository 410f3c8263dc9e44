//! Links and hosts in words.

use crate::experiment::config::link;
use crate::experiment::plan::{Graph, HostGroup, Path, Plan};

pub(super) fn path(p: &Path) -> Vec<String> {
    let links = [("lan", &p.lan), ("wan.out", &p.wan_out), ("wan.back", &p.wan_back)];
    let mut out = vec![format!("path: round trip {}", p.rtt())];
    out.extend(links.map(|(name, l)| format!("  {name:<9} {}", link::words(l))));
    out
}

/// Describes nodes and links.
pub(super) fn graph(g: &Graph) -> Vec<String> {
    let name = |i: usize| g.nodes[i].name.as_str();
    let node = |(i, _): (usize, _)| match g.nodes[i].wan {
        None => name(i).to_string(),
        Some(wan) => format!("{} (gateway, its WAN towards {})", name(i), name(wan)),
    };
    let nodes: Vec<String> = g.nodes.iter().enumerate().map(node).collect();
    let mut out = vec![format!("nodes: {}", nodes.join(", "))];
    for l in &g.links {
        let [from, to] = l.ends.map(name);
        let words = match l.out == l.back {
            true => link::words(&l.out),
            false => format!("out {}; back {}", link::words(&l.out), link::words(&l.back)),
        };
        out.push(format!("  {}, {from} to {to}: {words}", l.name));
    }
    out
}

/// Describes the hosts of `[[host]]`.
pub(super) fn hosts(p: &Plan) -> Vec<String> {
    let groups = &p.hosts;
    let node = |h: &HostGroup| Some(p.graph.as_ref()?.nodes[h.node?].name.as_str());
    let line = |h: &HostGroup| {
        let names = super::numbered(&h.name, h.count);
        let side = match node(h) {
            Some(node) => format!("at {node}"),
            None => if h.wan { "beyond the WAN" } else { "on the LAN" }.to_string(),
        };
        match h.up == h.down {
            true => format!("  {names} {side}: {}", link::words(&h.up)),
            false => format!("  {names} {side}: up {}; down {}", link::words(&h.up), link::words(&h.down)),
        }
    };
    let count: u64 = groups.iter().map(|h| u64::from(h.count)).sum();
    let besides = if p.graph.is_none() { ", besides the two of the path" } else { "" };
    let head = (count > 0).then(|| format!("hosts: {count}{besides}"));
    head.into_iter().chain(groups.iter().map(line)).collect()
}
