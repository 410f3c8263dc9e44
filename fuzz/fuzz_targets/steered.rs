//! Two directions of a connection through a gateway behind its hooks in virtual time, which hangs, is killed
//! and comes back. The rig checks the contract and the conservation of frames.
//!
//! Input: rates, a byte; records of 8 bytes: side and what happens, milliseconds, sequence number,
//! acknowledgement (16 bits times 97 each), window (times 16), payload (times 5).
//! `cargo +nightly fuzz run steered`
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_core::ack::AckControl;
use weir_core::gateway::{ClassConfig, Config, Direction, LAN, WAN};
use weir_core::rate::Rate;
use weir_core::rig::{Rig, Sent, TestFrame};
use weir_core::steer::after;
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::{packet, tcp, Flags};
use weir_sim::steering::Steered;

const HOSTS: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 1, 1]];
/// First sequence numbers of the two sides; the second wraps soon.
const FIRST: [u32; 2] = [1, 0xffff_f001];

fn config(rates: u8) -> Config {
    let class = |direction, mbit: u8| {
        ClassConfig::controlled(
            "all",
            direction,
            AckControl::ack_shaper(Rate::mbit(1 + u64::from(mbit) * 50)),
        )
    };
    let classes = vec![class(Direction::Out, rates & 15), class(Direction::In, rates >> 4)];
    Config { classes, max_flows: 16, ..Config::default() }
}

/// From side `from` to the other.
fn segment(from: usize) -> SegmentBuilder {
    SegmentBuilder::v4(HOSTS[from], HOSTS[1 - from]).ports([4, 5][from], [5, 4][from])
}

fn handshake(rig: &mut Rig<Steered>) {
    let syn = segment(0).seq(FIRST[0] - 1).flags(Flags::SYN).mss(1460).window_scale(7).ts(1, 0);
    rig.at(Time::ZERO).inject(LAN, TestFrame::bytes(&syn.build()));
    let answer = segment(1).seq(FIRST[1] - 1).ack(FIRST[0]).flags(Flags::SYN | Flags::ACK);
    rig.inject(WAN, TestFrame::bytes(&answer.mss(1460).window_scale(7).ts(1, 1).build()));
}

/// Nobody is told of more than the other side has acknowledged.
fn check(sent: &[Sent], acknowledged: &[u32; 2]) {
    for s in sent {
        let Some(t) = packet(&s.bytes, s.len).ok().and_then(|p| tcp(&s.bytes, &p).ok()) else { continue };
        let from = usize::from(s.port == LAN);
        assert!(!t.flags.contains(Flags::ACK) || !after(t.ack.0, acknowledged[from]), "{t:?}");
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&rates, mut rest)) = data.split_first() else { return };
    let mut rig = Rig::new(Steered::new(config(rates)));
    handshake(&mut rig);
    let mut acknowledged = [FIRST[1], FIRST[0]];
    let mut now = Time::from_millis(1);
    for _ in 0..200 {
        let Some((r, tail)) = rest.split_first_chunk::<8>() else { break };
        rest = tail;
        now += Duration::from_micros(u64::from(r[1]) * 250);
        check(&rig.run_until(now), &acknowledged);
        let from = usize::from(r[0] & 1);
        match r[0] >> 4 {
            0 => rig.node_mut().hang(),
            1 => rig.node_mut().kill(),
            2 => rig.node_mut().come_back(),
            _ => {
                let number = |i: usize| u32::from(u16::from_be_bytes([r[i], r[i + 1]])) * 97;
                let (seq, ack) =
                    (FIRST[from].wrapping_add(number(2)), FIRST[1 - from].wrapping_add(number(4)));
                if after(ack, acknowledged[from]) {
                    acknowledged[from] = ack;
                }
                let flags = if r[0] & 14 == 14 { Flags::ACK | Flags::FIN } else { Flags::ACK };
                let s = segment(from).seq(seq).ack(ack).flags(flags).window(u16::from(r[6]) * 16);
                let s = s.ts((now.as_nanos() / 1_000_000) as u32, 1).payload(usize::from(r[7]) * 5);
                let blocks = [(ack.wrapping_add(1_448), ack.wrapping_add(2_896))];
                let s = s.sack(&blocks[..usize::from(r[0] & 14 == 2)]);
                rig.at(now).inject([LAN, WAN][from], TestFrame::bytes(&s.build()));
            }
        }
    }
    rig.node_mut().come_back();
    check(&rig.run_until(Time::from_secs(10_000)), &acknowledged);
    assert_eq!(rig.node().ledger().held(), 0);
    rig.finish();
});
