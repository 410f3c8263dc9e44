//! Addresses of the LAN with traffic that no class takes.

use super::abi::UnlistedCount;
use super::failed;
use crate::sys::pod;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::io;
use std::net::{IpAddr, Ipv6Addr};

/// The list that the hooks keep. It has room for 4,096 addresses; those that were idle longest make room.
#[derive(Debug)]
pub struct Unlisted(MapHandle);

/// Packets of an address that no class takes, as far back as the list goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnlistedAddress {
    /// The address.
    pub address: IpAddr,
    /// Bytes from IP headers on that it sent, and that it received.
    pub bytes: [u64; 2],
    /// Packets of these; of TCP those with payload.
    pub packets: [u64; 2],
}

impl UnlistedAddress {
    /// Returns the bytes of both directions.
    pub fn sum(&self) -> u64 {
        self.bytes[0].saturating_add(self.bytes[1])
    }
}

impl Unlisted {
    pub(super) fn of(list: &MapHandle) -> io::Result<Unlisted> {
        MapHandle::try_from(list).map(Unlisted).map_err(|e| failed("unlisted", &e))
    }

    /// Reads the list, those with most bytes first. It takes some milliseconds, and is no work for an engine.
    pub fn read(&self) -> Vec<UnlistedAddress> {
        let entry = |key: Vec<u8>| {
            // An entry may have made room meanwhile.
            let value = self.0.lookup(&key, MapFlags::ANY).ok()??;
            let count: UnlistedCount = pod::read(&value)?;
            let address = Ipv6Addr::from(<[u8; 16]>::try_from(key).ok()?);
            let address = address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4);
            Some(UnlistedAddress { address, bytes: count.bytes, packets: count.packets })
        };
        let mut all: Vec<UnlistedAddress> = self.0.keys().filter_map(entry).collect();
        all.sort_by(|a, b| b.sum().cmp(&a.sum()).then(a.address.cmp(&b.address)));
        all
    }
}
