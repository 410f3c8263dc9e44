//! A source of datagrams.

use super::timetable::Timetable;
use super::{MAX_PAYLOAD, NUMBER, STAMPED, WIRE};
use std::net::SocketAddrV4;
use weir_core::dist::Distribution;
use weir_core::frame::{Checksum, Frame, Frames};
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::rate::Rate;
use weir_core::stats::DropReason;
use weir_core::time::Time;
use weir_core::wire::{self, checksum};

/// Offsets of the headers and of the payload in a frame.
const L3: usize = 14;
const L4: usize = 34;
const PAYLOAD: usize = 42;

/// Settings of a source.
#[derive(Clone, Debug)]
pub struct UdpConfig {
    /// Hardware address of the interface.
    pub mac: [u8; 6],
    /// Hardware address of the next hop.
    pub next_hop: [u8; 6],
    /// Source address and port.
    pub local: SocketAddrV4,
    /// Destination address and port.
    pub remote: SocketAddrV4,
    /// Rate of payload while on. At most one datagram leaves per nanosecond.
    pub rate: Rate,
    /// Payload bytes of a datagram, 1 to [`MAX_PAYLOAD`]. Datagrams are not fragmented.
    pub datagram: u16,
    /// Departure of the first datagram.
    pub start: Time,
    /// Time from which no datagram leaves.
    pub until: Time,
    /// Total payload bytes; the last datagram has the rest. `None` is endless.
    pub bytes: Option<u64>,
    /// Lengths of the on times (at least 1 us) and off times, in nanoseconds. A source begins on. The rate
    /// counts only the on time, so a datagram that is incomplete at its end continues in the next. `None` is
    /// always on.
    pub on_off: Option<(Distribution, Distribution)>,
    /// Codepoint of its datagrams (DSCP, RFC 2474), below 64.
    pub dscp: u8,
    /// Seed of the draws.
    pub seed: u64,
}

/// Sends datagrams out of [`WIRE`].
#[derive(Debug)]
pub struct UdpSource {
    config: UdpConfig,
    head: [u8; PAYLOAD],
    table: Timetable,
    datagrams: u64,
    bytes: u64,
}

impl UdpSource {
    /// Returns a source with these settings. Panics if the payload is not 1 to [`MAX_PAYLOAD`] bytes long.
    pub fn new(config: UdpConfig) -> UdpSource {
        assert!((1..=MAX_PAYLOAD).contains(&config.datagram), "{} bytes of payload", config.datagram);
        let UdpConfig { start, until, rate, ref on_off, seed, .. } = config;
        let mut table = Timetable::new(rate, (start, until), on_off.clone(), seed);
        if config.bytes == Some(0) {
            table.stop();
        }
        UdpSource { head: headers(&config), table, datagrams: 0, bytes: 0, config }
    }

    /// Returns the number of datagrams sent so far.
    pub fn datagrams(&self) -> u64 {
        self.datagrams
    }
    /// Returns the payload bytes sent so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sets the number of the next datagram.
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, number: u64) {
        self.datagrams = number;
    }

    /// Returns the payload bytes of the next datagram.
    fn payload(&self) -> u16 {
        let rest = self.config.bytes.map_or(u64::MAX, |all| all - self.bytes);
        rest.min(u64::from(self.config.datagram)) as u16
    }

    /// Records that the next datagram has left, and computes the departure of the one after it.
    fn advance(&mut self, payload: u16) {
        self.datagrams += 1;
        self.bytes += u64::from(payload);
        self.table.advance(u64::from(payload));
        if self.payload() == 0 {
            self.table.stop();
        }
    }

    /// Makes the next datagram. Returns `None` if the pool has no free chunk; the datagram is then lost.
    fn emit(&self, frames: &mut Frames, payload: u16) -> Option<Frame> {
        let mut head = [0; PAYLOAD + STAMPED];
        head[..PAYLOAD].copy_from_slice(&self.head);
        let mut len = PAYLOAD;
        if usize::from(payload) >= NUMBER {
            head[PAYLOAD..PAYLOAD + NUMBER].copy_from_slice(&self.datagrams.to_be_bytes());
            len += NUMBER;
        } else {
            head[L3 + 4..L3 + 6].copy_from_slice(&(self.datagrams as u16).to_be_bytes());
        }
        if usize::from(payload) >= STAMPED {
            head[PAYLOAD + NUMBER..].copy_from_slice(&self.table.next().as_nanos().to_be_bytes());
            len = PAYLOAD + STAMPED;
        }
        head[L3 + 2..L3 + 4].copy_from_slice(&(28 + payload).to_be_bytes());
        head[L4 + 4..L4 + 6].copy_from_slice(&(8 + payload).to_be_bytes());
        let sum = !checksum::sum(&head[L3..L4]);
        head[L3 + 10..L3 + 12].copy_from_slice(&sum.to_be_bytes());
        let sum = udp_checksum(&head[..len]);
        head[L4 + 6..L4 + 8].copy_from_slice(&sum.to_be_bytes());
        let mut frame = frames.make_head(&head[..len], PAYLOAD + usize::from(payload), self.table.next())?;
        frame.checksum = Checksum::Valid;
        Some(frame)
    }
}

impl Node for UdpSource {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, _: Port, frame: Frame) {
        cx.drop(frame, DropReason::NotWired);
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        while self.table.next() <= cx.now && self.table.next() != Time::MAX && writable.contains(WIRE) {
            let (at, payload) = (self.table.next(), self.payload());
            let frame = self.emit(cx.frames, payload);
            self.advance(payload);
            if let Some(frame) = frame {
                return Some(Transmit { port: WIRE, at, frame });
            }
        }
        None
    }

    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        (self.table.next() != Time::MAX && writable.contains(WIRE)).then_some(self.table.next())
    }
}

/// Returns the headers of every datagram, without lengths, identification and checksums. TTL 64, DF (RFC 6864
/// §4.1).
fn headers(config: &UdpConfig) -> [u8; PAYLOAD] {
    let mut head = [0; PAYLOAD];
    head[..6].copy_from_slice(&config.next_hop);
    head[6..12].copy_from_slice(&config.mac);
    head[12..L3].copy_from_slice(&[8, 0]);
    head[L3] = 0x45;
    head[L3 + 1] = config.dscp << 2;
    head[L3 + 6] = 0x40;
    head[L3 + 8..L3 + 10].copy_from_slice(&[64, wire::UDP]);
    head[L3 + 12..L3 + 16].copy_from_slice(&config.local.ip().octets());
    head[L3 + 16..L4].copy_from_slice(&config.remote.ip().octets());
    head[L4..L4 + 2].copy_from_slice(&config.local.port().to_be_bytes());
    head[L4 + 2..L4 + 4].copy_from_slice(&config.remote.port().to_be_bytes());
    head
}

/// Returns the checksum of a datagram. The absent payload is zeros, which add nothing (RFC 768).
fn udp_checksum(head: &[u8]) -> u16 {
    let mut pseudo = [0; 12];
    pseudo[..8].copy_from_slice(&head[L3 + 12..L4]);
    pseudo[9] = wire::UDP;
    pseudo[10..].copy_from_slice(&head[L4 + 4..L4 + 6]);
    let sum = u32::from(checksum::sum(&pseudo)) + u32::from(checksum::sum(&head[L4..]));
    match !((sum & 0xffff) + (sum >> 16)) as u16 {
        0 => 0xffff, // 0 means that there is no checksum
        sum => sum,
    }
}
