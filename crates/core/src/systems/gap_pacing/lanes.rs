//! Lanes of a paced class that gives each flow, host or network the rate.
//!
//! A lane is a paced class of its own, with a clock and a queue. It belongs to the last that used it until
//! another needs it: the lane whose last packet came the longest ago changes hands, if it is empty. Where
//! none is, a newcomer shares a lane, chosen by a hash. The cost of a packet depends neither on the number of
//! lanes nor on that of flows.

use crate::base::linked::{LinkedList, Links};
use crate::flow::{Index, Key};

/// Traffic that has a lane of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Each {
    /// A flow.
    Flow,
    /// All that goes to an address.
    Host,
    /// All that goes to a network: 24 bits of an IPv4 address, 64 of an IPv6 address.
    Network,
}

impl Each {
    /// Kinds by their names in configurations.
    pub const ALL: [(&'static str, Each); 3] =
        [("flow", Each::Flow), ("host", Each::Host), ("network", Each::Network)];

    /// Returns what packets of a lane have in common, as the key of a flow.
    fn of(self, key: &Key) -> Key {
        let v4 = key.dst[..12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
        let mut dst = key.dst;
        if self == Each::Network {
            dst[if v4 { 15 } else { 8 }..].fill(0);
        }
        match self {
            Each::Flow => *key,
            Each::Host | Each::Network => {
                Key { dst, ..Key::default() }.tagged([key.vlan(), key.inner_vlan()])
            }
        }
    }
}

/// Part of a class in a set of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Spread {
    /// The class that the rules name, which is the first lane, and the number of lanes.
    Over(Each, u32),
    /// A further lane, which no rule names. Lanes follow in the order of their first ones.
    Lane,
}

/// Lane of those that used it last.
#[derive(Clone, Copy, Debug)]
struct Lane {
    user: Key,
    hash: u32,
    used: bool,
}

/// Users of the lanes of one class.
pub struct Lanes {
    each: Each,
    seed: u64,
    index: Index,
    all: Box<[Lane]>,
    /// Lanes by the time of their last packet, the longest ago first.
    order: LinkedList,
    links: Box<[Links]>,
}

impl core::fmt::Debug for Lanes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Lanes").field("each", &self.each).field("count", &self.all.len()).finish()
    }
}

impl Lanes {
    /// Returns so many lanes without users, at least one.
    pub fn new(each: Each, count: u32, seed: u64) -> Lanes {
        let free = Lane { user: Key::default(), hash: 0, used: false };
        let count = count.max(1);
        let all = vec![free; count as usize].into();
        let mut links: Box<[Links]> = vec![Links::NONE; count as usize].into();
        let mut order = LinkedList::EMPTY;
        (0..count).for_each(|lane| order.push(&mut *links, lane));
        Lanes { each, seed, index: Index::new(count), all, order, links }
    }

    /// Returns the lane of a packet with this key. `is_empty` says whether nothing waits in a lane.
    pub fn lane(&mut self, key: &Key, is_empty: impl FnOnce(u32) -> bool) -> u32 {
        let user = self.each.of(key);
        let hash = user.hash(self.seed);
        let (short, all) = (hash as u32, &self.all);
        let own = self.index.find(short, |lane| all[lane as usize].user == user);
        let lane = match own.or(self.order.first()) {
            Some(lane) if own.is_some() || is_empty(lane) => lane,
            _ => return ((hash >> 32) % self.all.len() as u64) as u32,
        };
        if own.is_none() {
            let Lane { hash: before, used, .. } = self.all[lane as usize];
            if used {
                self.index.remove(before, lane);
            }
            self.index.insert(short, lane);
            self.all[lane as usize] = Lane { user, hash: short, used: true };
        }
        self.order.remove(&mut *self.links, lane);
        self.order.push(&mut *self.links, lane);
        lane
    }

    /// Takes over the users of the same lanes of another configuration.
    pub fn follow(&mut self, old: &mut Lanes) {
        if self.each == old.each && self.all.len() == old.all.len() {
            core::mem::swap(self, old);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{IpAddr, SocketAddr};

    fn key(host: &str, port: u16) -> Key {
        let end = |a: &str, port| SocketAddr::new(a.parse::<IpAddr>().unwrap(), port);
        Key::new(6, end("10.0.0.1", port), end(host, 80))
    }

    #[test]
    fn as_many_users_as_lanes_have_one_each() {
        for each in [Each::Flow, Each::Host] {
            let mut lanes = Lanes::new(each, 100, 1);
            let user = |n: u16| match each {
                Each::Flow => key("10.9.0.1", n),
                _ => key(&format!("10.9.0.{n}"), n),
            };
            let mut first: Vec<u32> = (0..100).map(|n| lanes.lane(&user(n), |_| true)).collect();
            // Nobody loses a lane, whatever comes in which order.
            let again: Vec<u32> = (0..100).rev().map(|n| lanes.lane(&user(n), |_| true)).collect();
            assert!(first.iter().rev().eq(again.iter()));
            first.sort_unstable();
            assert!(first.into_iter().eq(0..100));
        }
    }

    #[test]
    fn what_packets_of_a_lane_have_in_common() {
        let same = |each: Each, a: Key, b: Key| {
            let mut lanes = Lanes::new(each, 8, 1);
            lanes.lane(&a, |_| true) == lanes.lane(&b, |_| true)
        };
        let (a, b) = (key("10.9.0.1", 1), key("10.9.0.1", 2));
        assert!(same(Each::Host, a, b) && same(Each::Network, a, b) && !same(Each::Flow, a, b));
        let neighbour = key("10.9.0.255", 1);
        assert!(same(Each::Network, a, neighbour) && !same(Each::Host, a, neighbour));
        assert!(!same(Each::Network, a, key("10.9.1.1", 1)));
        // Of IPv6 the first 64 bits are a network.
        let v6 = |host: &str| Key { dst: host.parse::<core::net::Ipv6Addr>().unwrap().octets(), ..a };
        assert!(same(Each::Network, v6("2001:db8::1"), v6("2001:db8::9:1")));
        assert!(!same(Each::Network, v6("2001:db8::1"), v6("2001:db8:0:1::1")));
        // Customers behind different tags may have the same addresses.
        assert!(!same(Each::Host, a.tagged([1, 0]), a.tagged([2, 0])));
    }

    #[test]
    fn the_lane_that_rested_longest_changes_hands_if_it_is_empty() {
        let mut lanes = Lanes::new(Each::Flow, 3, 1);
        let of = |n: u16| key("10.9.0.1", n);
        let [a, b, c] = [1, 2, 3].map(|n| lanes.lane(&of(n), |_| true));
        assert_eq!(lanes.lane(&of(1), |_| false), a);
        // The second flow's packet came the longest ago.
        assert_eq!(lanes.lane(&of(4), |lane| lane == b), b);
        // The third's is next, and something waits there: the newcomer takes no lane, and shares one.
        let shared = lanes.lane(&of(5), |_| false);
        assert_eq!(lanes.lane(&of(5), |_| false), shared);
        assert_eq!([1, 3, 4].map(|n| lanes.lane(&of(n), |_| false)), [a, c, b]);
        // The one that lost its lane is a newcomer.
        assert_eq!(lanes.lane(&of(2), |_| true), a);
    }
}
