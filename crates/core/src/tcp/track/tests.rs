//! Streams, with arithmetic on numbers that wrap.

use super::*;
use crate::packet::wire::{Flags, Tcp};
use crate::wire::Seq;

const ISN: u32 = 0xffff_f000;

fn tcp(seq: u32, ack: u32, payload_len: u32, flags: Flags) -> Tcp {
    Tcp {
        src_port: 1,
        dst_port: 2,
        seq: Seq(seq),
        ack: Seq(ack),
        flags,
        window: 1_000,
        urgent: 0,
        header_len: 20,
        payload_len,
    }
}

fn data(n: u32, len: u32) -> Tcp {
    tcp(ISN.wrapping_add(n), 7, len, Flags::ACK)
}

fn ack(n: u32) -> Tcp {
    tcp(7, ISN.wrapping_add(n), 0, Flags::ACK)
}

fn opened(scale: Option<u8>) -> Stream {
    let mut stream = Stream::of(&data(0, 0));
    if let Some(shift) = scale {
        stream.scaled(Some(shift));
    }
    assert_eq!(stream.data(&data(0, 1_000)), Data::New);
    assert_eq!(stream.ack(&ack(0)), Acked::Nothing);
    stream
}

#[test]
fn data_is_believed_within_the_largest_window() {
    // 1,000 units of 256 bytes. 64 KiB at least. 1 MiB where the scale is not known.
    for (scale, room) in [(Some(8), 256_000), (Some(0), 65_535), (None, 1 << 20)] {
        let mut s = opened(scale);
        assert_eq!(s.data(&data(1_000 + room, 1)), Data::Disbelieved);
        assert_eq!((s.sent().0, s.disbelieved()), (ISN.wrapping_add(1_000), 1));
        assert_eq!(s.data(&data(1_000, room)), Data::New);
        assert_eq!(s.data(&data(1_000, 1)), Data::Again);
        assert_eq!(s.data(&data(1_000u32.wrapping_sub(1), 1)), Data::Disbelieved, "a window behind");
        assert_eq!(s.under_way(), 1_000 + room);
    }
}

#[test]
fn nothing_is_acknowledged_that_was_not_sent() {
    let mut s = opened(Some(8));
    assert_eq!(s.ack(&ack(1_001)), Acked::Disbelieved);
    assert_eq!(s.ack(&ack(400)), Acked::More(400));
    assert_eq!(s.ack(&ack(400)), Acked::Nothing);
    assert_eq!(s.ack(&ack(300)), Acked::Nothing, "it was overtaken");
    assert_eq!((s.confirmed().0, s.under_way()), (ISN.wrapping_add(400), 600));
}

#[test]
fn eight_that_fit_each_other_are_the_connection() {
    let mut s = opened(Some(8));
    let far = 1 << 30;
    let took = (0..20).position(|n| s.data(&data(far + 1_000 * n, 1_000)) == Data::Renewed);
    assert_eq!((took, s.under_way()), (Some(7), 1_000));
    let mut s = opened(Some(8));
    let took = (0..20).position(|n| s.ack(&ack(far + 1_000 * n)) == Acked::Renewed);
    assert_eq!((took, s.under_way()), (Some(7), 0));
    // A segment of the connection between them breaks their run.
    let mut s = opened(Some(8));
    for n in 0..100 {
        assert_eq!(s.data(&data(far + 1_000 * n, 1_000)), Data::Disbelieved);
        assert_ne!(s.data(&data(1_000 * n, 1_000)), Data::Disbelieved);
        assert_eq!(s.ack(&ack(far + 1_000 * n)), Acked::Disbelieved);
        assert_eq!(s.ack(&ack(1_000 * n + 1_000)), Acked::More(1_000));
    }
}
