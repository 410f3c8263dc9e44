//! The pool's accounts, reserve and growth, chains, and copies.

use super::*;
use crate::base::stats::{DropReason, Ledger};

#[test]
fn receiving_leaves_the_reserve_to_made_frames() {
    let mut pool = Frames::new(3, 128, 1);
    let a = pool.receive_copy(&[1; 60], 1514, Time::ZERO).unwrap();
    let b = pool.receive_copy(&[2; 60], 60, Time::ZERO).unwrap();
    assert!(pool.receive_copy(&[3; 60], 60, Time::ZERO).is_none());
    let c = pool.make(60, Time::ZERO).unwrap();
    assert!(pool.make(60, Time::ZERO).is_none());
    assert_eq!((pool.made(), pool.exhausted()), (1, 1));
    assert_eq!((a.len(), a.head_len()), (1514, 60));
    assert_eq!(pool.bytes(&b), [2; 60]);
    assert_eq!(pool.bytes(&c).len(), 60);
    pool.drop(a, DropReason::QueueFull);
    pool.absorb(b);
    pool.transmitted(c);
    assert_eq!(pool.free_chunks(), 3);
    assert_eq!(pool.drops().get(DropReason::QueueFull), 1);
}

#[test]
fn a_giant_segment_counts_as_many() {
    let mut pool = Frames::new(1, 128, 0);
    // 54 bytes of headers and 3 × 1448 + 1 bytes of payload.
    let mut f = pool.receive_copy(&[0; 54], 54 + 3 * 1448 + 1, Time::ZERO).unwrap();
    assert_eq!(f.segments(54), 1);
    f.gso_size = 1448;
    assert_eq!(f.segments(54), 4);
    pool.transmitted(f);
}

#[test]
fn a_copy_of_headers_is_a_frame_of_its_own() {
    let mut pool = Frames::new(3, 128, 0);
    let mut frame = pool.receive_copy(&[7; 60], 1514, Time::ZERO).unwrap();
    (frame.gso_size, frame.checksum) = (1448, Checksum::Valid);
    let short = pool.copy_head(&frame, 20, Time::ZERO).unwrap();
    let whole = pool.copy_head(&frame, 192, Time::ZERO).unwrap();
    assert_eq!(pool.copy_head(&frame, 1, Time::ZERO), None);
    pool.bytes_mut(&frame).fill(9);
    assert_eq!((pool.bytes(&short), pool.bytes(&whole)), (&[7; 20][..], &[7; 60][..]));
    for copy in [short, whole] {
        assert_eq!((copy.len(), copy.gso_size, copy.checksum), (1514, 1448, Checksum::Valid));
        pool.absorb(copy);
    }
    pool.transmitted(frame);
    assert_eq!((pool.made(), pool.exhausted(), pool.ledger().held()), (2, 1, 0));
}

#[test]
fn a_draft_has_no_bytes_until_they_are_written() {
    let mut pool = Frames::new(2, 128, 0);
    let (frame, kept) = pool.make_draft::<5>(1514, Time::ZERO).unwrap();
    *kept = [1, 2, 3, 4, 5];
    assert_eq!((frame.is_draft(), frame.len(), pool.bytes(&frame)), (true, 1514, &[][..]));
    // As much as an untagged packet of that length: all but the Ethernet header, and 14 bytes on top.
    assert_eq!(Charge::of(&frame, pool.bytes(&frame), 14), Charge { packets: 1, bytes: 1500 + 14 });
    let copy = pool.copy_head(&frame, 60, Time::ZERO).unwrap();
    assert_eq!((copy.len(), pool.draft(&copy)), (1514, Some(&[1, 2, 3, 4, 5][..])));
    // It stays a draft while it is parked.
    let parked = pool.park(frame);
    let mut frame = pool.unpark(parked);
    assert_eq!(pool.draft(&frame), Some(&[1, 2, 3, 4, 5][..]));
    pool.write_draft(&mut frame, &[9; 54]);
    assert_eq!((frame.is_draft(), frame.len(), pool.draft(&frame)), (false, 1514, None));
    assert_eq!(pool.bytes(&frame), [9; 54]);
    assert!(copy.is_draft());
    pool.absorb(frame);
    pool.absorb(copy);
    assert_eq!((pool.made(), pool.free_chunks()), (2, 2));
}

/// A frame of 100 + 128 + 7 bytes in three chunks, each filled with its own number.
fn chained(pool: &mut Frames) -> (Frame, [u32; 3]) {
    let chunks = [(); 3].map(|()| pool.take_chunk().unwrap());
    for chunk in chunks {
        let start = chunk as usize * 128;
        pool.memory_mut()[start..start + 128].fill(chunk as u8);
    }
    let mut frame = pool.received(chunks[0], 28, 100, 100 + 128 + 7, Time::ZERO);
    pool.chain(&mut frame, chunks[0], chunks[1]);
    pool.chain(&mut frame, chunks[1], chunks[2]);
    (frame, chunks)
}

#[test]
fn a_giant_segment_lies_in_chained_chunks() {
    let mut pool = Frames::new(4, 128, 0);
    let (frame, chunks) = chained(&mut pool);
    let parts: Vec<(usize, u8)> = pool.parts(&frame).map(|p| (p.len(), p[0])).collect();
    assert_eq!(parts, [(100, chunks[0] as u8), (128, chunks[1] as u8), (7, chunks[2] as u8)]);
    pool.transmitted(frame);
    assert_eq!(pool.free_chunks(), 4);
    // A chunk from a former chain starts alone again.
    let frame = pool.receive_copy(&[1; 60], 60, Time::ZERO).unwrap();
    assert_eq!(pool.parts(&frame).count(), 1);
    pool.absorb(frame);
}

