//! Sequence numbers.

use core::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A TCP sequence number. Numbers wrap, so they have no order but that of serial arithmetic (RFC 1982, RFC
/// 9293 §3.4), in which a number is after the 2^31 numbers before it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(transparent)]
pub struct Seq(pub u32);

impl Seq {
    /// Returns the number `bytes` further.
    #[inline]
    pub const fn plus(self, bytes: u32) -> Seq {
        Seq(self.0.wrapping_add(bytes))
    }

    /// Returns the number `bytes` earlier.
    #[inline]
    pub const fn minus(self, bytes: u32) -> Seq {
        Seq(self.0.wrapping_sub(bytes))
    }

    /// Returns the bytes from a number that is not after this one to this one.
    #[inline]
    pub const fn since(self, earlier: Seq) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Returns the bytes from another number to this one, negative if the other is after it.
    #[inline]
    pub const fn ahead_of(self, other: Seq) -> i32 {
        self.since(other) as i32
    }

    /// Returns the bytes from another number to this one, 0 if the other is after it.
    #[inline]
    pub const fn beyond(self, other: Seq) -> u32 {
        let ahead = self.ahead_of(other);
        if ahead > 0 {
            ahead as u32
        } else {
            0
        }
    }

    /// Returns whether this number is after another one.
    #[inline]
    pub const fn is_after(self, other: Seq) -> bool {
        self.ahead_of(other) > 0
    }
}

impl From<u32> for Seq {
    fn from(number: u32) -> Seq {
        Seq(number)
    }
}

/// The number itself, as tests and messages state it.
impl PartialEq<u32> for Seq {
    fn eq(&self, number: &u32) -> bool {
        self.0 == *number
    }
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_across_the_wrap() {
        let (before, behind) = (Seq(u32::MAX - 9), Seq(90));
        assert_eq!((before.plus(100), behind.minus(100)), (behind, before));
        assert_eq!(
            (behind.since(before), behind.ahead_of(before), before.ahead_of(behind)),
            (100, 100, -100)
        );
        assert_eq!((behind.beyond(before), before.beyond(behind)), (100, 0));
        assert!(behind.is_after(before) && !before.is_after(behind) && !before.is_after(before));
        assert!(Seq(0x7fff_ffff).is_after(Seq(0)) && !Seq(0x8000_0001).is_after(Seq(0)));
    }
}
