//! Which class takes a flow.

use super::{ClassConfig, Config, Direction, Match};
use crate::flow::Key;

impl Match {
    /// Does the rule take this flow?
    pub fn takes(&self, key: &Key) -> bool {
        let addr = |p: &Option<super::Prefix>, a| p.as_ref().is_none_or(|p| p.contains(a));
        let port = |r: &Option<core::ops::RangeInclusive<u16>>, p| r.as_ref().is_none_or(|r| r.contains(&p));
        addr(&self.src, key.src_ip())
            && addr(&self.dst, key.dst_ip())
            && port(&self.src_port, key.src_port)
            && port(&self.dst_port, key.dst_port)
            && self.vlan.is_none_or(|v| v == key.vlan())
            && self.protocol.is_none_or(|p| p == key.protocol())
    }
}

impl ClassConfig {
    fn takes(&self, direction: Direction, key: &Key) -> bool {
        self.direction == direction
            && self.takes_flows()
            && (self.matches.is_empty() || self.matches.iter().any(|m| m.takes(key)))
    }
}

impl Config {
    /// Index of the first class that takes the flow.
    pub fn classify(&self, direction: Direction, key: &Key) -> Option<usize> {
        self.classes.iter().position(|c| c.takes(direction, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_match_wins() {
        let class = |name: &str, ports: core::ops::RangeInclusive<u16>| ClassConfig {
            name: name.into(),
            direction: Direction::Out,
            matches: vec![Match { dst_port: Some(ports), ..Match::default() }],
            ack: None,
            share: None,
        };
        let c = Config { classes: vec![class("a", 80..=90), class("b", 85..=100)], ..Config::default() };
        let key = |p| Key { dst_port: p, ..Key::default() };
        assert_eq!(c.classify(Direction::Out, &key(87)), Some(0));
        assert_eq!(c.classify(Direction::Out, &key(95)), Some(1));
        assert_eq!(c.classify(Direction::Out, &key(101)), None);
        assert_eq!(c.classify(Direction::In, &key(87)), None);
    }
}
