//! A sender of forged segments: raw frames from the servers' host at a fixed rate, until it is stopped.

use rustix::thread::{move_into_link_name_space, LinkNameSpaceType};
use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir::execute::hosts::{CLIENT, SERVER};
use weir_core::rng::Rng;
use weir_io::sys::link;
use weir_io::sys::packet::{Device, PacketSender};

/// Kind of forged segments. All claim to come from beyond the WAN and go to the clients' host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forgery {
    /// SYNs from ten million addresses, one after the other.
    Syn,
    /// ACKs of the shaped flows, with random numbers.
    AckOfLive,
    /// ACKs of flows that do not exist.
    AckOfUnknown,
    /// RSTs of the shaped flows, with random numbers.
    Rst,
    /// SYNs of the shaped flows.
    SynOfLive,
}

impl Forgery {
    pub const ALL: [Forgery; 5] =
        [Forgery::Syn, Forgery::AckOfLive, Forgery::AckOfUnknown, Forgery::Rst, Forgery::SynOfLive];

    pub const fn name(self) -> &'static str {
        match self {
            Forgery::Syn => "SYN flood",
            Forgery::AckOfLive => "ACKs, live flows",
            Forgery::AckOfUnknown => "ACKs, unknown flows",
            Forgery::Rst => "RSTs, live flows",
            Forgery::SynOfLive => "SYNs, live flows",
        }
    }
}

/// TCP flags.
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// Number of source addresses of a SYN flood.
const SOURCES: u64 = 10_000_000;
/// Number of frames that are sent together.
const BATCH: u32 = 32;

/// The shaped flows: client ports from `first` on, one server port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    pub first: u16,
    pub count: u16,
    pub server: u16,
}

/// Parameters of a flood.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forged {
    pub forgery: Forgery,
    pub live: Live,
    /// Number of the first segment. It selects the first source address of strangers.
    pub from: u64,
}

/// A running flood. [`Flood::end`] stops it.
pub(super) struct Flood {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: JoinHandle<Result<(), String>>,
}

impl Flood {
    /// Starts a thread that waits for the servers' host of the lab `id`, waits for `after`, and then forges
    /// `pps` segments a second there.
    pub fn prepare(id: String, forged: Forged, pps: u32, after: Duration) -> Flood {
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (told, counted) = (stop.clone(), sent.clone());
        let thread = std::thread::spawn(move || {
            let mut sender = loop {
                if told.load(Ordering::Relaxed) {
                    return Err("the servers' host never appeared".to_string());
                }
                match enter(&id) {
                    Ok(sender) => break sender,
                    Err(_) => std::thread::sleep(Duration::from_millis(20)),
                }
            };
            std::thread::sleep(after);
            play(&mut sender, forged, pps, &told, &counted);
            Ok(())
        });
        Flood { stop, sent, thread }
    }

    /// Stops the flood and returns the number of segments that were sent.
    pub fn end(self) -> Result<u64, String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the flood's thread panicked".to_string())??;
        Ok(self.sent.load(Ordering::Relaxed))
    }
}

/// Moves this thread into the servers' namespace for good and opens a sender on its only interface.
pub(in super::super) fn enter(id: &str) -> std::io::Result<PacketSender> {
    let namespace = File::open(format!("/run/netns/weir-{id}-sv"))?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
    let port = link::find("eth0")?.filter(|l| l.up).ok_or(std::io::ErrorKind::NotFound)?;
    PacketSender::open(Device { ifindex: port.index, ethernet: true }, false)
}

fn play(sender: &mut PacketSender, forged: Forged, pps: u32, stop: &AtomicBool, sent: &AtomicU64) {
    let mut rng = Rng::new(1);
    let begin = Instant::now();
    let (mut batches, mut number) = (0, forged.from);
    while !stop.load(Ordering::Relaxed) {
        let due = Duration::from_secs(1) * BATCH * batches / pps;
        match due.checked_sub(begin.elapsed()) {
            Some(early) => std::thread::sleep(early),
            // Missed batches are not made up for.
            None => batches = (begin.elapsed().as_secs_f64() * f64::from(pps) / f64::from(BATCH)) as u32,
        }
        batches += 1;
        let frames: Vec<[u8; FRAME]> =
            (0..u64::from(BATCH)).map(|i| forged.frame(number + i, &mut rng)).collect();
        // A full queue takes only a part of the frames.
        let left = sender.send(&frames).unwrap_or(0) as u64;
        number += left;
        sent.fetch_add(left, Ordering::Relaxed);
    }
}

