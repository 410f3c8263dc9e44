//! Division of classes and addresses among several engines.
//!
//! A packet goes to an engine by its address on the LAN's side. This is the source of uploads and the
//! destination of downloads. So an engine may have classes only if they are selected by these addresses
//! alone:
//!
//! - a class whose rules all name a prefix on the LAN's side is for *these addresses*; another class may take
//!   flows of *all*;
//! - classes whose prefixes overlap are on one engine, and so are the classes of one tree;
//! - a class for all addresses takes the flows that no earlier class takes by address alone. So the classes
//!   of such addresses are on its engine.
//!
//! The first engine has the classes for all addresses. The others share the rest with it, by the first prefix
//! of each group. So the engine of a group stays while other groups come and go.

use super::diag::Fault;
use core::net::IpAddr;
use std::collections::{HashMap, HashSet};
use weir_core::gateway::{ClassConfig, Config, Direction, Match, Prefix};

/// Configuration divided among engines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Part of each engine. The limit on flows is divided equally.
    pub parts: Vec<Part>,
    /// Disjoint prefixes on the LAN's side, with their engine; those of the first engine are left out.
    pub homes: Vec<(Prefix, usize)>,
    /// Number of groups of classes that may be on any engine; 0 with one engine.
    pub groups: usize,
}

/// Part of one engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Configuration with the classes of the engine in their order.
    pub config: Config,
    /// Index of each class in the whole configuration.
    pub places: Vec<usize>,
}

/// Returns the reason why a configuration cannot have this many engines, if there is one.
pub(super) fn fault(config: &Config, engines: usize) -> Option<Fault> {
    if engines == 1 {
        return None;
    }
    if let Some(class) = config.classes.iter().find(|class| class.share.is_some()) {
        let message =
            format!("`ports.engines` is {engines}, and class \"{}\" shares a link by queues", class.name);
        return Some(Fault::new(message, "whole frames come to one engine: leave `engines` out"));
    }
    if [Direction::Out, Direction::In].into_iter().any(|direction| config.spills(direction)) {
        let message = format!("`ports.engines` is {engines}, and a class has `unresponsive = \"queue\"`");
        let help = "what spills comes to one engine: leave `engines` out, or use `unresponsive = \"fair\"`";
        return Some(Fault::new(message, help));
    }
    (split(config, engines).groups == 0).then(|| {
        let message = format!("`ports.engines` is {engines}, and the first engine would have every class");
        let help = "an engine has classes whose rules all name addresses on the LAN's side (`src` of what goes out, `dst` of what \
                    comes in), with their whole tree, if no class for other flows, of either direction, comes before one with \
                    nothing but that address: customers of a list, for instance";
        Fault::new(message, help)
    })
}

/// Divides a configuration among engines, of which there is at least one.
pub fn split(config: &Config, engines: usize) -> Split {
    if engines == 1 {
        let part = Part { config: config.clone(), places: (0..config.classes.len()).collect() };
        return Split { parts: vec![part], homes: Vec::new(), groups: 0 };
    }
    let mut groups = Groups::of(config);
    let mut split = Split { parts: Vec::new(), homes: Vec::new(), groups: 0 };
    let first = groups.find(STAYS);
    let mut least: HashMap<usize, Network> = HashMap::new();
    let outermost = std::mem::take(&mut groups.outermost);
    for &(network, class) in &outermost {
        // The networks come in order.
        least.entry(groups.find(class + 1)).or_insert(network);
    }
    least.remove(&first);
    split.groups = least.len();
    let mut engine_of =
        |class: usize| least.get(&groups.find(class + 1)).map_or(0, |least| least.engine(engines));
    split.homes = outermost.iter().map(|&(network, class)| (network.prefix, engine_of(class))).collect();
    split.homes.retain(|(_, engine)| *engine > 0);
    let engine: Vec<usize> = (0..config.classes.len()).map(&mut engine_of).collect();
    split.parts = (0..engines).map(|number| part(config, engines, |class| engine[class] == number)).collect();
    split
}

/// Returns the configuration of an engine.
fn part(config: &Config, engines: usize, is_its: impl Fn(usize) -> bool) -> Part {
    let places: Vec<usize> = (0..config.classes.len()).filter(|&class| is_its(class)).collect();
    let here = |parent: &mut usize| *parent = places.binary_search(parent).unwrap_or(usize::MAX);
    let class = |&place: &usize| {
        let mut class = config.classes[place].clone();
        class.share.iter_mut().filter_map(|share| share.parent.as_mut()).for_each(here);
        class.nested.iter_mut().filter_map(|nested| nested.parent.as_mut()).for_each(here);
        class
    };
    let max_flows = config.max_flows.div_ceil(engines as u32);
    let classes = places.iter().map(class).collect();
    Part { config: Config { classes, max_flows, ..keys(config) }, places }
}

/// Returns a configuration without its classes.
fn keys(config: &Config) -> Config {
    let Config { max_flows, assumed_rtt, idle_timeout, seed, observe, port, link_layer, .. } = *config;
    Config { classes: Vec::new(), max_flows, assumed_rtt, idle_timeout, seed, observe, port, link_layer }
}

