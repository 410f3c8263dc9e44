//! Grants where ACKs follow the data of a class with hardly any waiting, as the gateway makes them and takes
//! account of them. The test plays the hooks. A queue of 800 Mb/s: 100 bytes a microsecond, and 50,000 in the
//! half millisecond that is granted at most.

use weir_core::ack::AckControl;
use weir_core::class::Spec;
use weir_core::combined::{Combined, LAN_WHOLE};
use weir_core::gateway::{ClassConfig, Config, Direction, Gateway, LAN, WAN};
use weir_core::node::Port;
use weir_core::queue::{self, pfq, Kind, QueueLimit};
use weir_core::rate::Rate;
use weir_core::rig::{Rig, TestFrame};
use weir_core::sharing::Sharing;
use weir_core::steer::Slot;
use weir_core::time::Time;
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::{Flags, Seq};

const ISN: u32 = 0xffff_f000; // numbers wrap soon
const PACKET: usize = 1_000;

struct Uploads {
    rig: Rig<Combined>,
}

impl Uploads {
    /// This many flows, established by 100 ms.
    fn begun(ack: AckControl, rate: Rate, flows: u16) -> Uploads {
        let kind = Kind::Pfq(pfq::Params { flows: 64, quantum: 1_514, seed: 1 });
        let queue = queue::Config { limit: QueueLimit::Packets(10_000), kind, tins: None };
        let share = Some(Spec { rate: Some(rate), queue: Some(queue), ..Spec::of(None) });
        let up = ClassConfig { share, ..ClassConfig::controlled("up", Direction::Out, ack) };
        let config = Config { classes: vec![up], ..Config::default() };
        let sharing = Sharing::new(config.clone(), 0).expect("a sound tree");
        let mut u = Uploads { rig: Rig::new(Combined::new(Gateway::hooked(config), sharing)) };
        for f in 0..flows {
            let syn = sender(f).seq(abs(0).wrapping_sub(1)).ack(0).flags(Flags::SYN);
            u.inject(us(1_000), LAN, syn.mss(1_460).window_scale(7).sack_permitted());
            let answer = receiver(f).seq(0).ack(abs(0)).flags(Flags(Flags::SYN.0 | Flags::ACK.0));
            u.inject(us(20_000), WAN, answer.mss(1_460).window_scale(7).sack_permitted());
            u.inject(us(50_000), WAN, receiver(f).ack(abs(0)).flags(Flags::ACK));
        }
        u.run(us(100_000));
        u
    }

    fn fast(flows: u16) -> Uploads {
        Uploads::begun(AckControl::postack_pfq(Rate::mbit(800)), Rate::mbit(800), flows)
    }

    fn inject(&mut self, at: Time, port: Port, segment: SegmentBuilder) {
        self.rig.at(at).inject(port, TestFrame::bytes(&segment.build()));
    }

    /// This many packets of the flow's data come to the queue, which sends one in 10.14 us.
    fn data(&mut self, at: Time, f: u16, packets: u32) {
        for _ in 0..packets {
            let frame = TestFrame::bytes(&sender(f).seq(abs(0)).ack(1).flags(Flags::ACK).build());
            self.rig.at(at).inject(LAN_WHOLE, frame.long(PACKET + 14));
        }
    }

    /// An ACK of the flow that a hook has taken.
    fn ack(&mut self, at: Time, f: u16, bytes: u32) {
        self.inject(at, WAN, receiver(f).ack(abs(bytes)).flags(Flags::ACK));
    }

    /// Returns the number of frames that reach the senders.
    fn run(&mut self, until: Time) -> usize {
        self.rig.run_until(until).iter().filter(|sent| sent.port == LAN).count()
    }

    fn index(&self, f: u16) -> usize {
        let port = 1_000 + f;
        let records = self.rig.node().gateway().flows.records();
        let found = records.iter().position(|r| r.key.dst_port == port || r.key.src_port == port);
        found.expect("the flow is known")
    }

