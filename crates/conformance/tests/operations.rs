//! Operations drawn at random on a gateway behind its hooks: segments of both ends with any numbers, forged ones, wrong
//! checksums, engines that hang, are killed and come back, budgets of a few.
//!
//! No byte is acknowledged that no receiver has. `WEIR_OPERATIONS=100000000 cargo test --release -p weir-conformance --test
//! operations -- --nocapture` says how many a second were played.
#![expect(clippy::disallowed_methods, reason = "how many are played, and how fast, is not the core's")]

use std::time::Instant;
use weir_core::ack::AckControl;
use weir_core::frame::Checksum;
use weir_core::gateway::{ClassConfig, Config, Direction, LAN, WAN};
use weir_core::rate::Rate;
use weir_core::rig::{Rig, Sent, TestFrame};
use weir_core::rng::Rng;
use weir_core::steer::after;
use weir_core::time::{Duration, Time};
use weir_core::wire::build::{SegmentBuilder, Sum};
use weir_core::wire::{checksum, packet, tcp, Flags};
use weir_sim::steering::{Bounds, Steered};

const HOSTS: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 1, 1]];
/// First sequence numbers of the two ends; the second wraps soon.
const FIRST: [u32; 2] = [1, 0xffff_f001];
/// Operations on one gateway.
const EACH: u64 = 200;

/// A segment from one end to the other.
fn segment(from: usize) -> SegmentBuilder {
    SegmentBuilder::v4(HOSTS[from], HOSTS[1 - from]).ports([4, 5][from], [5, 4][from])
}

fn rig(rng: &mut Rng) -> Rig<Steered> {
    let mut class = |direction| {
        let rate = Rate::mbit(1 + rng.below(1_000));
        let ack = if rng.below(2) == 0 { AckControl::ack_shaper(rate) } else { AckControl::ack_share(rate) };
        ClassConfig::controlled("all", direction, ack)
    };
    let classes = vec![class(Direction::Out), class(Direction::In)];
    let config = Config { classes, max_flows: 16, ..Config::default() };
    let mut rig = Rig::new(match rng.below(3) {
        0 => Steered::new(config),
        _ => Steered::within(config, &Bounds::of(1 + rng.below(8) as u32)),
    });
    let syn = segment(0).seq(FIRST[0] - 1).flags(Flags::SYN).mss(1_460).window_scale(7).ts(1, 0);
    rig.at(Time::ZERO).inject(LAN, TestFrame::bytes(&syn.build()));
    let answer = segment(1).seq(FIRST[1].wrapping_sub(1)).ack(FIRST[0]).flags(Flags::SYN | Flags::ACK);
    rig.inject(WAN, TestFrame::bytes(&answer.mss(1_460).window_scale(7).ts(1, 1).build()));
    rig
}

fn sum_of(frame: &[u8]) -> Checksum {
    packet(frame, frame.len()).map_or(Checksum::Unknown, |p| checksum::verify(frame, frame.len(), &p))
}

/// Holds what left to it: nobody is told of more than the other end has acknowledged. What has a wrong checksum tells nothing.
fn check(sent: &[Sent], acknowledged: &[u32; 2]) {
    for s in sent {
        let Ok(p) = packet(&s.bytes, s.len) else { continue };
        let Some(t) = tcp(&s.bytes, &p).ok().filter(|t| t.flags.contains(Flags::ACK)) else { continue };
        if sum_of(&s.bytes) == Checksum::Invalid {
            continue;
        }
        let from = usize::from(s.port == LAN);
        assert!(!after(t.ack, acknowledged[from]), "{t:?} of {acknowledged:?}");
    }
}

/// Plays operations on one gateway.
fn play(rng: &mut Rng) {
    let mut rig = rig(rng);
    let (mut sent, mut acknowledged) = (FIRST, [FIRST[1], FIRST[0]]);
    let mut now = Time::from_millis(1);
    for _ in 0..EACH {
        now += Duration::from_micros(rng.below(30_000));
        check(&rig.run_until(now), &acknowledged);
        let from = rng.below(2) as usize;
        match rng.below(100) {
            0 => rig.node_mut().hang(),
            1 => rig.node_mut().kill(),
            2..=5 => rig.node_mut().come_back(),
            kind => {
                // Some numbers are old. What is under a wrong checksum is ahead of all.
                let mut old = || if rng.below(8) == 0 { rng.below(50) as u32 * 1_448 } else { 0 };
                let (seq, mut ack) = (sent[from].wrapping_sub(old()), acknowledged[from].wrapping_sub(old()));
                let broken = kind < 20;
                ack = ack.wrapping_add(if broken { 1_000_000 } else { rng.below(8) as u32 * 1_448 });
                if after(ack, acknowledged[from]) && !broken {
                    acknowledged[from] = ack;
                }
                let flags = if kind == 99 { Flags::ACK | Flags::FIN } else { Flags::ACK };
                let s = segment(from).seq(seq).ack(ack).flags(flags).window(4_000);
                let s = match kind {
                    20..=24 => s.raw_options(&[253, 4, 0, 1]),
                    25..=29 => s.raw_options(&[7, 40, 1, 1]),
                    30..=34 => s.md5(),
                    _ => s.ts((now.as_nanos() / 1_000_000) as u32, 1),
                };
                let payload = if rng.below(2) == 0 { 0 } else { rng.below(1_280) as u32 };
                sent[from] = sent[from].wrapping_add(if seq == sent[from] && !broken { payload } else { 0 });
                let s = s.payload(payload as usize);
                let s = s.checksum(if broken { Sum::Wrong } else { Sum::Valid });
                let frame = s.build();
                // One wrong sum in 65,536 is what a device has still to complete, which hosts leave and gateways believe.
                if !broken || sum_of(&frame) == Checksum::Invalid {
                    rig.at(now).inject([LAN, WAN][from], TestFrame::bytes(&frame));
                }
            }
        }
    }
    rig.node_mut().come_back();
    check(&rig.run_until(Time::from_secs(10_000)), &acknowledged);
    assert_eq!(rig.node().ledger().held(), 0);
    rig.finish();
}

#[test]
fn no_operation_acknowledges_what_no_receiver_has() {
    let asked = std::env::var("WEIR_OPERATIONS").ok().and_then(|n| n.parse().ok());
    let operations: u64 = asked.unwrap_or(20_000);
    let begin = Instant::now();
    for n in 0..operations.div_ceil(EACH) {
        play(&mut Rng::new(n));
    }
    println!("{operations} operations, {:.0} a second", operations as f64 / begin.elapsed().as_secs_f64());
}
