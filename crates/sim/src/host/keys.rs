//! Lookup of the endpoint that a segment is for.

use super::Endpoint;
use crate::tcp::segment::Pair;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::net::SocketAddrV4;

/// Endpoints by the [keys](Pair::key) of the segments that they receive.
pub(super) type ByKey = HashMap<u64, u32, BuildHasherDefault<Mix>>;

/// Multiplicative hash. The keys come from the experiment and not from an adversary.
#[derive(Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(u64::from(b)));
    }
    fn write_u64(&mut self, n: u64) {
        let product = u128::from(self.0 ^ n) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

/// Returns the [key](Pair::key) of the segments that an endpoint receives.
pub(super) fn key(e: &Endpoint) -> u64 {
    let end = |a: SocketAddrV4| (a.ip().to_bits(), a.port());
    Pair { from: end(e.remote), to: end(e.local) }.key()
}
