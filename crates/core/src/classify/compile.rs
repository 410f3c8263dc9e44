//! Rules in a form that a program in the kernel looks up: groups by longest prefix match, and short lists of
//! conditions.
//!
//! A group stands for all packets whose longest prefix it is. It has the rules of its own prefix and those of
//! every shorter one, so that one look-up for each part of a packet is enough. The class of a packet is the
//! smallest that any look-up finds.

use super::ports::{self, Ports};
use super::{At, Config, Direction, Match, Prefix};
use crate::flow::Key;
use core::net::IpAddr;
use core::ops::RangeInclusive;
use prefix_trie::PrefixMap;
use std::collections::{BTreeMap, BTreeSet};

/// Most conditions of a group: a hook looks at them one after the other.
pub const MOST_CONDITIONS: usize = 64;
/// No class.
pub const NO_CLASS: u32 = u32::MAX;
/// Leading bits of an IPv4 address that is written as an IPv6 address (RFC 4291 §2.5.5.2).
const MAPPED_BITS: u8 = 96;

/// A part of a packet by which rules are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Part {
    /// Source address.
    Src = 0,
    /// Destination address.
    Dst = 1,
    /// Outer VLAN identifier.
    Vlan = 2,
    /// Source port.
    SrcPort = 3,
    /// Destination port.
    DstPort = 4,
    /// Every packet.
    Any = 5,
}

/// The rules for all packets that have this prefix, and no longer one, in some part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Part by which it is looked up.
    pub part: Part,
    /// Bits of the prefix, 0 to 128.
    pub bits: u8,
    /// The prefix: an address, or a number of two bytes in network order.
    pub prefix: [u8; 16],
    /// The first class that has such packets whatever else they are; [`NO_CLASS`]: none.
    pub class: u32,
    /// The first of its [conditions](Rules::conditions), which are in the order of their classes, all before
    /// `class`.
    pub first: u32,
    /// Number of them.
    pub count: u32,
}

/// A rule that looks at more than the part by which it is found. All integers are in host order; layout of
/// `struct condition`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Condition {
    /// Source address under its mask.
    pub src: [u8; 16],
    /// Bits of the source address that count.
    pub src_mask: [u8; 16],
    /// Destination address under its mask.
    pub dst: [u8; 16],
    /// Bits of the destination address that count.
    pub dst_mask: [u8; 16],
    /// First and last source port.
    pub src_ports: [u16; 2],
    /// First and last destination port.
    pub dst_ports: [u16; 2],
    /// Outer VLAN identifier, if `flags` has [`Condition::VLAN`].
    pub vlan: u16,
    /// IP protocol, if `flags` has [`Condition::PROTOCOL`].
    pub protocol: u8,
    /// See the constants.
    pub flags: u8,
    /// The class that takes what fits.
    pub class: u32,
}

impl Condition {
    /// The VLAN identifier is compared.
    pub const VLAN: u8 = 1;
    /// The protocol is compared.
    pub const PROTOCOL: u8 = 2;
    /// The source is an IPv6 address.
    pub const SRC_V6: u8 = 4;
    /// The destination is an IPv6 address.
    pub const DST_V6: u8 = 8;

    fn new(rule: &Match, class: u32) -> Condition {
        let range =
            |r: &Option<RangeInclusive<u16>>| r.as_ref().map_or([0, u16::MAX], |r| [*r.start(), *r.end()]);
        let flag = |set, flag| if set { flag } else { 0 };
        let six = |p: Option<Prefix>| p.is_some_and(|p| p.addr().is_ipv6());
        let ((src, src_mask), (dst, dst_mask)) = (masked(rule.src), masked(rule.dst));
        Condition {
            src,
            src_mask,
            dst,
            dst_mask,
            src_ports: range(&rule.src_port),
            dst_ports: range(&rule.dst_port),
            vlan: rule.vlan.unwrap_or(0),
            protocol: rule.protocol.unwrap_or(0),
            flags: flag(rule.vlan.is_some(), Condition::VLAN)
                | flag(rule.protocol.is_some(), Condition::PROTOCOL)
                | flag(six(rule.src), Condition::SRC_V6)
                | flag(six(rule.dst), Condition::DST_V6),
            class,
        }
    }

