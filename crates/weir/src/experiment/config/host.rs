//! Tables `[[host]]`: hosts beside the two of the path, or those of a graph, each behind an access link of
//! its own. In the lab they are addresses of the path's two hosts, and have no access links.

use super::diag::Fault;
use super::flow::MOST_IN_ALL;
use super::reader::Section;
use super::{graph, link, names, path};
use crate::experiment::plan::{Graph, HostGroup, Ip, Lab};
use crate::result::Backend;
use weir_core::time::Duration;

/// Most hosts of a group.
const MOST: u64 = 10_000;

/// Reads all `[[host]]` tables; a faulty one is missing. `rtt` is that of the path. In a graph, hosts are at
/// its nodes.
pub(super) fn groups(s: &Section, rtt: Duration, graph: Option<&Graph>) -> Vec<HostGroup> {
    let mut groups: Vec<HostGroup> = Vec::new();
    for section in s.sections("host") {
        groups.extend(group(section, rtt, graph, &groups));
    }
    groups
}

fn group(s: Section, rtt: Duration, graph: Option<&Graph>, earlier: &[HostGroup]) -> Option<HostGroup> {
    s.need("name", "\"clients\"");
    let name = s.parsed("name", names::name);
    if let Some(name) = name.as_ref().filter(|name| earlier.iter().any(|g| g.name == **name)) {
        s.fault("name", Fault::bare(format!("a second group of hosts named \"{name}\"")));
    }
    let (wan, node) = place(&s, graph);
    let count = s.int("count", 1..=MOST).unwrap_or(1) as u32;
    for key in link::KEYS.iter().map(|key| key.name).chain(["up", "down"]) {
        s.note_only(Backend::Sim, key);
    }
    let (up, down) = path::access(s, rtt);
    Some(HostGroup { name: name?, wan: wan?, node, count, up, down })
}

/// Refuses groups that make more hosts than can be simulated.
pub(super) fn not_too_many(s: &Section, hosts: &[HostGroup]) {
    let mut all = 0;
    for (group, section) in hosts.iter().zip(s.sections("host")) {
        all += u64::from(group.count);
        if all > MOST_IN_ALL {
            let message = format!("the hosts up to this group are more than {MOST_IN_ALL}");
            return section.fault(if section.has("count") { "count" } else { "name" }, Fault::bare(message));
        }
    }
}

/// Notes settings of the lab that hosts exclude: their addresses are IPv4.
pub(super) fn have_ipv4(s: &Section, hosts: &[HostGroup], lab: &Lab) {
    if lab.ip == Ip::V6 && !hosts.is_empty() {
        if let Some(lab) = s.section("lab") {
            let fault = Fault::new("the hosts of [[host]] have IPv4 addresses", "write ip = 4");
            lab.note_value(Backend::Sim, "ip", fault);
        }
    }
}

/// Reads the place of hosts: the `side` of the path, or the node `at` in a graph.
fn place(s: &Section, graph: Option<&Graph>) -> (Option<bool>, Option<usize>) {
    let (wanted, other, why) = match graph {
        None => ("side", "at", "nodes are those of [[node]]; on the path hosts have a `side`"),
        Some(_) => ("at", "side", "in a network of [[node]] and [[link]] hosts are at a node: at = \"r1\""),
    };
    if s.has(other) {
        s.key_fault(other, Fault::new(format!("`{}` has no meaning here", s.full(other)), why));
    } else {
        s.need(wanted, if wanted == "at" { "\"r1\"" } else { "\"lan\"" });
    }
    match graph {
        None => (s.choice("side", &[("lan", false), ("wan", true)], &[]), None),
        Some(graph) => {
            let node = s.parsed("at", |name: String| graph::node(graph, &name));
            (node.map(|_| false), node)
        }
    }
}
