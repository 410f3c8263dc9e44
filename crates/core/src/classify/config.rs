//! The configuration of a gateway. Parsing lives elsewhere; every value here is already valid.

use super::spec::Spec;
use super::Nested;
use crate::ack::{AckControl, Turns, When, Window};
use crate::packet::LinkLayer;
use crate::systems::gap_pacing::Spread;
use crate::time::Duration;
use core::net::IpAddr;
use core::ops::RangeInclusive;

/// Configuration of a gateway.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Config {
    /// Classes in order of preference: the first whose rules match takes the flow. A flow that
    /// matches none passes untouched.
    pub classes: Vec<ClassConfig>,
    /// Most flows remembered at once; further ones evict the least recently active.
    pub max_flows: u32,
    /// WAN round-trip time assumed for a flow whose handshake was not seen.
    pub assumed_rtt: crate::time::Duration,
    /// A flow silent for this long is forgotten.
    pub idle_timeout: crate::time::Duration,
    /// Seed of the flow table's hash, so that no outsider can aim at one bucket.
    pub seed: u64,
    /// The gateway counts and measures, and lets every frame pass as it came, at once.
    #[serde(default)]
    pub observe: bool,
    /// The port that paced classes leave by, in either direction.
    pub port: crate::systems::gap_pacing::Port,
    /// Link whose bytes the rates of queues count. `None`: they count Ethernet frames without FCS. The rates
    /// of ACK control have their own [`Counts`](crate::ack::Counts).
    #[serde(default)]
    pub link_layer: Option<LinkLayer>,
}

/// A class of flows and what is done with them.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ClassConfig {
    /// Name in results and logs.
    pub name: String,
    /// Direction of the data of its flows.
    pub direction: Direction,
    /// Any of these rules takes a flow; no rules take every flow of the direction.
    pub matches: Vec<Match>,
    /// Control of its flows' ACKs; `None` leaves them alone.
    pub ack: Option<AckControl>,
    /// Place in the [link-sharing tree](crate::systems::link_sharing) of its direction, if it has one. What
    /// the class takes then waits in its queue. Parents are given by their index in [`Config::classes`]; a
    /// class that is one has no queue and takes no flows.
    pub share: Option<super::spec::Spec>,
    /// Place among classes that share rates by their ACKs, if it borrows from another one or others from it.
    pub nested: Option<Nested>,
}

impl ClassConfig {
    /// A class of every flow of a direction, whose ACKs are controlled.
    pub fn controlled(name: impl Into<String>, direction: Direction, ack: AckControl) -> ClassConfig {
        ClassConfig {
            name: name.into(),
            direction,
            matches: Vec::new(),
            ack: Some(ack),
            share: None,
            nested: None,
        }
    }

    /// Returns whether it is a class for flows, neither one that other classes share nor a further lane.
    pub fn takes_flows(&self) -> bool {
        let queues = |share: Spec| share.queue.is_some() && share.spread != Some(Spread::Lane);
        self.share.is_none_or(queues) && self.nested.is_none_or(|nested| !nested.lends)
    }

    /// Returns whether its flows share a rate by their ACKs alone, so that unresponsive traffic has to be
    /// counted.
    pub fn shares_rate(&self) -> bool {
        let shares = |ack: AckControl| ack.release.share().is_some_and(|law| law.turns == Turns::Bytes);
        self.ack.is_some_and(shares)
    }

    /// Returns whether each flow that ACKs do not slow has its fair share of the rate.
    pub fn is_fair(&self) -> bool {
        let depth = |ack: AckControl| ack.release.share().and_then(|law| law.unresponsive.depth());
        self.shares_rate() && self.ack.and_then(depth).is_some()
    }

    /// Returns whether no flow exceeds a rate of its own, whatever its ACKs do. While ACKs are held for a
    /// congested queue alone, the queue is what bounds.
    pub fn bounds_flows(&self) -> bool {
        let Some(ack) = &self.ack else { return false };
        let knows_bytes = ack.release.share().is_none_or(|law| law.turns == Turns::Bytes);
        knows_bytes && ack.when == When::Always && ack.release.flow_limit(Duration::ZERO).is_some()
    }

    /// Returns whether segments of its flows' data are looked at: the scheme needs them, or windows are sized
    /// for the delay of the WAN as it is measured, and not for that of the handshake. Data of downloads has
    /// come from there before it is seen.
    pub fn measures_delay(&self) -> bool {
        let Some(ack) = &self.ack else { return false };
        let sizes = ack.window != Window::Keep && self.direction == Direction::Out;
        ack.release.share().is_some_and(|law| law.is_of_acks() && sizes || law.watches_data())
    }

    /// Returns whether ACKs of its flows are released by what becomes of their data in its queue.
    pub fn follows_data(&self) -> bool {
        self.ack.is_some_and(|ack| ack.release.share().is_some_and(|law| law.follows_data()))
    }
}

/// Reason why a configuration is refused, and the class of it that is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused<W> {
    /// Index of the class in [`Config::classes`].
    pub class: usize,
    /// Reason of the refusal.
    pub why: W,
}

/// Direction of a flow's data through the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
pub enum Direction {
    /// From LAN to WAN: uploads; their ACKs come in on the WAN port.
    #[default]
    Out,
    /// From WAN to LAN: downloads; their ACKs come in on the LAN port.
    In,
}

impl Direction {
    /// Returns the direction of the ACKs for its data.
    #[must_use]
    pub const fn reversed(self) -> Direction {
        match self {
            Direction::Out => Direction::In,
            Direction::In => Direction::Out,
        }
    }
}