    /// Returns whether a packet with this key fits. As `condition_takes` of the programs.
    pub fn takes(&self, key: &Key) -> bool {
        let same = |a: &[u8; 16], b: &[u8; 16], mask: &[u8; 16]| {
            let [a, b, mask] = [a, b, mask].map(|bytes| u128::from_be_bytes(*bytes));
            (a ^ b) & mask == 0
        };
        let has = |flag| self.flags & flag != 0;
        let four = |address: &[u8; 16]| core::net::Ipv6Addr::from(*address).to_ipv4_mapped().is_some();
        same(&key.src, &self.src, &self.src_mask)
            && same(&key.dst, &self.dst, &self.dst_mask)
            && !(has(Condition::SRC_V6) && four(&key.src))
            && !(has(Condition::DST_V6) && four(&key.dst))
            && (self.src_ports[0]..=self.src_ports[1]).contains(&key.src_port)
            && (self.dst_ports[0]..=self.dst_ports[1]).contains(&key.dst_port)
            && !(has(Condition::VLAN) && self.vlan != key.vlan())
            && !(has(Condition::PROTOCOL) && self.protocol != key.protocol())
    }
}

const _: () = assert!(core::mem::size_of::<Condition>() == 80);

/// The bytes of a prefix as a key has them, and which bits count.
fn masked(prefix: Option<Prefix>) -> ([u8; 16], [u8; 16]) {
    let Some(prefix) = prefix else { return ([0; 16], [0; 16]) };
    let (address, bits) = written(prefix);
    (address, (u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0)).to_be_bytes())
}

/// A prefix as keys have it: of IPv4 96 bits longer.
fn written(prefix: Prefix) -> ([u8; 16], u8) {
    match prefix.addr() {
        IpAddr::V4(a) => (a.to_ipv6_mapped().octets(), MAPPED_BITS + prefix.bits()),
        IpAddr::V6(a) => (a.octets(), prefix.bits()),
    }
}

/// The rules of a direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// In any order.
    pub groups: Vec<Group>,
    /// Conditions of all groups, which may share them.
    pub conditions: Vec<Condition>,
    /// Class and rule of what some group has no place for: as [`Config::classes`] and
    /// [`matches`](super::ClassConfig::matches) count them.
    pub left_out: BTreeSet<(u32, u32)>,
}

/// Parts of a group.
#[derive(Clone, Default)]
struct Parts {
    class: Option<u32>,
    conditions: BTreeSet<At>,
}

impl Parts {
    fn add(&mut self, at: At, whole: bool) {
        if whole {
            self.class = Some(self.class.map_or(at.class, |class| class.min(at.class)));
        } else {
            self.conditions.insert(at);
        }
    }
}

impl Rules {
    /// The rules of the classes of a direction that take flows.
    pub(super) fn new(config: &Config, direction: Direction) -> Rules {
        let mut rules = Rules::default();
        let (mut src, mut dst) = (Vec::new(), Vec::new());
        let (mut src_port, mut dst_port) = (Vec::new(), Vec::new());
        let mut vlans: BTreeMap<u16, Parts> = BTreeMap::new();
        let mut any = Parts::default();
        for (class, c) in (0..).zip(&config.classes) {
            if c.direction != direction || !c.takes_flows() {
                continue;
            }
            if c.matches.is_empty() {
                any.add(At { class, rule: At::EVERY }, true);
            }
            for (rule, m) in (0..).zip(&c.matches) {
                let at = At { class, rule };
                let is = |bare: Match| *m == bare;
                match (m.src, m.dst, &m.src_port, &m.dst_port) {
                    (Some(p), ..) => src.push((p, at, is(Match { src: m.src, ..Match::default() }))),
                    (_, Some(p), ..) => dst.push((p, at, is(Match { dst: m.dst, ..Match::default() }))),
                    (.., Some(ports), None) if m.is_port_only() => src_port.push((ports.clone(), class)),
                    (.., None, Some(ports)) if m.is_port_only() => dst_port.push((ports.clone(), class)),
                    _ => match m.vlan {
                        Some(vlan) => {
                            let whole = is(Match { vlan: m.vlan, ..Match::default() });
                            vlans.entry(vlan).or_default().add(at, whole);
                        }
                        None => any.add(at, *m == Match::default()),
                    },
                }
            }
        }
        rules.add_prefixes(config, Part::Src, src);
        rules.add_prefixes(config, Part::Dst, dst);
        for (vlan, parts) in vlans {
            rules.add(config, (Part::Vlan, number(vlan), 16), &parts);
        }
        rules.add_ports(Part::SrcPort, &Ports::new(&src_port));
        rules.add_ports(Part::DstPort, &Ports::new(&dst_port));
        if any.class.is_some() || !any.conditions.is_empty() {
            rules.add(config, (Part::Any, [0; 16], 0), &any);
        }
        rules
    }

