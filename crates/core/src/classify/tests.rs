use super::*;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use proptest::prelude::*;

fn class(direction: Direction, matches: Vec<Match>) -> ClassConfig {
    ClassConfig { name: String::new(), direction, matches, ack: None, share: None, nested: None }
}

fn compiled(classes: Vec<ClassConfig>) -> Compiled {
    Config { classes, ..Config::default() }.into()
}

fn prefix(text: &str) -> Prefix {
    let (addr, len) = text.split_once('/').unwrap();
    Prefix::new(addr.parse().unwrap(), len.parse().unwrap()).unwrap()
}

fn flow(src: &str, dst: &str) -> Key {
    Key::new(6, src.parse().unwrap(), dst.parse().unwrap())
}

#[test]
fn first_match_wins() {
    let ports = |ports| vec![Match { dst_port: Some(ports), ..Match::default() }];
    let c = compiled(vec![class(Direction::Out, ports(80..=90)), class(Direction::Out, ports(85..=100))]);
    let key = |p| Key { dst_port: p, ..Key::default() };
    assert_eq!(c.classify(Direction::Out, &key(87)), Some(0));
    assert_eq!(c.classify(Direction::Out, &key(95)), Some(1));
    assert_eq!(c.classify(Direction::Out, &key(101)), None);
    assert_eq!(c.classify(Direction::In, &key(87)), None);
}

#[test]
fn the_order_of_classes_counts_and_not_the_length_of_prefixes() {
    let src = |text| vec![Match { src: Some(prefix(text)), ..Match::default() }];
    let c = compiled(vec![
        class(Direction::Out, src("10.1.2.0/24")),
        class(Direction::Out, src("10.0.0.0/8")),
        class(Direction::Out, src("10.9.0.0/16")),
        class(Direction::Out, src("2001:db8::/32")),
        class(Direction::Out, vec![]),
    ]);
    let of = |src: &str| c.classify(Direction::Out, &flow(src, "192.0.2.1:80"));
    assert_eq!(of("10.1.2.3:5"), Some(0));
    assert_eq!(of("10.9.2.3:5"), Some(1), "it stands before the longer one");
    assert_eq!(of("[2001:db8::1]:5"), Some(3));
    assert_eq!(of("11.0.0.1:5"), Some(4));
}

#[test]
fn one_rule_of_fifty_thousand_is_looked_at() {
    let address = |n: u32| IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + n));
    let rule = |n| vec![Match { src: Some(Prefix::host(address(n))), ..Match::default() }];
    let c = compiled((0..50_000).map(|n| class(Direction::Out, rule(n))).collect());
    for n in [0, 1, 31_416, 49_999, 50_000] {
        let looked_at: usize = c.lookups[0].src.of(|| address(n)).map(<[At]>::len).sum();
        assert_eq!(looked_at, usize::from(n < 50_000));
        let key = Key::new(6, SocketAddr::new(address(n), 1), SocketAddr::new(address(7), 2));
        assert_eq!(c.classify(Direction::Out, &key), Some(n as usize).filter(|n| *n < 50_000));
    }
}

#[test]
fn classes_are_found_again_for_one_configuration_of_before() {
    let named = |names: &[(&str, Direction)]| {
        let class = |(name, direction): &(&str, Direction)| ClassConfig {
            name: (*name).into(),
            ..class(*direction, vec![])
        };
        Config { classes: names.iter().map(class).collect(), ..Config::default() }
    };
    use Direction::{In, Out};
    let old = named(&[("a", Out), ("a", In), ("b", Out)]);
    let new = Compiled::after(named(&[("b", Out), ("c", Out), ("a", In), ("b", In)]), &old);
    assert_eq!(new.found_in(&old.clone().into()), Some(&[Some(2), None, Some(1), None][..]));
    assert_eq!(new.found_in(&named(&[("a", Out), ("b", Out), ("a", In)]).into()), None);
    assert_eq!(Compiled::from(old.clone()).found_in(&old.into()), None);
}

fn address() -> impl Strategy<Value = IpAddr> {
    // Few of each family, so that prefixes cover each other and flows meet them.
    prop_oneof![
        (0u32..64).prop_map(|n| IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 | n << 3))),
        (0u128..64).prop_map(|n| IpAddr::V6(Ipv6Addr::from_bits(0x2001 << 112 | n << 61))),
    ]
}

