//! Segments of opaque flows, which look like datagrams with encrypted contents on their way: a valid UDP
//! header (RFC 768) without a checksum, and behind it what looks like a packet of QUIC with a short header
//! (RFC 9000 section 17.3). Together they take as many bytes as TCP's header:
//!
//! | bytes | contents |
//! | --- | --- |
//! | 0 to 3 | ports |
//! | 4 to 7 | length and no checksum |
//! | 8 | QUIC's fixed bit, the highest flag (0x20), the data offset |
//! | 9 | the other flags |
//! | 10 to 13 | sequence number |
//! | 14 to 17 | acknowledgement number |
//! | 18, 19 | window |

use super::{L4, MAX_HEAD, TCP};
use weir_core::wire::{self, checksum::update16};

/// Bit that each packet of QUIC has set.
const FIXED: u8 = 0x40;
/// Place of the flag that TCP has beside its data offset.
const HIGHEST: u8 = 0x20;

/// Makes the headers of a segment, whose IP header has no checksum yet, those of a datagram.
pub(super) fn disguise(head: &mut [u8; MAX_HEAD]) {
    let mut tcp = [0; TCP];
    tcp.copy_from_slice(&head[L4..L4 + TCP]);
    let total = u16::from_be_bytes([head[16], head[17]]);
    head[23] = wire::UDP;
    let udp = &mut head[L4..L4 + TCP];
    udp[4..6].copy_from_slice(&total.wrapping_sub(20).to_be_bytes());
    udp[6..8].fill(0);
    udp[8] = FIXED | ((tcp[12] & 1) * HIGHEST) | (tcp[12] >> 4);
    udp[9] = tcp[13];
    udp[10..18].copy_from_slice(&tcp[4..12]);
    udp[18..20].copy_from_slice(&tcp[14..16]);
}

/// Returns the headers of the segment that a datagram with this head is. `None` if it cannot be one.
#[cold]
pub(super) fn reveal(head: &[u8]) -> Option<[u8; MAX_HEAD]> {
    let plain = head.get(12..15)? == [8, 0, 0x45] && head[23] == wire::UDP;
    let udp: &[u8; TCP] = head.get(L4..)?.first_chunk()?;
    if !plain || udp[8] & (FIXED | 0x90) != FIXED {
        return None;
    }
    let mut out = [0; MAX_HEAD];
    let len = head.len().min(MAX_HEAD);
    out[..len].copy_from_slice(&head[..len]);
    let word = |protocol| u16::from_be_bytes([head[22], protocol]);
    let sum = update16(u16::from_be_bytes([head[24], head[25]]), word(wire::UDP), word(wire::TCP));
    out[23] = wire::TCP;
    out[24..26].copy_from_slice(&sum.to_be_bytes());
    let tcp = &mut out[L4..L4 + TCP];
    tcp[4..12].copy_from_slice(&udp[10..18]);
    tcp[12] = (udp[8] << 4) | u8::from(udp[8] & HIGHEST != 0);
    tcp[13] = udp[9];
    tcp[14..16].copy_from_slice(&udp[18..20]);
    tcp[16..].fill(0);
    Some(out)
}
