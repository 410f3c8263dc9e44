//! The class that takes a flow: the first in the order of the configuration that has a rule for it.
//!
//! The rules are compiled once. One with an address is found by a longest prefix match, one with nothing but
//! a port by the port; only rules that have neither (VLANs, two ports) are looked at one after the other. So
//! a lookup costs the same for ten or for fifty thousand prefixes, and takes no memory.

mod compile;
mod config;
mod nested;
mod ports;
mod prefixes;
pub mod spec;

pub use compile::{Condition, Group, Part, Rules, MOST_CONDITIONS, NO_CLASS};
pub use config::{ClassConfig, Config, Direction, Match, Prefix, Refused};
pub use nested::{Nested, DEEPEST};

use crate::flow::Key;
use crate::steer::Fields;
use ports::Ports;
use prefixes::Prefixes;
use std::collections::HashMap;

impl Match {
    /// Returns whether the rule takes this flow.
    pub fn takes(&self, key: &Key) -> bool {
        let addr = |p: &Option<Prefix>, a| p.as_ref().is_none_or(|p| p.contains(a));
        let port = |r: &Option<core::ops::RangeInclusive<u16>>, p| r.as_ref().is_none_or(|r| r.contains(&p));
        addr(&self.src, key.src_ip())
            && addr(&self.dst, key.dst_ip())
            && port(&self.src_port, key.src_port)
            && port(&self.dst_port, key.dst_port)
            && self.vlan.is_none_or(|v| v == key.vlan())
            && self.protocol.is_none_or(|p| p == key.protocol())
    }

    /// Returns whether it has nothing but a port of the sender, or nothing but one of the receiver.
    fn is_port_only(&self) -> bool {
        let Match { src, dst, src_port, dst_port, vlan, protocol } = self;
        let bare = src.is_none() && dst.is_none() && vlan.is_none() && protocol.is_none();
        bare && src_port.is_some() != dst_port.is_some()
    }
}

impl Match {
    /// Returns the fields that the rule looks at.
    fn fields(&self) -> Fields {
        let Match { src, dst, src_port, dst_port, vlan, protocol } = self;
        let all = [
            (src.is_some(), Fields::SRC),
            (dst.is_some(), Fields::DST),
            (src_port.is_some(), Fields::SRC_PORT),
            (dst_port.is_some(), Fields::DST_PORT),
            (vlan.is_some(), Fields::VLAN),
            (protocol.is_some(), Fields::PROTOCOL),
        ];
        all.into_iter().filter(|(looks, _)| *looks).fold(Fields::NONE, |fields, (_, field)| fields.and(field))
    }
}

/// Returns the fields that the rules of a direction look at, if something in it is charged to a class.
fn fields(config: &Config, direction: Direction) -> Fields {
    let classes = || config.classes.iter().filter(|c| c.direction == direction && c.takes_flows());
    let measured = if classes().any(ClassConfig::measures_delay) { Fields::MEASURED } else { Fields::NONE };
    let each = if classes().any(ClassConfig::bounds_flows) { Fields::EACH } else { Fields::NONE };
    if each == Fields::NONE && !classes().any(|c| c.shares_rate()) {
        return measured;
    }
    let rules = classes().flat_map(|c| &c.matches);
    let counted = match direction {
        Direction::Out => Fields::COUNTED,
        Direction::In => Fields::COUNTED.and(Fields::INWARD),
    };
    let fair = if classes().any(ClassConfig::is_fair) { Fields::FAIR } else { Fields::NONE };
    rules.fold(counted.and(measured).and(fair).and(each), |fields, rule| fields.and(rule.fields()))
}

/// Place of a rule in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct At {
    class: u32,
    rule: u32,
}

impl At {
    /// The rule that a class without rules has: it takes every flow.
    const EVERY: u32 = u32::MAX;

    fn takes(self, config: &Config, key: &Key) -> bool {
        self.rule == At::EVERY || config.classes[self.class as usize].matches[self.rule as usize].takes(key)
    }
}

/// The first class that takes a flow, among those looked at so far.
struct Best<'a> {
    config: &'a Config,
    key: &'a Key,
    class: u32,
}

impl Best<'_> {
    /// Looks at rules, which are in the order of the configuration.
    fn look(&mut self, rules: &[At]) {
        let before = rules.iter().take_while(|at| at.class < self.class);
        let found = before.into_iter().find(|at| at.takes(self.config, self.key));
        self.class = found.map_or(self.class, |at| at.class);
    }
}

/// The rules of one direction.
#[derive(Default)]
struct Lookup {
    src: Prefixes,
    dst: Prefixes,
    src_port: Ports,
    dst_port: Ports,
    others: Vec<At>,
}

