//! Tests that each flow finds the same class with and without a division.

use super::*;
use proptest::prelude::*;
use weir_core::ack::AckControl;
use weir_core::flow::Key;
use weir_core::gateway::Nested;
use weir_core::rate::Rate;

fn prefix(address: &str, bits: u8) -> Prefix {
    Prefix::new(address.parse().unwrap(), bits).unwrap()
}

fn rule(direction: Direction, prefix: Prefix) -> Match {
    match direction {
        Direction::Out => Match { src: Some(prefix), ..Match::default() },
        Direction::In => Match { dst: Some(prefix), ..Match::default() },
    }
}

fn class(name: &str, direction: Direction, matches: Vec<Match>) -> ClassConfig {
    let ack = AckControl::ack_shaper(Rate::mbit(1));
    ClassConfig { matches, ..ClassConfig::controlled(name, direction, ack) }
}

/// Builds both classes of a customer of a list.
fn customer(n: u32) -> [ClassConfig; 2] {
    let address = Prefix::host(std::net::Ipv4Addr::from_bits(0x0a01_0000 + n).into());
    [("down", Direction::In), ("up", Direction::Out)]
        .map(|(way, direction)| class(&format!("c{n}-{way}"), direction, vec![rule(direction, address)]))
}

fn config(classes: Vec<ClassConfig>) -> Config {
    Config { classes, ..Config::default() }
}

fn names(part: &Part) -> Vec<&str> {
    part.config.classes.iter().map(|class| class.name.as_str()).collect()
}

/// Returns the engine that has a class of this name.
fn engine(split: &Split, name: &str) -> usize {
    split.parts.iter().position(|part| names(part).contains(&name)).expect("an engine has it")
}

#[test]
fn customers_are_spread_with_both_directions_and_the_rest_stays() {
    let all = class("all", Direction::In, Vec::new());
    let classes: Vec<ClassConfig> = (0..4_000).flat_map(customer).chain([all]).collect();
    for engines in 2..=8 {
        let split = split(&config(classes.clone()), engines);
        assert_eq!((split.groups, engine(&split, "all")), (4_000, 0));
        let counts: Vec<usize> = split.parts.iter().map(|part| part.config.classes.len()).collect();
        let even = 8_000 / engines;
        assert!(counts.iter().all(|&n| n.abs_diff(even) < even / 10), "{engines}: {counts:?}");
        for n in [0, 1, 77, 3_999] {
            let [down, up] = ["down", "up"].map(|way| engine(&split, &format!("c{n}-{way}")));
            assert_eq!(down, up);
            let home = split
                .homes
                .iter()
                .find(|(home, _)| home.contains(std::net::Ipv4Addr::from_bits(0x0a01_0000 + n).into()));
            assert_eq!(home.map_or(0, |(_, engine)| *engine), down);
        }
    }
}

/// 65,536 flows, of three engines: 21,846 each, rounded up.
#[test]
fn one_engine_has_all_and_several_share_flows() {
    let whole = config((0..3).flat_map(customer).collect());
    let one = split(&whole, 1);
    assert_eq!((&one.parts[0].config, one.parts[0].places.as_slice()), (&whole, &[0, 1, 2, 3, 4, 5][..]));
    assert_eq!((one.parts.len(), one.homes.len()), (1, 0));
    assert!(split(&whole, 3).parts.iter().all(|part| part.config.max_flows == 21_846));
}

#[test]
fn a_customer_keeps_its_engine_when_others_go() {
    let whole = split(&config((0..100).flat_map(customer).collect()), 4);
    let fewer = split(&config((0..100).filter(|n| n % 3 == 0).flat_map(customer).collect()), 4);
    for n in (0..100).step_by(3) {
        let name = format!("c{n}-up");
        assert_eq!(engine(&whole, &name), engine(&fewer, &name));
    }
}

