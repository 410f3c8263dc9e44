//! `when = "congested"`: ACKs are held only while the queue of their class is long. A gateway with a queue of
//! 8 Mb/s, a byte a microsecond, whose class is congested when more than 4 packets wait, until no more than 2
//! do; released are 12,500 bytes every 10 ms.

use crate::support::*;
use weir_core::ack::{AckControl, When};
use weir_core::class::Spec;
use weir_core::combined::{Combined, LAN_WHOLE};
use weir_core::gateway::{ClassConfig, Config, Direction, Gateway, LAN, WAN};
use weir_core::queue::{self, Kind, QueueLimit};
use weir_core::rate::Rate;
use weir_core::rig::{Rig, Sent, TestFrame, Wake};
use weir_core::sharing::Sharing;
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::Flags;

const STEP: u32 = 12_500;

fn config(when: When) -> Config {
    let ack = AckControl { when, ..basic() };
    let queue = queue::Config { limit: QueueLimit::Packets(100), kind: Kind::Fifo, tins: None };
    let up = ClassConfig {
        share: Some(Spec { queue: Some(queue), ..Spec::of(Some(1)) }),
        ..ClassConfig::controlled("up", Direction::Out, ack)
    };
    let link = Spec { rate: Some(Rate::mbit(8)), ..Spec::of(None) };
    let link = ClassConfig { name: "link".into(), ack: None, share: Some(link), ..up.clone() };
    Config { classes: vec![up, link], ..Config::default() }
}

struct Rigged {
    rig: Rig<Combined>,
    /// Builds segments of its connection.
    world: Net,
}

fn established(when: When, wake: Wake) -> Rigged {
    let sharing = Sharing::new(config(when), 0).expect("a sound tree");
    let rig = Rig::new(Combined::new(Gateway::new(config(when)), sharing)).wake(wake);
    let mut r = Rigged { rig, world: Net::new(basic(), None) };
    let open = |from: [u8; 4], to: [u8; 4], ports: (u16, u16)| {
        SegmentBuilder::v4(from, to).ports(ports.0, ports.1).mss(1460).window_scale(7).window(64_000)
    };
    let syn = open([10, 0, 0, 1], [10, 0, 1, 1], (40_000, 5_001)).seq(SENDER_ISN).flags(Flags::SYN);
    let answer = open([10, 0, 1, 1], [10, 0, 0, 1], (5_001, 40_000))
        .seq(RECEIVER_ISN)
        .ack(SENDER_ISN.wrapping_add(1))
        .flags(Flags(Flags::SYN.0 | Flags::ACK.0));
    r.rig.at(ms(0)).inject(LAN, TestFrame::bytes(&syn.build()));
    r.rig.at(ms(20)).inject(WAN, TestFrame::bytes(&answer.build()));
    r.ack(ms(400), 0);
    r.rig.run_until(ms(500));
    r
}

impl Rigged {
    fn ack(&mut self, at: Time, number: u32) {
        let segment = self.world.ack_segment(number);
        self.rig.at(at).inject(WAN, TestFrame::bytes(&segment.build()));
    }

    /// This many frames of 1,000 bytes of IP to wait.
    fn data(&mut self, at: Time, frames: u32) {
        for _ in 0..frames {
            let segment = self.world.data_segment(0);
            self.rig.at(at).inject(LAN_WHOLE, TestFrame::bytes(&segment.build()).long(1014));
        }
    }

    /// Returns the ACKs that left for the sender, times and numbers, and how many frames left for the
    /// receiver.
    fn run(&mut self, until: Time) -> (Vec<(Time, u32)>, usize) {
        let sent = self.rig.run_until(until);
        let (lan, wan): (Vec<Sent>, Vec<Sent>) = sent.into_iter().partition(|s| s.port == LAN);
        (numbers(&lan), wan.len())
    }
}

fn congested() -> When {
    When::Congested { above: QueueLimit::Packets(4) }
}

#[test]
fn nothing_is_held_while_nothing_waits() {
    let mut r = established(congested(), Wake::Exact);
    for n in 1..=20 {
        r.ack(ms(1_000 + n), 20_000 * n as u32);
    }
    let passed: Vec<(Time, u32)> = (1..=20).map(|n| (ms(1_000 + n), 20_000 * n as u32)).collect();
    assert_eq!(r.run(ms(2_000)).0, passed, "16 times the rate");
    // The same rate binds always without it.
    let mut r = established(When::Always, Wake::Exact);
    r.ack(ms(1_001), 20_000);
    assert_eq!(r.run(ms(2_000)).0, [(ms(1_001), STEP), (ms(1_011), 20_000)]);
    r.rig.finish();
}

