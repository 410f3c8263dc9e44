//! Tables `[[gateway.class]]`: rules for their flows, and their policy.

use super::decimal::whole;
use super::diag::{listed, Fault};
use super::keys::{self, put, Key};
use super::names::{name, DIRECTIONS};
use super::nested::{self, Family};
use super::pace::{self, Defaults};
use super::policy;
use super::reader::Section;
use super::share::{self, Tree};
use super::value::{int, FromValue, Scalar};
use core::ops::RangeInclusive;
use std::collections::HashSet;
use toml::de::DeValue;
use weir_core::ack::AckControl;
use weir_core::class::Spec;
use weir_core::gateway::{ClassConfig, Direction, Match, Nested, Prefix};
use weir_core::pace::Port;
use weir_core::packet::LinkLayer;
use weir_core::rate::Rate;
use weir_core::wire::TCP;

type RuleKey = Key<Match>;

/// Keys of a rule.
static RULE: [RuleKey; 6] = [
    RuleKey::new("protocol", |m, v| put(&mut m.protocol, protocol(v)))
        .words(|m| m.protocol.map(|p| format!("protocol {}", protocol_name(p)))),
    RuleKey::new("src", |m, v| put(&mut m.src, Prefix::from_value(v)))
        .words(|m| m.src.map(|p| format!("src {p}"))),
    RuleKey::new("dst", |m, v| put(&mut m.dst, Prefix::from_value(v)))
        .words(|m| m.dst.map(|p| format!("dst {p}"))),
    RuleKey::new("src_port", |m, v| put(&mut m.src_port, RangeInclusive::from_value(v)))
        .words(|m| m.src_port.as_ref().map(|r| format!("src_port {}", ports(r)))),
    RuleKey::new("dst_port", |m, v| put(&mut m.dst_port, RangeInclusive::from_value(v)))
        .words(|m| m.dst_port.as_ref().map(|r| format!("dst_port {}", ports(r)))),
    RuleKey::new("vlan", |m, v| put(&mut m.vlan, int(v, 0..=4094).map(|n| n as u16)))
        .words(|m| m.vlan.map(|v| format!("vlan {v}"))),
];

/// Names of protocols; other protocols are given by number (RFC 5237 names the registry).
const PROTOCOLS: [(&str, u8); 4] = [("tcp", 6), ("udp", 17), ("icmp", 1), ("icmpv6", 58)];

fn protocol(value: &DeValue) -> Result<u8, Fault> {
    let name = match Scalar::from_value(value)? {
        Scalar::Text(name) | Scalar::Number(name) => name,
    };
    let known = PROTOCOLS.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
    known.or_else(|| whole(&name)).ok_or_else(|| {
        let names = listed(PROTOCOLS.iter().map(|(name, _)| *name));
        Fault::new(format!("\"{name}\" is not a protocol"), format!("a number from 0 to 255, or {names}"))
    })
}

fn protocol_name(number: u8) -> String {
    let known = PROTOCOLS.iter().find(|(_, known)| *known == number);
    known.map_or_else(|| number.to_string(), |(name, _)| name.to_string())
}

fn ports(range: &RangeInclusive<u16>) -> String {
    match (range.start(), range.end()) {
        (a, b) if a == b => a.to_string(),
        (a, b) => format!("{a}-{b}"),
    }
}

/// Reads all classes, beside those that come `first`; a faulty one is missing. They are paced at this port,
/// whose line may have an unknown rate until the gateway runs. Rates count what the link carries if its layer
/// is given.
pub(super) fn classes(
    s: &Section,
    first: &[ClassConfig],
    (port, inline): (Port, bool),
    layer: Option<LinkLayer>,
) -> Vec<ClassConfig> {
    let mut classes: Vec<ClassConfig> = Vec::new();
    let mut names: HashSet<String> = first.iter().map(|class| class.name.clone()).collect();
    // First class of each direction that takes all flows of the direction.
    let mut takes_all: Vec<(Direction, String)> = Vec::new();
    let sections = s.sections("class");
    let tree = Tree::of(&sections, Defaults::read(s));
    let family = Family::of(&sections, &tree);
    for (i, c) in sections.iter().enumerate() {
        let share = tree.has(i).then(|| tree.read(c, i));
        let class = self::class(c, share, family.has(i).then(|| family.read(c, i)));
        c.check_done();
        let Some(mut class) = class else { continue };
        if let Some((policy, layer)) = class.ack.as_mut().zip(layer) {
            policy::count_on_link(c, policy, layer);
        }
        if !names.insert(class.name.clone()) {
            c.fault("name", Fault::bare(format!("a second class named \"{}\"", class.name)));
        }
        let first = takes_all.iter().find(|(d, _)| *d == class.direction && class.takes_flows());
        if let Some((_, first)) = first {
            c.fault_here(Fault::new(
                format!("class \"{}\" can never take a flow", class.name),
                format!("\"{first}\" before it has no `match` and takes every flow of the direction; the first class that matches takes a flow"),
            ));
        } else if let Some(first) = hides(&classes, &class) {
            let help = format!("each of its rules is within one of \"{first}\" before it; the first class that matches takes a flow");
            c.fault("match", Fault::new(format!("class \"{}\" can never take a flow", class.name), help));
        }
        if class.takes_flows() && class.matches.is_empty() && !c.has("match") {
            takes_all.push((class.direction, class.name.clone()));
        }
        classes.push(class);
    }
    if s.all_well() {
        share::check(&sections, &classes, port, inline);
        nested::finish(&sections, &mut classes);
        for (s, ack) in sections.iter().zip(&classes).filter_map(|(s, class)| Some((s, class.ack.as_ref()?)))
        {
            policy::check_bounds(s, ack);
        }
        pace::spread(&sections, &mut classes);
    }
    classes
}

