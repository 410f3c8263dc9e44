//! A sender that heeds no acknowledgement, beside one that does, in one class of 20 Mbit/s. Each has half of
//! the rate.

use super::tests_claims::{Attacked, FEW_HOPS};
use super::*;
use weir_core::ack::AckControl;
use weir_core::rate::Rate;
use weir_core::time::Duration;
use weir_core::wire::build::SegmentBuilder;

const ATTACKER: [u8; 4] = [10, 0, 0, 9];
const PEER: [u8; 4] = [10, 0, 1, 9];
const MSS: u32 = 1_448;

/// Rate of the class, and 0.8 of half of it, in kbit/s.
const RATE: u64 = 20_000;
const SHARE: u64 = RATE / 2 * 8 / 10;

fn out() -> SegmentBuilder {
    SegmentBuilder::v4(ATTACKER, PEER).ports(7_000, 7_001).ttl(FEW_HOPS)
}

fn back() -> SegmentBuilder {
    SegmentBuilder::v4(PEER, ATTACKER).ports(7_001, 7_000)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Attack {
    /// Runs on beyond its window.
    Beyond,
    /// Repeats eight segments.
    Repeats,
    /// Runs on, and its peer acknowledges everything, whether or not it has got it.
    Acked,
    /// Repeats its first segment.
    Old,
}

/// An honest upload, and an attacker with a connection of its own.
struct Neighbours {
    world: Attacked,
    attack: Attack,
    seq: u32,
    sent: u32,
    before: u64,
}

impl Neighbours {
    fn new(attack: Attack) -> Neighbours {
        let policy = AckControl::ack_share(Rate::from_bps(1_000 * RATE).unwrap());
        let mut world = Attacked::new("cubic", Duration::from_millis(20), policy);
        world.run(2_000_000);
        let mut these = Neighbours { world, attack, seq: 1, sent: 0, before: 0 };
        these.hand_in(LAN, out().seq(0).flags(Flags::SYN).mss(1460).window_scale(7));
        these.world.run(20_000);
        let answer = back().seq(0).ack(1).flags(Flags::SYN | Flags::ACK);
        these.hand_in(WAN, answer.mss(1460).window_scale(7).window(64_000));
        these.world.run(1_000);
        these.hand_in(LAN, out().seq(1).ack(1).flags(Flags::ACK));
        these.before = these.world.run(1_000);
        these
    }

    fn hand_in(&mut self, port: Port, s: SegmentBuilder) {
        let frame = s.build();
        let head = frame.len().min(100);
        self.world.world.hand_in((self.world.gateway, port), &frame[..head], frame.len());
    }

    fn send(&mut self) {
        let segment = out().seq(self.seq).ack(1).flags(Flags::ACK).payload(MSS as usize);
        self.hand_in(LAN, segment);
        self.sent += 1;
        match self.attack {
            Attack::Old => {}
            Attack::Beyond => self.seq = self.seq.wrapping_add(MSS),
            Attack::Repeats => self.seq = 1 + self.sent % 8 * MSS,
            Attack::Acked => {
                self.seq = self.seq.wrapping_add(MSS);
                if self.sent.is_multiple_of(2) {
                    self.hand_in(WAN, back().seq(1).ack(self.seq).flags(Flags::ACK).window(4_000));
                }
            }
        }
    }

    /// A second in which the attacker sends three times the rate, or nothing. Returns what the neighbour has
    /// got, in kbit/s.
    fn second(&mut self, on: bool) -> u64 {
        let gap = 8_000 * u64::from(MSS) / (3 * RATE);
        for _ in 0..1_000_000 / gap {
            if on {
                self.send();
            }
            self.world.run(gap);
        }
        let now = self.world.run(1);
        (now - core::mem::replace(&mut self.before, now)) * 8 / 1_000
    }
}

#[test]
fn a_sender_that_heeds_no_ack_leaves_its_neighbours_their_share() {
    for attack in [Attack::Beyond, Attack::Repeats, Attack::Acked, Attack::Old] {
        let mut these = Neighbours::new(attack);
        // What its peer has acknowledged and was never delivered still takes turns.
        let alone = if attack == Attack::Acked { SHARE } else { 2 * SHARE };
        these.second(true);
        let always = [0; 2].map(|_| these.second(true));
        assert!(always.iter().all(|&got| got >= SHARE), "{attack:?}: {always:?}");
        for _ in 0..2 {
            let (off, on) = (these.second(false), these.second(true));
            assert!(off >= alone && on >= SHARE, "{attack:?}: {off} without it, {on} beside it");
        }
    }
}
