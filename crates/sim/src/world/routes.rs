//! Routes by destination address: a switch or router as a property of a port.

use super::NodeId;
use std::net::Ipv4Addr;
use weir_core::node::Port;

/// Destinations by address. A lookup takes constant time, in a hash table with open addressing and
/// multiplicative hashing (Knuth 6.4), under which consecutive addresses do not collide.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    /// Places, a power of two of them, at most half of them taken.
    table: Vec<Option<(u32, NodeId, Port)>>,
    addresses: usize,
    others: Option<(NodeId, Port)>,
}

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
const ETHERNET: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const DESTINATION: usize = ETHERNET + 16;

impl Routes {
    /// Returns an empty table.
    pub fn new() -> Routes {
        Routes::default()
    }

    /// Sends frames for `address` to `to`, in place of its earlier destination.
    pub fn add(&mut self, address: Ipv4Addr, to: (NodeId, Port)) {
        if 2 * (self.addresses + 1) > self.table.len() {
            self.grow();
        }
        let i = self.place(address.to_bits());
        self.addresses += usize::from(self.table[i].is_none());
        self.table[i] = Some((address.to_bits(), to.0, to.1));
    }

    /// Sends frames for any other address, and frames that are not IPv4, to `to`. Without this they are
    /// dropped.
    pub fn others(&mut self, to: (NodeId, Port)) {
        self.others = Some(to);
    }

    /// Returns the destination of `address`.
    pub fn get(&self, address: Ipv4Addr) -> Option<(NodeId, Port)> {
        self.find(address.to_bits()).or(self.others)
    }

    /// Returns the destination of the untagged frame with these first bytes.
    pub(super) fn of_frame(&self, head: &[u8]) -> Option<(NodeId, Port)> {
        self.to(self.destination(head))
    }

    /// Returns the destination of a frame to `address`, if it has one.
    pub(super) fn to(&self, address: Option<u32>) -> Option<(NodeId, Port)> {
        address.and_then(|a| self.find(a)).or(self.others)
    }

    fn destination(&self, head: &[u8]) -> Option<u32> {
        let head = head.get(..DESTINATION + 4)?;
        let address =
            [head[DESTINATION], head[DESTINATION + 1], head[DESTINATION + 2], head[DESTINATION + 3]];
        (head[ETHERNET - 2..ETHERNET] == IPV4).then_some(u32::from_be_bytes(address))
    }

    fn find(&self, address: u32) -> Option<(NodeId, Port)> {
        if self.table.is_empty() {
            return None;
        }
        self.table[self.place(address)].map(|(_, node, port)| (node, port))
    }

    /// Returns the place of `address`, or the free one for it.
    fn place(&self, address: u32) -> usize {
        let last = self.table.len() - 1;
        let mut i = (u64::from(address).wrapping_mul(GOLDEN) >> 32) as usize & last;
        while self.table[i].is_some_and(|(a, ..)| a != address) {
            i = (i + 1) & last;
        }
        i
    }

    fn grow(&mut self) {
        let places = (2 * self.table.len()).max(16);
        let old = std::mem::replace(&mut self.table, vec![None; places]);
        for route in old.into_iter().flatten() {
            let i = self.place(route.0);
            self.table[i] = Some(route);
        }
    }
}
