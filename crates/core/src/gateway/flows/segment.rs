//! A TCP segment as it came in, or why there is none.

use super::stats::PassReason;
use crate::frame::{Checksum, Frame};
use crate::tcp::Counters;
use crate::wire::{self, EcnBytes, Flags, Packet, Reject, Seq, Tcp};

/// The headers of a TCP segment as it came in.
#[derive(Clone, Copy)]
pub(in crate::gateway) struct Headers {
    pub(in crate::gateway) packet: Packet,
    pub(in crate::gateway) tcp: Tcp,
}

impl Headers {
    pub(in crate::gateway) fn has(&self, flags: Flags) -> bool {
        self.tcp.flags.0 & flags.0 == flags.0
    }
    /// Sequence number after this segment.
    pub(super) fn end(&self) -> Seq {
        let syn_fin = u32::from(self.has(Flags::SYN)) + u32::from(self.has(Flags::FIN));
        self.tcp.seq.plus(self.tcp.payload_len).plus(syn_fin)
    }
    /// Returns the counters of this segment of an AccECN flow, whose bytes these are. One that `opens` its
    /// connection acknowledges the SYN alone, and tells how that came instead (RFC 9768 §3.2.2.1).
    pub(super) fn counters(&self, bytes: &[u8], opens: bool) -> Counters {
        const FIRST: u8 = 5;
        const MARKED: u8 = 6;
        let ace = match self.tcp.flags.ace() {
            MARKED if opens => MARKED,
            _ if opens => FIRST,
            ace => ace,
        };
        let found = EcnBytes::read(bytes, &self.packet, &self.tcp);
        Counters { ack: self.tcp.ack, ace: ace.into(), bytes: found.unwrap_or(EcnBytes::NONE) }
    }
}

#[inline]
pub(in crate::gateway) fn parse(bytes: &[u8], len: usize) -> Result<Headers, Reject> {
    let packet = wire::packet(bytes, len)?;
    let tcp = wire::tcp(bytes, &packet)?;
    Ok(Headers { packet, tcp })
}

/// Returns whether the checksum of a whole frame is complete and wrong.
pub(in crate::gateway) fn is_broken(bytes: &[u8], frame: &Frame, packet: &Packet) -> bool {
    frame.checksum == Checksum::Unknown
        && bytes.len() == frame.len()
        && wire::checksum::verify(bytes, frame.len(), packet) == Checksum::Invalid
}

pub(in crate::gateway) fn pass_reason(reject: Reject) -> PassReason {
    match reject {
        Reject::NotIp | Reject::NotTcp => PassReason::NotTcp,
        Reject::Fragment => PassReason::Fragment,
        Reject::Truncated | Reject::Malformed => PassReason::Malformed,
    }
}
