//! Segments as the simulator's hosts hand them to each other: as a
//! [draft](weir_core::frame::Frame::is_draft), whose headers are written only when they are read.
//!
//! Contents, least significant byte first: addresses and ports ([`Header`]), then the fields of the segment,
//! and SACK blocks if there are any. Segments with SYN options are never drafts.

use super::{Addressed, Header, Segment, SynOptions, ENDS, L4, MAX_HEAD, TCP};
use crate::cache;
use weir_core::frame::{Frame, Frames};
use weir_core::time::Time;
use weir_core::wire::{Flags, SackBlocks, Seq, Timestamps};

/// Bytes of a draft, and the offset of the SACK blocks at its end.
const DRAFT: usize = 88;
const SACK: usize = 56;
/// Bit of the byte after the flags: timestamps are present. The lower bits are the number of SACK blocks and
/// the ECN field.
const TIMESTAMPS: u8 = 0x80;
/// Bit of that byte: the headers are to be those of a datagram.
pub(super) const OPAQUE: u8 = 0x04;
const BLOCKS: u32 = 4;

/// Makes a draft of `s`; `None` when the pool has no chunk left.
#[inline(always)]
pub(super) fn make(frames: &mut Frames, header: &Header, s: &Segment, now: Time) -> Option<Frame> {
    let len = L4 + TCP + s.options_len() + s.payload as usize;
    let (mut frame, draft) = frames.make_draft::<DRAFT>(len, now)?;
    frame.hint = header.hint();
    let Timestamps { value, echo } = s.timestamps.unwrap_or_default();
    let stamped = if s.timestamps.is_some() { TIMESTAMPS } else { 0 };
    draft[..ENDS].copy_from_slice(&header.ends);
    draft[32..36].copy_from_slice(&s.seq.to_le_bytes());
    draft[36..40].copy_from_slice(&s.ack.to_le_bytes());
    draft[40..44].copy_from_slice(&value.to_le_bytes());
    draft[44..48].copy_from_slice(&echo.to_le_bytes());
    draft[48..50].copy_from_slice(&s.window.to_le_bytes());
    draft[50..52].copy_from_slice(&s.flags.0.to_le_bytes());
    draft[52] = stamped | s.sack.count << BLOCKS | header.opaque | s.ecn;
    draft[53] = header.tos;
    if !s.sack.is_empty() {
        write_blocks(&mut draft[SACK..], &s.sack);
    }
    Some(frame)
}

fn write_blocks(bytes: &mut [u8], sack: &SackBlocks) {
    for (bytes, (left, right)) in bytes.chunks_exact_mut(8).zip(sack.as_slice()) {
        bytes[..4].copy_from_slice(&left.0.to_le_bytes());
        bytes[4..].copy_from_slice(&right.0.to_le_bytes());
    }
}

/// Reads the destination and the segment from a draft of a frame of `len` bytes.
#[inline(always)]
pub(super) fn read(draft: &[u8], len: usize) -> Option<(Addressed, Segment)> {
    let draft: &[u8; DRAFT] = draft.first_chunk()?;
    let le32 = |i: usize| u32::from_le_bytes([draft[i], draft[i + 1], draft[i + 2], draft[i + 3]]);
    let le16 = |i: usize| u16::from_le_bytes([draft[i], draft[i + 1]]);
    let key = u64::from(le32(12)) | u64::from(le32(16)) << 32;
    let to = Addressed { key, number: le32(28), sender: le32(24) };
    let notes = draft[52];
    let stamped = notes & TIMESTAMPS != 0;
    let count = (notes & !TIMESTAMPS) >> BLOCKS;
    let mut segment = Segment {
        seq: le32(32),
        ack: le32(36),
        flags: Flags(le16(50)),
        window: le16(48),
        ecn: notes & 3,
        payload: 0,
        timestamps: stamped.then(|| Timestamps { value: le32(40), echo: le32(44) }),
        sack: SackBlocks::default(),
        syn: SynOptions::default(),
    };
    if count > 0 {
        segment.sack = read_blocks(&draft[SACK..], count);
    }
    segment.payload = len.saturating_sub(L4 + TCP + segment.options_len()) as u32;
    Some((to, segment))
}

fn read_blocks(bytes: &[u8], count: u8) -> SackBlocks {
    let mut sack = SackBlocks { count, ..SackBlocks::default() };
    for (block, b) in sack.blocks.iter_mut().zip(bytes.chunks_exact(8)).take(count.into()) {
        let (left, right) = ([b[0], b[1], b[2], b[3]], [b[4], b[5], b[6], b[7]]);
        *block = (Seq(u32::from_le_bytes(left)), Seq(u32::from_le_bytes(right)));
    }
    sack
}

/// Prefetches a draft into the cache. Without SACK blocks it is one line.
#[inline]
pub(crate) fn prefetch(draft: &[u8]) {
    draft.first().into_iter().for_each(cache::prefetch);
}

/// Returns the destination of a draft: the IPv4 address.
pub(crate) fn destination(draft: &[u8]) -> Option<u32> {
    draft.get(20..24)?.try_into().ok().map(u32::from_le_bytes)
}

/// Writes the headers of a draft. Any other frame stays as it is.
#[inline(never)]
pub(crate) fn write_out(frames: &mut Frames, frame: &mut Frame) {
    let Some(draft) = frames.draft(frame) else { return };
    let (Some(ends), Some((_, segment))) = (draft.first_chunk(), read(draft, frame.len())) else { return };
    let mut head = [0; MAX_HEAD];
    let header = Header { ends: *ends, opaque: draft[52] & OPAQUE, tos: draft[53] };
    let len = header.write(&mut head, &segment);
    frames.write_draft(frame, &head[..len]);
}
