//! Properties over random segments, rewrites and bytes.

use crate::wire::Seq;
use proptest::prelude::*;

use super::super::build::{SegmentBuilder, Sum};
use super::super::*;
use super::vectors::all;
use crate::packet::frame::Checksum;

/// Calls everything that a gateway calls for a frame, in order, to show that nothing panics.
fn exercise(bytes: &[u8], frame_len: usize) -> Result<(Packet, Tcp, TcpOptions), Reject> {
    let mut copy = bytes.to_vec();
    checksum::complete(&mut copy, frame_len);
    let p = packet(bytes, frame_len)?;
    assert!(p.end as usize <= frame_len && p.l3 < p.l4 && p.l4 as u32 <= p.end);
    checksum::verify(bytes, frame_len, &p);
    let state = checksum::quick(bytes, frame_len, &p);
    set_ack(&mut copy, &p, Seq(1), state);
    set_window(&mut copy, &p, 1, state);
    let t = tcp(bytes, &p)?;
    assert_eq!(p.l4 as u32 + t.header_len as u32 + t.payload_len, p.end);
    set_timestamps(&mut copy, &p, &t, Timestamps::default(), Checksum::Unknown);
    let o = tcp_options(bytes, &p, &t)?;
    assert!(o.window_scale.is_none_or(|s| s <= 14) && o.sack.count <= 4);
    Ok((p, t, o))
}

/// Adds one of the builder's options, by number.
fn with_option(segment: SegmentBuilder, which: u8, x: u32) -> SegmentBuilder {
    match which {
        0 => segment.ts(x, !x),
        1 => segment.raw_options(&[1]),
        2 => segment.raw_options(&[1]).option(8, &[x as u8; 8]),
        3 => segment.sack(&[(x, x.wrapping_add(9))]),
        4 => segment.mss(x as u16),
        5 => segment.window_scale(x as u8),
        6 => segment.option(172, &[x as u8; 3]),
        _ => segment,
    }
}

prop_compose! {
    pub(super) fn segments()(
        v6 in any::<bool>(), addresses in any::<[[u8; 16]; 2]>(), tags in prop::collection::vec(any::<u16>(), 0..3),
        ports in any::<(u16, u16)>(), numbers in any::<(u32, u32)>(), flags in 0u16..0x1000, window in any::<u16>(),
        tos in any::<u8>(), label in 0u32..0x10_0000, option in (0u8..8, any::<u32>()),
        ip_options in 0usize..3, extension in 0usize..30, payload in 0usize..200, pad in 0usize..100,
        session in prop::option::weighted(0.3, 1u16..),
    ) -> SegmentBuilder {
        let [src, dst] = addresses;
        let four = |a: [u8; 16]| [a[0], a[1], a[2], a[3]];
        let mut segment = if v6 {
            SegmentBuilder::v6(src, dst).extension(0, &vec![0; extension]).extension(60, &[])
        } else {
            SegmentBuilder::v4(four(src), four(dst)).ip_options(&vec![1; 4 * ip_options])
        };
        for tci in tags {
            segment = segment.vlan(tci);
        }
        if let Some(session) = session {
            segment = segment.pppoe(session);
        }
        segment = segment.ports(ports.0, ports.1).seq(numbers.0).ack(numbers.1).flags(Flags(flags)).window(window);
        with_option(segment.tos(tos).flow_label(label).payload(payload).pad_to(pad), option.0, option.1)
    }
}

