//! The Ethernet header, its VLAN tags, and the header of a PPPoE session behind them.

use super::{be16, Reject};
use crate::packet::pppoe;

/// EtherType of IPv4.
pub(super) const IPV4: u16 = 0x0800;
/// EtherType of IPv6.
pub(super) const IPV6: u16 = 0x86dd;
/// Bytes of the Ethernet header without tags.
pub(super) const HEADER: usize = 14;

/// EtherType of ARP.
const ARP: u16 = 0x0806;
/// EtherTypes of MPLS (RFC 5332 §3).
const MPLS: [u16; 2] = [0x8847, 0x8848];
/// Tags beyond two, and labels of MPLS, that are stepped over at most.
const MORE_TAGS: usize = 4;
const LABELS: usize = 8;

/// Returns whether this EtherType is a VLAN tag's: 802.1Q customer tag or 802.1ad service tag.
const fn is_tag(ethertype: u16) -> bool {
    matches!(ethertype, 0x8100 | 0x88a8)
}

/// Up to two VLAN tags, outer first: 802.1Q (0x8100) or 802.1ad (0x88a8) each. Unused entries are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Vlan {
    /// Number of tags, 0 to 2.
    pub count: u8,
    /// Tag protocol identifiers.
    pub tpid: [u16; 2],
    /// Tag control information: priority (3 bits), drop eligibility (1), VLAN identifier (12).
    pub tci: [u16; 2],
}

impl Vlan {
    /// No tag.
    pub const NONE: Vlan = Vlan { count: 0, tpid: [0; 2], tci: [0; 2] };

    /// VLAN identifier of the outer tag, 0 to 4,095. 0 if there is none.
    pub const fn outer_id(&self) -> u16 {
        self.tci[0] & 0xfff
    }
    /// VLAN identifier of the inner of two tags, 0 to 4,095. 0 if there is none.
    pub const fn inner_id(&self) -> u16 {
        self.tci[1] & 0xfff
    }
    /// Bytes that the tags add to the frame: 0, 4 or 8.
    pub const fn len(&self) -> usize {
        4 * self.tags()
    }
    /// True without tags.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// `count`, never above 2.
    pub(super) const fn tags(&self) -> usize {
        if self.count > 2 {
            2
        } else {
            self.count as usize
        }
    }
}

/// Returns the tags, the offset of the IP header, and whether it is IPv6's.
#[inline]
pub(crate) fn network(bytes: &[u8]) -> Option<(Vlan, usize, bool)> {
    let (vlan, ethertype, l3) = network_header(bytes).ok()?;
    matches!(ethertype, IPV4 | IPV6).then_some((vlan, l3, ethertype == IPV6))
}

/// Returns the tags, the EtherType of the packet and its offset. A packet in a session of PPPoE is behind the
/// header of that session, and has the EtherType that it would have without.
#[inline]
pub(super) fn network_header(bytes: &[u8]) -> Result<(Vlan, u16, usize), Reject> {
    match ethernet(bytes)? {
        (_, pppoe::SESSION, at) if bytes.len() < at + pppoe::READ => Err(Reject::Truncated),
        (vlan, pppoe::SESSION, at) => Ok(match pppoe::carries_ipv6(bytes, at) {
            Some(ipv6) => (vlan, if ipv6 { IPV6 } else { IPV4 }, at + pppoe::LEN),
            None => (vlan, pppoe::SESSION, at),
        }),
        found => Ok(found),
    }
}

/// Returns the tags, the EtherType under them and the offset behind it. A third tag does not count as a tag:
/// its EtherType is returned unchanged.
#[inline]
pub(super) fn ethernet(bytes: &[u8]) -> Result<(Vlan, u16, usize), Reject> {
    let mut vlan = Vlan::NONE;
    let mut at = HEADER;
    let mut ethertype = be16(bytes, at - 2).ok_or(Reject::Truncated)?;
    while is_tag(ethertype) && vlan.count < 2 {
        let tag = vlan.count as usize;
        vlan.tpid[tag] = ethertype;
        vlan.tci[tag] = be16(bytes, at).ok_or(Reject::Truncated)?;
        ethertype = be16(bytes, at + 2).ok_or(Reject::Truncated)?;
        vlan.count += 1;
        at += 4;
    }
    Ok((vlan, ethertype, at))
}

/// Frames by which hosts and links find each other, and without which nothing else passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// ARP.
    Arp,
    /// PPPoE's discovery, and PPP's control of a session and of the protocols in it.
    Ppp,
}

/// Returns the offset behind the Ethernet header and up to two tags, and what control is there.
pub fn network_layer(bytes: &[u8]) -> (usize, Option<Control>) {
    let Ok((_, ethertype, at)) = ethernet(bytes) else { return (HEADER, None) };
    let control = match ethertype {
        ARP => Some(Control::Arp),
        pppoe::DISCOVERY => Some(Control::Ppp),
        pppoe::SESSION if pppoe::is_control(bytes, at) => Some(Control::Ppp),
        _ => None,
    };
    (at, control)
}

/// Returns the first two tags and the offset at which an IP header would be: behind more tags, PPPoE or MPLS.
pub(super) fn inner(bytes: &[u8]) -> Option<(Vlan, usize)> {
    let (vlan, mut ethertype, mut at) = network_header(bytes).ok()?;
    for _ in 0..MORE_TAGS {
        if !is_tag(ethertype) {
            break;
        }
        ethertype = be16(bytes, at + 2)?;
        at += 4;
    }
    if ethertype == pppoe::SESSION {
        at += pppoe::LEN;
    } else if MPLS.contains(&ethertype) {
        // The bottom of the stack is marked (RFC 3032 §2.1).
        let bottom = (0..LABELS).find(|n| bytes.get(at + 4 * n + 2).is_none_or(|b| b & 1 != 0));
        at += 4 * bottom.map_or(LABELS, |n| n + 1);
    }
    Some((vlan, at))
}
