//! Checksums of segments that lie in several chunks of a pool.

use super::super::build::{SegmentBuilder, Sum};
use super::super::*;
use super::properties::segments;
use crate::base::time::Time;
use crate::packet::frame::{Checksum, Frame, Frames};
use proptest::prelude::*;

/// Puts the frame into a pool whose chunks have `size` bytes: `head` of its bytes in the first one, and the
/// rest in up to `present` more chunks.
fn chained(bytes: &[u8], size: usize, head: usize, present: usize) -> (Frames, Frame) {
    let mut pool = Frames::new(64, size, 0);
    let head = head.min(size).min(bytes.len());
    let first = pool.take_chunk().unwrap();
    pool.memory_mut()[(first as usize + 1) * size - head..][..head].copy_from_slice(&bytes[..head]);
    let mut frame = pool.received(first, size - head, head, bytes.len(), Time::ZERO);
    let mut last = first;
    for part in bytes[head..].chunks(size).take(present) {
        let chunk = pool.take_chunk().unwrap();
        pool.memory_mut()[chunk as usize * size..][..part.len()].copy_from_slice(part);
        pool.chain(&mut frame, last, chunk);
        last = chunk;
    }
    (pool, frame)
}

fn whole(pool: &Frames, frame: &Frame) -> Vec<u8> {
    pool.parts(frame).flatten().copied().collect()
}

proptest! {
    /// Headers and options are 134 bytes at most before extension headers, which may make it 182.
    #[test]
    fn it_is_the_same_however_the_segment_lies(
        s in segments(), data in prop::collection::vec(any::<u8>(), 0..900), size in 200usize..300, head in 182usize..300,
        sum in prop::sample::select(vec![Sum::Valid, Sum::Partial, Sum::Wrong]), udp: bool,
    ) {
        let s = if udp { s.udp() } else { s }.data(&data);
        let bytes = s.clone().checksum(sum).build();
        let p = packet(&bytes, bytes.len()).unwrap();
        let (mut pool, frame) = chained(&bytes, size, head, usize::MAX);
        prop_assert_eq!(&whole(&pool, &frame), &bytes);
        prop_assert_eq!(checksum::verify_frame(&pool, &frame, &p), checksum::verify(&bytes, bytes.len(), &p));
        prop_assert!(checksum::complete_frame(&mut pool, &frame));
        prop_assert_eq!(whole(&pool, &frame), s.checksum(Sum::Valid).build());
    }
}

/// 1,000 bytes of payload behind 54 of headers, 10 of them in the first chunk: 64, then 200 each.
fn segment(sum: Sum, present: usize) -> (Frames, Frame, Packet) {
    let data: Vec<u8> = (0..1000u32).map(|n| (n * n) as u8).collect();
    let bytes = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).data(&data).checksum(sum).build();
    let (pool, frame) = chained(&bytes, 200, 64, present);
    let p = packet(&bytes, bytes.len()).unwrap();
    (pool, frame, p)
}

#[test]
fn a_chain_of_which_a_part_is_absent_is_unknown() {
    for sum in [Sum::Valid, Sum::Partial, Sum::Wrong] {
        for present in 0..5 {
            let (mut pool, frame, p) = segment(sum, present);
            assert_eq!(checksum::verify_frame(&pool, &frame, &p), Checksum::Unknown);
            let before = whole(&pool, &frame);
            assert!(!checksum::complete_frame(&mut pool, &frame));
            assert_eq!(whole(&pool, &frame), before);
        }
    }
}

#[test]
fn a_byte_that_is_wrong_in_any_chunk_is_found() {
    for part in 0..6 {
        let (mut pool, frame, p) = segment(Sum::Valid, usize::MAX);
        assert_eq!(checksum::verify_frame(&pool, &frame, &p), Checksum::Valid);
        let start = pool.parts(&frame).nth(part).unwrap().as_ptr() as usize;
        let memory = pool.memory_mut();
        let at = start - memory.as_ptr() as usize + 60;
        memory[at] ^= 1;
        assert_eq!(checksum::verify_frame(&pool, &frame, &p), Checksum::Invalid, "chunk {part}");
    }
}

/// A device that joins packets may leave the checksum of the first of them.
#[test]
fn a_giant_is_never_invalid_by_a_checksum_of_its_parts() {
    let (pool, mut frame, p) = segment(Sum::Wrong, usize::MAX);
    frame.gso_size = 500;
    assert_eq!(checksum::verify_frame(&pool, &frame, &p), Checksum::Unknown);
    let (pool, mut frame, p) = segment(Sum::Partial, usize::MAX);
    frame.gso_size = 500;
    assert_eq!(checksum::verify_frame(&pool, &frame, &p), Checksum::Partial);
}
