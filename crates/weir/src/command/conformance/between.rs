//! The cases over two interfaces, against any middlebox between them.
//!
//! All cases run at the same time, each with a connection of its own. MAC addresses identify the case of a
//! frame.

use std::io;
use weir_conformance::{Crossed, Event, Script, Side, Traits};
use weir_core::frame::{Checksum, Frames};
use weir_core::node::Port;
use weir_core::time::{Duration, Time};
use weir_io::port::{Packets, CHUNK};
use weir_io::sys::packet::{Device, PacketSender};
use weir_io::sys::{clock, link};

/// Delay above which a frame did not leave at once. Middleboxes that hold ACKs hold them longer, and busy
/// machines take less.
const AT_ONCE: Duration = Duration::from_millis(100);
/// Interval between the starts of cases, so that their bursts do not coincide.
const APART: Duration = Duration::from_millis(40);
/// Time after the last frame in which a middlebox may release held frames.
const SETTLES: Duration = Duration::from_secs(3);
/// Lateness of a frame above which all later frames are moved.
const LATE: Duration = Duration::from_millis(1);
/// Longest sleep.
const NAP: Duration = Duration::from_micros(200);
const CHUNKS: usize = 8192;
/// Length to which shorter frames are padded on their way.
const SHORTEST: usize = 60;
/// Number of leading bytes of a MAC address that all addresses of a connection share.
const OF_ALL: usize = 5;

/// Expectations on an unknown middlebox.
pub(super) const TRAITS: Traits = Traits { at_once: AT_ONCE, sizes: true, ..Traits::WIRE };

/// Interface, and the end of the connections at it.
struct End {
    side: Side,
    sender: PacketSender,
    packets: Packets,
}

impl End {
    fn open(name: &str, side: Side) -> Result<End, String> {
        let fault = |e: io::Error| format!("{name}: {e}");
        let found = link::find(name).map_err(fault)?.ok_or_else(|| format!("{name}: no such interface"))?;
        if !found.carrier {
            return Err(format!("{name}: it is down, or nothing is connected to it"));
        }
        let device = Device { ifindex: found.index, ethernet: true };
        let sender = PacketSender::open(device, false).map_err(fault)?;
        let mut packets = Packets::open(Port(0), found.index, true).map_err(fault)?;
        packets.split_always();
        Ok(End { side, sender, packets })
    }
}

/// Runs each of the scripts, of connections 0, 1, …, between the two interfaces. Returns the frames that
/// crossed in each.
pub(super) fn play(lan: &str, wan: &str, scripts: &[Script]) -> Result<Vec<Vec<Crossed>>, String> {
    let mut ends = [End::open(lan, Side::Sender)?, End::open(wan, Side::Receiver)?];
    let mut frames = Frames::new(CHUNKS, CHUNK, 0);
    let mut agenda = agenda(scripts);
    agenda.reverse();
    let last = agenda.first().map_or(Time::ZERO, |(at, _)| *at) + SETTLES;
    let mut crossed = vec![Vec::new(); scripts.len()];
    let mut timeline = Timeline::from_now();
    loop {
        for end in &mut ends {
            listen(end, &mut frames, &timeline, scripts, &mut crossed).map_err(|e| e.to_string())?;
        }
        while let Some((at, event)) = agenda.last().filter(|(at, _)| *at <= timeline.at(clock::now())) {
            let end = &mut ends[usize::from(event.from == Side::Receiver)];
            timeline.waits_for(*at);
            if !send(end, &event.frame.head)? {
                break;
            }
            agenda.pop();
        }
        let now = timeline.at(clock::now());
        if now >= last {
            return Ok(crossed);
        }
        let next = agenda.last().map_or(last, |(at, _)| *at).since(now);
        clock::sleep_until(clock::now() + next.min(NAP));
    }
}

/// Clock of the scripts. It stops while this program is late, so that delays of a busy machine are not
/// attributed to the middlebox.
struct Timeline {
    /// Zero of the clock, from each of these moments on.
    zeros: Vec<(Time, Time)>,
}

impl Timeline {
    fn from_now() -> Timeline {
        let now = clock::now();
        Timeline { zeros: vec![(now, now)] }
    }

    /// Returns the scripts' time at this moment.
    fn at(&self, moment: Time) -> Time {
        let since = self.zeros.iter().rev().find(|(from, _)| *from <= moment);
        Time::ZERO + since.map_or(Duration::ZERO, |(_, zero)| moment.since(*zero))
    }

    /// Adjusts the clock for a frame that is sent now but was due at this time.
    fn waits_for(&mut self, at: Time) {
        let moment = clock::now();
        let late = self.at(moment).since(at);
        if late > LATE {
            let zero = self.zeros[self.zeros.len() - 1].1 + late;
            self.zeros.push((moment, zero));
        }
    }
}

/// Returns all events to send, in order of time.
fn agenda(scripts: &[Script]) -> Vec<(Time, &Event)> {
    let mut all = Vec::new();
    for (script, n) in scripts.iter().zip(0..) {
        let begin = APART.saturating_mul(n);
        all.extend(script.events().iter().map(|event| (event.at + begin, event)));
    }
    all.sort_by_key(|(at, _)| *at);
    all
}

/// Sends a frame. Returns false if there is no room for it now.
fn send(end: &mut End, bytes: &[u8]) -> Result<bool, String> {
    match end.sender.send(&[bytes]) {
        Ok(sent) => Ok(sent == 1),
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(false),
        Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => Ok(false),
        Err(e) => Err(format!("a frame of {} bytes cannot be sent: {e}", bytes.len())),
    }
}

/// Takes the frames that have arrived at an end.
fn listen(
    end: &mut End,
    frames: &mut Frames,
    timeline: &Timeline,
    scripts: &[Script],
    crossed: &mut [Vec<Crossed>],
) -> io::Result<()> {
    let mut inbox = Vec::new();
    end.packets.receive(frames, CHUNKS / 2, clock::now(), &mut inbox)?;
    for (arrived, _, frame) in inbox {
        let bytes: Vec<u8> = frames.parts(&frame).flatten().copied().collect();
        frames.absorb(frame);
        let Some(n) = scripts.iter().position(|s| is_of(&bytes, s)) else { continue };
        let bytes = without_padding(bytes, end.side, &scripts[n]);
        let at = timeline.at(arrived).saturating_sub(APART.saturating_mul(n as u64));
        crossed[n].push(Crossed { at, to: end.side, bytes, checksum: Checksum::Unknown });
    }
    Ok(())
}

/// Returns whether it is a frame of the script's connection.
fn is_of(bytes: &[u8], script: &Script) -> bool {
    let prefix = &script.ends.macs().0[..OF_ALL];
    [0, 6].iter().any(|&at| bytes.get(at..at + OF_ALL) == Some(prefix))
}

/// Returns a frame without the padding that a device has added.
fn without_padding(mut bytes: Vec<u8>, to: Side, script: &Script) -> Vec<u8> {
    let is_it = |e: &&Event| {
        let sent = &e.frame.head;
        e.from == to.other()
            && sent.len() < bytes.len()
            && bytes.starts_with(sent)
            && bytes[sent.len()..].iter().all(|b| *b == 0)
    };
    if bytes.len() == SHORTEST {
        if let Some(len) = script.events().iter().find(is_it).map(|e| e.frame.head.len()) {
            bytes.truncate(len);
        }
    }
    bytes
}
