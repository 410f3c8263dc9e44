//! Bytes of a flow's segments, by what a rate counts of them.

use super::LinkLayer;
use crate::base::rate::Rate;

/// Bytes that a rate counts, for each segment of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum Counts {
    /// TCP payload acknowledged: the bytes that an application measures.
    #[default]
    Payload,
    /// IP packets: payload, TCP and IP headers.
    Ip,
    /// Ethernet frames: IP packet, Ethernet header with its tags, and FCS.
    Frame,
    /// Frames with preamble (8 bytes) and inter-frame gap (12).
    Wire,
    /// Packets as this link carries them.
    Link(LinkLayer),
}

impl Counts {
    /// Returns the cost of an unresponsive packet beside its bytes from the IP header on, as hooks count it.
    /// If the rate counts payload, the 28 bytes of IPv4 and UDP headers are taken off.
    pub fn overhead_of_packet(self) -> i64 {
        match self {
            Counts::Payload => -28,
            Counts::Ip => 0,
            Counts::Frame => 18,
            Counts::Wire => 38,
            Counts::Link(layer) => layer.mean_overhead(),
        }
    }

    /// Returns the cost of `packets` unresponsive packets of `bytes` bytes in all.
    pub fn cost_of_packets(self, packets: u64, bytes: u64) -> u64 {
        match self {
            Counts::Link(layer) => layer.bytes_of(packets, bytes),
            _ => bytes.saturating_add_signed(self.overhead_of_packet().saturating_mul(packets as i64)),
        }
    }

    /// Returns `rate` as hooks serve it, which count no cells.
    pub fn served_by_hooks(self, rate: Rate) -> Rate {
        match self {
            Counts::Link(layer) => layer.without_cells(rate),
            _ => rate,
        }
    }

    /// Returns the cost of `bytes` that hooks have counted.
    pub fn counted_by_hooks(self, bytes: u64) -> u64 {
        match self {
            Counts::Link(layer) => layer.with_cells(bytes),
            _ => bytes,
        }
    }
}

/// Dimensions of a flow's full segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// Bytes of payload, at least 1.
    pub payload: u16,
    /// IPv6 if set, IPv4 otherwise.
    pub ipv6: bool,
    /// VLAN tags.
    pub tags: u8,
    /// Inside of a session of PPPoE.
    pub pppoe: bool,
    /// Bytes of TCP options.
    pub options: u8,
}

impl Segments {
    /// Returns the bytes that a rate counts of a full segment: payload, IP header (20 or 40), TCP header (20)
    /// with its options, Ethernet header (14) with its tags, PPPoE (8) and FCS (4), preamble and gap (20).
    pub(crate) fn whole(&self, counts: Counts) -> u64 {
        let payload = u64::from(self.payload);
        let ip = payload + if self.ipv6 { 40 } else { 20 } + 20 + u64::from(self.options);
        let frame = ip + 14 + 4 + 4 * u64::from(self.tags) + if self.pppoe { 8 } else { 0 };
        match counts {
            Counts::Payload => payload,
            Counts::Ip => ip,
            Counts::Frame => frame,
            Counts::Wire => frame + 20,
            Counts::Link(layer) => layer.bytes(ip),
        }
    }

    /// Returns the payload rate at which full segments take `rate`.
    pub(crate) fn payload_rate(&self, rate: Rate, counts: Counts) -> Rate {
        let bps = u128::from(rate.bps()) * u128::from(self.payload) / u128::from(self.whole(counts).max(1));
        Rate::from_bps(bps as u64).unwrap_or(rate)
    }
}
