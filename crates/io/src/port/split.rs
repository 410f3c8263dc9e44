//! Cutting of giant segments into their packets, as the kernel does it (`tcp_gso_segment()`,
//! `__udp_gso_segment()`), for links that lose, mark and delay single packets.
//!
//! Checksums stay noted: the sender of a packet completes each over the packet's own pseudo-header.

use super::{CHUNK, HEAD};
use crate::bpf::Metadata;
use crate::sys::packet::Vnet;
use weir_core::frame::{Checksum, Frame, Frames};
use weir_core::wire::{self, checksum, Packet, TCP, UDP};

const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// Cutter of giant segments.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    whole: Vec<u8>,
}

/// Layout of a giant segment.
struct Layout {
    packet: Packet,
    /// Bytes of all headers.
    headers: usize,
    /// Offset of the checksum field.
    field: usize,
    mss: usize,
}

impl Layout {
    /// Returns `None` for segments that cannot be cut: other protocols, tunnels, complete checksums.
    fn of(bytes: &[u8], len: usize, gso_size: u16, notes: Vnet) -> Option<Layout> {
        let packet = wire::packet(bytes, len).ok()?;
        let l4 = packet.l4 as usize;
        let (header, field) = match packet.protocol {
            TCP => (wire::tcp(bytes, &packet).ok()?.header_len as usize, l4 + 16),
            UDP => (8, l4 + 6),
            _ => return None,
        };
        let noted = notes.flags & Vnet::NEEDS_CHECKSUM != 0 && notes.checksum_start as usize == l4;
        let (headers, mss) = (l4 + header, gso_size as usize);
        let fits = HEAD + headers + mss <= CHUNK && bytes.len() >= headers && packet.end as usize == len;
        (noted && fits && mss > 0).then_some(Layout { packet, headers, field, mss })
    }
}

impl Splitter {
    /// Gives the packets of a giant segment to `each`, or the frame itself if it is not giant or cannot be
    /// cut. Returns the number of packets that found no room in the pool.
    pub fn split(&mut self, frames: &mut Frames, frame: Frame, mut each: impl FnMut(Frame)) -> usize {
        let headroom = frames.headroom(&frame);
        let notes = headroom.last_chunk().map(Vnet::read).unwrap_or_default();
        let metadata: [u8; Metadata::LEN] = headroom.first_chunk().copied().unwrap_or_default();
        let layout = Layout::of(frames.bytes(&frame), frame.len(), frame.gso_size, notes);
        let Some(layout) = layout.filter(|_| frame.gso_size != 0) else {
            each(frame);
            return 0;
        };
        self.whole.clear();
        frames.parts(&frame).for_each(|part| self.whole.extend_from_slice(part));
        let (at, hint) = (frame.received, frame.hint);
        frames.consumed(frame);
        let payload = self.whole.len() - layout.headers;
        let count = payload.div_ceil(layout.mss).max(1);
        for i in 0..count {
            let Some(chunk) = frames.take_chunk() else { return count - i };
            let from = layout.headers + i * layout.mss;
            let part = &self.whole[from..self.whole.len().min(from + layout.mss)];
            let len = layout.headers + part.len();
            let start = chunk as usize * CHUNK;
            let memory = &mut frames.memory_mut()[start..start + CHUNK];
            let notes = Vnet { gso_type: 0, gso_size: 0, header: 0, ..notes };
            memory[HEAD - Vnet::LEN..HEAD].copy_from_slice(&notes.bytes());
            memory[..Metadata::LEN].copy_from_slice(&metadata);
            let bytes = &mut memory[HEAD..HEAD + len];
            bytes[..layout.headers].copy_from_slice(&self.whole[..layout.headers]);
            bytes[layout.headers..].copy_from_slice(part);
            number(bytes, &layout, i, i + 1 == count);
            let mut packet = frames.received(chunk, HEAD, len, len, at);
            (packet.checksum, packet.hint) = (Checksum::Partial, hint);
            each(packet);
        }
        0
    }
}