/// Ten frames at 1,100 ms: the first leaves at once, and so 9 wait, 8 after a millisecond, and 2 after seven.
#[test]
fn a_queue_above_the_threshold_engages_until_half_of_it_is_left() {
    for wake in [Wake::Exact, Wake::Late(Duration::from_millis(3)), Wake::Lazy(Duration::from_millis(3))] {
        let mut r = established(congested(), wake);
        r.ack(ms(1_000), 30_000);
        r.data(ms(1_100), 10);
        r.ack(ms(1_102), 80_000);
        // 4 wait at 1,105 ms: no more than the threshold, and more than half of it.
        r.ack(Time::from_micros(1_105_500), 80_500);
        let (acks, frames) = r.run(ms(2_000));
        // A step of credit, as of an idle flow; at the next release time nothing is congested any more, and a
        // step leaves each 10 ms as before, since no ACK comes.
        let steps = [
            (1_000, 30_000),
            (1_102, 42_500),
            (1_112, 55_000),
            (1_122, 67_500),
            (1_132, 80_000),
            (1_142, 80_500),
        ];
        assert_eq!(acks, steps.map(|(at, number)| (ms(at), number)), "{wake:?}");
        assert_eq!(frames, 10);
        r.rig.finish();
    }
}

#[test]
fn what_is_held_leaves_with_the_acks_that_come_afterwards() {
    let mut r = established(congested(), Wake::Exact);
    r.data(ms(1_100), 10);
    r.ack(ms(1_102), 80_000);
    r.ack(ms(1_106), 81_000);
    r.ack(ms(1_108), 82_000);
    r.ack(ms(1_109), 90_000);
    // Let go at 1,107 ms: the next ACK tells 1,000 bytes, the one after it 8,000, and as much again leaves
    // with each. Then no ACK comes.
    let steps = [(1_102, 12_500), (1_108, 14_500), (1_109, 30_500), (1_119, 43_000), (1_129, 55_500)];
    let rest = [(1_139, 68_000), (1_149, 80_500), (1_159, 90_000)];
    assert_eq!(
        r.run(ms(2_000)).0,
        [&steps[..], &rest].concat().iter().map(|&(at, number)| (ms(at), number)).collect::<Vec<_>>()
    );
    // Nothing is left to be told: what comes now passes as it is.
    r.ack(ms(2_001), 190_000);
    assert_eq!(r.run(ms(2_002)).0, [(ms(2_001), 190_000)]);
    r.rig.finish();
}

/// Five that wait are more than the threshold, four are not.
#[test]
fn a_queue_at_the_threshold_engages_nothing() {
    for (frames, first) in [(5, 20_000), (6, STEP)] {
        let mut r = established(congested(), Wake::Exact);
        r.data(ms(1_100), frames);
        r.ack(ms(1_100), 20_000);
        assert_eq!(r.run(ms(2_000)).0[0], (ms(1_100), first), "{frames} frames");
    }
}

/// A change of configuration while the class is congested: it still is.
#[test]
fn a_change_keeps_what_is_congested() {
    let mut r = established(congested(), Wake::Exact);
    r.data(ms(1_100), 10);
    r.run(ms(1_101));
    r.rig.with_cx(|node, cx| {
        assert!(node.gateway_mut().flows.reconfigure(config(congested())).is_ok());
        let next = Sharing::new(config(congested()), 0).expect("a sound tree");
        drop(node.replace(cx, next));
    });
    r.ack(ms(1_102), 80_000);
    assert_eq!(r.run(ms(1_103)).0, [(ms(1_102), STEP)]);
    r.run(ms(2_000));
    assert_eq!(r.rig.node().ledger().held(), 0);
    r.rig.finish();
}

/// A frame of the gateway's own waits in the queue of its direction, behind the frames that are there.
#[test]
fn made_acks_wait_like_all_else() {
    let mut inward = config(When::Always);
    let ack = inward.classes[0].ack.take();
    inward.classes.push(ClassConfig::controlled("down", Direction::In, ack.expect("a policy")));
    let sharing = Sharing::new(inward.clone(), 0).expect("a sound tree");
    let mut rig = Rig::new(Combined::new(Gateway::new(inward), sharing));
    let world = Net::new(basic(), None);
    let data = TestFrame::bytes(&world.data_segment(0).build()).long(1014);
    let plain = TestFrame::bytes(&world.data_segment(1).build());
    rig.at(ms(1)).inject(LAN_WHOLE, data.clone()).inject(LAN_WHOLE, data).inject(LAN, plain);
    let sent: Vec<(Time, usize)> = rig.run_until(ms(100)).iter().map(|s| (s.at, s.len)).collect();
    assert_eq!(sent, [(ms(1), 1014), (ms(2), 1014), (ms(3), 54)]);
    rig.finish();
}