proptest! {
    #[test]
    fn a_built_segment_is_read_back(s in segments(), numbers in any::<(u32, u32)>(), payload in 0usize..99) {
        let frame = s.seq(numbers.0).ack(numbers.1).payload(payload).build();
        let (p, t, _) = exercise(&frame, frame.len()).unwrap();
        prop_assert_eq!((t.seq.0, t.ack.0, t.payload_len), (numbers.0, numbers.1, payload as u32));
        prop_assert_eq!(checksum::verify(&frame, frame.len(), &p), Checksum::Valid);
    }

    #[test]
    fn the_head_says_the_same_as_the_whole(s in segments()) {
        let frame = s.build();
        let (head, len) = s.build_head();
        prop_assert_eq!(len, frame.len());
        prop_assert_eq!(exercise(&head, len).unwrap(), exercise(&frame, len).unwrap());
    }

    #[test]
    fn rewriting_is_rebuilding(s in segments(), ack in any::<u32>(), window in any::<u16>()) {
        let mut frame = s.build();
        let p = packet(&frame, frame.len()).unwrap();
        prop_assert!(set_ack(&mut frame, &p, Seq(ack), Checksum::Valid));
        prop_assert!(set_window(&mut frame, &p, window, Checksum::Valid));
        prop_assert_eq!(frame, s.ack(ack).window(window).build());
    }

    #[test]
    fn timestamps_are_rewritten_at_any_offset(nops in 0usize..4, from in any::<[u8; 8]>(), to in any::<[u8; 8]>(), v6: bool) {
        let base = if v6 { SegmentBuilder::v6([1; 16], [2; 16]) } else { SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]) };
        let base = base.raw_options(&vec![1; nops]).payload(3);
        let mut frame = base.clone().option(8, &from).build();
        let p = packet(&frame, frame.len()).unwrap();
        let t = tcp(&frame, &p).unwrap();
        let ts = Timestamps { value: be32(&to, 0).unwrap(), echo: be32(&to, 4).unwrap() };
        prop_assert!(set_timestamps(&mut frame, &p, &t, ts, Checksum::Valid));
        prop_assert_eq!(&frame, &base.option(8, &to).build());
        prop_assert_eq!(tcp_options(&frame, &p, &t).unwrap().timestamps, Some(ts));
    }

    #[test]
    fn a_wrong_checksum_stays_as_wrong_as_it_was(s in segments(), ack in any::<u32>()) {
        let wrong = s.clone().checksum(Sum::Wrong).build();
        let p = packet(&wrong, wrong.len()).unwrap();
        let mut frame = wrong.clone();
        prop_assert!(set_ack(&mut frame, &p, Seq(ack), Checksum::Unknown));
        prop_assert_ne!(checksum::verify(&frame, frame.len(), &p), Checksum::Valid);
        prop_assert!(!set_ack(&mut frame, &p, Seq(0), Checksum::Invalid));
        prop_assert_eq!(be32(&frame, p.l4 as usize + 8), Some(ack));
    }

    #[test]
    fn a_partial_checksum_is_found_kept_and_completed(s in segments(), ack in any::<u32>(), udp: bool) {
        let s = if udp { s.udp() } else { s };
        let mut frame = s.clone().checksum(Sum::Partial).build();
        let len = frame.len();
        let p = packet(&frame, len).unwrap();
        let state = checksum::verify(&frame, len, &p);
        prop_assert_eq!(checksum::quick(&frame, len, &p), state);
        // Once in 65,535 the partial checksum is the right one too.
        prop_assume!(state != Checksum::Valid);
        prop_assert_eq!(state, Checksum::Partial);
        prop_assert_eq!(set_ack(&mut frame, &p, Seq(ack), state), !udp);
        prop_assert!(checksum::complete(&mut frame, len));
        prop_assert_eq!(frame, s.ack(ack).build());
    }

    #[test]
    fn the_sum_is_that_of_the_definition(data in prop::collection::vec(any::<u8>(), 0..100)) {
        let words = data.chunks(2).map(|w| (w[0] as u64) << 8 | *w.get(1).unwrap_or(&0) as u64);
        let total: u64 = words.sum();
        // Ones' complement: modulo 65,535, and 0 only if every word is.
        let expected = if total == 0 { 0 } else { (total - 1) % 0xffff + 1 };
        prop_assert_eq!(checksum::sum(&data) as u64, expected);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), len in 0usize..70_000) {
        let _ = exercise(&bytes, len);
    }

    #[test]
    fn corrupted_frames_never_panic(which in 0usize..26, flips in prop::collection::vec((any::<u16>(), any::<u8>()), 1..6), len in 0usize..200) {
        let (_, mut frame) = all().nth(which).unwrap();
        let ip = 14;
        for (at, byte) in flips {
            let at = at as usize % frame.len();
            frame[at] = byte;
        }
        let _ = exercise(&frame, frame.len());
        // With a right header checksum the corruption gets past the IPv4 header.
        frame[ip + 10..ip + 12].fill(0);
        let sum = !checksum::sum(&frame[ip..ip + 20]);
        frame[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
        let _ = exercise(&frame, frame.len());
        let _ = exercise(&frame, len);
    }

    #[test]
    fn options_of_any_bytes_end(options in prop::collection::vec(any::<u8>(), 0..41), kinds in prop::collection::vec(0u8..32, 0..41)) {
        for list in [options, kinds] {
            let frame = SegmentBuilder::v4([1; 4], [2; 4]).raw_options(&list).build();
            let _ = exercise(&frame, frame.len());
        }
    }

    #[test]
    fn a_packet_that_never_was_in_these_bytes_does_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..100), l4 in any::<u16>(), end in any::<u32>(),
        header_len in any::<u8>(), udp: bool, version in any::<u8>(), count in any::<u8>(),
    ) {
        let vlan = Vlan { count, ..Vlan::NONE };
        let l4 = if end % 3 == 0 { l4 % 120 } else { l4 };
        let protocol = if udp { UDP } else { TCP };
        let p = Packet { vlan, l3: 14, version, src: [1; 16], dst: [2; 16], protocol, l4, end, tos: 0, ttl: 0, flow_label: 0, fragment: false };
        let mut copy = bytes.clone();
        let _ = tcp(&bytes, &p);
        let flags = Flags::SYN;
        let t = Tcp { src_port: 0, dst_port: 0, seq: Seq(0), ack: Seq(0), flags, window: 0, urgent: 0, header_len, payload_len: 0 };
        let _ = tcp_options(&bytes, &p, &t);
        for state in [Checksum::Valid, Checksum::Partial] {
            set_ack(&mut copy, &p, Seq(0), state);
            set_timestamps(&mut copy, &p, &t, Timestamps::default(), state);
        }
        checksum::verify(&bytes, bytes.len(), &p);
        checksum::quick(&bytes, bytes.len(), &p);
        checksum::fill(&mut copy, &p);
    }
}

#[test]
fn cut_anywhere_a_frame_is_rejected_or_says_the_same() {
    for (name, frame) in all() {
        let whole = exercise(&frame, frame.len());
        for cut in 0..frame.len() {
            // The head only: the rest of the frame is elsewhere.
            let head = exercise(&frame[..cut], frame.len());
            assert!(head == whole || head == Err(Reject::Truncated), "{name} at {cut}: {head:?}");
            // The frame itself is short.
            let short = exercise(&frame[..cut], cut);
            assert!(short == whole || short == Err(Reject::Truncated), "{name} at {cut}: {short:?}");
        }
    }
}
