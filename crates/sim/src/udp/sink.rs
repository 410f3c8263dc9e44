//! A sink of datagrams.

use super::in_flight::Ends;
use super::{Numbers, NUMBER, STAMPED};
use std::net::SocketAddrV4;
use weir_core::frame::{Checksum, Frame};
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::stats::{DropReason, Histogram};
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
    /// Number of these that arrived in the flow's time.
    pub received_in_time: u64,
    /// Time of the last arrival.
    pub last_received: Option<Time>,
    /// Number of missing datagrams below the highest number. A late arrival reduces it.
    pub lost: u64,
    /// Number of datagrams that arrived after one with a higher number (RFC 4737 §3.3), copies left out.
    pub reordered: u64,
    /// Payload bytes by bin; bins after the last byte are left out.
    pub bins: Vec<u32>,
    /// One-way delays in nanoseconds, copies left out, of datagrams that tell when they left.
    pub delays: Histogram,
}

/// Datagram that arrived.
struct Arrival {
    payload: u64,
    number: u64,
    /// Departure, if it tells.
    left: Option<Time>,
}

/// Receives the datagrams of one source on [`WIRE`](super::WIRE). Other frames are dropped.
#[derive(Debug)]
pub struct UdpSink {
    local: SocketAddrV4,
    remote: SocketAddrV4,
    bin: Duration,
    until: Time,
    numbers: Numbers,
    report: UdpReport,
}

impl UdpSink {
    /// Returns a sink at `local` for the source at `remote`. Payload is recorded in bins of length `bin` from
    /// time 0 on. The flow's time ends at `until`.
    pub fn new(local: SocketAddrV4, remote: SocketAddrV4, bin: Duration, until: Time) -> UdpSink {
        UdpSink { local, remote, bin, until, numbers: Numbers::default(), report: UdpReport::default() }
    }

    /// Returns the counters up to now.
    pub fn report(&self) -> &UdpReport {
        &self.report
    }

    /// Returns the addresses and ports of the source and of this sink.
    pub fn flow(&self) -> (SocketAddrV4, SocketAddrV4) {
        (self.remote, self.local)
    }

    /// Returns the addresses and ports of source and sink as in a datagram's headers.
    pub(super) fn ends(&self) -> Ends {
        let mut ends = [0; 12];
        ends[..4].copy_from_slice(&self.remote.ip().octets());
        ends[4..8].copy_from_slice(&self.local.ip().octets());
        ends[8..10].copy_from_slice(&self.remote.port().to_be_bytes());
        ends[10..].copy_from_slice(&self.local.port().to_be_bytes());
        ends
    }

    /// Returns the number of a datagram of the source, if it is above all that have arrived.
    pub(super) fn number_ahead(&self, head: &[u8], len: usize) -> Option<u64> {
        let number = self.parse(head, len)?.number;
        (number >= self.numbers.next()).then_some(number)
    }

    /// Returns a datagram of the source. Its number is all there, or the lowest 16 bits are.
    fn parse(&self, head: &[u8], len: usize) -> Option<Arrival> {
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
        let word = |i: usize| Some(u64::from_be_bytes(head.get(l4 + 8 + i..l4 + 16 + i)?.try_into().ok()?));
        let number = match payload {
            0..8 => self.unwrap(be16(l3 + 4)?),
            _ => word(0)?,
        };
        let stamped = payload >= STAMPED as u64;
        let left = if stamped { Some(Time::from_nanos(word(NUMBER)?)) } else { None };
        Some(Arrival { payload, number, left })
    }

    /// Returns the number that ends in these 16 bits and is nearest to the expected one.
    fn unwrap(&self, low: u16) -> u64 {
        let next = self.numbers.next();
        let ahead = low.wrapping_sub(next as u16) as i16;
        next.saturating_add_signed(i64::from(ahead))
    }

    fn count(&mut self, now: Time, Arrival { payload, number, left }: Arrival) {
        let new = self.numbers.note(number);
        let (r, n) = (&mut self.report, &self.numbers);
        (r.datagrams, r.copies) = (n.distinct(), n.copies());
        (r.lost, r.reordered) = (n.missing(), n.reordered());
        if !new {
            return;
        }
        r.received += payload;
        r.received_in_time += if now < self.until { payload } else { 0 };
        left.into_iter().for_each(|left| r.delays.record(now.since(left).as_nanos()));
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
            Some(arrival) => {
                self.count(cx.now, arrival);
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
