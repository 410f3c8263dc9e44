//! Everything that is done with the bytes of one frame: parse, check, rewrite, complete.
//!
//! The first two bytes are the frame's length beyond the bytes present; the rest is the frame.
//! `cargo +nightly fuzz run parse`
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_core::frame::Checksum;
use weir_core::wire::{checksum, packet, set_ack, set_timestamps, set_window, tcp, tcp_options};
use weir_core::wire::{Packet, Seq, Timestamps, TCP};

/// A random header checksum would hide everything behind it: make it right if there is one.
fn mend(frame: &mut [u8]) {
    for l3 in [14, 18, 22] {
        let Some(header) = frame.get_mut(l3..) else { return };
        let len = header.first().map_or(0, |b| 4 * (b & 0xf) as usize);
        if let Some(header) = header.get_mut(..len).filter(|h| h.len() >= 20 && h[0] >> 4 == 4) {
            header[10..12].fill(0);
            let sum = !checksum::sum(header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            return;
        }
    }
}

/// A rewrite changes neither the verdict on the checksum nor anything but the field.
fn rewrite(frame: &[u8], len: usize, p: &Packet) {
    let before = checksum::verify(frame, len, p);
    let mut copy = frame.to_vec();
    set_ack(&mut copy, p, Seq(0x0102_0304), before);
    set_window(&mut copy, p, 0x0506, before);
    match before {
        Checksum::Valid | Checksum::Unknown => assert_eq!(checksum::verify(&copy, len, p), before),
        Checksum::Invalid => assert_eq!(copy, frame),
        Checksum::Partial => {
            if checksum::fill(&mut copy, p) {
                assert_eq!(checksum::verify(&copy, len, p), Checksum::Valid);
            }
        }
    }
    if before == Checksum::Valid && p.protocol == TCP {
        let filled = copy.clone();
        checksum::fill(&mut copy, p);
        // A sender may have written the other zero, and rewriting need not change that.
        let field = p.l4 as usize + 16;
        assert!(copy == filled || filled[field..field + 2] == [0xff, 0xff]);
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((beyond, frame)) = data.split_first_chunk::<2>() else { return };
    let len = frame.len() + u16::from_be_bytes(*beyond) as usize;
    let mut frame = frame.to_vec();
    mend(&mut frame);
    checksum::complete(&mut frame.clone(), len);
    let Ok(p) = packet(&frame, len) else { return };
    assert!(p.l3 < p.l4 && p.l4 as u32 <= p.end && p.end as usize <= len);
    checksum::quick(&frame, len, &p);
    rewrite(&frame, len, &p);
    let Ok(t) = tcp(&frame, &p) else { return };
    assert_eq!(p.l4 as u32 + t.header_len as u32 + t.payload_len, p.end);
    let Ok(o) = tcp_options(&frame, &p, &t) else { return };
    let to = Timestamps { value: 1, echo: 2 };
    let written = set_timestamps(&mut frame, &p, &t, to, Checksum::Valid);
    assert_eq!(written, o.timestamps.is_some());
    if written {
        assert_eq!(tcp_options(&frame, &p, &t).map(|o| o.timestamps), Ok(Some(to)));
    }
});
