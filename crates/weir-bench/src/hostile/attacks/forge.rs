//! The attacker: reads the frames of its host and forges packets.

use super::case::{is_on, Case, Forgery, Party, END};
use super::site::{Site, NOBODY, SERVER};
use super::traffic::PORT;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{ErrorKind, Read, Result};
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};
use weir::execute::lab::Namespace;
use weir_core::rng::Rng;
use weir_core::wire::build::{SegmentBuilder, Sum};
use weir_core::wire::{self, Flags, Tcp, Timestamps};
use weir_io::sys::link;
use weir_io::sys::packet::{Device, PacketSender};

/// Number of bytes of a frame that are read.
const HEAD: usize = 128;
/// Payload of a forged datagram in bytes. The IPv4 packet has 28 bytes more.
const DATAGRAM: usize = 1_372;
/// Datagrams a millisecond: 22.4 Mbit/s.
const DATAGRAMS: u64 = 2;
/// TTL of packets that pass the router and do not reach the host.
const FEW_HOPS: u8 = 3;
/// Longest delay of an interval that is made up for.
const LATE: Duration = Duration::from_millis(20);
/// Longest sleep between two reads of frames.
const LOOKS: Duration = Duration::from_micros(300);
/// Distance of a FIN from the end of the data, in sequence numbers.
const AHEAD: u32 = 20_000;
/// Flipped bit of a TSval: 2^29 ms are six days.
const BITS: u32 = 1 << 29;
/// Distance of an acknowledged number that was never sent.
const FAR: u32 = 1 << 30;
/// SYNs a millisecond: five times as many as the hooks show an engine of all addresses together.
const SYNS: usize = 100;
/// Number of source ports that a flood of SYNs uses in turn.
const PORTS: u16 = 40_000;
/// Connections that are opened at a time to fill a table.
const AT_A_TIME: u64 = 55;
/// Number of these connections after which their ports are reused.
const HOARD: u64 = 11_000;
/// Number of intervals for which the client's first ACK is dropped.
const KEPT_BACK: u64 = 10;
/// An experimental option, unknown to both ends (RFC 3692).
const UNKNOWN: [u8; 4] = [253, 4, 0, 1];
/// An option whose length exceeds the header.
const CUT_SHORT: [u8; 4] = [7, 40, 1, 1];

type Change = fn(SegmentBuilder) -> SegmentBuilder;

/// A segment of the attacker's own connection.
#[derive(Clone, Copy, Debug)]
struct Own {
    tcp: Tcp,
    stamps: Option<Timestamps>,
}

/// An attacker that reads the frames of its host and sends forged packets.
pub struct Forger {
    seen: Socket,
    out: PacketSender,
    /// Sender at the other end, which helps the attacker.
    back: PacketSender,
    clients: Namespace,
    rng: Rng,
    /// Last ACK without data.
    ack: Option<Own>,
    /// Last segment with data.
    data: Option<Own>,
    /// Last SYN-ACK from the server.
    answer: Option<Own>,
    /// Frames of a flood.
    flood: Vec<Vec<u8>>,
}

