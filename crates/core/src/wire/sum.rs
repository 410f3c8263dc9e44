//! Arithmetic of the Internet checksum: ones' complement sums (RFC 1071) and their updates (RFC 1624).

use super::{array, put};

/// The ones' complement sum of `data` as 16-bit words in network order, folded, not complemented
/// (RFC 1071 §1). An odd last byte counts as a word with a zero after it.
pub fn sum(data: &[u8]) -> u16 {
    fold(raw(data))
}

/// Sums in the machine's byte order, eight bytes at a time (RFC 1071 §2B, §2C), then turns it round.
/// The result is not folded and fits in 48 bits for any slice below 2^32 bytes.
pub(super) fn raw(data: &[u8]) -> u64 {
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
pub(super) const fn fold(mut total: u64) -> u16 {
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
