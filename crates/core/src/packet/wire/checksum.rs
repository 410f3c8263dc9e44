//! The Internet checksum of TCP and UDP: verified, computed in full, completed.
//!
//! A middlebox must not repair a checksum that it did not break: a frame with a wrong checksum keeps it. A
//! rewritten field therefore changes the checksum by the difference only. A checksum is computed in full only
//! for frames made here and for those with a *partial* one. On virtual devices Linux leaves the folded sum of
//! the pseudo-header in the field, not complemented (`CHECKSUM_PARTIAL`), for a device to complete.
//!
//! A frame with an absent payload cannot be verified. It stays [`Checksum::Unknown`]. The maker of such
//! frames (a simulated host) marks them [`Checksum::Valid`] itself.

use super::sum::{add, fold, network, words};
use super::{be16, packet, put, Packet, TCP, UDP};
use crate::packet::frame::{Checksum, Frame, Frames};

pub use super::sum::{sum, update16};

/// A segment or datagram: the bytes that its checksum covers and the field that holds it.
struct Covered {
    start: usize,
    end: usize,
    field: usize,
    /// Folded sum of the pseudo-header. Never 0: the protocol is part of it.
    pseudo: u16,
}

/// Returns `None` for protocols other than TCP and UDP, and for a UDP length that contradicts the packet's.
#[inline]
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
    // The prefix 0xffff of an IPv4 address as an IPv6 address adds nothing to a ones' complement sum.
    let rest = u64::from(len) + u64::from(p.protocol);
    let pseudo = network(add(add(words(&p.src), words(&p.dst)), rest.to_be()));
    Some(Covered { start, end: start + len as usize, field: start + at, pseudo })
}

/// Returns the state of the transport checksum of a frame `frame_len` bytes long that begins with `bytes`.
/// The whole segment is summed.
///
/// - [`Checksum::Valid`]: complete and right.
/// - [`Checksum::Partial`]: not right, and the field holds the sum of the pseudo-header.
/// - [`Checksum::Invalid`]: neither, or there is none. There is none for protocols other than TCP and UDP,
///   for a UDP length that contradicts the packet's, and for UDP over IPv4 without checksum (0).
/// - [`Checksum::Unknown`]: the payload is not all present.
pub fn verify(bytes: &[u8], frame_len: usize, p: &Packet) -> Checksum {
    let bytes = bytes.get(..frame_len).unwrap_or(bytes);
    state(bytes, core::iter::once(bytes), p)
}

/// Verifies a frame of the pool over all its chunks, see [`verify`]. The field of a giant segment may hold
/// the checksum of one of its packets. A checksum that is wrong over the whole of a giant is therefore
/// [`Checksum::Unknown`].
#[inline]
pub fn verify_frame(frames: &Frames, frame: &Frame, p: &Packet) -> Checksum {
    let head = frames.bytes(frame);
    let found = if frame.is_chained() {
        state(head, frames.parts(frame), p)
    } else {
        state(head, core::iter::once(head), p)
    };
    match found {
        Checksum::Invalid if frame.gso_size != 0 => Checksum::Unknown,
        state => state,
    }
}

/// Returns the state of the checksum of the frame in `parts`. `head` is its beginning, with all headers.
#[inline]
fn state<'a>(head: &[u8], parts: impl Iterator<Item = &'a [u8]>, p: &Packet) -> Checksum {
    let Some(c) = covered(head, p) else {
        return if be16(head, p.l4 as usize + 4).is_none() && p.protocol == UDP {
            Checksum::Unknown
        } else {
            Checksum::Invalid
        };
    };
    match (c.sum(parts), be16(head, c.field)) {
        (Some(sum), Some(field)) => judge(sum, field, &c, p),
        _ => Checksum::Unknown,
    }
}

