use super::*;
use crate::frame::Charge;
use crate::queue::{codel, fq_codel, Kind};
use crate::time::{Duration, Time};
use crate::wire::build::{arp, SegmentBuilder};

/// Codepoints of best effort, LE, EF, AF41 and CS5.
const DF: u8 = 0;
const LE: u8 = 1;
const EF: u8 = 46;
const AF41: u8 = 34;
const CS5: u8 = 40;

struct Class {
    tins: Queue,
    frames: Frames,
    now: Time,
    /// An AQM drops packets, so the next one may be another than the head says.
    judged: bool,
}

impl Class {
    fn new(diffserv: Diffserv, kind: Kind) -> Class {
        let config = Config { limit: QueueLimit::Packets(1000), kind, tins: Some(diffserv) };
        let tins = config.build(Rate::mbit(10));
        Class { tins, frames: Frames::new(4_000, 256, 0), now: Time::ZERO, judged: kind != Kind::Fifo }
    }

    fn waiting(&mut self, codepoint: u8, port: u16, bytes: u64) -> Waiting {
        let segment = match port % 2 {
            0 => SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]),
            _ => SegmentBuilder::v6([1; 16], [2; 16]).vlan(5).pppoe(7),
        };
        // The marks of ECN (RFC 3168) beside the codepoint are none of it.
        let bytes_of = segment.tos(codepoint << 2 | 2).ports(port, 80).build();
        let frame = self.frames.receive_copy(&bytes_of, bytes_of.len(), self.now).unwrap();
        let frame = self.frames.park(frame);
        Waiting { frame, charge: Charge { packets: 1, bytes }, since: self.now }
    }

    fn push(&mut self, codepoint: u8, port: u16, bytes: u64) -> Option<DropReason> {
        let waiting = self.waiting(codepoint, port, bytes);
        self.tins.push(&mut Cx { now: self.now, frames: &mut self.frames }, waiting)
    }

    /// Takes the next packet, as the head says. Returns its codepoint and its bytes.
    fn pop(&mut self) -> Option<(u8, u64)> {
        let head = self.tins.head(&self.frames).map(|head| (head.charge, head.since));
        let waiting = self.tins.pop(&mut Cx { now: self.now, frames: &mut self.frames })?;
        assert!(self.judged || head == Some((waiting.charge, waiting.since)), "{head:?}");
        let bytes = waiting.charge.bytes;
        let frame = self.frames.unpark(waiting.frame);
        let codepoint = mark::codepoint(self.frames.bytes(&frame));
        self.frames.transmitted(frame);
        Some((codepoint, bytes))
    }

    /// Lets `n` packets leave while each of these codepoints always waits. Returns the packets of each.
    fn greedy(&mut self, codepoints: &[u8], n: usize) -> Vec<usize> {
        for _ in 0..4 {
            codepoints.iter().for_each(|&codepoint| assert_eq!(self.push(codepoint, 2, 1000), None));
        }
        let mut left = vec![0; codepoints.len()];
        for _ in 0..n {
            let (codepoint, _) = self.pop().unwrap();
            left[codepoints.iter().position(|&c| c == codepoint).unwrap()] += 1;
            self.push(codepoint, 2, 1000);
        }
        left
    }
}

/// Tables of Linux's `sch_cake.c`: a tin for each codepoint, in rows of eight. Its comments name the
/// codepoints.
#[test]
fn codepoints_have_the_tins_that_cake_gives_them() {
    let of = |rows: [&str; 8]| rows.concat().bytes().map(|b| b - b'0').collect::<Vec<u8>>();
    let three =
        of(["01002000", "10000000", "00000000", "00000000", "00000000", "00002020", "20000000", "20000000"]);
    let four =
        of(["01002000", "10000000", "20202020", "20202020", "30202020", "30003030", "30000000", "30000000"]);
    assert_eq!((Diffserv::Three.tins().to_vec(), Diffserv::Four.tins().to_vec()), (three, four));
}

#[test]
fn codepoints_are_read_behind_tags_and_sessions() {
    for codepoint in 0..64 {
        for ecn in 0..4 {
            let tos = codepoint << 2 | ecn;
            let four = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).tos(tos);
            let six = SegmentBuilder::v6([1; 16], [2; 16]).tos(tos);
            for segment in
                [four.clone(), four.vlan(5).pppoe(9), six.clone(), six.tag(0x88a8, 1).vlan(2).pppoe(1)]
            {
                assert_eq!(mark::codepoint(&segment.build()), codepoint);
            }
        }
    }
    // CAKE: ARP is network control, and what else has no codepoint is best effort.
    assert_eq!(mark::codepoint(&arp([10, 0, 0, 1], [10, 0, 0, 2])), 56);
    assert_eq!(mark::codepoint(&[0; 60]), 0);
}

