//! Bytes of a flow's segments, by what a rate counts of them.

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
    /// Bytes of TCP options.
    pub options: u8,
}

impl Segments {
    /// Returns the bytes that a rate counts beside the payload: IP header (20 or 40), TCP header (20) with
    /// its options, Ethernet header (14) with its tags and FCS (4), preamble and gap (20).
    pub(crate) fn overhead(&self, counts: Counts) -> u64 {
        let tcp_ip = if self.ipv6 { 40 } else { 20 } + 20 + u64::from(self.options);
        let ethernet = 14 + 4 + 4 * u64::from(self.tags);
        match counts {
            Counts::Payload => 0,
            Counts::Ip => tcp_ip,
            Counts::Frame => tcp_ip + ethernet,
            Counts::Wire => tcp_ip + ethernet + 20,
        }
    }
}