impl Lookup {
    fn new(config: &Config, direction: Direction) -> Lookup {
        let (mut src, mut dst) = (Vec::new(), Vec::new());
        let (mut src_port, mut dst_port) = (Vec::new(), Vec::new());
        let mut others = Vec::new();
        for (class, c) in (0..).zip(&config.classes) {
            if c.direction != direction || !c.takes_flows() {
                continue;
            }
            if c.matches.is_empty() {
                others.push(At { class, rule: At::EVERY });
            }
            for (rule, m) in (0..).zip(&c.matches) {
                match (m.src, m.dst, &m.src_port, &m.dst_port) {
                    (Some(prefix), ..) => src.push((prefix, At { class, rule })),
                    (_, Some(prefix), ..) => dst.push((prefix, At { class, rule })),
                    (.., Some(ports), None) if m.is_port_only() => src_port.push((ports.clone(), class)),
                    (.., None, Some(ports)) if m.is_port_only() => dst_port.push((ports.clone(), class)),
                    _ => others.push(At { class, rule }),
                }
            }
        }
        Lookup {
            src: Prefixes::new(src),
            dst: Prefixes::new(dst),
            src_port: Ports::new(&src_port),
            dst_port: Ports::new(&dst_port),
            others,
        }
    }

    fn find(&self, config: &Config, key: &Key) -> Option<usize> {
        let by_port = self.src_port.first(key.src_port).min(self.dst_port.first(key.dst_port));
        let mut best = Best { config, key, class: by_port };
        self.src.of(|| key.src_ip()).for_each(|rules| best.look(rules));
        self.dst.of(|| key.dst_ip()).for_each(|rules| best.look(rules));
        best.look(&self.others);
        (best.class != ports::NONE).then_some(best.class as usize)
    }
}

/// A configuration whose rules are compiled. That takes time in proportion to the rules, and can be done by
/// another thread than the gateway's.
pub struct Compiled {
    config: Config,
    /// Look-ups of uploads and downloads.
    lookups: [Lookup; 2],
    /// Fields that the rules of each look at.
    fields: [Fields; 2],
    /// A hash of the names of its classes, in their order.
    names: u64,
    /// The hash of another configuration, and for each class its index there.
    after: Option<(u64, Vec<Option<u32>>)>,
}

impl Compiled {
    /// As it is made of a configuration, for a gateway that has `old`: its classes are found again here, and
    /// not when the gateway takes it.
    pub fn after(config: Config, old: &Config) -> Compiled {
        let by_name = |(index, class): (u32, &ClassConfig)| ((class.name.clone(), class.direction), index);
        let mut had: HashMap<(String, Direction), u32> = (0..).zip(&old.classes).map(by_name).collect();
        let claim = |class: &ClassConfig| had.remove(&(class.name.clone(), class.direction));
        let found = config.classes.iter().map(claim).collect();
        Compiled { after: Some((names(old), found)), ..config.into() }
    }

    /// The index of each class in the configuration of before, if this was made for that.
    pub(crate) fn found_in(&self, old: &Compiled) -> Option<&[Option<u32>]> {
        let (names, found) = self.after.as_ref()?;
        (*names == old.names).then_some(found)
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Keeps the seed of a gateway that takes this configuration.
    pub(crate) fn set_seed(&mut self, seed: u64) {
        self.config.seed = seed;
    }

    /// Index of the first class that takes the flow.
    pub fn classify(&self, direction: Direction, key: &Key) -> Option<usize> {
        self.lookups[usize::from(direction == Direction::In)].find(&self.config, key)
    }

    /// The rules of a direction for a program in the kernel. That takes time in proportion to the rules.
    pub fn rules(&self, direction: Direction) -> Rules {
        Rules::new(&self.config, direction)
    }

    /// Returns the fields that rules look at of packets that are not TCP, if any are charged to a class.
    pub fn fields(&self, direction: Direction) -> Fields {
        self.fields[usize::from(direction == Direction::In)]
    }

    /// Returns whether this configuration may control a flow that the other one does not, control one by
    /// another class, or charge a packet to another or as another flow's.
    pub(crate) fn takes_other_flows_than(&self, other: &Compiled) -> bool {
        let (ours, theirs) = (&self.config.classes, &other.config.classes);
        self.fields != other.fields
            || ours.len() != theirs.len()
            || ours.iter().zip(theirs).any(|(a, b)| {
                a.direction != b.direction
                    || a.ack.is_some() != b.ack.is_some()
                    || a.shares_rate() != b.shares_rate()
                    || a.takes_flows() != b.takes_flows()
                    || a.matches != b.matches
            })
    }
}

/// A hash of which classes there are, in their order (FNV-1a).
fn names(config: &Config) -> u64 {
    let ending = |c: &ClassConfig| [0, u8::from(c.direction == Direction::In)];
    let all = config.classes.iter().flat_map(|c| c.name.bytes().chain(ending(c)));
    all.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

impl From<Config> for Compiled {
    fn from(config: Config) -> Compiled {
        let lookups = [Direction::Out, Direction::In].map(|direction| Lookup::new(&config, direction));
        let fields = [Direction::Out, Direction::In].map(|direction| self::fields(&config, direction));
        Compiled { names: names(&config), config, lookups, fields, after: None }
    }
}

impl core::fmt::Debug for Compiled {
    /// The configuration says it all.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.config.fmt(f)
    }
}

impl core::ops::Deref for Compiled {
    type Target = Config;
    fn deref(&self) -> &Config {
        &self.config
    }
}

#[cfg(test)]
mod tests;
