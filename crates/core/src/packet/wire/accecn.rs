//! Options of Accurate ECN (RFC 9768 section 3.2.3).

use super::options::{is_accecn, options, ACCECN as KINDS, ACCECN_FIELD as BYTES};
use super::{Packet, Tcp};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Kinds that may stand beside it: SACK and timestamps.
const BESIDE: [u8; 2] = [5, 8];
/// The option that pads.
const NOP: u8 = 1;
/// Half of the range of a counter.
const HALF: u32 = 1 << 23;

/// Counter that an option leaves out.
const ABSENT: u32 = u32::MAX;

/// Bytes of the longest option with its padding.
pub(super) const LONGEST: usize = 12;

/// Bytes of payload that came with ECT(0), CE and ECT(1), in 24 bits, from some number on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(transparent)]
pub struct EcnBytes([u32; 3]);

impl EcnBytes {
    /// No counter at all.
    pub const NONE: EcnBytes = EcnBytes([ABSENT; 3]);

    /// Reads the option of Accurate ECN of a segment. Returns `None` if there is none, more than one, one of
    /// a length that RFC 9768 does not know, or one beside other options than timestamps and SACK.
    #[cold]
    #[inline(never)]
    pub fn read(bytes: &[u8], packet: &Packet, tcp: &Tcp) -> Option<EcnBytes> {
        let mut found = None;
        for (kind, data) in options(bytes, packet, tcp)? {
            if BESIDE.contains(&kind) {
                continue;
            }
            if found.is_some() || !is_accecn(kind, data) {
                return None;
            }
            found = Some(EcnBytes::of(data, kind == KINDS[1]));
        }
        found
    }

    /// The counters of an option of this kind with this content.
    #[cfg(test)]
    pub(crate) fn of_option(kind: u8, data: &[u8]) -> EcnBytes {
        assert!(is_accecn(kind, data));
        EcnBytes::of(data, kind == KINDS[1])
    }

    fn of(data: &[u8], backwards: bool) -> EcnBytes {
        let mut fields = [ABSENT; 3];
        for (field, b) in fields.iter_mut().zip(data.chunks_exact(BYTES)) {
            *field = u32::from_be_bytes([0, b[0], b[1], b[2]]);
        }
        if backwards {
            fields.reverse();
        }
        EcnBytes(fields)
    }

    /// Returns whether it counts the bytes that came with CE.
    pub fn counts_marks(&self) -> bool {
        self.0[1] != ABSENT
    }

    /// Returns the bytes that came with CE since an `older` one. `None` if one of them does not count them.
    pub fn marked_since(&self, older: &EcnBytes) -> Option<u32> {
        let both = self.counts_marks() && older.counts_marks();
        both.then(|| self.0[1].wrapping_sub(older.0[1]) & (2 * HALF - 1))
    }

    /// Returns whether it has no counter, and makes no option.
    pub const fn is_empty(&self) -> bool {
        self.fields() == 0
    }

    const fn fields(&self) -> usize {
        (self.0[0] != ABSENT) as usize + (self.0[1] != ABSENT) as usize + (self.0[2] != ABSENT) as usize
    }

    /// Returns the length in bytes of the option with its padding: 0, 8 or 12.
    pub(super) const fn len(&self) -> usize {
        match self.fields() {
            0 => 0,
            fields => (2 + fields * BYTES).next_multiple_of(4),
        }
    }

    /// Returns the option, padded with no-operations to [`EcnBytes::len`]. It is of the kind whose order
    /// leaves no field out before the last one.
    pub(super) fn option(&self) -> [u8; LONGEST] {
        let backwards = self.0[2] != ABSENT;
        let mut fields = self.0;
        if backwards {
            fields.reverse();
        }
        let mut option = [NOP; LONGEST];
        option[0] = KINDS[usize::from(backwards)];
        option[1] = (2 + self.fields() * BYTES) as u8;
        for (place, field) in option[2..].chunks_exact_mut(BYTES).zip(fields).take(self.fields()) {
            place.copy_from_slice(&field.to_be_bytes()[1..]);
        }
        option
    }

    /// Returns whether it tells all that an older one tells, by serial arithmetic (RFC 1982).
    pub fn covers(&self, older: &EcnBytes) -> bool {
        let covers = |(&newer, &older): (&u32, &u32)| {
            older == ABSENT || newer != ABSENT && newer.wrapping_sub(older) & (2 * HALF - 1) < HALF
        };
        self.0.iter().zip(&older.0).all(covers)
    }
}