/// Prefix with an order: a prefix comes before those that it covers, and only these stand between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    /// First address; IPv4 as `::ffff:a.b.c.d`.
    first: u128,
    bits: u8,
    prefix: Prefix,
}

/// Prefix of IPv4 among the addresses of IPv6 (RFC 4291 §2.5.5.2).
const MAPPED: u128 = 0xffff << 32;

impl Network {
    /// Converts a prefix. Returns `None` for a prefix of IPv6 that contains IPv4 addresses: it does not tell
    /// which family a packet has.
    fn of(prefix: Prefix) -> Option<Network> {
        match prefix.addr() {
            IpAddr::V4(address) => {
                let first = MAPPED | u128::from(address.to_bits());
                Some(Network { first, bits: prefix.bits() + 96, prefix })
            }
            IpAddr::V6(address) => {
                let network = Network { first: address.to_bits(), bits: prefix.bits(), prefix };
                let mapped = Network { first: MAPPED, bits: 96, prefix };
                (!network.covers(&mapped) && !mapped.covers(&network)).then_some(network)
            }
        }
    }

    fn covers(&self, other: &Network) -> bool {
        self.bits <= other.bits
            && (self.first ^ other.first).checked_shr(128 - u32::from(self.bits)).unwrap_or(0) == 0
    }

    /// Returns the engine, spreading neighbours evenly (Knuth, The Art of Computer Programming, vol. 3, 6.4,
    /// Fibonacci hashing).
    fn engine(&self, engines: usize) -> usize {
        let number = self.first.checked_shr(128 - u32::from(self.bits)).unwrap_or(0);
        let folded = (number >> 64) as u64 ^ number as u64;
        let spread = folded.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((u128::from(spread) * engines as u128) >> 64) as usize
    }
}

/// Group of the classes that stay with the first engine; class numbers are shifted by one behind it.
const STAYS: usize = 0;

/// Sets of classes that must be on one engine.
struct Groups {
    parents: Vec<usize>,
    /// Prefixes without a covering prefix, in order, each with a class that names it.
    outermost: Vec<(Network, usize)>,
}

impl Groups {
    fn of(config: &Config) -> Groups {
        let mut groups = Groups { parents: (0..=config.classes.len()).collect(), outermost: Vec::new() };
        let mut all = Vec::new();
        for (i, class) in config.classes.iter().enumerate() {
            let above = class.nested.and_then(|nested| nested.parent);
            if let Some(parent) = above.or(class.share.and_then(|share| share.parent)) {
                groups.join(i + 1, parent + 1);
            }
            if !class.takes_flows() {
                continue;
            }
            match networks(class) {
                Some(networks) => all.extend(networks.map(|network| (network, i))),
                None => groups.join(i + 1, STAYS),
            }
        }
        all.sort_unstable_by_key(|(network, class)| (network.first, network.bits, *class));
        for (network, class) in all {
            match groups.outermost.last() {
                Some(&(outer, owner)) if outer.covers(&network) => groups.join(owner + 1, class + 1),
                _ => groups.outermost.push((network, class)),
            }
        }
        groups.keep_what_others_may_take(config);
        groups
    }

    /// Keeps addresses on the first engine if a class for all addresses may take their flows.
    fn keep_what_others_may_take(&mut self, config: &Config) {
        for direction in [Direction::Out, Direction::In] {
            let is_for_all =
                |c: &ClassConfig| c.direction == direction && c.takes_flows() && networks(c).is_none();
            let Some(first) = config.classes.iter().position(is_for_all) else { continue };
            let before =
                config.classes[..first].iter().filter(|c| c.direction == direction && c.takes_flows());
            let whole: HashSet<(u128, u8)> = before
                .flat_map(|class| class.matches.iter().filter(|rule| is_bare(rule, direction)))
                .filter_map(|rule| lan_side(rule, direction).and_then(Network::of))
                .map(|network| (network.first, network.bits))
                .collect();
            for n in 0..self.outermost.len() {
                let (network, class) = self.outermost[n];
                if !whole.contains(&(network.first, network.bits)) {
                    self.join(class + 1, STAYS);
                }
            }
        }
    }

    fn find(&mut self, mut at: usize) -> usize {
        while self.parents[at] != at {
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find(one), self.find(other));
        self.parents[one.max(other)] = one.min(other);
    }
}

/// Returns the prefixes on the LAN's side that all rules of a class name; `None` if a rule names none.
fn networks(class: &ClassConfig) -> Option<impl Iterator<Item = Network> + '_> {
    let network = |rule: &Match| lan_side(rule, class.direction).and_then(Network::of);
    let all = !class.matches.is_empty() && class.matches.iter().all(|rule| network(rule).is_some());
    all.then(|| class.matches.iter().filter_map(network))
}

fn lan_side(rule: &Match, direction: Direction) -> Option<Prefix> {
    match direction {
        Direction::Out => rule.src,
        Direction::In => rule.dst,
    }
}

/// Returns whether the rule names only a prefix on the LAN's side.
fn is_bare(rule: &Match, direction: Direction) -> bool {
    let prefix = lan_side(rule, direction);
    let bare = match direction {
        Direction::Out => Match { src: prefix, ..Match::default() },
        Direction::In => Match { dst: prefix, ..Match::default() },
    };
    *rule == bare
}

#[cfg(test)]
mod tests;
