//! Links and hosts in words.

use crate::plan::{HostGroup, Link, Loss, Path};

pub(super) fn path(p: &Path) -> Vec<String> {
    let links = [("lan", &p.lan), ("wan.out", &p.wan_out), ("wan.back", &p.wan_back)];
    let mut out = vec![format!("path: round trip {}", p.rtt())];
    out.extend(links.map(|(name, l)| format!("  {name:<9} {}", link(l))));
    out
}

fn link(l: &Link) -> String {
    let mut parts = Vec::new();
    if let Some(rate) = l.rate {
        parts.push(format!("{rate}, queue of {}", l.queue));
        if let Some(mark) = l.mark {
            parts.push(format!("marks from {mark} on"));
        }
        if l.overhead != Link::default().overhead {
            parts.push(format!("{} bytes of overhead for each packet", l.overhead));
        }
        if l.burst > 0 {
            parts.push(format!("bursts of {} bytes", l.burst));
        }
    }
    if l.delay != Default::default() {
        parts.push(format!("delay {}", l.delay));
    }
    match l.loss {
        Loss::None => (),
        Loss::Random(p) => parts.push(format!("loss {}%", p.trillionths() as f64 / 1e10)),
        Loss::Every(n) => parts.push(format!("1 frame in {n} lost")),
    }
    if parts.is_empty() {
        "bare".to_string()
    } else {
        parts.join(", ")
    }
}

/// Hosts of `[[host]]`.
pub(super) fn hosts(groups: &[HostGroup]) -> Vec<String> {
    let line = |h: &HostGroup| {
        let names = super::numbered(&h.name, h.count);
        let side = if h.wan { "beyond the WAN" } else { "on the LAN" };
        match h.up == h.down {
            true => format!("  {names} {side}: {}", link(&h.up)),
            false => format!("  {names} {side}: up {}; down {}", link(&h.up), link(&h.down)),
        }
    };
    let count: u64 = groups.iter().map(|h| u64::from(h.count)).sum();
    let head = (count > 0).then(|| format!("hosts: {count}, besides the two of the path"));
    head.into_iter().chain(groups.iter().map(line)).collect()
}
