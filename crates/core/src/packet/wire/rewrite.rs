//! Rewriting the fields of a TCP header that a gateway may change.
//!
//! Each setter keeps the checksum as right or as wrong as it was:
//!
//! - [`Checksum::Valid`] and [`Checksum::Unknown`]: updated by the difference (RFC 1624), so a corrupt
//!   segment stays recognisable as corrupt. A caller asks [`quick`](super::checksum::quick) before it leaves
//!   a frame `Unknown`: a partial checksum covers no field of the header.
//! - [`Checksum::Partial`]: left unchanged, to be completed when the frame leaves.
//! - [`Checksum::Invalid`]: nothing is written. Such frames are forwarded untouched.
//!
//! They return whether the field now holds the value.

use super::options::timestamps_offset;
use super::{array, be16, checksum, put, Packet, Seq, Tcp, Timestamps, TCP};
use crate::packet::frame::Checksum;

const SEQ: usize = 4;
const ACK: usize = 8;
const WINDOW: usize = 14;
const CHECKSUM: usize = 16;

/// Rewrites the sequence number.
pub fn set_seq(bytes: &mut [u8], p: &Packet, seq: Seq, checksum: Checksum) -> bool {
    replace(bytes, p, p.l4 as usize + SEQ, seq.0.to_be_bytes(), checksum)
}

/// Rewrites the acknowledgement number.
pub fn set_ack(bytes: &mut [u8], p: &Packet, ack: Seq, checksum: Checksum) -> bool {
    replace(bytes, p, p.l4 as usize + ACK, ack.0.to_be_bytes(), checksum)
}

/// Rewrites the window, as on the wire (not scaled).
pub fn set_window(bytes: &mut [u8], p: &Packet, window: u16, checksum: Checksum) -> bool {
    replace(bytes, p, p.l4 as usize + WINDOW, window.to_be_bytes(), checksum)
}

/// Rewrites both timestamps, at any offset of the option. Returns false if there is none.
pub fn set_timestamps(bytes: &mut [u8], p: &Packet, tcp: &Tcp, to: Timestamps, checksum: Checksum) -> bool {
    let Some(at) = timestamps_offset(bytes, p, tcp) else { return false };
    let mut data = [0; 8];
    data[..4].copy_from_slice(&to.value.to_be_bytes());
    data[4..].copy_from_slice(&to.echo.to_be_bytes());
    replace(bytes, p, at, data, checksum)
}

/// Replaces the bytes from `at` on, an even number of them, and updates the checksum.
fn replace<const N: usize>(bytes: &mut [u8], p: &Packet, at: usize, new: [u8; N], state: Checksum) -> bool {
    let field = p.l4 as usize + CHECKSUM;
    let (Some(old), Some(mut value)) = (array::<N>(bytes, at), be16(bytes, field)) else { return false };
    if p.protocol != TCP || p.l4_len() < 20 || state == Checksum::Invalid {
        return false;
    }
    if state != Checksum::Partial {
        // At an odd offset the two bytes of a pair belong to two words, in swapped order.
        let odd = (at - p.l4 as usize) % 2 == 1;
        let word = |pair: &[u8]| if odd { [pair[1], pair[0]] } else { [pair[0], pair[1]] };
        for (old, new) in old.chunks_exact(2).zip(new.chunks_exact(2)) {
            value = checksum::update16(value, u16::from_be_bytes(word(old)), u16::from_be_bytes(word(new)));
        }
        put(bytes, field, &value.to_be_bytes());
    }
    put(bytes, at, &new)
}
