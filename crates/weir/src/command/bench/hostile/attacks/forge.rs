//! What the attacker sees and forges.

use super::case::{is_on, Case, END};
use super::site::{Party, Site, NOBODY, SERVER};
use super::traffic::PORT;
use crate::execute::lab::Namespace;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{ErrorKind, Read, Result};
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};
use weir_core::rng::Rng;
use weir_core::wire::build::{SegmentBuilder, Sum};
use weir_core::wire::{self, Flags, Tcp, Timestamps};
use weir_io::sys::link;
use weir_io::sys::packet::{Device, Sender};

/// Bytes of a frame that are looked at.
const HEAD: usize = 128;
/// Payload of a forged datagram, and bytes of its IPv4 packet.
const DATAGRAM: usize = 1_372;
/// Datagrams in a millisecond: 22.4 Mbit/s.
const DATAGRAMS: u64 = 2;
/// Hops that lead behind the router and not to the host.
const FEW_HOPS: u8 = 3;
/// What is late by less is made up for.
const LATE: Duration = Duration::from_millis(20);
/// How often it is looked for frames.
const LOOKS: Duration = Duration::from_micros(300);
/// How far ahead of the data a FIN is.
const AHEAD: u32 = 20_000;
/// Bits of a TSval that are not what they were: 2^29 ms are six days.
const BITS: u32 = 1 << 29;
/// How far ahead numbers are that nobody can have sent or got.
const FAR: u32 = 1 << 30;
/// SYNs in a millisecond: five times what hooks show an engine, of all addresses together.
const SYNS: usize = 100;
/// Ports that a flood of SYNs comes from, in turn.
const PORTS: u16 = 40_000;
/// Connections that are opened at a time to fill a table. Their ports begin anew after ten thousand.
const AT_A_TIME: u64 = 55;
const HOARD: u64 = 11_000;
/// How long the client's first ACK is kept back.
const KEPT_BACK: u64 = 10;
/// An option that nobody knows (RFC 3692).
const UNKNOWN: [u8; 4] = [253, 4, 0, 1];
/// An option that says it is longer than the header.
const CUT_SHORT: [u8; 4] = [7, 40, 1, 1];

type Change = fn(SegmentBuilder) -> SegmentBuilder;

/// A segment of the attacker's own connection.
#[derive(Clone, Copy, Debug)]
struct Own {
    tcp: Tcp,
    stamps: Option<Timestamps>,
}

/// Sees the frames of its host, and forges.
pub struct Forger {
    seen: Socket,
    out: Sender,
    /// From the other end, which is in league with the attacker.
    back: Sender,
    clients: Namespace,
    rng: Rng,
    /// The last ACK without data, and the last segment with data.
    ack: Option<Own>,
    data: Option<Own>,
    /// The answer to the SYN.
    answer: Option<Own>,
    /// Frames of a flood.
    flood: Vec<Vec<u8>>,
}

impl Forger {
    /// An attacker on the LAN's host.
    pub fn enter(site: &Site) -> std::result::Result<Forger, String> {
        let see = || {
            let all = Protocol::from(i32::from((libc::ETH_P_ALL as u16).to_be()));
            let seen = Socket::new(Domain::PACKET, Type::RAW, Some(all))?;
            seen.set_recv_buffer_size(4 << 20)?;
            seen.set_nonblocking(true)?;
            Ok(seen)
        };
        let send = || {
            let port = link::find(Site::port())?.ok_or(ErrorKind::NotFound)?;
            Sender::open(Device { ifindex: port.index, ethernet: true }, false)
        };
        let fault = |e: std::io::Error| format!("the attacker: {e}");
        Ok(Forger {
            seen: site.clients.inside(see).and_then(|seen| seen).map_err(fault)?,
            out: site.clients.inside(send).and_then(|out| out).map_err(fault)?,
            back: site.servers.inside(send).and_then(|back| back).map_err(fault)?,
            clients: Namespace::open(site.clients.name()).map_err(fault)?,
            rng: Rng::new(1),
            ack: None,
            data: None,
            answer: None,
            flood: Vec::new(),
        })
    }