/// Returns the name of an earlier class that takes all flows of this one.
fn hides<'a>(earlier: &'a [ClassConfig], class: &ClassConfig) -> Option<&'a str> {
    let within = |a: &ClassConfig| {
        let covered = |rule: &Match| a.matches.iter().any(|other| other.covers(rule));
        a.direction == class.direction && a.takes_flows() && class.matches.iter().all(covered)
    };
    let found = earlier.iter().find(|a| !a.matches.is_empty() && within(a));
    found.filter(|_| class.takes_flows() && !class.matches.is_empty()).map(|a| a.name.as_str())
}

fn class(s: &Section, share: Option<Spec>, nested: Option<Nested>) -> Option<ClassConfig> {
    s.need("name", "\"uploads\"");
    let name = s.parsed("name", self::name);
    let direction = s.choice("direction", &DIRECTIONS, &[]).unwrap_or_default();
    if share.is_none_or(|share| share.pace.is_none()) {
        pace::refuse_lanes(s);
    }
    let share =
        share.map(|spec| Spec { queue: spec.queue.map(|queue| share::towards(direction, queue)), ..spec });
    let matches: Vec<Match> = s.sections("match").into_iter().map(rule).collect();
    let ack = match share.map(|share| share.queue) {
        Some(Some(queue)) => {
            let spec = share.unwrap_or(Spec::of(None));
            let ack = s.section("ack").and_then(|s| policy::of_queue(s, &spec, queue));
            policy::check_guarantee(s, &spec, queue, ack.as_ref());
            ack
        }
        Some(None) => None,
        None => {
            s.choice("pace", &[("none", ())], &[]);
            share::refuse(s, nested.is_some());
            ack(s, nested.as_ref())
        }
    };
    let others = || matches.iter().all(|rule| rule.protocol.is_some_and(|p| p != TCP));
    if ack.is_some() && !matches.is_empty() && others() {
        let help = "acknowledgements are TCP's: give other protocols a queue, or leave them alone";
        s.fault("match", Fault::new("the class controls ACKs but takes no TCP", help));
    }
    Some(ClassConfig { name: name?, direction, matches, ack, share, nested })
}

/// Reads the ACK control of a class without a queue, if it has any.
fn ack(s: &Section, nested: Option<&Nested>) -> Option<AckControl> {
    // The limit of a nested class is computed when all classes are known.
    let rate = match nested {
        Some(nested) => Some(nested.rate.or(nested.ceil).unwrap_or(Rate::mbit(1))),
        // With a faulty rate its other keys are judged all the same.
        None => s.value("rate", policy::flow_rate_of).or(s.has("rate").then_some(Rate::mbit(1))),
    };
    let Some(rate) = rate else {
        policy::need_rate(s);
        return s.section("ack").and_then(|s| policy::policy(s, None));
    };
    Some(policy::shared(rate, s, nested.is_some()))
}

fn rule(s: Section) -> Match {
    let mut rule = Match::default();
    keys::read(&RULE, &[&s], &mut rule);
    if s.is_empty() {
        s.fault_here(Fault::new(
            "a rule that names nothing",
            "leave `match` out of a class that takes every flow of its direction",
        ));
    }
    s.finish();
    rule
}

/// Describes a rule in words.
pub fn rule_words(rule: &Match) -> String {
    keys::words(&RULE, rule).join(" and ")
}
