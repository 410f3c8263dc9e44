//! Routes by destination address: a switch or router as a property of a port. Datagrams of one flow may have
//! a destination of their own, so that several nodes share an address.

use super::NodeId;
use std::net::{Ipv4Addr, SocketAddrV4};
use weir_core::node::Port;
use weir_core::wire::UDP;

/// Destinations by address, and by the ends of flows of datagrams. A lookup takes constant time.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    addresses: Table<u32>,
    datagrams: Table<Ends>,
    others: Option<(NodeId, Port)>,
}

/// Bytes of the Ethernet header.
const ETHERNET: usize = 14;
/// EtherType of IPv4, with version and header length of a packet without options.
const PLAIN_IPV4: [u8; 3] = [0x08, 0x00, 0x45];
const IPV4: [u8; 2] = [0x08, 0x00];
const PROTOCOL: usize = ETHERNET + 9;
const SOURCE: usize = ETHERNET + 12;
const DESTINATION: usize = ETHERNET + 16;

impl Routes {
    /// Returns an empty table.
    pub fn new() -> Routes {
        Routes::default()
    }

    /// Sends frames for `address` to `to`, in place of its earlier destination.
    pub fn add(&mut self, address: Ipv4Addr, to: (NodeId, Port)) {
        self.addresses.insert(address.to_bits(), to);
    }

    /// Sends UDP datagrams with this source and this destination to `to`, in place of their earlier
    /// destination. It takes precedence over the one of their address. Packets with IP options are routed by
    /// address only.
    pub fn add_datagrams(&mut self, (from, remote): (SocketAddrV4, SocketAddrV4), to: (NodeId, Port)) {
        let mut ends = [0; 12];
        ends[..4].copy_from_slice(&from.ip().octets());
        ends[4..8].copy_from_slice(&remote.ip().octets());
        ends[8..10].copy_from_slice(&from.port().to_be_bytes());
        ends[10..].copy_from_slice(&remote.port().to_be_bytes());
        self.datagrams.insert(Ends::of(&ends), to);
    }

    /// Sends frames for any other address, and frames that are not IPv4, to `to`. Without this they are
    /// dropped.
    pub fn others(&mut self, to: (NodeId, Port)) {
        self.others = Some(to);
    }

    /// Returns the destination of `address`.
    pub fn get(&self, address: Ipv4Addr) -> Option<(NodeId, Port)> {
        self.addresses.find(address.to_bits()).or(self.others)
    }

    /// Returns the destination of the untagged frame with these first bytes.
    pub(super) fn of_frame(&self, head: &[u8]) -> Option<(NodeId, Port)> {
        self.of_datagram(head).or_else(|| self.to(destination(head)))
    }

    /// Returns the destination of a frame to `address`, if it has one.
    pub(super) fn to(&self, address: Option<u32>) -> Option<(NodeId, Port)> {
        address.and_then(|a| self.addresses.find(a)).or(self.others)
    }

    /// Returns the destination of a datagram's flow, if it has one of its own.
    fn of_datagram(&self, head: &[u8]) -> Option<(NodeId, Port)> {
        if self.datagrams.is_empty() {
            return None;
        }
        // Without options, the ports follow the addresses.
        let ends = head.get(SOURCE..)?.first_chunk()?;
        let plain = head[ETHERNET - 2..=ETHERNET] == PLAIN_IPV4 && head[PROTOCOL] == UDP;
        self.datagrams.find(plain.then(|| Ends::of(ends))?)
    }
}

fn destination(head: &[u8]) -> Option<u32> {
    let head = head.get(..DESTINATION + 4)?;
    let address = [head[DESTINATION], head[DESTINATION + 1], head[DESTINATION + 2], head[DESTINATION + 3]];
    (head[ETHERNET - 2..ETHERNET] == IPV4).then_some(u32::from_be_bytes(address))
}

/// Source and destination of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ends {
    addresses: u64,
    ports: u32,
}

impl Ends {
    /// Returns the ends in these bytes: both addresses, then both ports, as in the headers.
    fn of(bytes: &[u8; 12]) -> Ends {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = *bytes;
        Ends {
            addresses: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            ports: u32::from_be_bytes([i, j, k, l]),
        }
    }
}

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Key of a [`Table`].
trait Key: Copy + Eq {
    /// Returns the key's hash, of which any number of the lowest bits are used.
    fn hash(self) -> u64;
}

impl Key for u32 {
    fn hash(self) -> u64 {
        u64::from(self).wrapping_mul(GOLDEN) >> 32
    }
}

impl Key for Ends {
    fn hash(self) -> u64 {
        (self.addresses.wrapping_mul(GOLDEN) ^ u64::from(self.ports)).wrapping_mul(GOLDEN) >> 32
    }
}

/// Hash table with open addressing and multiplicative hashing (Knuth 6.4), under which consecutive addresses
/// do not collide.
#[derive(Clone, Debug)]
struct Table<K> {
    /// Places, a power of two of them, at most half of them taken.
    places: Vec<Option<(K, NodeId, Port)>>,
    taken: usize,
}

impl<K> Default for Table<K> {
    fn default() -> Table<K> {
        Table { places: Vec::new(), taken: 0 }
    }
}

impl<K: Key> Table<K> {
    fn is_empty(&self) -> bool {
        self.taken == 0
    }

    fn find(&self, key: K) -> Option<(NodeId, Port)> {
        if self.is_empty() {
            return None;
        }
        self.places[self.place(key)].map(|(_, node, port)| (node, port))
    }

    fn insert(&mut self, key: K, to: (NodeId, Port)) {
        if 2 * (self.taken + 1) > self.places.len() {
            self.grow();
        }
        let i = self.place(key);
        self.taken += usize::from(self.places[i].is_none());
        self.places[i] = Some((key, to.0, to.1));
    }

    /// Returns the place of `key`, or the free one for it.
    fn place(&self, key: K) -> usize {
        let last = self.places.len() - 1;
        let mut i = key.hash() as usize & last;
        while self.places[i].is_some_and(|(other, ..)| other != key) {
            i = (i + 1) & last;
        }
        i
    }

    fn grow(&mut self) {
        let places = (2 * self.places.len()).max(16);
        let old = std::mem::replace(&mut self.places, vec![None; places]);
        for route in old.into_iter().flatten() {
            let i = self.place(route.0);
            self.places[i] = Some(route);
        }
    }
}