fn a_prefix() -> impl Strategy<Value = Prefix> {
    (address(), 0u8..=128).prop_map(|(addr, len)| match addr {
        IpAddr::V4(a) => {
            let len = len % 33;
            let mask = u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
            Prefix::new(IpAddr::V4(Ipv4Addr::from_bits(a.to_bits() & mask)), len).unwrap()
        }
        IpAddr::V6(a) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
            Prefix::new(IpAddr::V6(Ipv6Addr::from_bits(a.to_bits() & mask)), len).unwrap()
        }
    })
}

fn rule() -> impl Strategy<Value = Match> {
    let ports = || prop::option::weighted(0.3, (0u16..8, 0u16..4).prop_map(|(a, n)| a..=a + n));
    let prefix = || prop::option::weighted(0.4, a_prefix());
    (
        prefix(),
        prefix(),
        ports(),
        ports(),
        prop::option::weighted(0.1, 0u16..2),
        prop::option::weighted(0.2, 5u8..8),
    )
        .prop_map(|(src, dst, src_port, dst_port, vlan, protocol)| Match {
            src,
            dst,
            src_port,
            dst_port,
            vlan,
            protocol,
        })
}

fn classes() -> impl Strategy<Value = Vec<ClassConfig>> {
    let direction = any::<bool>().prop_map(|out| if out { Direction::Out } else { Direction::In });
    let class = (direction, prop::collection::vec(rule(), 0..4)).prop_map(|(d, m)| class(d, m));
    // Classes without rules would hide all that come later.
    prop::collection::vec(class, 0..20).prop_map(|mut classes| {
        let last = classes.len().saturating_sub(1);
        let mut n = 0..;
        classes.retain(|c| n.next() == Some(last) || !c.matches.is_empty());
        classes
    })
}

proptest! {
    /// Against one rule after the other.
    #[test]
    fn like_one_after_the_other(
        classes in classes(),
        flows in prop::collection::vec((address(), address(), 0u16..12, 0u16..12, any::<bool>()), 1..40),
    ) {
        let compiled = compiled(classes.clone());
        for (src, dst, src_port, dst_port, out) in flows {
            let key = Key::new(6, SocketAddr::new(src, src_port), SocketAddr::new(dst, dst_port));
            let direction = if out { Direction::Out } else { Direction::In };
            let takes = |c: &ClassConfig| {
                c.direction == direction && (c.matches.is_empty() || c.matches.iter().any(|m| m.takes(&key)))
            };
            prop_assert_eq!(compiled.classify(direction, &key), classes.iter().position(takes));
        }
    }

    /// A hook looks up the class that the core finds, for all kinds of packets.
    #[test]
    fn rules_for_the_kernel_say_the_same(
        classes in classes(),
        flows in prop::collection::vec((address(), address(), 0u16..12, 0u16..12, 5u8..8, 0u16..2), 1..40),
    ) {
        let compiled = compiled(classes);
        for direction in [Direction::Out, Direction::In] {
            let rules = compiled.rules(direction);
            prop_assert!(rules.left_out.is_empty());
            for &(src, dst, src_port, dst_port, protocol, vlan) in &flows {
                let key = Key::new(protocol, SocketAddr::new(src, src_port), SocketAddr::new(dst, dst_port));
                let key = key.tagged([vlan, 0]);
                prop_assert_eq!(rules.classify(&key), compiled.classify(direction, &key), "{:?}", key);
            }
        }
    }
}

#[test]
fn twenty_thousand_customers_are_a_group_each() {
    let rule = |n: u32| {
        vec![Match {
            src: Some(Prefix::host(IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + n)))),
            ..Match::default()
        }]
    };
    let every = || vec![Match { protocol: Some(1), src: Some(prefix("10.0.0.0/8")), ..Match::default() }];
    let mut classes = vec![class(Direction::Out, every())];
    classes.extend((0..20_000).map(|n| class(Direction::Out, rule(n))));
    let rules = compiled(classes).rules(Direction::Out);
    assert_eq!((rules.groups.len(), rules.conditions.len()), (20_001, 1), "conditions are shared");
}

#[test]
fn what_is_too_much_for_a_group_is_named() {
    let port = |n: u16| Match { src: Some(prefix("10.0.0.0/8")), dst_port: Some(n..=n), ..Match::default() };
    let most = MOST_CONDITIONS as u16;
    let rules =
        compiled(vec![class(Direction::Out, (0..most + 2).map(port).collect())]).rules(Direction::Out);
    let left: Vec<_> = rules.left_out.into_iter().collect();
    assert_eq!(left, [(0, u32::from(most)), (0, u32::from(most) + 1)]);
}