impl Forged {
    /// Returns frame number `number` of the flood.
    fn frame(&self, number: u64, rng: &mut Rng) -> [u8; FRAME] {
        let live = self.live;
        let any = |rng: &mut Rng| rng.next_u64() as u32;
        let of_live = |rng: &mut Rng| live.first + rng.below(u64::from(live.count)) as u16;
        // Addresses from 172.16.0.0 on belong to no host here.
        let stranger = Ipv4Addr::from(0xac10_0000 + (number % SOURCES) as u32);
        let high_port = |rng: &mut Rng| 1024 + (rng.next_u64() % 60_000) as u16;
        let (seq, ack) = (any(rng), any(rng));
        let segment = match self.forgery {
            Forgery::Syn => {
                ForgedSegment { from: stranger, ports: (high_port(rng), 80), seq, ack: 0, flags: SYN }
            }
            Forgery::AckOfUnknown => ForgedSegment {
                from: stranger,
                ports: (high_port(rng), high_port(rng)),
                seq,
                ack,
                flags: ACK,
            },
            Forgery::AckOfLive => {
                ForgedSegment { from: SERVER, ports: (live.server, of_live(rng)), seq, ack, flags: ACK }
            }
            Forgery::Rst => {
                ForgedSegment { from: SERVER, ports: (live.server, of_live(rng)), seq, ack, flags: RST | ACK }
            }
            Forgery::SynOfLive => {
                ForgedSegment { from: SERVER, ports: (live.server, of_live(rng)), seq, ack: 0, flags: SYN }
            }
        };
        segment.frame()
    }
}

struct ForgedSegment {
    from: Ipv4Addr,
    ports: (u16, u16),
    seq: u32,
    ack: u32,
    flags: u8,
}

/// Ethernet, IPv4 and TCP without options.
const FRAME: usize = 14 + 20 + 20;

impl ForgedSegment {
    fn frame(&self) -> [u8; FRAME] {
        let mut f = [0; FRAME];
        f[..6].copy_from_slice(&CLIENTS_MAC);
        f[6..12].copy_from_slice(&SERVERS_MAC);
        f[12..14].copy_from_slice(&[0x08, 0x00]);
        f[14..24].copy_from_slice(&[0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6]);
        f[26..30].copy_from_slice(&self.from.octets());
        f[30..34].copy_from_slice(&CLIENT.octets());
        let sum = checksum(0, &f[14..34]);
        f[24..26].copy_from_slice(&sum.to_be_bytes());
        f[34..36].copy_from_slice(&self.ports.0.to_be_bytes());
        f[36..38].copy_from_slice(&self.ports.1.to_be_bytes());
        f[38..42].copy_from_slice(&self.seq.to_be_bytes());
        f[42..46].copy_from_slice(&self.ack.to_be_bytes());
        f[46..48].copy_from_slice(&[5 << 4, self.flags]);
        f[48..50].copy_from_slice(&512u16.to_be_bytes());
        // The pseudo-header: addresses, protocol, length.
        let sum = checksum(6 + 20 + sum_of(&f[26..34]), &f[34..]);
        f[50..52].copy_from_slice(&sum.to_be_bytes());
        f
    }
}

/// Hardware addresses of the hosts in a lab.
pub(in super::super) const CLIENTS_MAC: [u8; 6] = [0x02, 0, 0, 0, 1, 0];
pub(in super::super) const SERVERS_MAC: [u8; 6] = [0x02, 0, 0, 0, 5, 0];

fn sum_of(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|p| u32::from(u16::from_be_bytes([p[0], p.get(1).copied().unwrap_or(0)]))).sum()
}

pub(in super::super) fn checksum(start: u32, bytes: &[u8]) -> u16 {
    let mut sum = start + sum_of(bytes);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::frame::Checksum;
    use weir_core::wire;

    #[test]
    fn what_is_forged_is_well_formed() {
        let mut rng = Rng::new(7);
        let live = Live { first: 10_000, count: 16, server: 5001 };
        for forgery in Forgery::ALL {
            let forged = Forged { forgery, live, from: 0 };
            for number in 0..100 {
                let frame = forged.frame(number, &mut rng);
                let packet = wire::packet(&frame, FRAME).unwrap();
                assert_eq!(wire::checksum::verify(&frame, FRAME, &packet), Checksum::Valid);
                let tcp = wire::tcp(&frame, &packet).unwrap();
                assert_eq!(tcp.payload_len, 0);
                if matches!(forgery, Forgery::AckOfLive | Forgery::Rst | Forgery::SynOfLive) {
                    assert!((10_000..10_016).contains(&tcp.dst_port) && tcp.src_port == 5001);
                }
            }
        }
    }
}
