//! Link layers: the bytes that a packet takes on the link that limits the rate, with all that the link adds.

use crate::base::rate::Rate;

/// Payload of an ATM cell, and its bytes with the header (ITU-T I.361).
const ATM: (u64, u64) = (48, 53);
/// Bytes of a 64B/65B codeword of PTM, without and with its synchronization byte (IEEE 802.3 §61.3.3).
const PTM: (u64, u64) = (64, 65);

/// Cells into which a link cuts packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum Cells {
    /// Packets are sent as they are.
    #[default]
    None,
    /// ATM: cells of 53 bytes that carry 48. The last cell of a packet is padded.
    Atm,
    /// PTM: one byte is added for each 64, or part of 64.
    Ptm,
}

impl Cells {
    /// Returns the bytes that `bytes` of one packet take in cells.
    #[inline]
    pub fn carry(self, bytes: u64) -> u64 {
        match self {
            Cells::None => bytes,
            Cells::Atm => bytes.div_ceil(ATM.0) * ATM.1,
            Cells::Ptm => bytes + bytes.div_ceil(PTM.0),
        }
    }

    /// Returns the payload of a cell, and its bytes.
    fn ratio(self) -> (u64, u64) {
        match self {
            Cells::None => (1, 1),
            Cells::Atm => ATM,
            Cells::Ptm => PTM,
        }
    }
}

/// Bytes that a link adds to IP packets, as tc-cake(8) describes links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct LinkLayer {
    /// Bytes added to each IP packet, from -64 to 256.
    pub overhead: i16,
    /// Minimum bytes of a packet with its overhead, from 0 to 256.
    pub mpu: u16,
    /// Cells that carry the packet with its overhead.
    pub cells: Cells,
}

impl LinkLayer {
    /// Returns the bytes that an IP packet of `ip` bytes takes on the link; at least 1.
    #[inline]
    pub fn bytes(&self, ip: u64) -> u64 {
        let frame = ip.saturating_add_signed(i64::from(self.overhead));
        self.cells.carry(frame.max(u64::from(self.mpu)).max(1))
    }

    /// Returns about the bytes that `packets` of `ip` bytes together take on the link. They are exact if all
    /// packets have one size, and less than a cell per packet off otherwise.
    pub fn bytes_of(&self, packets: u64, ip: u64) -> u64 {
        match ip.checked_div(packets) {
            None => ip,
            Some(each) => {
                // The remainder of the division makes some packets a byte longer.
                let longer = ip % packets;
                self.bytes(each) * (packets - longer) + self.bytes(each + 1) * longer
            }
        }
    }

    /// Returns the bytes that hooks add to each packet. Hooks know no cells: the mean padding of a last cell
    /// is part of the overhead, and the headers of cells are part of [the rate](LinkLayer::without_cells).
    /// So a packet is off by half a cell at most, or by the bytes that it lacks of the minimum.
    pub fn mean_overhead(&self) -> i64 {
        let padding = match self.cells {
            Cells::None | Cells::Ptm => 0,
            Cells::Atm => ATM.0 / 2,
        };
        i64::from(self.overhead) + padding as i64
    }

    /// Returns the part of `rate` that remains without the headers of cells.
    pub fn without_cells(&self, rate: Rate) -> Rate {
        let (payload, cell) = self.cells.ratio();
        let bps = u128::from(rate.bps()) * u128::from(payload) / u128::from(cell);
        Rate::from_bps(bps as u64).unwrap_or(rate)
    }

    /// Returns the bytes in cells of which `bytes` remain without the headers of cells.
    pub fn with_cells(&self, bytes: u64) -> u64 {
        let (payload, cell) = self.cells.ratio();
        (u128::from(bytes) * u128::from(cell) / u128::from(payload)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(overhead: i16, mpu: u16, cells: Cells) -> LinkLayer {
        LinkLayer { overhead, mpu, cells }
    }

    /// AAL5 over ATM: 1540 bytes are 32.08 cells of 48, 80 bytes are 1.67.
    #[test]
    fn the_last_cell_is_padded() {
        let pppoe = layer(40, 0, Cells::Atm);
        assert_eq!([1500, 1496, 1497, 40, 8, 9].map(|ip| pppoe.bytes(ip)), [1749, 1696, 1749, 106, 53, 106]);
    }

    /// VDSL2: 1530 bytes are 23.9 codewords of 64.
    #[test]
    fn a_codeword_costs_a_byte() {
        let pppoe = layer(30, 0, Cells::Ptm);
        assert_eq!([1500, 1506, 1507, 34].map(|ip| pppoe.bytes(ip)), [1554, 1560, 1562, 65]);
    }

    #[test]
    fn a_minimum_holds_before_cells() {
        let docsis = layer(18, 64, Cells::None);
        assert_eq!([1500, 46, 40, 1].map(|ip| docsis.bytes(ip)), [1518, 64, 64, 64]);
        assert_eq!(layer(0, 96, Cells::Atm).bytes(40), 106);
        assert_eq!([100, 64, 20].map(|ip| layer(-64, 0, Cells::None).bytes(ip)), [36, 1, 1]);
    }

    #[test]
    fn packets_of_one_size_are_exact_together() {
        for cells in [Cells::None, Cells::Atm, Cells::Ptm] {
            let layer = layer(40, 64, cells);
            for ip in [28, 40, 552, 1228, 1500] {
                assert_eq!(layer.bytes_of(7, 7 * ip), 7 * layer.bytes(ip), "{cells:?}");
            }
            let mixed = layer.bytes(40) + layer.bytes(1500);
            assert!(layer.bytes_of(2, 1540).abs_diff(mixed) < 2 * 53, "{cells:?}");
        }
        assert_eq!(layer(40, 0, Cells::Atm).bytes_of(0, 0), 0);
    }

    /// The hooks' arithmetic, scaled back, is within half a cell of each packet, and exact on average.
    #[test]
    fn the_hooks_are_half_a_cell_off_at_most() {
        let rate = Rate::from_bps(53_000_000).unwrap();
        for (cells, bps, most) in
            [(Cells::None, 53_000_000, 0), (Cells::Atm, 48_000_000, 27), (Cells::Ptm, 52_184_615, 1)]
        {
            let layer = layer(40, 0, cells);
            assert_eq!(layer.without_cells(rate).bps(), bps);
            let mut sum = 0;
            for ip in 28..=1500u64 {
                let hooks = layer.with_cells(ip.strict_add_signed(layer.mean_overhead()));
                assert!(hooks.abs_diff(layer.bytes(ip)) <= most, "{cells:?}: {ip}");
                sum += hooks as i64 - layer.bytes(ip) as i64;
            }
            assert!(sum.abs() < 1473, "{cells:?}: less than a byte for each packet, not {sum}");
        }
    }
}
