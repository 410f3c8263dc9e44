//! The identity of a flow: one direction of data of one connection.

use crate::wire::{Packet, Tcp};
use core::net::{IpAddr, Ipv6Addr};

/// A flow of data: `src` sends the data, `dst` receives it and acknowledges. IPv4 addresses are
/// written as IPv4-mapped IPv6 addresses (RFC 4291 §2.5.5.2). The VLAN identifiers belong to it:
/// customers behind different tags may use the same addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(C)]
pub struct Key {
    /// Address of the data's sender.
    pub src: [u8; 16],
    /// Address of the data's receiver.
    pub dst: [u8; 16],
    /// Port of the data's sender.
    pub src_port: u16,
    /// Port of the data's receiver.
    pub dst_port: u16,
    /// Outer VLAN identifier, 0 for untagged.
    pub vlan: u16,
    /// Inner VLAN identifier, 0 for at most one tag.
    pub inner_vlan: u16,
}

const OPENING: u16 = 1 << 15;

impl Key {
    /// The flow whose data this segment belongs to.
    pub fn of_data(p: &Packet, t: &Tcp) -> Key {
        Key {
            src: p.src,
            dst: p.dst,
            src_port: t.src_port,
            dst_port: t.dst_port,
            vlan: p.vlan.outer_id(),
            inner_vlan: p.vlan.inner_id(),
        }
    }
    /// The flow whose data this segment acknowledges.
    pub fn of_ack(p: &Packet, t: &Tcp) -> Key {
        Key::of_data(p, t).reversed()
    }
    /// The same connection with sender and receiver exchanged.
    #[must_use]
    pub fn reversed(&self) -> Key {
        Key { src: self.dst, dst: self.src, src_port: self.dst_port, dst_port: self.src_port, ..*self }
    }
    /// The key under which an opening is kept while another connection has this one: VLAN identifiers have 12
    /// bits, so no frame shows it.
    #[must_use]
    pub fn opening(&self) -> Key {
        Key { inner_vlan: self.inner_vlan | OPENING, ..*self }
    }
    /// Is it that of an [opening](Key::opening)?
    pub fn is_opening(&self) -> bool {
        self.inner_vlan & OPENING != 0
    }
    /// Address of the data's sender.
    pub fn src_ip(&self) -> IpAddr {
        Ipv6Addr::from(self.src).to_canonical()
    }
    /// Address of the data's receiver.
    pub fn dst_ip(&self) -> IpAddr {
        Ipv6Addr::from(self.dst).to_canonical()
    }
    /// A keyed hash: folded 64×64-bit multiplications over the key's five words. Without `seed`
    /// nobody can choose addresses that share a bucket.
    pub fn hash(&self, seed: u64) -> u64 {
        let word = |b: &[u8]| b.iter().fold(0u64, |w, &x| w << 8 | u64::from(x));
        let ports = u64::from(self.src_port) << 48
            | u64::from(self.dst_port) << 32
            | u64::from(self.vlan) << 16
            | u64::from(self.inner_vlan);
        let mut h = seed ^ 0x9E37_79B9_7F4A_7C15;
        h = fold(
            h ^ word(&self.src[..8]),
            0xA076_1D64_78BD_642F ^ word(&self.src[8..]) ^ seed.rotate_left(32),
        );
        h = fold(
            h ^ word(&self.dst[..8]),
            0xE703_7ED1_A0B4_28DB ^ word(&self.dst[8..]) ^ seed.rotate_left(16),
        );
        fold(h ^ ports, 0x8EBC_6AF0_9C88_C6E3 ^ seed)
    }
}

fn fold(a: u64, b: u64) -> u64 {
    let m = u128::from(a) * u128::from(b);
    (m >> 64) as u64 ^ m as u64
}

impl core::fmt::Display for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let end = |ip: IpAddr, port| core::net::SocketAddr::new(ip, port);
        write!(f, "{} > {}", end(self.src_ip(), self.src_port), end(self.dst_ip(), self.dst_port))
    }
}