    /// Plays the attack of a case that began at `epoch`, until its end.
    pub fn play(&mut self, case: &Case, epoch: Instant) -> Result<()> {
        let (mut next, mut number) = (Duration::ZERO, 0);
        loop {
            let now = epoch.elapsed();
            if now >= END {
                return Ok(());
            }
            if now >= next {
                if is_on(now) {
                    (case.forge)(self, number)?;
                    number += 1;
                }
                // What is much too late is not made up for.
                next = (next + case.every).max(now.saturating_sub(LATE));
            }
            self.look(next.min(END).saturating_sub(epoch.elapsed()))?;
        }
    }

    /// Reads what has been seen, and waits for more for so long.
    fn look(&mut self, wait: Duration) -> Result<()> {
        let until = Instant::now() + wait;
        let mut frame = [0; HEAD];
        loop {
            match self.seen.read(&mut frame) {
                Ok(len) => self.note(&frame[..len]),
                Err(e) if e.kind() != ErrorKind::WouldBlock => return Err(e),
                Err(_) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(());
                    }
                    // Time-outs of sockets are as coarse as the kernel's ticks.
                    std::thread::sleep(left.min(LOOKS));
                }
            }
        }
    }

    /// Keeps a segment of the attacker's own connection.
    fn note(&mut self, frame: &[u8]) {
        let Some((own, from, to)) = own(frame) else { return };
        let attacker = Party::Attacker.host().to_ipv6_mapped();
        if to == attacker && own.tcp.src_port == PORT && own.tcp.flags == Flags::SYN | Flags::ACK {
            self.answer = Some(own);
        }
        if from != attacker || own.tcp.dst_port != PORT {
            return;
        }
        if own.tcp.payload_len > 0 {
            self.data = Some(own);
        } else if own.tcp.flags == Flags::ACK {
            self.ack = Some(own);
        }
    }

    fn send(&mut self, segments: &[SegmentBuilder]) -> Result<()> {
        leave(&mut self.out, Site::macs_of_clients(), segments)
    }

    /// Sends from beyond the WAN.
    fn answer(&mut self, segments: &[SegmentBuilder]) -> Result<()> {
        leave(&mut self.back, Site::macs_of_servers(), segments)
    }

    /// Sends nothing.
    pub fn nothing(&mut self, _: u64) -> Result<()> {
        Ok(())
    }

    /// One ACK with options that are not as they should be, of each kind in turn.
    pub fn odd_ack(&mut self, n: u64) -> Result<()> {
        self.odd(n, 64)
    }

    /// As [`Forger::odd_ack`]; nobody but the gateway gets it.
    pub fn odd_ack_with_few_hops(&mut self, n: u64) -> Result<()> {
        self.odd(n, FEW_HOPS)
    }

    fn odd(&mut self, n: u64, hops: u8) -> Result<()> {
        let Some(ack) = self.ack else { return Ok(()) };
        let plain = ack.again().ttl(hops);
        let stamped = ack.stamped().ttl(hops);
        let odd = match n % 6 {
            0 => plain.raw_options(&UNKNOWN),
            1 => stamped.raw_options(&UNKNOWN),
            2 => plain.raw_options(&CUT_SHORT),
            3 => stamped.ts(1, 1),
            4 => plain.md5(),
            _ => stamped.ip_options(&[1; 4]),
        };
        self.send(&[odd])
    }

    /// A FIN beyond the data, which nobody but the gateway gets.
    pub fn fin(&mut self, _: u64) -> Result<()> {
        let Some(data) = self.data else { return Ok(()) };
        let seq = data.tcp.seq.wrapping_add(data.tcp.payload_len).wrapping_add(AHEAD);
        self.send(&[data.stamped().seq(seq).flags(Flags::FIN | Flags::ACK).ttl(FEW_HOPS)])
    }

    /// One ACK with wild numbers and an option that nobody knows, between the answer to the SYN and the first ACK.
    pub fn ack_before_the_first(&mut self, n: u64) -> Result<()> {
        let rules = |text: &str| self.clients.nft(text).map_err(std::io::Error::other);
        match n {
            0 => rules(&format!(
                "table ip near {{ chain out {{ type filter hook output priority 0; \
                 tcp dport {PORT} tcp flags & (fin|syn|rst|psh|ack) == ack drop; }}; }}\n"
            ))?,
            KEPT_BACK => rules("delete table ip near\n")?,
            _ => {}
        }
        let Some(answer) = self.answer.filter(|_| n < KEPT_BACK) else { return Ok(()) };
        let wild = SegmentBuilder::v4(Party::Attacker.host(), SERVER).ports(answer.tcp.dst_port, PORT);
        let (seq, ack) = (self.rng.next_u64() as u32, self.rng.next_u64() as u32);
        self.send(&[wild.seq(seq).ack(ack).flags(Flags::ACK).raw_options(&UNKNOWN)])
    }

    /// Connections between the attacker and nobody, more than there are places, and more of them all the time: those of which a
    /// frame was lost are not established, and give way first.
    pub fn fill(&mut self, n: u64) -> Result<()> {
        let own: Vec<u16> = (n * AT_A_TIME..(n + 1) * AT_A_TIME).map(|n| (n % HOARD) as u16).collect();
        let segment = |up: bool, n: u16| {
            let (own, port) = (Party::Attacker.address(100 + (n % 100) as u8), 20_000 + n);
            match up {
                true => SegmentBuilder::v4(own, NOBODY).ports(port, 80).seq(5),
                false => SegmentBuilder::v4(NOBODY, own).ports(80, port).seq(7),
            }
        };
        let steps: [(bool, Change); 5] = [
            (true, |s| s.flags(Flags::SYN).mss(1_460).window_scale(7)),
            (false, |s| s.ack(6).flags(Flags::SYN | Flags::ACK).mss(1_460).window_scale(7)),
            (true, |s| s.seq(6).ack(8).window(4_000)),
            (false, |s| s.seq(8).ack(6).payload(100)),
            (true, |s| s.seq(6).ack(108).window(4_000)),
        ];
        for (up, step) in steps {
            let segments: Vec<_> = own.iter().map(|&n| step(segment(up, n))).collect();
            match up {
                true => self.send(&segments)?,
                false => self.answer(&segments)?,
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Segments with data of connections that there never were.
    pub fn data_of_nobody(&mut self, n: u64) -> Result<()> {
        let data = SegmentBuilder::v4(Party::Attacker.address(100), NOBODY).ports(20_000 + n as u16, 80);
        self.send(&[data.seq(5).ack(7).flags(Flags::ACK).payload(100)])
    }

    /// An ACK of what the attacker never sent, in the name of the other end.
    pub fn far_ahead(&mut self, _: u64) -> Result<()> {
        let Some(data) = self.data else { return Ok(()) };
        let t = data.tcp;
        let ack =
            SegmentBuilder::v4(SERVER, Party::Attacker.host()).ports(t.dst_port, t.src_port).ttl(FEW_HOPS);
        self.answer(&[ack.seq(t.ack).ack(t.seq.wrapping_add(FAR)).flags(Flags::ACK)])
    }

    /// A flood of SYNs that nobody answers.
    pub fn syns(&mut self, n: u64) -> Result<()> {
        let (from, to) = Site::macs_of_clients();
        let syn = |n: u16| {
            let syn = SegmentBuilder::v4(Party::Attacker.address(100), NOBODY).ports(1_024 + n, 81);
            syn.seq(n.into()).flags(Flags::SYN).macs(from, to).build()
        };
        if self.flood.is_empty() {
            self.flood = (0..PORTS).map(syn).collect();
        }
        let first = n as usize * SYNS % self.flood.len();
        left(self.out.send(&self.flood[first..first + SYNS]))
    }

    /// The last ACK with one bit of TSval changed, as by a faulty memory: the checksum is wrong.
    pub fn wrong_checksum(&mut self, _: u64) -> Result<()> {
        let Some((ack, stamps)) = self.ack.and_then(|ack| Some((ack, ack.stamps?))) else { return Ok(()) };
        self.send(&[ack
            .again()
            .ts(stamps.value.wrapping_add(BITS), stamps.echo)
            .window(u16::MAX)
            .checksum(Sum::Wrong)])
    }

    /// Datagrams to another port each.
    pub fn udp_of_many_ports(&mut self, n: u64) -> Result<()> {
        let all: Vec<_> =
            (DATAGRAMS * n..DATAGRAMS * (n + 1)).map(|n| datagram(1_024 + (n % 60_000) as u16)).collect();
        self.send(&all)
    }

    /// Datagrams to one port at the attacker's rate.
    pub fn udp_at_the_rate(&mut self, n: u64) -> Result<()> {
        // Of a millisecond at 5 Mbit/s 625 bytes.
        let sent = |n: u64| n * 625 / (DATAGRAM as u64 + 28);
        let all = vec![datagram(9_999); (sent(n + 1) - sent(n)) as usize];
        self.send(&all)
    }

    /// Datagrams to one port, faster.
    pub fn udp_beyond_the_rate(&mut self, _: u64) -> Result<()> {
        self.send(&[datagram(9_999), datagram(9_999)])
    }

    /// Datagrams from another address of the attacker's prefix each.
    pub fn udp_of_many_addresses(&mut self, _: u64) -> Result<()> {
        let to = Ipv6Addr::new(0xfd72, 0, 0, 0, 0, 0, 0, 2);
        let all: Vec<SegmentBuilder> = (0..DATAGRAMS)
            .map(|_| {
                let from = Ipv6Addr::from_bits(0xfd71 << 112 | u128::from(self.rng.next_u64()));
                SegmentBuilder::v6(from, to).udp().ports(9_999, 9_999).payload(DATAGRAM)
            })
            .collect();
        self.send(&all)
    }
}

fn datagram(port: u16) -> SegmentBuilder {
    SegmentBuilder::v4(Party::Attacker.host(), SERVER).udp().ports(9_999, port).payload(DATAGRAM)
}

fn leave(by: &mut Sender, (from, to): ([u8; 6], [u8; 6]), segments: &[SegmentBuilder]) -> Result<()> {
    let frames: Vec<Vec<u8>> = segments.iter().map(|s| s.clone().macs(from, to).build()).collect();
    left(by.send(&frames))
}

/// A full queue takes a part of what is sent.
fn left(sent: Result<usize>) -> Result<()> {
    match sent {
        Err(e) if e.kind() != ErrorKind::WouldBlock && e.raw_os_error() != Some(libc::ENOBUFS) => Err(e),
        _ => Ok(()),
    }
}

impl Own {
    /// The same segment without options and payload.
    fn again(&self) -> SegmentBuilder {
        let t = &self.tcp;
        SegmentBuilder::v4(Party::Attacker.host(), SERVER)
            .ports(t.src_port, t.dst_port)
            .seq(t.seq)
            .ack(t.ack)
            .flags(t.flags)
            .window(t.window)
    }

    /// The same with its timestamps.
    fn stamped(&self) -> SegmentBuilder {
        match self.stamps {
            Some(stamps) => self.again().ts(stamps.value, stamps.echo),
            None => self.again(),
        }
    }
}

/// The TCP segment in a frame, who sends it, and who gets it.
fn own(frame: &[u8]) -> Option<(Own, Ipv6Addr, Ipv6Addr)> {
    let total = usize::from(u16::from_be_bytes([*frame.get(16)?, *frame.get(17)?])) + 14;
    let packet = wire::packet(frame, total).ok()?;
    let tcp = wire::tcp(frame, &packet).ok()?;
    let stamps = wire::tcp_options(frame, &packet, &tcp).ok().and_then(|o| o.timestamps);
    Some((Own { tcp, stamps }, Ipv6Addr::from(packet.src), Ipv6Addr::from(packet.dst)))
}