/// A rule on a flow, as seen in the direction of its data: the source is who sends data. Every
/// field that is given must match.
#[derive(Clone, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Match {
    /// Address of the data's sender.
    pub src: Option<Prefix>,
    /// Address of the data's receiver.
    pub dst: Option<Prefix>,
    /// Port of the data's sender.
    pub src_port: Option<RangeInclusive<u16>>,
    /// Port of the data's receiver.
    pub dst_port: Option<RangeInclusive<u16>>,
    /// Outer VLAN identifier, 0 for untagged.
    pub vlan: Option<u16>,
    /// IP protocol.
    pub protocol: Option<u8>,
}

impl Match {
    /// Returns whether it takes every flow that `other` takes.
    pub fn covers(&self, other: &Match) -> bool {
        let prefix = |a: &Option<Prefix>, b: &Option<Prefix>| match (a, b) {
            (Some(a), Some(b)) => a.covers(b),
            (a, _) => a.is_none(),
        };
        let range = |a: &Option<RangeInclusive<u16>>, b: &Option<RangeInclusive<u16>>| match (a, b) {
            (Some(a), Some(b)) => a.contains(b.start()) && a.contains(b.end()),
            (a, _) => a.is_none(),
        };
        prefix(&self.src, &other.src)
            && prefix(&self.dst, &other.dst)
            && range(&self.src_port, &other.src_port)
            && range(&self.dst_port, &other.dst_port)
            && (self.vlan.is_none() || self.vlan == other.vlan)
            && (self.protocol.is_none() || self.protocol == other.protocol)
    }
}

/// An IP prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Prefix {
    addr: IpAddr,
    len: u8,
}

impl Prefix {
    /// The prefix of `len` bits of `addr`. `None` if `len` exceeds the address or bits beyond it are set.
    pub fn new(addr: IpAddr, len: u8) -> Option<Prefix> {
        let (bits, width) = match addr {
            IpAddr::V4(a) => (u128::from(a.to_bits()) << 96, 32),
            IpAddr::V6(a) => (a.to_bits(), 128),
        };
        if len > width || (len < 128 && bits << len != 0) {
            return None;
        }
        Some(Prefix { addr, len })
    }
    /// The prefix of this address alone.
    pub fn host(addr: IpAddr) -> Prefix {
        Prefix { addr, len: if addr.is_ipv4() { 32 } else { 128 } }
    }
    /// Returns the address, in which bits beyond the length are zero.
    pub fn addr(&self) -> IpAddr {
        self.addr
    }
    /// Returns the length in bits.
    pub fn bits(&self) -> u8 {
        self.len
    }
    /// Returns whether every address of `other` is inside.
    pub fn covers(&self, other: &Prefix) -> bool {
        self.len <= other.len && self.contains(other.addr)
    }
    /// Returns whether `addr` is of the same family and inside.
    pub fn contains(&self, addr: IpAddr) -> bool {
        match (self.addr, addr) {
            (IpAddr::V4(p), IpAddr::V4(a)) => {
                self.len == 0 || (p.to_bits() ^ a.to_bits()) >> (32 - self.len) == 0
            }
            (IpAddr::V6(p), IpAddr::V6(a)) => {
                self.len == 0 || (p.to_bits() ^ a.to_bits()) >> (128 - u32::from(self.len)) == 0
            }
            _ => false,
        }
    }
}

impl core::fmt::Display for Prefix {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}/{}", self.addr, self.len)
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            classes: Vec::new(),
            max_flows: 65_536,
            assumed_rtt: crate::time::Duration::from_millis(100),
            idle_timeout: crate::time::Duration::from_secs(900),
            observe: false,
            seed: 1,
            port: crate::systems::gap_pacing::Port::default(),
            link_layer: None,
        }
    }
}

impl Config {
    /// Ports that ACKs of controlled flows come in on: `(lan, wan)`.
    pub fn ack_ports(&self) -> (bool, bool) {
        let has = |d| self.classes.iter().any(|c| c.ack.is_some() && c.direction == d);
        (has(Direction::In), has(Direction::Out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_covers_what_is_within_it() {
        let net = |s: &str, l| Prefix::new(s.parse().unwrap(), l);
        let wide = Match { src: net("10.0.0.0", 8), dst_port: Some(80..=90), ..Match::default() };
        let narrow =
            Match { src: net("10.1.0.0", 16), dst_port: Some(80..=80), vlan: Some(3), ..wide.clone() };
        assert!(wide.covers(&narrow) && wide.covers(&wide) && Match::default().covers(&wide));
        assert!(!narrow.covers(&wide) && !wide.covers(&Match::default()));
        for other in [
            Match { dst_port: Some(85..=91), ..narrow.clone() },
            Match { src: net("11.0.0.0", 8), ..narrow.clone() },
            Match { src: net("::", 0), ..narrow.clone() },
            Match { dst_port: None, ..narrow.clone() },
        ] {
            assert!(!wide.covers(&other), "{other:?}");
        }
        assert!(!Match { protocol: Some(6), ..Match::default() }.covers(&narrow));
    }

    #[test]
    fn prefixes() {
        let p = |s: &str, l| Prefix::new(s.parse().unwrap(), l);
        assert!(p("10.1.0.0", 8).is_none());
        assert!(p("10.0.0.0", 33).is_none());
        assert!(p("2001:db8::", 32).unwrap().contains("2001:db8:1::1".parse().unwrap()));
        assert!(!p("10.0.0.0", 8).unwrap().contains("11.0.0.1".parse().unwrap()));
        assert!(p("0.0.0.0", 0).unwrap().contains("1.2.3.4".parse().unwrap()));
        assert!(!p("0.0.0.0", 0).unwrap().contains("::1".parse().unwrap()));
        assert!(p("1.2.3.4", 32).unwrap().contains("1.2.3.4".parse().unwrap()));
    }
}
