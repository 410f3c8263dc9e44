//! Whole frames from a packet socket, received straight into chunks of the pool.
//!
//! A frame's first chunk begins with its metadata ([`Metadata`]), room for a VLAN tag that hardware or a
//! virtual device took out, and the kernel's notes on the frame ([`Vnet`]).

use super::places::Places;
use super::split::Splitter;
use super::{CHUNK, HEAD};
use crate::bpf::{Arriving, Metadata};
use crate::sys::packet::{self, Received, Receiver, Vnet};
use crate::sys::pod::bytes_of;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use weir_core::combined::{LAN_WHOLE, WAN_WHOLE};
use weir_core::frame::{Checksum, Frame, Frames};
use weir_core::gateway::{LAN, WAN};
use weir_core::node::Port;
use weir_core::time::Time;

/// Bytes of an Ethernet header's two addresses; a VLAN tag follows them.
const ADDRESSES: usize = 12;
pub(super) const TAG: usize = 4;
/// Most frames received at once.
const BATCH: usize = 32;
/// Approximate bytes received at once. They are few enough to be still in the processor's own cache when they
/// are copied again, as leaving frames.
const BATCH_BYTES: usize = 128 << 10;
/// Memory of frames that waited if some were lost for want of room: much less than a socket's buffer has.
const MUCH: u64 = 1 << 20;
/// Memory of a waiting frame beyond its bytes, at least.
const BESIDE: u64 = 512;
/// Chunks of the longest frame, which has 64 KiB of IP packet.
const PARTS: usize = (14 + 2 * TAG + 65_535 - (CHUNK - HEAD)).div_ceil(CHUNK) + 1;

/// Counters of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputStats {
    /// Frames received.
    pub received: u64,
    /// Bytes of these frames.
    pub received_bytes: u64,
    /// Giant segments among them.
    pub giant: u64,
    /// Frames lost because they are longer than 64 KiB.
    pub too_long: u64,
    /// Packets of giant segments lost for want of room in the pool.
    pub no_room: u64,
    /// Frames lost in the kernel because they were not received in time.
    pub lost: u64,
}

/// Frames that an interface receives.
#[derive(Debug)]
pub struct Packets {
    port: Port,
    receiver: Receiver,
    /// Memory for the next frames, [`PARTS`] chunks each.
    places: Places,
    /// Cutter, if giant segments are to be cut.
    splitter: Option<Splitter>,
    always_splits: bool,
    /// Average bytes of the frames received at once last.
    typical: usize,
    /// Metadata of the frames, if hooks leave any.
    metadata: Option<Arriving>,
    /// Frames read, whatever became of them.
    came: u64,
    /// True if none waited at the last read.
    empty: bool,
    /// Memory of the frames read since none waited.
    backlog: u64,
    stats: InputStats,
}

impl Packets {
    /// Opens the frames that the interface numbered `ifindex` receives, for the node's `port`.
    pub fn open(port: Port, ifindex: u32, promiscuous: bool) -> io::Result<Packets> {
        let receiver = Receiver::open(ifindex, promiscuous, BATCH, PARTS)?;
        let stats = InputStats::default();
        Ok(Packets {
            port,
            receiver,
            places: Places::new(BATCH, PARTS),
            splitter: None,
            always_splits: false,
            typical: CHUNK,
            metadata: None,
            came: 0,
            empty: true,
            backlog: 0,
            stats,
        })
    }

    /// Gives frames the metadata that the hooks have left, and delivers them at their departure times, from
    /// now on.
    pub fn take_metadata(&mut self, records: Arriving) -> io::Result<()> {
        self.receiver.receive_marks()?;
        self.metadata = Some(records);
        Ok(())
    }

    /// Cuts giant segments from now on, whatever [`Packets::set_split`] says.
    pub fn split_always(&mut self) {
        self.always_splits = true;
        self.set_split(true);
    }

    /// Sets whether giant segments come in as single packets or, if they may, whole.
    pub fn set_split(&mut self, split: bool) {
        let split = split || self.always_splits;
        if split != self.splitter.is_some() {
            self.splitter = split.then(Splitter::default);
        }
    }

    /// Counters since the start.
    pub fn stats(&mut self) -> InputStats {
        self.stats.lost = self.receiver.dropped();
        self.stats
    }

    /// Frames that have come so far for the node's `port`, those lost for want of room among them, if it is
    /// this input's and none waits.
    pub fn came(&self, port: Port) -> Option<u64> {
        let is = |whole, part| self.port == whole && port == part;
        let same = self.port == port || is(LAN_WHOLE, LAN) || is(WAN_WHOLE, WAN);
        (same && self.empty).then_some(self.came + self.stats.lost)
    }

    /// Takes at most `limit` frames of about `BATCH_BYTES` together, and puts them into `inbox`. Frames
    /// without a stamp get `now`.
    ///
    /// `frames` is always the same pool.
    pub fn receive(
        &mut self,
        frames: &mut Frames,
        limit: usize,
        now: Time,
        inbox: &mut Vec<(Time, Port, Frame)>,
    ) -> io::Result<()> {
        let (mut left, mut bytes) = (limit, 0);
        while left > 0 && bytes < BATCH_BYTES {
            let fit = ((BATCH_BYTES - bytes) / self.typical).max(1);
            let count = self.places.refill(frames).min(left).min(fit);
            self.aim(frames, count);
            let got = self.receiver.receive(count)?;
            self.came += got as u64;
            self.empty = got < count;
            if got == 0 {
                break;
            }
            let before = self.stats.received_bytes;
            let (read, realtime) = packet::clocks();
            for i in 0..got {
                let received = self.receiver.received(i, realtime, read);
                let Some(frame) = self.frame(frames, i, received, now) else { continue };
                let mut push = |frame: Frame| inbox.push((frame.received, self.port, frame));
                match &mut self.splitter {
                    Some(splitter) => self.stats.no_room += splitter.split(frames, frame, push) as u64,
                    None => push(frame),
                }
            }
            let new = (self.stats.received_bytes - before) as usize;
            self.typical = (new / got).max(1);
            (left, bytes) = (left - got, bytes + new);
            self.backlog += new as u64 + got as u64 * BESIDE;
            if got < count {
                break;
            }
        }
        self.note_backlog();
        Ok(())
    }

