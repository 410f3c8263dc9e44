//! Flows whose ACKs are not controlled, in classes where each flow has a rate.
//!
//! A flow gets a record of its own with its third packet within a second: an address that chooses another
//! port for each packet has no second one of any. Until then, and wherever there is no room for a record, all
//! such flows of a source share one: they are worth one flow.

use super::due::SPREAD;
use super::flow_bound::FlowBound;
use crate::base::time::Time;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Sources, by a hash of their addresses, of each direction.
pub const SOURCES: usize = 4096;
/// Flows that are counted at once, by a hash of their keys.
const YOUNG: usize = 8192;
/// Hosts by Ethernet addresses, of each direction.
const HOSTS: usize = 1024;
/// Hosts by their addresses and class, of each direction: a power of two.
const BARE: usize = 1 << BARE_BITS;
const BARE_BITS: u32 = 10;
/// Packets with which a flow gets a record of its own.
const LASTS: u64 = 3;
/// A second: 2^30 ns.
const SECOND: u32 = 30;
/// Bits of a cell of [`Strangers::young`] that count packets, and above them those of the second. The flow's
/// hash has the high half.
const COUNT: u32 = 2;

/// Records that hooks keep of flows without a slot, beside those of single flows.
#[derive(Debug)]
pub struct Strangers {
    /// Bounds of each source of data that goes out, and then of data that comes in.
    sources: Box<[FlowBound]>,
    young: Young,
    /// Times at which the queues of hosts' frames without readable addresses are empty, by a hash of their
    /// Ethernet addresses: of frames that go out, and then of those that come in.
    hosts: Box<[AtomicU64]>,
    /// Times at which is paid for what hosts have used up of the queues of segments without data, by a hash
    /// of address and class: of segments that go out, and then of those that come in.
    bare: Box<[AtomicU64]>,
}

impl Default for Strangers {
    fn default() -> Strangers {
        Strangers {
            sources: (0..2 * SOURCES).map(|_| FlowBound::default()).collect(),
            young: Young::default(),
            hosts: (0..2 * HOSTS).map(|_| AtomicU64::new(0)).collect(),
            bare: (0..2 * BARE).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

/// A hash of an address on the LAN's side: of IPv4 all of it counts, of IPv6 the first 64 bits, of which one
/// customer has the rest. The high bits are the best. `seed` is odd, and outsiders do not know it.
pub fn hash_of_source(address: &[u8; 16], seed: u64) -> u64 {
    let part = |n: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|i| address[4 * n + i]));
    let mut hash = u64::from(part(0)) << 32 | u64::from(part(1));
    if hash == 0 {
        hash = part(3).into();
    }
    hash = hash.wrapping_mul(seed);
    (hash ^ hash >> 32).wrapping_mul(seed)
}

/// A hash of the Ethernet address on the LAN's side of a frame with this head; of an unknown one, 0.
pub fn hash_of_host(head: &[u8], inward: bool, seed: u64) -> u64 {
    let from = if inward { 0 } else { 6 };
    let mut address = [0; 16];
    if let Some(mac) = head.get(from..from + 6) {
        address[..6].copy_from_slice(mac);
    }
    hash_of_source(&address, seed)
}

impl Strangers {
    /// The record that flows of a source share whose data comes in, if it is `inward`, or goes out.
    pub fn of_source(&self, hash: u64, inward: bool) -> &FlowBound {
        let place = (hash >> 32) as usize % SOURCES;
        &self.sources[place + if inward { SOURCES } else { 0 }]
    }

    /// The record that hosts share with this hash of their Ethernet addresses.
    pub fn of_host(&self, hash: u64, inward: bool) -> &AtomicU64 {
        &self.hosts[(hash >> 32) as usize % HOSTS + if inward { HOSTS } else { 0 }]
    }

    /// The record of what a host has used up of a class's queue of segments without data, by the hash of its
    /// address. The class is at `place`.
    pub fn of_bare(&self, hash: u64, place: u32, inward: bool) -> &AtomicU64 {
        let hash = hash ^ u64::from(place).wrapping_mul(SPREAD);
        &self.bare[(hash >> (64 - BARE_BITS)) as usize + if inward { BARE } else { 0 }]
    }

    /// Counts a packet of a flow without a record, by the hash of its key. Returns whether the flow gets a
    /// record with this packet.
    pub fn lasts(&self, hash: u64, now: Time) -> bool {
        self.young.lasts(hash, now)
    }
}

/// Packets in this second of flows without a record, by a hash of their keys.
#[derive(Debug)]
pub(super) struct Young(Box<[AtomicU64]>);

impl Default for Young {
    fn default() -> Young {
        Young((0..YOUNG).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Young {
    /// Counts a packet of a flow without a record. Returns whether it gets one with this packet.
    pub(super) fn lasts(&self, hash: u64, now: Time) -> bool {
        let cell = &self.0[(hash >> 32) as usize % YOUNG];
        let (count, word) = counted(cell.load(Relaxed), hash as u32, now.as_nanos());
        cell.store(word, Relaxed);
        count >= LASTS
    }
}

/// Packets in this second of the flow with this hash, one more than what its cell says, and the cell's next
/// word.
fn counted(word: u64, hash: u32, now: u64) -> (u64, u64) {
    let second = now >> SECOND & 0x3fff_ffff;
    let flow = u64::from(hash) << 32 | second << COUNT;
    let before = if word >> COUNT == flow >> COUNT { word & ((1 << COUNT) - 1) } else { 0 };
    let count = (before + 1).min(LASTS);
    (count, flow | count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_lasts_with_three_packets_in_a_second() {
        let strangers = Strangers::default();
        let at = |ms: u64| Time::from_millis(1_074 * 5 + ms);
        let lasts = |hash, ms| strangers.lasts(hash, at(ms));
        assert_eq!([0, 10, 20, 30].map(|ms| lasts(7, ms)), [false, false, true, true]);
        // In the next second it begins again, and so it does behind another one in the same cell.
        assert_eq!([1_074, 1_075].map(|ms| lasts(7, ms)), [false; 2]);
        assert!(!lasts(8, 1_076) && !lasts(7, 1_077) && !lasts(7, 1_078) && lasts(7, 1_079));
        // One packet of each of many flows.
        assert!(!(100..100_000).any(|n| lasts(n << 40 | n, 2_500)));
    }

    #[test]
    fn sources_are_told_apart_by_the_addresses_of_customers() {
        let hash = |address: [u8; 16]| hash_of_source(&address, 0x9e37_79b9_7f4a_7c15);
        let four = |n| core::net::Ipv4Addr::new(10, 0, 0, n).to_ipv6_mapped().octets();
        assert_ne!(hash(four(1)) >> 51, hash(four(2)) >> 51);
        let six = |n: u8, host| [0x20, 1, 0xd, 0xb8, 0, 0, 0, n, 0, 0, 0, 0, 0, 0, 0, host];
        assert_eq!(hash(six(1, 1)), hash(six(1, 2)));
        assert_ne!(hash(six(1, 1)) >> 51, hash(six(2, 1)) >> 51);
    }
}
