use super::*;
use proptest::prelude::*;
use weir_core::wire::Seq;

fn header() -> Header {
    let at = |s: &str| s.parse().unwrap();
    Header::new(([2; 6], [4; 6]), at("10.0.0.1:10000"), at("10.0.0.2:5001"))
}

/// Emits a segment, as a draft if possible.
fn emit(frames: &mut Frames, s: &Segment) -> Frame {
    let mut header = header();
    header.set_number(7);
    header.set_peer(9);
    let frame = match s.syn == SynOptions::default() {
        true => header.emit(frames, s, Time::ZERO),
        false => header.emit_written(frames, s, Time::ZERO),
    };
    frame.unwrap()
}

/// Emits a segment of an opaque flow, as a draft if possible, and returns its frame with headers.
fn emit_opaque(frames: &mut Frames, s: &Segment) -> Frame {
    let mut header = header();
    header.set_opaque(true);
    let mut frame = match s.syn == SynOptions::default() {
        true => header.emit(frames, s, Time::ZERO),
        false => header.emit_written(frames, s, Time::ZERO),
    }
    .unwrap();
    draft::write_out(frames, &mut frame);
    frame
}

fn segments() -> impl Strategy<Value = Segment> {
    let timestamps = prop::option::of((any::<u32>(), any::<u32>()));
    let sack = prop::collection::vec(any::<(u32, u32)>(), 0..=3);
    let fast_open = prop_oneof![Just(FastOpen::Ask), any::<[u8; 8]>().prop_map(FastOpen::Cookie)];
    let syn = (
        prop::option::of(any::<u16>()),
        prop::option::of(0u8..=14),
        any::<bool>(),
        prop::option::of(fast_open),
    );
    let fixed = (any::<u32>(), any::<u32>(), 0u16..0x200, any::<u16>(), 0u8..4, 0u32..60_000);
    (fixed, timestamps, sack, syn, any::<bool>()).prop_map(|(f, t, sack, syn, opens)| {
        let mut blocks = SackBlocks::default();
        if !opens {
            blocks.count = sack.len() as u8;
            blocks.blocks.iter_mut().zip(&sack).for_each(|(block, &(l, r))| *block = (Seq(l), Seq(r)));
        }
        Segment {
            seq: f.0,
            ack: f.1,
            flags: Flags(f.2),
            window: f.3,
            ecn: f.4,
            payload: f.5,
            timestamps: t.map(|(value, echo)| Timestamps { value, echo }),
            sack: blocks,
            syn: if opens {
                SynOptions { mss: syn.0, window_scale: syn.1, sack_permitted: syn.2, fast_open: syn.3 }
            } else {
                SynOptions::default()
            },
        }
    })
}

proptest! {
    /// A segment is read from a draft. Both readings of its headers, the short one and the project's general
    /// parser, return it.
    #[test]
    fn what_is_written_is_read(s in segments()) {
        let mut frames = Frames::new(1, 128, 0);
        let mut frame = emit(&mut frames, &s);
        let key = 0x0a00_0001 << 32 | 10_000 << 16 | 5001;
        let (number, sender) = if frame.is_draft() { (9, 7) } else { (u32::MAX, u32::MAX) };
        prop_assert_eq!(read(&frames, &frame), Some((Addressed { key, number, sender }, s)));
        prop_assert_eq!(frames.draft(&frame).map(draft::destination), frame.is_draft().then_some(Some(0x0a00_0002)));
        draft::write_out(&mut frames, &mut frame);
        let packet = wire::packet(frames.bytes(&frame), frame.len());
        prop_assert!(packet.is_ok(), "{packet:?}");
        let (bytes, len) = (frames.bytes(&frame).to_vec(), frame.len());
        let want = Some((Pair { from: (0x0a00_0001, 10_000), to: (0x0a00_0002, 5001) }, s));
        prop_assert_eq!(parse(&bytes, len), want);
        prop_assert_eq!(parse_any(&bytes, len), want);
        frames.absorb(frame);
    }

    /// Others see a datagram of RFC 768, which port 443 makes one of QUIC. Its receiver reads the segment.
    #[test]
    fn a_segment_of_an_opaque_flow_is_a_datagram(s in segments()) {
        let mut frames = Frames::new(1, 128, 0);
        let frame = emit_opaque(&mut frames, &s);
        let (mut bytes, len) = (frames.bytes(&frame).to_vec(), frame.len());
        let want = Some((Pair { from: (0x0a00_0001, 10_000), to: (0x0a00_0002, 5001) }, s));
        prop_assert_eq!(parse(&bytes, len), want);
        let packet = wire::other_packet(&bytes, len).unwrap();
        prop_assert_eq!((packet.protocol, packet.fragment, packet.ecn()), (wire::UDP, false, s.ecn));
        prop_assert_eq!(checksum::sum(&bytes[ETHERNET..L4]), 0xffff, "IP header");
        prop_assert_eq!(usize::from(u16::from_be_bytes([bytes[38], bytes[39]])), len - L4, "length");
        prop_assert!(!wire::is_quic(&bytes, &packet));
        bytes[36..38].copy_from_slice(&443u16.to_be_bytes());
        prop_assert!(wire::is_quic(&bytes, &packet));
        // A mark on the way reaches the receiver.
        let word = |tos| u16::from_be_bytes([bytes[14], tos]);
        let sum = checksum::update16(u16::from_be_bytes([bytes[24], bytes[25]]), word(bytes[15]), word(CE));
        bytes[15] = CE;
        bytes[24..26].copy_from_slice(&sum.to_be_bytes());
        prop_assert_eq!(parse(&bytes, len).map(|(_, s)| s.ecn), Some(CE));
        frames.absorb(frame);
    }

    #[test]
    fn garbage_is_refused_or_read_but_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), len in 0usize..2000) {
        parse(&bytes, len);
    }

    #[test]
    fn damaged_headers_too(s in segments(), opaque: bool, at in 12usize..94, to in any::<u8>(), len in 0usize..2000) {
        let mut frames = Frames::new(1, 128, 0);
        let mut frame = if opaque { emit_opaque(&mut frames, &s) } else { emit(&mut frames, &s) };
        draft::write_out(&mut frames, &mut frame);
        let mut bytes = frames.bytes(&frame).to_vec();
        if let Some(b) = bytes.get_mut(at) {
            *b = to;
        }
        parse(&bytes, len);
        frames.absorb(frame);
    }
}
