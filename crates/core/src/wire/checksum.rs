//! The Internet checksum (RFC 1071) of TCP and UDP, in full and incrementally (RFC 1624).
//!
//! A middlebox must not repair what it did not break: a frame with a wrong checksum keeps it. So a
//! rewritten field changes the checksum by the difference only, and a checksum is computed in full
//! only for frames made here and for those that carry a *partial* one: on virtual devices Linux
//! leaves in the field the folded sum of the pseudo-header, not complemented (`CHECKSUM_PARTIAL`),
//! for a device to complete.
//!
//! Nothing can be said of a frame whose payload is not present. It stays [`Checksum::Unknown`]; who
//! makes such frames (a simulated host) marks them [`Checksum::Valid`] itself.

use super::{array, be16, packet, put, Packet, TCP, UDP};
use crate::frame::Checksum;

/// The ones' complement sum of `data` as 16-bit words in network order, folded, not complemented
/// (RFC 1071 §1). An odd last byte counts as a word with a zero after it.
pub fn sum(data: &[u8]) -> u16 {
    fold(raw(data))
}

/// Sums in the machine's byte order, eight bytes at a time (RFC 1071 §2B, §2C), then turns it round.
/// The result is not folded and fits in 48 bits for any slice below 2^32 bytes.
fn raw(data: &[u8]) -> u64 {
    let mut total = 0u64;
    let mut words = data.chunks_exact(8);
    for word in &mut words {
        let word = u64::from_ne_bytes(array(word, 0).unwrap_or_default());
        total += (word & 0xffff_ffff) + (word >> 32);
    }
    let mut last = [0; 8];
    put(&mut last[..words.remainder().len()], 0, words.remainder());
    let last = u64::from_ne_bytes(last);
    total += (last & 0xffff_ffff) + (last >> 32);
    u16::from_be_bytes(fold(total).to_ne_bytes()) as u64
}

/// Adds the carries back in until 16 bits are left.
const fn fold(mut total: u64) -> u16 {
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// The checksum after a 16-bit word it covers changed from `old` to `new`: equation 3 of RFC 1624.
/// The word has to begin at an even offset from where the sum begins; for an odd offset, swap the
/// bytes of both values.
#[must_use]
pub const fn update16(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(!checksum as u64 + !old as u64 + new as u64)
}

/// The checksum after a 32-bit word changed; see [`update16`].
#[must_use]
pub const fn update32(checksum: u16, old: u32, new: u32) -> u16 {
    let checksum = update16(checksum, (old >> 16) as u16, (new >> 16) as u16);
    update16(checksum, old as u16, new as u16)
}

/// A segment or datagram: the bytes that its checksum covers and the field that holds it.
struct Covered {
    start: usize,
    end: usize,
    field: usize,
    /// The pseudo-header's sum, folded. Never 0: the protocol is part of it.
    pseudo: u16,
}

/// `None` for other protocols than TCP and UDP, and for a UDP length that contradicts the packet's.
fn covered(bytes: &[u8], p: &Packet) -> Option<Covered> {
    let start = p.l4 as usize;
    let room = p.l4_len();
    let (at, header, len) = match p.protocol {
        TCP => (16, 20, room),
        UDP => (6, 8, be16(bytes, start + 4)? as u32),
        _ => return None,
    };
    if len < header || len > room {
        return None;
    }
    let addresses = match p.version {
        4 => raw(&p.src[12..]) + raw(&p.dst[12..]),
        _ => raw(&p.src) + raw(&p.dst),
    };
    let length = (len >> 16) as u64 + (len & 0xffff) as u64;
    let pseudo = fold(addresses + length + p.protocol as u64);
    Some(Covered { start, end: start + len as usize, field: start + at, pseudo })
}

/// The state of the transport checksum of a frame `frame_len` bytes long that begins with `bytes`:
/// the whole of the segment is summed.
///
/// - [`Checksum::Valid`]: complete and right.
/// - [`Checksum::Partial`]: not right, and the field holds the sum of the pseudo-header.
/// - [`Checksum::Invalid`]: neither, or there is none: another protocol than TCP and UDP, a UDP
///   length that contradicts the packet's, UDP over IPv4 without checksum (0).
/// - [`Checksum::Unknown`]: the payload is not all present.
pub fn verify(bytes: &[u8], frame_len: usize, p: &Packet) -> Checksum {
    let bytes = bytes.get(..frame_len).unwrap_or(bytes);
    let Some(c) = covered(bytes, p) else {
        return if be16(bytes, p.l4 as usize + 4).is_none() && p.protocol == UDP {
            Checksum::Unknown
        } else {
            Checksum::Invalid
        };
    };
    match bytes.get(c.start..c.end) {
        Some(data) => judge(data, be16(bytes, c.field).unwrap_or(0), &c, p),
        None => Checksum::Unknown,
    }
}

fn judge(data: &[u8], field: u16, c: &Covered, p: &Packet) -> Checksum {
    if p.protocol == UDP && field == 0 {
        // IPv6 forbids it outside of tunnels (RFC 8200 §8.1, RFC 6935): none to check either way.
        return Checksum::Invalid;
    }
    if fold(raw(data) + c.pseudo as u64) == 0xffff {
        Checksum::Valid
    } else if field == c.pseudo {
        Checksum::Partial
    } else {
        Checksum::Invalid
    }
}

/// Tells partial checksums apart without summing the payload: [`Checksum::Unknown`] unless the
/// field holds the sum of the pseudo-header, and then (always for a partial one, once in 65,535 for
/// others) what [`verify`] says.
///
/// A frame that stays `Unknown` has a complete checksum, right or wrong, or its payload is absent.
pub fn quick(bytes: &[u8], frame_len: usize, p: &Packet) -> Checksum {
    let bytes = bytes.get(..frame_len).unwrap_or(bytes);
    match covered(bytes, p) {
        Some(c) if be16(bytes, c.field) == Some(c.pseudo) => verify(bytes, frame_len, p),
        _ => Checksum::Unknown,
    }
}

/// Computes the TCP or UDP checksum of `p` in full, whatever the field held. False, with nothing
/// written, for other protocols, for contradicting lengths, and if the payload is not all present.
pub fn fill(bytes: &mut [u8], p: &Packet) -> bool {
    let Some(c) = covered(bytes, p) else { return false };
    let (Some(data), Some(old)) = (bytes.get(c.start..c.end), be16(bytes, c.field)) else { return false };
    // The field counts as 0: it is at an even offset, so it can be taken out of the sum again.
    let total = fold(raw(data) + c.pseudo as u64 + !old as u64);
    let value = match (!total, p.protocol) {
        // 0 would say that there is no checksum (RFC 768).
        (0, UDP) => 0xffff,
        (value, _) => value,
    };
    put(bytes, c.field, &value.to_be_bytes())
}

/// Completes a frame whose state is [`Checksum::Partial`] and that is about to leave for a device
/// that will not do it. `bytes` has to hold the whole frame. False, with nothing written, if the
/// frame does not parse or is not all present.
pub fn complete(bytes: &mut [u8], frame_len: usize) -> bool {
    match packet(bytes, frame_len) {
        Ok(p) => fill(bytes, &p),
        Err(_) => false,
    }
}
