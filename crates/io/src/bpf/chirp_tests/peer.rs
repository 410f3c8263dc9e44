//! A receiver in user space, at the far end of a device without Ethernet headers. In front of it are a
//! bottleneck and a delay, and a test can make it deaf. It acknowledges every segment, with no options but
//! the MSS.

use crate::sys::testing::{run, Tun};
use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;
const HOST: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
/// Address at which it listens.
pub const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(PEER), 80);
/// Bytes of a segment: the MSS.
pub const MSS: u32 = 1000;

/// The path between the two ends.
#[derive(Clone, Copy)]
pub struct Path {
    /// Time that a segment takes at the bottleneck.
    pub gap: Duration,
    pub rtt: Duration,
    /// Interval after the SYN in which leaving segments are lost.
    pub deaf: (Duration, Duration),
}

/// A path of 8 Mbit/s and 40 ms, which 40 segments fill.
pub const PATH: Path = Path {
    gap: Duration::from_millis(1),
    rtt: Duration::from_millis(40),
    deaf: (Duration::MAX, Duration::MAX),
};

/// Departure times of segments with data.
type Left = Arc<Mutex<Vec<Instant>>>;

pub struct Peer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    left: Left,
}

impl Peer {
    /// Starts a peer in this network namespace.
    pub fn new(path: Path) -> Peer {
        let tun = Tun::new("chirp0");
        run("ip addr add 10.9.0.1/24 dev chirp0");
        let (stop, left) = (Arc::<AtomicBool>::default(), Left::default());
        let mut end = End {
            tun,
            path,
            left: left.clone(),
            since: Instant::now(),
            free: Instant::now(),
            due: VecDeque::new(),
            first: 0,
            next: 0,
            early: BTreeMap::new(),
        };
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            while !stopped.load(Relaxed) {
                end.turn();
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        Peer { stop, thread: Some(thread), left }
    }

    /// Number of segments that left within this time from `since` on.
    pub fn left(&self, since: Instant, within: Duration) -> usize {
        self.left.lock().unwrap().iter().filter(|at| **at >= since && **at - since < within).count()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

/// A segment of the host.
#[derive(Clone, Copy)]
struct Segment {
    port: u16,
    seq: u32,
    len: u32,
    flags: u8,
}

/// The peer's end, of one connection at a time.
struct End {
    tun: Tun,
    path: Path,
    left: Left,
    /// Arrival of the SYN; time at which the bottleneck is free.
    since: Instant,
    free: Instant,
    due: VecDeque<(Instant, Segment)>,
    /// First sequence number; from there, the next expected byte, and the ranges that came early.
    first: u32,
    next: u32,
    early: BTreeMap<u32, u32>,
}

impl End {
    fn turn(&mut self) {
        while let Some(packet) = self.tun.poll() {
            if let Some(segment) = read(&packet) {
                self.leave(segment);
            }
        }
        while let Some((_, segment)) = self.due.pop_front_if(|(at, _)| *at <= Instant::now()) {
            self.arrive(segment);
        }
    }

    fn leave(&mut self, segment: Segment) {
        let now = Instant::now();
        if segment.flags & SYN != 0 {
            (self.since, self.first, self.next) = (now, segment.seq, 1);
            self.early.clear();
        } else if segment.len > 0 {
            self.left.lock().unwrap().push(now);
        } else if segment.flags & FIN == 0 {
            return;
        }
        let age = now - self.since;
        if age >= self.path.deaf.0 && age < self.path.deaf.1 {
            return;
        }
        self.free = self.free.max(now) + if segment.len > 0 { self.path.gap } else { Duration::ZERO };
        self.due.push_back((self.free + self.path.rtt, segment));
    }

    fn arrive(&mut self, segment: Segment) {
        if segment.flags & SYN != 0 {
            return self.send(segment.port, SYN | ACK, &[2, 4, (MSS >> 8) as u8, MSS as u8]);
        }
        let from = segment.seq.wrapping_sub(self.first);
        self.early.insert(from, from + segment.len + u32::from(segment.flags & FIN));
        while let Some(entry) = self.early.first_entry().filter(|entry| *entry.key() <= self.next) {
            self.next = self.next.max(entry.remove());
        }
        self.send(segment.port, ACK, &[]);
    }

    fn send(&self, port: u16, flags: u8, options: &[u8]) {
        let mut tcp = vec![0; 20];
        tcp[..2].copy_from_slice(&ADDRESS.port().to_be_bytes());
        tcp[2..4].copy_from_slice(&port.to_be_bytes());
        tcp[4..8].copy_from_slice(&u32::from(flags & SYN == 0).to_be_bytes());
        tcp[8..12].copy_from_slice(&self.first.wrapping_add(self.next).to_be_bytes());
        tcp[12] = ((20 + options.len()) * 4) as u8;
        tcp[13] = flags;
        tcp[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
        tcp.extend_from_slice(options);
        let length = (tcp.len() as u16).to_be_bytes();
        let pseudo = [&PEER.octets()[..], &HOST.octets(), &[0, 6], &length].concat();
        let sum = checksum(&[&pseudo[..], &tcp].concat());
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        let mut ip =
            [&[0x45, 0][..], &(20 + tcp.len() as u16).to_be_bytes(), &[0, 0, 0x40, 0, 64, 6, 0, 0]].concat();
        ip.extend_from_slice(&[PEER.octets(), HOST.octets()].concat());
        let sum = checksum(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        self.tun.send(&[ip, tcp].concat());
    }
}

fn read(packet: &[u8]) -> Option<Segment> {
    let (ip, tcp) = (packet.get(..20)?, packet.get(20..40)?);
    let total = u32::from(u16::from_be_bytes([ip[2], ip[3]]));
    (ip[0] == 0x45 && ip[9] == 6).then(|| Segment {
        port: u16::from_be_bytes([tcp[0], tcp[1]]),
        seq: u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]),
        len: total - 20 - u32::from(tcp[12] >> 4) * 4,
        flags: tcp[13],
    })
}

/// Checksum of RFC 1071 over an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}
