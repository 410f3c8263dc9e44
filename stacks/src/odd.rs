//! Odd segments in the name of the far end, beside a connection: options that nobody knows or that are cut
//! short, wrong checksums, numbers that cannot be. Every receiver ignores them, or answers with an ACK.

use crate::path::{FAR, NEAR, PORT};
use crate::ENDS;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{ErrorKind, Read, Result};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use weir_core::wire::build::{SegmentBuilder, Sum};
use weir_core::wire::{self, Flags, Tcp, Timestamps};

/// Time between two odd segments.
const EVERY: Duration = Duration::from_millis(20);
/// Longest sleep between two reads of frames.
const LOOKS: Duration = Duration::from_millis(1);
/// Ether type of all protocols, in network byte order (`ETH_P_ALL`).
const ALL: i32 = 0x0300;
/// Bytes of a frame that are read, and of its Ethernet header.
const HEAD: usize = 128;
const ETHERNET: usize = 14;
/// Experimental option, unknown to both ends (RFC 3692).
const UNKNOWN: [u8; 4] = [253, 4, 0, 1];
/// Option whose length exceeds the header.
const CUT_SHORT: [u8; 4] = [8, 40, 1, 1];
/// TTL by which odd segments are told from those of the far end.
const TTL: u8 = 63;
/// Distances in sequence numbers and in milliseconds.
const FAR_AHEAD: u32 = 1 << 30;
const BLOCK_AHEAD: u32 = 1 << 28;
const BITS: u32 = 1 << 29;

/// A segment of the far end.
#[derive(Clone, Copy)]
struct Last {
    tcp: Tcp,
    stamps: Option<Timestamps>,
}

/// Sends odd segments to the near end until the connection is over. Returns their number.
pub fn send() -> Result<u64> {
    let mut seen = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(ALL)))?;
    seen.set_nonblocking(true)?;
    let out = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(255)))?;
    let near = SocketAddr::new(Ipv4Addr::from(NEAR).into(), 0).into();
    println!("ready");
    let (started, mut last, mut number) = (Instant::now(), None, 0);
    while started.elapsed() < ENDS {
        let mut frame = [0; HEAD];
        match seen.read(&mut frame) {
            Ok(len) => last = of_far(&frame[..len]).or(last),
            Err(e) if e.kind() != ErrorKind::WouldBlock => return Err(e),
            Err(_) => std::thread::sleep(LOOKS),
        }
        if let Some(last) = last.filter(|_| started.elapsed() > EVERY * (number as u32 + 1)) {
            out.send_to(&odd(&last, number).build()[ETHERNET..], &near)?;
            number += 1;
        }
    }
    Ok(number)
}

/// Returns the next kind of odd segment.
fn odd(last: &Last, number: u64) -> SegmentBuilder {
    let t = &last.tcp;
    let (seq, ack) = (t.seq.plus(t.payload_len), t.ack);
    let plain = SegmentBuilder::v4(FAR, NEAR).ports(t.src_port, t.dst_port).window(t.window).ttl(TTL);
    let plain = plain.seq(seq).ack(ack).flags(Flags::ACK);
    let stamps = last.stamps.unwrap_or(Timestamps { value: 1, echo: 0 });
    let stamped = match last.stamps {
        Some(stamps) => plain.clone().ts(stamps.value, stamps.echo),
        None => plain.clone(),
    };
    match number % 14 {
        0 => plain.raw_options(&UNKNOWN),
        1 => stamped.raw_options(&UNKNOWN),
        2 => plain.raw_options(&CUT_SHORT),
        3 => stamped.ts(stamps.value, stamps.echo),
        4 => plain.md5(),
        5 => stamped.ip_options(&[1; 4]),
        6 => plain.ts(stamps.value.wrapping_add(BITS), stamps.echo).checksum(Sum::Wrong),
        7 => stamped.seq(seq.plus(FAR_AHEAD)).flags(Flags::FIN | Flags::ACK),
        8 => stamped.seq(seq.plus(FAR_AHEAD)).flags(Flags::RST),
        9 => stamped.seq(seq.plus(FAR_AHEAD)).flags(Flags::SYN | Flags::ACK),
        10 => stamped.ack(ack.plus(FAR_AHEAD)),
        11 => stamped.seq(seq.plus(FAR_AHEAD)).payload(100),
        12 => stamped.seq(seq.plus(0u32.wrapping_sub(100))).payload(100),
        _ => stamped.sack(&[(ack.plus(BLOCK_AHEAD), ack.plus(BLOCK_AHEAD + 1_448))]),
    }
}

/// Returns the segment of the far end that a frame is, if it is one of the connection.
fn of_far(frame: &[u8]) -> Option<Last> {
    let total = usize::from(u16::from_be_bytes([*frame.get(16)?, *frame.get(17)?])) + ETHERNET;
    let packet = wire::packet(frame, total).ok()?;
    let tcp = wire::tcp(frame, &packet).ok()?;
    let ours = frame[22] != TTL
        && tcp.src_port == PORT
        && packet.src == Ipv4Addr::from(FAR).to_ipv6_mapped().octets();
    if !ours || tcp.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST) {
        return None;
    }
    let stamps = wire::tcp_options(frame, &packet, &tcp).ok().and_then(|options| options.timestamps);
    Some(Last { tcp, stamps })
}
