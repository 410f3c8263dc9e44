//! Arithmetic of the Internet checksum: ones' complement sums (RFC 1071) and their updates (RFC 1624).

use super::array;

/// Returns the ones' complement sum of `data` as 16-bit words in network order, folded, not complemented (RFC
/// 1071 §1). An odd last byte counts as a word with a zero after it.
#[inline]
pub fn sum(data: &[u8]) -> u16 {
    network(words(data))
}

/// Folds a sum of [`words`] to network order.
#[inline]
pub(super) fn network(total: u64) -> u16 {
    u16::from_be_bytes(fold(total).to_ne_bytes())
}

/// Sums in the machine's byte order, eight bytes at a time (RFC 1071 §2B, §2C).
#[inline]
pub(super) fn words(data: &[u8]) -> u64 {
    let words = data.chunks_exact(8);
    let end = last(words.remainder());
    words.fold(end, |total, word| add(total, u64::from_ne_bytes(array(word, 0).unwrap_or_default())))
}

/// Returns fewer than eight bytes as a word, with zeros after them.
#[inline]
fn last(bytes: &[u8]) -> u64 {
    let four = array(bytes, 0).map_or(0, u32::from_ne_bytes);
    let mut end = [0; 4];
    for (to, &byte) in end.iter_mut().zip(&bytes[bytes.len() & 4..]) {
        *to = byte;
    }
    u64::from(four) + u64::from(u32::from_ne_bytes(end))
}

/// Adds four words at once, with the carry of the highest added at the lowest.
#[inline]
pub(super) const fn add(total: u64, words: u64) -> u64 {
    let (sum, carry) = total.overflowing_add(words);
    sum + carry as u64
}

/// Returns whether it is the sum of data with a right checksum in it. All bits are then set once it is folded
/// (RFC 1071 §1).
#[inline]
pub(super) const fn is_valid(total: u64) -> bool {
    fold(total) == 0xffff
}

/// Adds halves, with the carry added at the lowest bit, until 16 bits are left.
#[inline]
pub(super) const fn fold(total: u64) -> u16 {
    let (sum, carry) = (total as u32).overflowing_add((total >> 32) as u32);
    let total = sum + carry as u32;
    let (sum, carry) = (total as u16).overflowing_add((total >> 16) as u16);
    sum + carry as u16
}

/// Returns the checksum after a covered 16-bit word has changed from `old` to `new`: equation 3 of RFC 1624.
/// The word has to begin at an even offset from the start of the sum. For an odd offset, swap the bytes of
/// both values.
#[must_use]
pub const fn update16(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(!checksum as u64 + !old as u64 + new as u64)
}