/// Shares of `cake_config_diffserv3()` and `cake_config_diffserv4()`: all, a sixteenth, a half, a quarter.
#[test]
fn greedy_tins_have_their_shares() {
    let three = Class::new(Diffserv::Three, Kind::Fifo).greedy(&[DF, LE, EF], 1600);
    assert_eq!(three, [1100, 100, 400]);
    let four = Class::new(Diffserv::Four, Kind::Fifo).greedy(&[DF, LE, AF41, CS5], 1600);
    assert_eq!(four, [300, 100, 800, 400]);
}

/// Shares beyond a tin's own are those that others leave.
#[test]
fn what_a_tin_leaves_others_have() {
    assert_eq!(Class::new(Diffserv::Three, Kind::Fifo).greedy(&[LE], 100), [100]);
    assert_eq!(Class::new(Diffserv::Three, Kind::Fifo).greedy(&[EF], 100), [100]);
    let both = Class::new(Diffserv::Three, Kind::Fifo).greedy(&[LE, EF], 500);
    assert!(both[0] >= 500 / 16 && both[0] < 50, "{both:?}");
    assert_eq!(Class::new(Diffserv::Four, Kind::Fifo).greedy(&[DF, AF41], 500), [250, 250]);
}

/// A call of a packet in each ten that leave waits for none behind a hundred that wait, whatever they are.
#[test]
fn a_tin_within_its_share_waits_for_no_other() {
    for diffserv in [Diffserv::Three, Diffserv::Four] {
        let mut class = Class::new(diffserv, Kind::Fifo);
        (0..400).for_each(|n| assert_eq!(class.push(if n % 4 == 0 { LE } else { DF }, n, 1500), None));
        for _ in 0..30 {
            class.push(EF, 3, 200);
            assert_eq!(class.pop(), Some((EF, 200)));
            (0..9).for_each(|_| assert_eq!(class.pop().map(|(_, bytes)| bytes), Some(1500)));
        }
    }
}

/// A tin earns no credit while nothing of it waits: it has its share from when it begins.
#[test]
fn idle_time_earns_nothing() {
    let mut class = Class::new(Diffserv::Three, Kind::Fifo);
    class.greedy(&[DF], 1000);
    let after = class.greedy(&[DF, EF], 400);
    assert_eq!(after, [300, 100]);
}

/// Tins share counters and have a limit each. What waits is handed over in their order.
#[test]
fn counters_are_of_all_tins_and_limits_of_each() {
    let mut class = Class::new(Diffserv::Three, Kind::Fifo);
    class.tins.set_limit(QueueLimit::Packets(3), Rate::mbit(10));
    for codepoint in [DF, EF] {
        let dropped: Vec<_> = (0..4).map(|_| class.push(codepoint, 2, 100).is_some()).collect();
        assert_eq!(dropped, [false, false, false, true]);
    }
    assert_eq!((class.tins.packets(), class.tins.bytes()), (6, 600));
    let stats = *class.tins.stats();
    assert_eq!((stats.peak_packets, stats.peak_bytes, stats.drops.total()), (6, 600, 2));
    let passed = class.waiting(EF, 2, 50);
    let passed = class.tins.pass(&mut Cx { now: class.now, frames: &mut class.frames }, passed).unwrap();
    let frame = class.frames.unpark(passed.frame);
    class.frames.transmitted(frame);
    let mut released = Vec::new();
    while let Some(waiting) = class.tins.release(&class.frames) {
        released.push(waiting.charge.bytes);
        let frame = class.frames.unpark(waiting.frame);
        class.frames.transmitted(frame);
    }
    assert_eq!((released.len(), class.tins.packets(), class.tins.bytes()), (6, 0, 0));
    assert_eq!(class.frames.ledger().drops, class.tins.stats().drops);
}

/// Each tin has CoDel and queues of flows by itself: a queue of best effort that stands has drops (RFC 8289),
/// and voice has none.
#[test]
fn disciplines_are_of_each_tin() {
    let params = fq_codel::Params { codel: codel::Params::default(), ..fq_codel::Params::default() };
    let mut class = Class::new(Diffserv::Three, Kind::FqCodel { params, seed: 1 });
    let mut left = [0, 0];
    for n in 0..2_000u64 {
        // Two packets of 1000 bytes come in the time of one.
        class.now = Time::ZERO + Duration::from_micros(800 * n);
        for _ in 0..2 {
            class.push(DF, 2, 1000);
        }
        if n % 10 == 0 {
            class.push(EF, 3, 100);
        }
        let (codepoint, _) = class.pop().unwrap();
        left[usize::from(codepoint == EF)] += 1;
    }
    assert_eq!(left[1], 200);
    let drops = class.tins.stats().drops;
    assert!(drops.get(DropReason::Aqm) > 10, "{drops:?}");
}