fn get(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Makes the headers those of packet number `i`.
fn number(bytes: &mut [u8], layout: &Layout, i: usize, last: bool) {
    let Layout { packet, field, mss, .. } = layout;
    let (l3, l4, end) = (packet.l3 as usize, packet.l4 as usize, bytes.len());
    if packet.version == 4 {
        put(bytes, l3 + 2, (end - l3) as u16);
        put(bytes, l3 + 4, get(bytes, l3 + 4).wrapping_add(i as u16));
        put(bytes, l3 + 10, 0);
        let sum = !checksum::sum(&bytes[l3..l3 + usize::from(bytes[l3] & 15) * 4]);
        put(bytes, l3 + 10, sum);
    } else {
        put(bytes, l3 + 4, (end - l3 - 40) as u16);
    }
    // The field holds the sum of the pseudo-header, not complemented.
    let length = (packet.end as usize - l4) as u16;
    put(bytes, *field, !checksum::update16(!get(bytes, *field), length, (end - l4) as u16));
    if packet.protocol == UDP {
        return put(bytes, l4 + 4, (end - l4) as u16);
    }
    let seq = u32::from_be_bytes([bytes[l4 + 4], bytes[l4 + 5], bytes[l4 + 6], bytes[l4 + 7]]);
    bytes[l4 + 4..l4 + 8].copy_from_slice(&seq.wrapping_add((i * mss) as u32).to_be_bytes());
    if !last {
        bytes[l4 + 13] &= !FIN_PSH;
    }
    if i > 0 {
        bytes[l4 + 13] &= !CWR;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::time::Time;
    use weir_core::wire::build::{SegmentBuilder, Sum};
    use weir_core::wire::Flags;

    /// Puts a giant segment into the pool as a packet socket does.
    fn receive(frames: &mut Frames, bytes: &[u8], notes: Vnet) -> Frame {
        let mut chunks = vec![frames.take_chunk().unwrap()];
        let head = bytes.len().min(CHUNK - HEAD);
        let rest: Vec<&[u8]> = bytes[head..].chunks(CHUNK).collect();
        chunks.extend(rest.iter().map(|_| frames.take_chunk().unwrap()));
        let memory = frames.memory_mut();
        let first = chunks[0] as usize * CHUNK;
        memory[first + HEAD - Vnet::LEN..first + HEAD].copy_from_slice(&notes.bytes());
        memory[first + HEAD..first + HEAD + head].copy_from_slice(&bytes[..head]);
        for (part, chunk) in rest.iter().zip(&chunks[1..]) {
            memory[*chunk as usize * CHUNK..][..part.len()].copy_from_slice(part);
        }
        let mut frame = frames.received(chunks[0], HEAD, head, bytes.len(), Time::from_nanos(7));
        for pair in chunks.windows(2) {
            frames.chain(&mut frame, pair[0], pair[1]);
        }
        (frame.gso_size, frame.checksum) = (notes.gso_size, Checksum::Partial);
        frame
    }

    fn notes(l4: u16, offset: u16, gso_size: u16) -> Vnet {
        Vnet { flags: 1, gso_type: 1, gso_size, checksum_start: l4, checksum_offset: offset, header: l4 + 20 }
    }

    /// Cuts a segment and completes the checksum of each packet.
    fn packets(segment: &SegmentBuilder, notes: Vnet) -> Vec<Vec<u8>> {
        let mut frames = Frames::new(64, CHUNK, 0);
        let giant = segment.clone().checksum(Sum::Partial).build();
        let frame = receive(&mut frames, &giant, notes);
        let mut cut = Vec::new();
        assert_eq!(Splitter::default().split(&mut frames, frame, |packet| cut.push(packet)), 0);
        let bytes = |frame: Frame| {
            assert_eq!(
                (frame.gso_size, frame.checksum, frame.received),
                (0, Checksum::Partial, Time::from_nanos(7))
            );
            let mut bytes = frames.bytes(&frame).to_vec();
            let len = bytes.len();
            frames.transmitted(frame);
            assert!(checksum::complete(&mut bytes, len));
            bytes
        };
        let cut = cut.into_iter().map(bytes).collect();
        assert_eq!(frames.free_chunks(), 64);
        cut
    }

    #[test]
    fn packets_are_those_that_a_device_would_make() {
        let data: Vec<u8> = (0..10_000u32).map(|i| i as u8).collect();
        let flags = Flags::ACK | Flags::PSH | Flags::CWR;
        let four = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).vlan(5);
        let six = SegmentBuilder::v6([1; 8], [2; 8]);
        for (segment, l4) in [(four, 38), (six, 54)] {
            let segment = segment.seq(u32::MAX - 1000).ts(3, 4).flags(flags);
            let cut = packets(&segment.clone().data(&data), notes(l4, 16, 1400));
            assert_eq!(cut.len(), 8);
            for (i, (packet, part)) in cut.iter().zip(data.chunks(1400)).enumerate() {
                let flags = match i {
                    0 => Flags::ACK | Flags::CWR,
                    7 => Flags::ACK | Flags::PSH,
                    _ => Flags::ACK,
                };
                let seq = (u32::MAX - 1000).wrapping_add(i as u32 * 1400);
                let mut wanted = segment.clone().seq(seq).flags(flags).data(part).build();
                // The identification counts up. Everything else is as if the packet had been sent alone.
                if wanted[18] == 0x45 {
                    let id = get(&wanted, 22).wrapping_add(i as u16);
                    put(&mut wanted, 22, id);
                    put(&mut wanted, 28, 0);
                    let sum = !checksum::sum(&wanted[18..38]);
                    put(&mut wanted, 28, sum);
                }
                assert_eq!(*packet, wanted, "{i}");
            }
        }
    }

    #[test]
    fn datagrams_are_cut_too() {
        let segment = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).udp().data(&[9; 3000]);
        let cut = packets(&segment, notes(34, 6, 1200));
        assert_eq!(cut.iter().map(Vec::len).collect::<Vec<_>>(), [42 + 1200, 42 + 1200, 42 + 600]);
        for packet in cut {
            let parsed = wire::packet(&packet, packet.len()).unwrap();
            assert_eq!(checksum::verify(&packet, packet.len(), &parsed), Checksum::Valid);
        }
    }

    #[test]
    fn what_cannot_be_cut_stays_whole() {
        let mut frames = Frames::new(8, CHUNK, 0);
        let giant = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).payload(4000).build();
        for notes in [notes(34, 16, 0), Vnet { flags: 0, ..notes(34, 16, 1400) }, notes(84, 16, 1400)] {
            let frame = receive(&mut frames, &giant, notes);
            let mut lens = Vec::new();
            Splitter::default().split(&mut frames, frame, |frame| lens.push(frame));
            let frame = lens.pop().unwrap();
            assert_eq!((lens.len(), frame.len()), (0, giant.len()));
            frames.transmitted(frame);
        }
        assert_eq!(frames.free_chunks(), 8);
    }

    #[test]
    fn a_pool_without_room_loses_the_rest() {
        let mut frames = Frames::new(4, CHUNK, 1);
        let giant =
            SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).payload(4000).checksum(Sum::Partial).build();
        let frame = receive(&mut frames, &giant, notes(34, 16, 1000));
        let mut kept = Vec::new();
        assert_eq!(Splitter::default().split(&mut frames, frame, |frame| kept.push(frame)), 1);
        assert_eq!(kept.len(), 3);
        kept.into_iter().for_each(|frame| frames.transmitted(frame));
    }
}