    /// Adds a group of these parts. Returns its number.
    fn add(&mut self, config: &Config, (part, prefix, bits): (Part, [u8; 16], u8), parts: &Parts) -> usize {
        let class = parts.class.unwrap_or(NO_CLASS);
        let before = || parts.conditions.iter().filter(|at| at.class < class);
        let first = self.conditions.len() as u32;
        for at in before().take(MOST_CONDITIONS) {
            let rule = &config.classes[at.class as usize].matches[at.rule as usize];
            self.conditions.push(Condition::new(rule, at.class));
        }
        self.left_out.extend(before().skip(MOST_CONDITIONS).map(|at| (at.class, at.rule)));
        let count = self.conditions.len() as u32 - first;
        self.groups.push(Group { part, bits, prefix, class, first, count });
        self.groups.len() - 1
    }

    /// Rules with a prefix, and whether they look at nothing else.
    fn add_prefixes(&mut self, config: &Config, part: Part, mut rules: Vec<(Prefix, At, bool)>) {
        // What covers a prefix comes before it.
        rules.sort_unstable_by_key(|(prefix, at, _)| (prefix.bits(), prefix.addr(), *at));
        let (mut v4, mut v6) = (PrefixMap::<(u32, u8), usize>::new(), PrefixMap::<(u128, u8), usize>::new());
        let mut made: Vec<(Parts, usize)> = Vec::new();
        for same in rules.chunk_by(|(a, ..), (b, ..)| a == b) {
            let (prefix, bits) = (same[0].0, same[0].0.bits());
            let (written, length) = written(prefix);
            if prefix.addr().is_ipv6() && length >= MAPPED_BITS && is_mapped(&written) {
                continue; // keys with such addresses are those of IPv4
            }
            let cover = match prefix.addr() {
                IpAddr::V4(a) => v4.get_lpm(&(a.to_bits(), bits)).map(|(_, n)| *n),
                IpAddr::V6(a) => v6.get_lpm(&(a.to_bits(), bits)).map(|(_, n)| *n),
            };
            let mut parts = cover.map_or_else(Parts::default, |n| made[n].0.clone());
            same.iter().for_each(|(_, at, whole)| parts.add(*at, *whole));
            let class = parts.class.unwrap_or(NO_CLASS);
            parts.conditions.retain(|at| at.class < class);
            let above = cover.map(|n| (&made[n].0.conditions, made[n].1));
            let group = match above.filter(|(conditions, _)| **conditions == parts.conditions) {
                Some((_, group)) => {
                    let Group { first, count, .. } = self.groups[group];
                    self.groups.push(Group { part, bits: length, prefix: written, class, first, count });
                    self.groups.len() - 1
                }
                None => self.add(config, (part, written, length), &parts),
            };
            match prefix.addr() {
                IpAddr::V4(a) => v4.insert((a.to_bits(), bits), made.len()),
                IpAddr::V6(a) => v6.insert((a.to_bits(), bits), made.len()),
            };
            made.push((parts, group));
        }
        // A prefix of IPv6 has no addresses of IPv4, as which keys have them.
        let of_mapped = |g: &Group| g.part == part && g.bits <= MAPPED_BITS && covers_mapped(g);
        let mut covering = self.groups.iter().filter(|g| of_mapped(g)).peekable();
        if covering.peek().is_some() && covering.all(|g| g.bits < MAPPED_BITS) {
            self.add(config, (part, mapped(), MAPPED_BITS), &Parts::default());
        }
    }

