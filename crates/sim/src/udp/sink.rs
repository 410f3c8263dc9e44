//! A sink of datagrams.

use super::{Numbers, NUMBER};
use std::net::SocketAddrV4;
use weir_core::frame::{Checksum, Frame};
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::stats::DropReason;
use weir_core::time::{Duration, Time};
use weir_core::wire;

/// Counters of a sink.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UdpReport {
    /// Number of datagrams, each counted once.
    pub datagrams: u64,
    /// Number of datagrams that arrived again.
    pub copies: u64,
    /// Number of payload bytes, copies left out.
    pub received: u64,
    /// Time of the last arrival.
    pub last_received: Option<Time>,
    /// Number of missing datagrams below the highest number. A late arrival reduces it.
    pub lost: u64,
    /// Number of datagrams that arrived after one with a higher number (RFC 4737 §3.3), copies left out.
    pub reordered: u64,
    /// Payload bytes by bin; bins after the last byte are left out.
    pub bins: Vec<u32>,
}

/// Receives the datagrams of one source on [`WIRE`](super::WIRE). Other frames are dropped.
#[derive(Debug)]
pub struct UdpSink {
    local: SocketAddrV4,
    remote: SocketAddrV4,
    bin: Duration,
    numbers: Numbers,
    report: UdpReport,
}

impl UdpSink {
    /// Returns a sink at `local` for the source at `remote`. Payload is recorded in bins of length `bin` from
    /// time 0 on.
    pub fn new(local: SocketAddrV4, remote: SocketAddrV4, bin: Duration) -> UdpSink {
        UdpSink { local, remote, bin, numbers: Numbers::default(), report: UdpReport::default() }
    }

    /// Returns the counters up to now.
    pub fn report(&self) -> &UdpReport {
        &self.report
    }

    /// Returns the payload bytes of a datagram of the source, and its number: all of it, or the lowest 16
    /// bits.
    fn parse(&self, head: &[u8], len: usize) -> Option<(u64, u64)> {
        let packet = wire::packet(head, len).ok().filter(|p| p.version == 4 && p.protocol == wire::UDP)?;
        let (l3, l4) = (usize::from(packet.l3), usize::from(packet.l4));
        let be16 = |i: usize| Some(u16::from_be_bytes(head.get(i..i + 2)?.try_into().ok()?));
        let ours = packet.src[12..] == self.remote.ip().octets()
            && packet.dst[12..] == self.local.ip().octets()
            && (be16(l4)?, be16(l4 + 2)?) == (self.remote.port(), self.local.port());
        let payload = u64::from(be16(l4 + 4)?.checked_sub(8)?);
        if !ours || payload > u64::from(packet.l4_len()).saturating_sub(8) {
            return None;
        }
        let number = match payload {
            0..8 => self.unwrap(be16(l3 + 4)?),
            _ => u64::from_be_bytes(head.get(l4 + 8..l4 + 8 + NUMBER)?.try_into().ok()?),
        };
        Some((payload, number))
    }

    /// Returns the number that ends in these 16 bits and is nearest to the expected one.
    fn unwrap(&self, low: u16) -> u64 {
        let next = self.numbers.next();
        let ahead = low.wrapping_sub(next as u16) as i16;
        next.saturating_add_signed(i64::from(ahead))
    }

    fn count(&mut self, now: Time, payload: u64, number: u64) {
        let new = self.numbers.note(number);
        let (r, n) = (&mut self.report, &self.numbers);
        (r.datagrams, r.copies) = (n.distinct(), n.copies());
        (r.lost, r.reordered) = (n.missing(), n.reordered());
        if !new {
            return;
        }
        r.received += payload;
        r.last_received = Some(now);
        let bin = (now.as_nanos() / self.bin.as_nanos().max(1)) as usize;
        if bin >= r.bins.len() {
            r.bins.resize(bin + 1, 0);
        }
        r.bins[bin] = r.bins[bin].saturating_add(payload as u32);
    }
}

impl Node for UdpSink {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, _: Port, frame: Frame) {
        if frame.checksum == Checksum::Invalid {
            return cx.drop(frame, DropReason::Corrupt);
        }
        match self.parse(cx.frames.bytes(&frame), frame.len()) {
            Some((payload, number)) => {
                self.count(cx.now, payload, number);
                cx.frames.absorb(frame);
            }
            None => cx.drop(frame, DropReason::NotWired),
        }
    }
    fn poll_transmit(&mut self, _: &mut Cx<'_>, _: PortSet) -> Option<Transmit> {
        None
    }
    fn next_deadline(&self, _: PortSet) -> Option<Time> {
        None
    }
}