    /// Counts lost frames where a whole buffer of them may have waited.
    fn note_backlog(&mut self) {
        if self.empty && std::mem::take(&mut self.backlog) >= MUCH {
            self.stats.lost = self.receiver.dropped();
        }
    }

    /// Tells the kernel where the first `count` frames to come are to lie.
    fn aim(&mut self, frames: &mut Frames, count: usize) {
        let receiver = &mut self.receiver;
        self.places.tell(frames, count, |to| {
            // SAFETY: the chunks have been taken and are in no frame, so that nothing uses them until `frame`
            // makes them part of one. The pool is not used before the call that follows this one.
            unsafe { receiver.set_part(to.frame, to.part, to.start, to.len) };
        });
    }

    /// Makes a frame of the memory numbered `i`.
    fn frame(&mut self, frames: &mut Frames, i: usize, received: Received, now: Time) -> Option<Frame> {
        let chunks = self.places.chunks(i);
        let len = received.len.checked_sub(Vnet::LEN).filter(|len| *len >= ADDRESSES)?;
        if received.cut {
            if self.stats.too_long == 0 {
                tracing::warn!("segments of more than 64 KiB come in and are lost: their senders use BIG TCP (`gso_max_size`)");
            }
            self.stats.too_long += 1;
            return None;
        }
        let mut at = received.at.map_or(now, |at| at.min(now));
        let head = len.min(CHUNK - HEAD);
        let first = chunks[0];
        let memory = &mut frames.memory_mut()[first as usize * CHUNK..];
        let metadata = self.metadata.as_ref().and_then(|records| records.get(received.mark));
        match metadata {
            Some(metadata) => {
                memory[..Metadata::LEN].copy_from_slice(bytes_of(&metadata));
                at = at.max(Time::from_nanos(metadata.departure));
            }
            None => Metadata::renumber(memory, 0),
        }
        let added = restore_tag(memory, received.tag);
        let vnet = memory[HEAD - added - Vnet::LEN..].first_chunk().expect("a chunk is longer");
        let vnet = Vnet::read(vnet);
        let mut frame = frames.received(first, HEAD - added, head + added, len + added, at);
        frame.gso_size = if vnet.gso_type == 0 { 0 } else { vnet.gso_size };
        if let Some(number) = metadata.and_then(|metadata| metadata.spilled.checked_sub(1)) {
            frame.hint = number;
        }
        if vnet.flags & Vnet::NEEDS_CHECKSUM != 0 {
            frame.checksum = Checksum::Partial;
        }
        let mut last = first;
        let used = 1 + (len - head).div_ceil(CHUNK);
        for &next in &chunks[1..used] {
            frames.chain(&mut frame, last, next);
            last = next;
        }
        self.places.took(i, used);
        self.stats.received += 1;
        self.stats.received_bytes += len as u64;
        self.stats.giant += u64::from(frame.gso_size != 0);
        Some(frame)
    }
}

impl AsFd for Packets {
    /// Readable when frames have arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}

/// Puts a tag back into the frame whose first chunk is `chunk`. Returns the bytes by which the frame begins
/// earlier.
fn restore_tag(chunk: &mut [u8], tag: Option<(u16, u16)>) -> usize {
    let Some((protocol, tag)) = tag else { return 0 };
    let notes = HEAD - Vnet::LEN;
    let vnet = Vnet::read(chunk[notes..].first_chunk().expect("a chunk is longer")).moved(TAG as i16);
    chunk.copy_within(HEAD..HEAD + ADDRESSES, HEAD - TAG);
    chunk[notes - TAG..HEAD - TAG].copy_from_slice(&vnet.bytes());
    let at = HEAD - TAG + ADDRESSES;
    chunk[at..at + 2].copy_from_slice(&protocol.to_be_bytes());
    chunk[at + 2..at + TAG].copy_from_slice(&tag.to_be_bytes());
    TAG
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_goes_back_to_its_place() {
        let mut chunk = [0; 64];
        let vnet = Vnet { flags: 1, gso_type: 1, header: 54, checksum_start: 34, ..Vnet::default() };
        chunk[30..40].copy_from_slice(&vnet.bytes());
        for (i, byte) in chunk[40..56].iter_mut().enumerate() {
            *byte = i as u8;
        }
        assert_eq!(restore_tag(&mut chunk, None), 0);
        assert_eq!(restore_tag(&mut chunk, Some((0x8100, 5))), 4);
        assert_eq!(chunk[36..56], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0x81, 0, 0, 5, 12, 13, 14, 15]);
        let vnet = Vnet::read(chunk[26..].first_chunk().unwrap());
        assert_eq!((vnet.checksum_start, vnet.header), (38, 58));
    }

    #[test]
    fn the_longest_packet_has_its_chunks() {
        assert_eq!(PARTS, 33);
    }
}