    fn add_ports(&mut self, part: Part, ports: &Ports) {
        for (range, class) in ports.ranges().filter(|(_, class)| *class != ports::NONE) {
            for (port, bits) in prefixes(range) {
                let prefix = number(port);
                self.groups.push(Group { part, bits, prefix, class, first: 0, count: 0 });
            }
        }
    }

    /// Parts that have a group: a bit for each [`Part`].
    pub fn parts(&self) -> u32 {
        self.groups.iter().fold(0, |parts, group| parts | 1 << group.part as u32)
    }

    /// The class of a packet, found as a hook does: for tests, since it looks at all groups.
    pub fn classify(&self, key: &Key) -> Option<usize> {
        let ports = [key.src_port, key.dst_port].map(number);
        let parts = [
            (Part::Src, key.src),
            (Part::Dst, key.dst),
            (Part::Vlan, number(key.vlan())),
            (Part::SrcPort, ports[0]),
            (Part::DstPort, ports[1]),
            (Part::Any, [0; 16]),
        ];
        let covers = |g: &Group, of: &[u8; 16]| {
            let mask = u128::MAX.checked_shl(128 - u32::from(g.bits)).unwrap_or(0);
            (u128::from_be_bytes(g.prefix) ^ u128::from_be_bytes(*of)) & mask == 0
        };
        let class = |(part, of): (Part, [u8; 16])| {
            let fits = self.groups.iter().filter(|g| g.part == part && covers(g, &of));
            let group = fits.max_by_key(|g| g.bits)?;
            let (first, end) = (group.first as usize, (group.first + group.count) as usize);
            let found = self.conditions[first..end].iter().find(|c| c.takes(key));
            Some(found.map_or(group.class, |c| c.class.min(group.class)))
        };
        let class = parts.into_iter().filter_map(class).min();
        class.filter(|class| *class != NO_CLASS).map(|class| class as usize)
    }
}

fn mapped() -> [u8; 16] {
    core::net::Ipv4Addr::UNSPECIFIED.to_ipv6_mapped().octets()
}

fn is_mapped(address: &[u8; 16]) -> bool {
    address[..12] == mapped()[..12]
}

fn covers_mapped(group: &Group) -> bool {
    let mask = u128::MAX.checked_shl(128 - u32::from(group.bits)).unwrap_or(0);
    (u128::from_be_bytes(group.prefix) ^ u128::from_be_bytes(mapped())) & mask == 0
}

/// A number as the prefix of a group.
fn number(number: u16) -> [u8; 16] {
    let mut prefix = [0; 16];
    prefix[..2].copy_from_slice(&number.to_be_bytes());
    prefix
}

/// The prefixes of 16 bits that make up a range, in ascending order.
fn prefixes(range: RangeInclusive<u16>) -> impl Iterator<Item = (u16, u8)> {
    let (mut at, end) = (u32::from(*range.start()), u32::from(*range.end()) + 1);
    core::iter::from_fn(move || {
        let left = end.checked_sub(at).filter(|left| *left > 0)?;
        // The largest power of two that begins here and fits.
        let size = (1 << at.trailing_zeros().min(16)).min(1u32 << left.ilog2());
        let prefix = (at as u16, 16 - size.ilog2() as u8);
        at += size;
        Some(prefix)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_ports_is_few_prefixes() {
        let all = |range| prefixes(range).collect::<Vec<_>>();
        assert_eq!(all(0..=u16::MAX), [(0, 0)]);
        assert_eq!(all(53..=53), [(53, 16)]);
        assert_eq!(all(80..=90), [(80, 13), (88, 15), (90, 16)]);
        assert_eq!(all(1..=u16::MAX).len(), 16);
        assert_eq!(all(1..=u16::MAX - 1).len(), 30, "no range has more");
    }
}
