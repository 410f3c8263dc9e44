//! Headers of PPPoE sessions (RFC 2516), as far as they stand between Ethernet and IP.

use super::be16;

/// EtherTypes of PPPoE's discovery and of its sessions (RFC 2516 §3).
pub(crate) const DISCOVERY: u16 = 0x8863;
pub(crate) const SESSION: u16 = 0x8864;
/// Bytes of PPPoE and PPP in front of a packet.
pub(crate) const LEN: usize = 8;
/// Bytes from there on that tell whether an IP packet is there, and its length.
pub(crate) const READ: usize = LEN + 6;
/// Version 1, type 1, code 0: a frame of a session (RFC 2516 §4 and §6).
const VERSION_AND_CODE: u16 = 0x1100;
/// PPP's protocol numbers of IPv4 (RFC 1332 §2) and IPv6 (RFC 5072 §3).
const IPV4: u16 = 0x0021;
const IPV6: u16 = 0x0057;
/// First of PPP's protocols that control the link and the protocols on it (RFC 1661 §2).
const CONTROL: u16 = 0x8000;
/// Bytes of IPv6's header, which its length leaves out.
const IPV6_HEADER: usize = 40;

/// Returns whether the IP packet behind the header of a session at `at` is of IPv6, if there is one. A packet
/// that is longer than the session's header says is cut by the other end, and so is none.
#[cold]
pub(crate) fn carries_ipv6(bytes: &[u8], at: usize) -> Option<bool> {
    let [begin, session, length, protocol] = [0, 2, 4, 6].map(|field| be16(bytes, at + field));
    let (ipv6, ip) = match protocol? {
        IPV4 => (false, usize::from(be16(bytes, at + LEN + 2)?)),
        IPV6 => (true, IPV6_HEADER + usize::from(be16(bytes, at + LEN + 4)?)),
        _ => return None,
    };
    let whole = begin? == VERSION_AND_CODE && session? != 0 && 2 + ip <= usize::from(length?);
    whole.then_some(ipv6)
}

/// Returns whether the frame of a session with its header at `at` controls the link or a protocol on it.
pub(crate) fn is_control(bytes: &[u8], at: usize) -> bool {
    be16(bytes, at + LEN - 2).is_some_and(|protocol| protocol >= CONTROL)
}

/// Returns the header of this session in front of an IP packet of `ip` bytes.
pub(crate) fn header(session: u16, ipv6: bool, ip: u16) -> [u8; LEN] {
    let protocol = if ipv6 { IPV6 } else { IPV4 };
    let fields = [VERSION_AND_CODE, session, 2 + ip, protocol].map(u64::from);
    fields.into_iter().fold(0, |all, field| all << 16 | field).to_be_bytes()
}
