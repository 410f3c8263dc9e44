//! Extensions of TCP that a connection has for its whole life, or never.

use crate::packet::wire::TcpOptions;

/// A set of extensions that prevent others from making or changing ACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions(u8);

impl Extensions {
    /// No extension.
    pub const NONE: Extensions = Extensions(0);
    /// Multipath TCP (RFC 8684): the data's acknowledgements are in an option.
    pub const MPTCP: Extensions = Extensions(1 << 0);
    /// TCP-AO (RFC 5925): the header is signed.
    pub const AO: Extensions = Extensions(1 << 1);
    /// TCP MD5 (RFC 2385): the header is signed.
    pub const MD5: Extensions = Extensions(1 << 2);
    /// Bits in use.
    pub(super) const BITS: u32 = 3;

    /// Returns the extensions to which these options belong.
    #[inline]
    pub const fn of(options: &TcpOptions) -> Extensions {
        Extensions(options.mptcp as u8 | (options.ao as u8) << 1 | (options.md5 as u8) << 2)
    }

    /// Returns the extensions that are in both sets.
    #[must_use]
    pub const fn and(self, other: Extensions) -> Extensions {
        Extensions(self.0 & other.0)
    }

    /// Returns the extensions that are in either set.
    #[must_use]
    pub const fn or(self, other: Extensions) -> Extensions {
        Extensions(self.0 | other.0)
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn bits(self) -> u8 {
        self.0
    }

    pub(super) const fn of_bits(bits: u8) -> Extensions {
        Extensions(bits & ((1 << Self::BITS) - 1))
    }
}