impl Covered {
    /// Returns the sum of the covered bytes in `parts`, the field and the pseudo-header included. `None` if
    /// they are not all present.
    #[inline]
    fn sum<'a>(&self, parts: impl Iterator<Item = &'a [u8]>) -> Option<u64> {
        let (mut at, mut total) = (0, u64::from(self.pseudo));
        for part in parts {
            let within = |offset: usize| offset.saturating_sub(at).min(part.len());
            let (from, to) = (within(self.start), within(self.end));
            let sum = sum(&part[from..to]);
            // From an odd offset on, the bytes of each word are swapped (RFC 1071 §2B).
            let odd = (at + from).wrapping_sub(self.start) % 2 == 1;
            total += u64::from(if odd { sum.swap_bytes() } else { sum });
            at += part.len();
        }
        (at >= self.end).then_some(total)
    }

    /// Returns the right value of the field, which holds `old` now. `sum` includes all covered bytes.
    fn value(&self, sum: u64, old: u16, p: &Packet) -> u16 {
        // The field has to count as 0. It is at an even offset, so it can be subtracted from the sum.
        match (!fold(sum + u64::from(!old)), p.protocol) {
            // 0 would mean that there is no checksum (RFC 768).
            (0, UDP) => 0xffff,
            (value, _) => value,
        }
    }
}

#[inline]
fn judge(sum: u64, field: u16, c: &Covered, p: &Packet) -> Checksum {
    if p.protocol == UDP && field == 0 {
        // IPv6 forbids it outside of tunnels (RFC 8200 §8.1, RFC 6935). There is none to check either way.
        return Checksum::Invalid;
    }
    if fold(sum) == 0xffff {
        Checksum::Valid
    } else if field == c.pseudo {
        Checksum::Partial
    } else {
        Checksum::Invalid
    }
}

/// Detects partial checksums without summing the payload. Returns [`Checksum::Unknown`] unless the field
/// holds the sum of the pseudo-header, and then (always for a partial one, once in 65,535 for others) the
/// result of [`verify`].
///
/// A frame that stays `Unknown` has a complete checksum, right or wrong, or its payload is absent.
pub fn quick(bytes: &[u8], frame_len: usize, p: &Packet) -> Checksum {
    let bytes = bytes.get(..frame_len).unwrap_or(bytes);
    match covered(bytes, p) {
        Some(c) if be16(bytes, c.field) == Some(c.pseudo) => verify(bytes, frame_len, p),
        _ => Checksum::Unknown,
    }
}

/// Computes the TCP or UDP checksum of `p` in full, whatever the field held. Returns false, with nothing
/// written, for other protocols, for contradicting lengths, and if the payload is not all present.
pub fn fill(bytes: &mut [u8], p: &Packet) -> bool {
    let Some(c) = covered(bytes, p) else { return false };
    let (Some(sum), Some(old)) = (c.sum(core::iter::once(&*bytes)), be16(bytes, c.field)) else {
        return false;
    };
    put(bytes, c.field, &c.value(sum, old, p).to_be_bytes())
}

/// Completes a frame in the state [`Checksum::Partial`] that is about to leave for a device that does not do
/// it. `bytes` has to hold the whole frame. Returns false, with nothing written, if the frame does not parse
/// or is not all present.
pub fn complete(bytes: &mut [u8], frame_len: usize) -> bool {
    match packet(bytes, frame_len) {
        Ok(p) => fill(bytes, &p),
        Err(_) => false,
    }
}

/// Completes a frame of the pool over all its chunks, see [`complete`].
pub fn complete_frame(frames: &mut Frames, frame: &Frame) -> bool {
    let head = frames.bytes(frame);
    let Ok(p) = packet(head, frame.len()) else { return false };
    let Some(c) = covered(head, &p) else { return false };
    let (Some(sum), Some(old)) = (c.sum(frames.parts(frame)), be16(head, c.field)) else { return false };
    let value = c.value(sum, old, &p);
    put(frames.bytes_mut(frame), c.field, &value.to_be_bytes())
}