impl Forger {
    /// Opens an attacker on the LAN's host.
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
            PacketSender::open(Device { ifindex: port.index, ethernet: true }, false)
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
                    self.forge(case.forgery, number)?;
                    number += 1;
                }
                // Longer delays are not made up for: a burst would exceed the attack's rate.
                next = (next + case.every).max(now.saturating_sub(LATE));
            }
            self.look(next.min(END).saturating_sub(epoch.elapsed()))?;
        }
    }

    /// Forges the packets of an interval. The number counts the intervals.
    fn forge(&mut self, forgery: Forgery, number: u64) -> Result<()> {
        match forgery {
            Forgery::Nothing => Ok(()),
            Forgery::OddAck => self.odd_ack(number),
            Forgery::OddAckWithFewHops => self.odd_ack_with_few_hops(number),
            Forgery::AckBeforeTheFirst => self.ack_before_the_first(number),
            Forgery::Fill => self.fill(number),
            Forgery::DataOfNobody => self.data_of_nobody(number),
            Forgery::UdpOfManyPorts => self.udp_of_many_ports(number),
            Forgery::UdpOfManyAddresses => self.udp_of_many_addresses(number),
            Forgery::FarAhead => self.far_ahead(number),
            Forgery::Syns => self.syns(number),
            Forgery::WrongChecksum => self.wrong_checksum(number),
            Forgery::Fin => self.fin(number),
            Forgery::UdpAtTheRate => self.udp_at_the_rate(number),
            Forgery::UdpBeyondTheRate => self.udp_beyond_the_rate(number),
            Forgery::Repeats => self.repeats(),
            Forgery::RunsOn => self.runs_on(number),
        }
    }

    /// Reads frames for this long.
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

    /// Sends segments from beyond the WAN.
    fn answer(&mut self, segments: &[SegmentBuilder]) -> Result<()> {
        leave(&mut self.back, Site::macs_of_servers(), segments)
    }

    /// Sends an ACK with faulty or unknown options, each kind in turn.
    fn odd_ack(&mut self, n: u64) -> Result<()> {
        self.odd(n, 64)
    }

    /// Sends an ACK like [`Forger::odd_ack`] that passes the gateway and does not reach the host.
    fn odd_ack_with_few_hops(&mut self, n: u64) -> Result<()> {
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

    /// Sends a FIN beyond the data that passes the gateway and does not reach the host.
    fn fin(&mut self, _: u64) -> Result<()> {
        let Some(data) = self.data else { return Ok(()) };
        let seq = data.tcp.seq.plus(data.tcp.payload_len).plus(AHEAD);
        self.send(&[data.stamped().seq(seq).flags(Flags::FIN | Flags::ACK).ttl(FEW_HOPS)])
    }

    /// Sends an ACK with random numbers and an unknown option, between the SYN-ACK and the client's first
    /// ACK.
    fn ack_before_the_first(&mut self, n: u64) -> Result<()> {
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

    /// Plays ever more connections between the attacker and an address without a host, more than the flow
    /// table has places. New ones are needed all the time: a connection that lost a frame is not established,
    /// and the table drops it first.
    fn fill(&mut self, n: u64) -> Result<()> {
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

    /// Sends a data segment of a connection that was never opened.
    fn data_of_nobody(&mut self, n: u64) -> Result<()> {
        let data = SegmentBuilder::v4(Party::Attacker.address(100), NOBODY).ports(20_000 + n as u16, 80);
        self.send(&[data.seq(5).ack(7).flags(Flags::ACK).payload(100)])
    }

    /// Sends an ACK from the other end for data that the attacker never sent.
    fn far_ahead(&mut self, _: u64) -> Result<()> {
        let Some(data) = self.data else { return Ok(()) };
        let t = data.tcp;
        let ack =
            SegmentBuilder::v4(SERVER, Party::Attacker.host()).ports(t.dst_port, t.src_port).ttl(FEW_HOPS);
        self.answer(&[ack.seq(t.ack).ack(t.seq.plus(FAR)).flags(Flags::ACK)])
    }

    /// Sends SYNs that are never answered.
    fn syns(&mut self, n: u64) -> Result<()> {
        let (from, to) = Site::macs_of_clients();
        let syn = |n: u16| {
            let syn = SegmentBuilder::v4(Party::Attacker.address(100), NOBODY).ports(1_024 + n, 81);
            syn.seq(u32::from(n)).flags(Flags::SYN).macs(from, to).build()
        };
        if self.flood.is_empty() {
            self.flood = (0..PORTS).map(syn).collect();
        }
        let first = n as usize * SYNS % self.flood.len();
        left(self.out.send(&self.flood[first..first + SYNS]))
    }

    /// Sends the last ACK with one bit of TSval changed, as by faulty memory. The checksum is wrong.
    fn wrong_checksum(&mut self, _: u64) -> Result<()> {
        let Some((ack, stamps)) = self.ack.and_then(|ack| Some((ack, ack.stamps?))) else { return Ok(()) };
        self.send(&[ack
            .again()
            .ts(stamps.value.wrapping_add(BITS), stamps.echo)
            .window(u16::MAX)
            .checksum(Sum::Wrong)])
    }

    /// Sends datagrams, each to another port.
    fn udp_of_many_ports(&mut self, n: u64) -> Result<()> {
        let all: Vec<_> =
            (DATAGRAMS * n..DATAGRAMS * (n + 1)).map(|n| datagram(1_024 + (n % 60_000) as u16)).collect();
        self.send(&all)
    }

    /// Sends datagrams to one port at the attacker's rate.
    fn udp_at_the_rate(&mut self, n: u64) -> Result<()> {
        // 625 bytes a millisecond are 5 Mbit/s.
        let sent = |n: u64| n * 625 / (DATAGRAM as u64 + 28);
        let all = vec![datagram(9_999); (sent(n + 1) - sent(n)) as usize];
        self.send(&all)
    }

    /// Sends datagrams to one port above the attacker's rate.
    fn udp_beyond_the_rate(&mut self, _: u64) -> Result<()> {
        self.send(&[datagram(9_999), datagram(9_999)])
    }

    /// Sends the last data twice more, at 22 Mbit/s. The server does not get it.
    fn repeats(&mut self) -> Result<()> {
        let Some(data) = self.data else { return Ok(()) };
        let again = data.stamped().payload(DATAGRAM).ttl(FEW_HOPS);
        self.send(&[again.clone(), again])
    }

    /// Sends data ahead of the window at the same rate.
    fn runs_on(&mut self, n: u64) -> Result<()> {
        let Some(data) = self.data else { return Ok(()) };
        let ahead = |n: u64| AHEAD.wrapping_add((n % 10_000) as u32 * DATAGRAM as u32);
        let on = |n| data.stamped().seq(data.tcp.seq.plus(ahead(n))).payload(DATAGRAM).ttl(FEW_HOPS);
        self.send(&[on(2 * n), on(2 * n + 1)])
    }

    /// Sends datagrams, each from another address of the attacker's prefix.
    fn udp_of_many_addresses(&mut self, _: u64) -> Result<()> {
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

fn leave(by: &mut PacketSender, (from, to): ([u8; 6], [u8; 6]), segments: &[SegmentBuilder]) -> Result<()> {
    let frames: Vec<Vec<u8>> = segments.iter().map(|s| s.clone().macs(from, to).build()).collect();
    left(by.send(&frames))
}

/// Ignores a full queue, which takes only a part of the frames.
fn left(sent: Result<usize>) -> Result<()> {
    match sent {
        Err(e) if e.kind() != ErrorKind::WouldBlock && e.raw_os_error() != Some(libc::ENOBUFS) => Err(e),
        _ => Ok(()),
    }
}

impl Own {
    /// Returns a copy of the segment without options and payload.
    fn again(&self) -> SegmentBuilder {
        let t = &self.tcp;
        SegmentBuilder::v4(Party::Attacker.host(), SERVER)
            .ports(t.src_port, t.dst_port)
            .seq(t.seq)
            .ack(t.ack)
            .flags(t.flags)
            .window(t.window)
    }

    /// Returns the copy with the segment's timestamps.
    fn stamped(&self) -> SegmentBuilder {
        match self.stamps {
            Some(stamps) => self.again().ts(stamps.value, stamps.echo),
            None => self.again(),
        }
    }
}

/// Returns the TCP segment in a frame, its source and its destination.
fn own(frame: &[u8]) -> Option<(Own, Ipv6Addr, Ipv6Addr)> {
    let total = usize::from(u16::from_be_bytes([*frame.get(16)?, *frame.get(17)?])) + 14;
    let packet = wire::packet(frame, total).ok()?;
    let tcp = wire::tcp(frame, &packet).ok()?;
    let stamps = wire::tcp_options(frame, &packet, &tcp).ok().and_then(|o| o.timestamps);
    Some((Own { tcp, stamps }, Ipv6Addr::from(packet.src), Ipv6Addr::from(packet.dst)))
}