#[test]
fn what_others_may_take_stays() {
    let first = |classes: Vec<ClassConfig>| split(&config(classes), 2).groups == 0;
    let [down, up] = customer(1);
    assert!(!first(vec![down.clone(), up.clone()]));
    // Another class may take its flows: an earlier one, or any if it takes none of a direction.
    let calls =
        class("calls", Direction::In, vec![Match { src_port: Some(5060..=5060), ..Match::default() }]);
    assert!(first(vec![calls.clone(), down.clone(), up.clone()]));
    assert!(!first(vec![down.clone(), calls.clone(), up.clone()]));
    assert!(first(vec![up.clone(), calls.clone()]));
    // Some of its flows.
    let mut web = down.clone();
    web.matches[0].src_port = Some(80..=80);
    assert!(!first(vec![web.clone(), up.clone()]));
    assert!(first(vec![web.clone(), calls]));
    assert!(
        !first(vec![web, down, class("all", Direction::In, vec![])]),
        "the second one takes what the first leaves"
    );
    // An IPv6 address does not tell whether IPv4 is meant.
    let every = class("v6", Direction::Out, vec![rule(Direction::Out, prefix("::", 0))]);
    assert!(first(vec![every]));
    assert!(!first(vec![class("v6", Direction::Out, vec![rule(Direction::Out, prefix("2001:db8::", 32))])]));
}

#[test]
fn overlapping_prefixes_and_trees_are_on_one_engine() {
    let wide = class("wide", Direction::Out, vec![rule(Direction::Out, prefix("10.1.0.0", 24))]);
    let classes: Vec<ClassConfig> = (0..300).flat_map(customer).chain([wide]).collect();
    let divided = split(&config(classes), 2);
    let of = engine(&divided, "wide");
    assert!((0..256).all(|n| engine(&divided, &format!("c{n}-down")) == of));
    assert!((256..300).any(|n| engine(&divided, &format!("c{n}-down")) != of));
    // 256 customers are one group, and 44 are alone.
    assert_eq!(divided.groups, 45);

    let nested =
        |parent, lends| Some(Nested { parent, rate: Some(Rate::mbit(9)), ceil: None, weight: 1, lends });
    let tree = |n: u32| {
        let leaf = ClassConfig { nested: nested(Some(0), false), ..customer(n)[0].clone() };
        let other = ClassConfig { nested: nested(Some(0), false), ..customer(n + 1000)[0].clone() };
        let root =
            ClassConfig { nested: nested(None, true), ..class(&format!("site{n}"), Direction::In, vec![]) };
        [root, leaf, other]
    };
    let mut classes: Vec<ClassConfig> = Vec::new();
    for n in 0..20 {
        let first = classes.len();
        let mut tree = tree(n);
        tree[1..].iter_mut().for_each(|c| c.nested.as_mut().unwrap().parent = Some(first));
        classes.extend(tree);
    }
    let divided = split(&config(classes), 3);
    assert_eq!(divided.groups, 20);
    for part in &divided.parts {
        assert!(!part.config.classes.is_empty());
        for class in part.config.classes.iter().filter(|c| c.takes_flows()) {
            let root = &part.config.classes[class.nested.unwrap().parent.unwrap()];
            let number =
                class.name.trim_start_matches('c').trim_end_matches("-down").parse::<u32>().unwrap() % 1000;
            assert_eq!(root.name, format!("site{number}"));
        }
    }
}

#[test]
fn too_many_engines_are_refused_with_the_reason() {
    let all = config(vec![class("all", Direction::Out, vec![])]);
    assert!(fault(&all, 1).is_none());
    assert!(fault(&all, 2).unwrap().to_string().contains("the first engine would have every class"));
    assert!(fault(&config(customer(7).to_vec()), 8).is_none());
}

fn networks() -> impl Strategy<Value = Prefix> {
    prop_oneof![
        (0..6u8, 22..=32u8).prop_map(|(n, bits)| masked([10, 0, n / 2, n * 40].into(), bits)),
        (0..4u16, 28..=40u8)
            .prop_map(|(n, bits)| masked([0x2001, 0xdb8, n << 8, 0, 0, 0, 0, 1].into(), bits)),
        Just(masked([0u16; 8].into(), 0)),
        Just(masked([0u8; 4].into(), 0)),
    ]
}

