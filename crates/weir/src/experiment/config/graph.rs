//! Tables `[[node]]` and `[[link]]`: a network of the user's own instead of `[path]`. Simulator only.

use super::diag::{listed, nearest, Fault};
use super::keys::refuse_twice;
use super::reader::Section;
use super::{link, names};
use crate::experiment::plan::{Graph, GraphLink, GraphNode};
use crate::result::Backend;
use weir_core::time::Duration;

/// Most nodes, and most links.
const MOST: usize = 1000;

/// Reads all `[[node]]` and `[[link]]` tables; `None` if there are none. Faulty parts are missing.
pub(super) fn graph(s: &Section) -> Option<Graph> {
    for key in ["node", "link"] {
        s.note_only(Backend::Sim, key);
        s.at_most_one(&["path", key], "[path] is the short form for two nodes and the links between them");
    }
    let (nodes, links) = (s.sections("node"), s.sections("link"));
    if nodes.is_empty() && links.is_empty() {
        return None;
    }
    for key in ["node", "link"] {
        s.need(key, if key == "node" { "[{ name = \"r1\" }]" } else { "[{ ends = [\"r1\", \"r2\"] }]" });
    }
    if nodes.len().max(links.len()) > MOST {
        s.key_fault("node", Fault::bare(format!("more than {MOST} nodes or links")));
        return None;
    }
    let mut graph = Graph::default();
    let mut wans = Vec::new();
    for section in nodes {
        let wan = section.get::<String>("wan");
        if let Some(name) = name(&section, graph.nodes.iter().map(|n| n.name.as_str()), "node") {
            graph.nodes.push(GraphNode { name, wan: None });
            wans.push(wan);
        }
        section.finish();
    }
    for section in links {
        graph.links.extend(one_link(section, &graph));
    }
    if s.all_well() {
        gateways(s, &mut graph, &wans);
        connected(s, &graph);
    }
    Some(graph)
}

/// Reads the name of a section, which must be new.
fn name<'a>(s: &Section, mut earlier: impl Iterator<Item = &'a str>, what: &str) -> Option<String> {
    s.need("name", "\"r1\"");
    let name = s.parsed("name", names::name)?;
    if earlier.any(|other| other == name) {
        s.fault("name", Fault::bare(format!("a second {what} named \"{name}\"")));
        return None;
    }
    Some(name)
}

/// Returns the number of the node that a text names.
pub(super) fn node(graph: &Graph, name: &str) -> Result<usize, Fault> {
    let names = || graph.nodes.iter().map(|n| n.name.as_str());
    names().position(|n| n == name).ok_or_else(|| {
        let help = match nearest(name, names()) {
            Some(n) => format!("did you mean `{n}`?"),
            None if graph.nodes.is_empty() => format!("write [[node]] with name = \"{name}\""),
            None => format!("there is {}", listed(names())),
        };
        Fault::new(format!("no node is named `{name}`"), help)
    })
}

fn one_link(s: Section, graph: &Graph) -> Option<GraphLink> {
    s.need("ends", "[\"r1\", \"r2\"]");
    let ends = s.parsed("ends", |ends: Ends| {
        let [from, to] = [node(graph, &ends.0[0])?, node(graph, &ends.0[1])?];
        if from == to {
            return Err(Fault::bare("a link from a node to itself"));
        }
        let twice = graph.links.iter().find(|l| l.ends == [from, to] || l.ends == [to, from]);
        match twice {
            Some(other) => Err(Fault::bare(format!("`{}` already joins these two nodes", other.name))),
            None => Ok([from, to]),
        }
    });
    let joined = ends.map(|[a, b]| format!("{}-{}", graph.nodes[a].name, graph.nodes[b].name));
    let name = match s.has("name") {
        true => name(&s, graph.links.iter().map(|l| l.name.as_str()), "link"),
        false => joined,
    };
    let sides = ["out", "back"].map(|side| s.section(side));
    for own in sides.iter().flatten() {
        refuse_twice(link::KEYS, own, &s, ["out", "back"]);
    }
    let [out, back] = [0, 1].map(|side| {
        let places: Vec<&Section> = sides[side].iter().chain([&s]).collect();
        link::complete(link::begin(&places), &places, Duration::ZERO)
    });
    sides.into_iter().flatten().for_each(link::finish);
    link::finish(s);
    Some(GraphLink { name: name?, ends: ends?, out, back })
}

/// Names of two nodes.
struct Ends([String; 2]);

impl super::reader::FromValue for Ends {
    fn from_value(value: &toml::de::DeValue) -> Result<Ends, Fault> {
        let names: Option<Vec<String>> = value
            .as_array()
            .and_then(|all| all.iter().map(|v| v.get_ref().as_str().map(str::to_string)).collect());
        names
            .and_then(|names| <[String; 2]>::try_from(names).ok())
            .map(Ends)
            .ok_or_else(|| Fault::new("expected the names of two nodes", "[\"r1\", \"r2\"]"))
    }
}

/// Marks the nodes that are gateways, once all links are known.
fn gateways(s: &Section, graph: &mut Graph, wans: &[Option<String>]) {
    let sections = s.sections("node");
    for (i, (wan, section)) in wans.iter().zip(&sections).enumerate() {
        let Some(wan) = wan else { continue };
        let found = node(graph, wan).and_then(|to| {
            let there = graph.neighbours(i).any(|(_, other)| other == to);
            let help = format!("write [[link]] with ends = [\"{}\", \"{wan}\"]", graph.nodes[i].name);
            there.then_some(to).ok_or_else(|| Fault::new(format!("no link leads to `{wan}`"), help))
        });
        match found {
            Ok(to) => graph.nodes[i].wan = Some(to),
            Err(fault) => section.fault_in("wan", fault),
        }
    }
    let any = graph.nodes.iter().any(|n| n.wan.is_some());
    if any != s.has("gateway") {
        let fault = match any {
            true => Fault::new(
                "`wan` makes a node a gateway, and there is no [gateway]",
                "say what it does in [gateway]",
            ),
            false => Fault::new("no node is the gateway", "name the neighbour on its WAN side: wan = \"r2\""),
        };
        s.key_fault(if any { "node" } else { "gateway" }, fault);
    }
}

/// Checks that every node can be reached.
fn connected(s: &Section, graph: &Graph) {
    let routes = graph.routes_to(0);
    if let Some(island) = (1..graph.nodes.len()).find(|&i| routes[i].is_none()) {
        let (island, first) = (&graph.nodes[island].name, &graph.nodes[0].name);
        s.key_fault("link", Fault::bare(format!("no links lead from `{island}` to `{first}`")));
    }
}
