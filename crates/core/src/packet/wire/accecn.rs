//! Options of Accurate ECN (RFC 9768 section 3.2.3).

use super::options::options;
use super::{Packet, Tcp};

/// Kinds: the fields in the order ECT(0), CE, ECT(1), and the other way round.
const KINDS: [u8; 2] = [172, 174];
/// Kinds that may stand beside it: SACK and timestamps.
const BESIDE: [u8; 2] = [5, 8];
/// Bytes of a counter, and half of its range.
const BYTES: usize = 3;
const HALF: u32 = 1 << 23;

/// Counter that an option leaves out.
const ABSENT: u32 = u32::MAX;

/// Bytes of payload that came with ECT(0), CE and ECT(1), in 24 bits, from some number on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EcnBytes([u32; 3]);

impl EcnBytes {
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
            let order = KINDS.iter().position(|&known| known == kind)?;
            if found.is_some() || data.len() % BYTES != 0 || data.len() > 3 * BYTES {
                return None;
            }
            found = Some(EcnBytes::of(data, order == 1));
        }
        found
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

    /// Returns whether it tells all that an older one tells, by serial arithmetic (RFC 1982).
    pub fn covers(&self, older: &EcnBytes) -> bool {
        let covers = |(&newer, &older): (&u32, &u32)| {
            older == ABSENT || newer != ABSENT && newer.wrapping_sub(older) & (2 * HALF - 1) < HALF
        };
        self.0.iter().zip(&older.0).all(covers)
    }
}