fn masked(address: IpAddr, bits: u8) -> Prefix {
    let address = match address {
        IpAddr::V4(a) => {
            std::net::Ipv4Addr::from_bits((u64::from(a.to_bits()) >> (32 - bits) << (32 - bits)) as u32)
                .into()
        }
        IpAddr::V6(_) if bits == 0 => std::net::Ipv6Addr::UNSPECIFIED.into(),
        IpAddr::V6(a) => std::net::Ipv6Addr::from_bits(a.to_bits() >> (128 - bits) << (128 - bits)).into(),
    };
    Prefix::new(address, bits).unwrap()
}

prop_compose! {
    fn rules()(
        ours in prop::option::weighted(0.9, networks()),
        theirs in prop::option::weighted(0.1, networks()),
        port in prop::option::weighted(0.2, 1..4u16),
        inward in any::<bool>(),
    ) -> (bool, Match) {
        let (src, dst) = if inward { (theirs, ours) } else { (ours, theirs) };
        (inward, Match { src, dst, src_port: port.map(|p| p..=p + 1), ..Match::default() })
    }
}

prop_compose! {
    /// Classes of one rule or several, and some without.
    fn configs()(rules in prop::collection::vec((rules(), 0..3usize, prop::bool::weighted(0.05)), 0..14)) -> Config {
        let mut classes: Vec<ClassConfig> = Vec::new();
        for ((inward, rule), to, every) in rules {
            let direction = if inward { Direction::In } else { Direction::Out };
            let last = classes.len().checked_sub(to + 1).filter(|&i| classes[i].direction == direction);
            match last {
                Some(i) if !classes[i].matches.is_empty() => classes[i].matches.push(rule),
                _ => {
                    let rules = if every { vec![] } else { vec![rule] };
                    classes.push(class(&format!("class{}", classes.len()), direction, rules));
                }
            }
        }
        config(classes)
    }
}

fn addresses() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        (0..3u8, any::<u8>()).prop_map(|(n, m)| IpAddr::from([10, 0, n, m / 8 * 8])),
        (0..5u16, any::<u8>()).prop_map(|(n, m)| IpAddr::from([
            0x2001,
            0xdb8,
            n << 8 | u16::from(m),
            0,
            0,
            0,
            0,
            1
        ])),
        Just(IpAddr::from([192, 0, 2, 1])),
    ]
}

/// Returns the first class, in the order of the configuration, with a rule for a flow.
fn taker<'a>(config: &'a Config, direction: Direction, key: &Key) -> Option<&'a str> {
    let takes = |c: &&ClassConfig| {
        c.direction == direction
            && c.takes_flows()
            && (c.matches.is_empty() || c.matches.iter().any(|m| m.takes(key)))
    };
    config.classes.iter().find(takes).map(|class| class.name.as_str())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn each_flow_finds_its_class(
        config in configs(),
        engines in 1..5usize,
        flows in prop::collection::vec((addresses(), addresses(), 0..6u16, any::<bool>()), 20),
    ) {
        let split = split(&config, engines);
        let mut places: Vec<usize> = split.parts.iter().flat_map(|part| part.places.clone()).collect();
        places.sort_unstable();
        prop_assert_eq!(places, (0..config.classes.len()).collect::<Vec<_>>());
        for (lan, wan, port, inward) in flows {
            if lan.is_ipv4() != wan.is_ipv4() {
                continue;
            }
            let (direction, src, dst) = if inward { (Direction::In, wan, lan) } else { (Direction::Out, lan, wan) };
            let key = Key::new(weir_core::wire::TCP, (src, port).into(), (dst, 9).into());
            let homes: Vec<usize> = split.homes.iter().filter(|(home, _)| home.contains(lan)).map(|(_, engine)| *engine).collect();
            prop_assert!(homes.len() <= 1);
            let part = &split.parts[homes.first().copied().unwrap_or(0)].config;
            prop_assert_eq!(taker(part, direction, &key), taker(&config, direction, &key));
        }
    }
}
