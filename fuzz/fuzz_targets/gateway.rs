//! Frames of a live connection, changed byte by byte with their checksums made right, through the
//! gateway in virtual time. The rig checks the contract and the conservation of frames.
//!
//! Input: whether it is behind hooks (bit 0), and whether it missed the handshake (bit 1); records of 8 bytes
//! and a changed byte list: port, milliseconds, acknowledged (16 bits), flags, window, number of changes;
//! then as many (position, value) pairs. `cargo +nightly fuzz run gateway`
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_core::ack::AckControl;
use weir_core::gateway::{ClassConfig, Config, Direction, Gateway, LAN, WAN};
use weir_core::node::Port;
use weir_core::rate::Rate;
use weir_core::rig::{Rig, TestFrame};
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::{checksum, packet, Flags};

const SENDER: [u8; 4] = [10, 0, 0, 1];
const RECEIVER: [u8; 4] = [10, 0, 1, 1];

fn gateway(hooked: bool) -> Gateway {
    let class = ClassConfig::controlled("all", Direction::Out, AckControl::ack_shaper(Rate::mbit(1)));
    let config = Config { classes: vec![class], max_flows: 16, ..Config::default() };
    if hooked {
        Gateway::hooked(config)
    } else {
        Gateway::new(config)
    }
}

fn handshake(rig: &mut Rig<Gateway>) {
    let syn = SegmentBuilder::v4(SENDER, RECEIVER)
        .ports(4, 5)
        .seq(0)
        .flags(Flags::SYN)
        .mss(1460)
        .window_scale(7)
        .ts(1, 0);
    rig.at(Time::ZERO).inject(LAN, TestFrame::bytes(&syn.build()));
    let answer = SegmentBuilder::v4(RECEIVER, SENDER)
        .ports(5, 4)
        .seq(0)
        .ack(1)
        .flags(Flags(Flags::SYN.0 | Flags::ACK.0));
    rig.inject(WAN, TestFrame::bytes(&answer.mss(1460).window_scale(7).ts(1, 1).build()));
}

fuzz_target!(|data: &[u8]| {
    let Some((&hooked, data)) = data.split_first() else { return };
    let mut rig = Rig::new(gateway(hooked & 1 == 1));
    if hooked & 2 == 0 {
        handshake(&mut rig);
    }
    let (mut now, mut rest) = (Time::from_millis(1), data);
    for _ in 0..64 {
        let Some((head, tail)) = rest.split_first_chunk::<8>() else { break };
        let changes = (head[7] & 7) as usize * 2;
        let Some((changes, tail)) = tail.split_at_checked(changes) else { break };
        rest = tail;
        now += Duration::from_millis(head[1].into());
        let n = u32::from(u16::from_be_bytes([head[2], head[3]])) * 97;
        let segment = match head[0] & 1 {
            0 => SegmentBuilder::v4(RECEIVER, SENDER).ports(5, 4).seq(1).ack(1 + n),
            _ => SegmentBuilder::v4(SENDER, RECEIVER).ports(4, 5).seq(1 + n).ack(1),
        };
        let flags = Flags(u16::from(head[4]) | if head[4] & 0x40 != 0 { 0 } else { Flags::ACK.0 });
        let segment = segment
            .flags(flags)
            .window(head[5].into())
            .ts(n, 1)
            .sack(&[(n, n + 1)][..(head[6] & 1) as usize]);
        let mut frame = segment.payload((head[6] >> 2).into()).build();
        for change in changes.chunks_exact(2) {
            let at = change[0] as usize % frame.len();
            frame[at] = change[1];
        }
        if let Ok(p) = packet(&frame, frame.len()) {
            checksum::fill(&mut frame, &p);
        }
        rig.at(now).inject(Port((head[0] >> 1) % 6), TestFrame::bytes(&frame));
    }
    rig.run_until(Time::from_secs(10_000));
    assert_eq!(rig.node().flows.stats().ledger.held(), 0);
    rig.finish();
});