#[test]
fn a_copy_of_a_chain_is_whole_with_what_lies_before_it() {
    let mut pool = Frames::new(7, 128, 0);
    let (mut frame, _) = chained(&mut pool);
    (frame.gso_size, frame.checksum) = (100, Checksum::Partial);
    pool.headroom_mut(&frame).fill(0xee);
    let copy = pool.copy(&frame).unwrap();
    let bytes = |pool: &Frames, frame: &Frame| pool.parts(frame).flatten().copied().collect::<Vec<u8>>();
    let whole = bytes(&pool, &frame);
    assert_eq!((bytes(&pool, &copy), pool.headroom(&copy)), (whole.clone(), &[0xee; 28][..]));
    assert_eq!((copy.len(), copy.gso_size, copy.checksum), (235, 100, Checksum::Partial));
    // One chunk is left, too few for another copy. Its first chunk is given back.
    assert_eq!((pool.copy(&frame), pool.free_chunks(), pool.made(), pool.exhausted()), (None, 1, 1, 1));
    // Reads each byte by its offset, in any of the chunks.
    for at in [0, 99, 100, 227, 228, 234] {
        *pool.byte_mut(&copy, at).unwrap() ^= 0xff;
        assert_eq!(bytes(&pool, &copy)[at], !whole[at]);
        assert_eq!(bytes(&pool, &copy).iter().zip(&whole).filter(|(a, b)| a != b).count(), 1);
        *pool.byte_mut(&copy, at).unwrap() ^= 0xff;
    }
    assert_eq!(bytes(&pool, &frame), whole);
    pool.transmitted(frame);
    pool.drop(copy, DropReason::QueueFull);
    assert_eq!(pool.free_chunks(), 7);
    let headers = pool.receive_copy(&[1; 60], 1514, Time::ZERO).unwrap();
    assert_eq!(pool.byte_mut(&headers, 60), None);
    pool.absorb(headers);
}

#[test]
fn a_chain_is_given_back_whole_whichever_way_it_leaves() {
    let exits: [fn(&mut Frames, Frame); 4] = [
        |pool, frame| pool.transmitted(frame),
        |pool, frame| pool.drop(frame, DropReason::QueueFull),
        |pool, frame| pool.absorb(frame),
        |pool, frame| pool.consumed(frame),
    ];
    let mut pool = Frames::new(4, 128, 0);
    let mut list = List::new();
    for exit in exits {
        let (frame, _) = chained(&mut pool);
        // The frame is whole after parking, too.
        let frame = pool.park(frame);
        list.push(&mut pool, Waiting { frame, charge: Charge::default(), since: Time::ZERO });
        let frame = list.pop(&pool).unwrap().frame;
        let frame = pool.unpark(frame);
        assert_eq!((pool.parts(&frame).count(), pool.free_chunks()), (3, 1));
        exit(&mut pool, frame);
        // Each chunk is present once.
        let mut free: Vec<u32> = (0..4).map(|_| pool.take_chunk().unwrap()).collect();
        assert_eq!(pool.take_chunk(), None);
        for &chunk in &free {
            let frame = pool.received(chunk, 0, 0, 0, Time::ZERO);
            pool.consumed(frame);
        }
        free.sort_unstable();
        assert_eq!(free, [0, 1, 2, 3]);
    }
}

#[test]
fn a_growing_pool_grows_by_half_and_keeps_what_it_holds() {
    let mut pool = Frames::growing(128);
    let mut frames = Vec::new();
    for n in 0..3000u32 {
        frames.push(pool.receive_copy(&n.to_be_bytes(), 60, Time::ZERO).unwrap());
    }
    for n in 3000..4500u32 {
        frames.push(pool.make_head(&n.to_be_bytes(), 60, Time::ZERO).unwrap());
    }
    for n in 4500..5000u32 {
        let frame = pool.make(4, Time::ZERO).unwrap();
        pool.bytes_mut(&frame).copy_from_slice(&n.to_be_bytes());
        frames.push(frame);
    }
    // 1024, 1536, 2304, 3456, 5184.
    assert_eq!((pool.chunks(), pool.exhausted()), (5184, 0));
    assert_eq!(pool.ledger().held(), 5000);
    for (n, f) in (0u32..).zip(frames) {
        assert_eq!(pool.bytes(&f), n.to_be_bytes());
        assert_eq!(pool.bytes(&f).as_ptr().addr() % 64, 0, "chunks begin cache lines");
        match n % 3 {
            0 => pool.transmitted(f),
            1 => pool.absorb(f),
            _ => pool.drop(f, DropReason::Shutdown),
        }
    }
    let Ledger { received, made, sent, absorbed, drops } = pool.ledger();
    assert_eq!((received, made, sent, absorbed, drops.total()), (3000, 2000, 1667, 1667, 1666));
    assert_eq!((pool.ledger().held(), pool.free_chunks()), (0, 5184));
}

#[test]
fn a_handle_is_small() {
    assert!(core::mem::size_of::<Frame>() <= 32);
}