    fn slot(&self, f: u16) -> &Slot {
        &self.rig.node().gateway().flows.slots()[self.index(f)]
    }

    /// Returns the flow's grant beyond what its sender has heard of, as the gateway knows.
    fn granted(&self, f: u16) -> Option<u32> {
        let record = &self.rig.node().gateway().flows.records()[self.index(f)];
        Some(self.slot(f).granted()?.since(record.tx))
    }

    /// ACKs up to this many bytes have passed by the flow's grant.
    fn passed(&self, f: u16, bytes: u32) {
        self.slot(f).assume(|n| n.tx = Seq(abs(bytes)));
    }

    fn finish(self) {
        assert_eq!(self.rig.node().ledger().held(), 0, "in + made = out + dropped + absorbed");
        self.rig.finish();
    }
}

fn us(us: u64) -> Time {
    Time::from_micros(us)
}

fn sender(f: u16) -> SegmentBuilder {
    SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 1, 1]).ports(1_000 + f, 5_001)
}

fn receiver(f: u16) -> SegmentBuilder {
    SegmentBuilder::v4([10, 0, 1, 1], [10, 0, 0, 1]).ports(5_001, 1_000 + f).seq(1).window(40_000)
}

fn abs(n: u32) -> u32 {
    ISN.wrapping_add(1).wrapping_add(n)
}

/// The first grant is half of what may be granted; later ones are twice what was used by then.
#[test]
fn where_nothing_waits_acks_pass() {
    let mut u = Uploads::fast(2);
    u.ack(us(100_000), 0, 1_000);
    u.ack(us(100_000), 1, 1_000);
    assert_eq!(u.run(us(100_000)), 2);
    assert_eq!((u.granted(0), u.granted(1)), (Some(25_000), Some(12_500)));
    u.passed(0, 21_000);
    assert_eq!(u.run(us(101_000)), 0);
    // 20,000 in a millisecond would be 160,000 in twice 4 ms; there is what the other has left. That one has
    // used nothing.
    assert_eq!((u.granted(0), u.granted(1)), (Some(37_500), None));
    u.run(us(110_000));
    assert_eq!(u.granted(0), None, "it is silent");
    u.ack(us(110_000), 1, 2_000);
    u.run(us(110_000));
    assert_eq!(u.granted(1), Some(25_000), "all of it has been given back");
    u.finish();
}

/// A grant is worth four segments at least, or each ACK for some would end one.
#[test]
fn a_class_that_sends_little_in_half_a_millisecond_grants_nothing() {
    let mut u = Uploads::begun(AckControl::postack_pfq(Rate::mbit(150)), Rate::mbit(150), 1);
    u.ack(us(100_000), 0, 1_000);
    assert_eq!((u.run(us(100_000)), u.granted(0)), (1, None));
    u.finish();
}

#[test]
fn what_waits_for_most_of_the_time_ends_a_grant() {
    for ack in [AckControl::postack_pfq, AckControl::postack_number] {
        let mut u = Uploads::begun(ack(Rate::mbit(800)), Rate::mbit(800), 1);
        u.ack(us(100_000), 0, 1_000);
        u.run(us(100_050));
        // 4 ms of the queue's rate.
        u.data(us(100_100), 0, 400);
        u.passed(0, 11_000);
        u.run(us(101_090));
        assert!(u.granted(0).is_some(), "until it is known that more is to come than a burst");
        u.data(us(101_110), 0, 1);
        u.run(us(101_110));
        assert_eq!(u.granted(0), None);
        // From here on ACKs wait, as without.
        u.ack(us(102_000), 0, 12_000);
        assert_eq!((u.run(us(103_000)), u.granted(0)), (0, None));
        u.run(us(110_000));
        u.ack(us(110_000), 0, 13_000);
        assert_eq!(u.run(us(110_000)), 1);
        assert!(u.granted(0).is_some(), "the queue has been empty for long enough");
        u.finish();
    }
}
