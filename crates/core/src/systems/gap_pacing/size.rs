//! Length of a packet, by each way of counting.

use super::Counts;
use crate::frame::Charge;

/// Shortest frame on the wire: 64 bytes with FCS, preamble (8) and inter-frame gap (12) (IEEE 802.3 §4.4.2).
pub const LEAST_ON_WIRE: u64 = 84;
/// A full untagged frame on the wire, with 1500 bytes of payload.
pub const FULL_ON_WIRE: u64 = 1538;
/// Header, FCS, preamble and inter-frame gap of an untagged frame.
const AROUND_IP: u64 = 38;
/// FCS, preamble and inter-frame gap.
pub(super) const AROUND_FRAME: u64 = 24;
/// Preamble and inter-frame gap.
const BETWEEN_FRAMES: u64 = 20;

/// Length of a packet, or of the packets that a giant segment stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    packets: u64,
    ip: u64,
    wire: u64,
}

impl Size {
    /// Returns the size of a frame `len` bytes long without FCS, whose `charge` counts `overhead` bytes a
    /// packet on top of IP. Tags of giants are not counted.
    pub fn of(charge: Charge, overhead: u16, len: usize) -> Size {
        let about = Size::expected(charge, overhead);
        match about.packets {
            1 => Size { wire: (len as u64 + AROUND_FRAME).max(LEAST_ON_WIRE), ..about },
            _ => about,
        }
    }

    /// Returns the size of a frame by its charge alone, without tags.
    pub(super) fn expected(charge: Charge, overhead: u16) -> Size {
        let packets = u64::from(charge.packets);
        let ip = charge.bytes.saturating_sub(packets * u64::from(overhead));
        Size { packets, ip, wire: (ip + packets * AROUND_IP).max(packets * LEAST_ON_WIRE) }
    }

    /// Returns the number of packets, at least 1.
    pub fn packets(&self) -> u64 {
        self.packets.max(1)
    }

    /// Returns the byte times that it takes on the wire.
    pub fn wire(&self) -> u64 {
        self.wire
    }

    /// Returns the bytes that a rate counts.
    pub fn counted(&self, counts: Counts) -> u64 {
        match counts {
            Counts::Ip => self.ip,
            Counts::Frame => self.wire - self.packets * BETWEEN_FRAMES,
            Counts::Wire => self.wire,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(charge: Charge, len: usize) -> [u64; 3] {
        let size = Size::of(charge, 14, len);
        [Counts::Ip, Counts::Frame, Counts::Wire].map(|counts| size.counted(counts))
    }

    #[test]
    fn each_way_counts_what_ethernet_adds() {
        // A full packet: 1500, 1518 with header and FCS, 1538 with preamble and gap.
        assert_eq!(all(Charge { packets: 1, bytes: 1514 }, 1514), [1500, 1518, 1538]);
        // A tag is four bytes of frame.
        assert_eq!(all(Charge { packets: 1, bytes: 1514 }, 1518), [1500, 1522, 1542]);
        // An ACK of 40 bytes in a padded frame.
        assert_eq!(all(Charge { packets: 1, bytes: 54 }, 60), [40, 64, 84]);
        assert_eq!(all(Charge { packets: 1, bytes: 54 }, 54), [40, 64, 84]);
        // A giant of three full packets.
        assert_eq!(all(Charge { packets: 3, bytes: 3 * 1514 }, 4434), [4500, 4554, 4614]);
    }
}
