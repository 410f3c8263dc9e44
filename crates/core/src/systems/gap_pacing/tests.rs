//! The pacer against exact arithmetic.

use super::*;
use crate::frame::{Charge, Frames, Waiting};
use crate::node::Cx;
use crate::queue::{Kind, QueueLimit};
use crate::time::{Duration, Time};
use proptest::prelude::*;

const GBIT: Rate = Rate::mbit(1000);
const FIFO: queue::Config = queue::Config { limit: QueueLimit::Packets(1000), kind: Kind::Fifo, tins: None };

fn class(rate: Rate, counts: Counts) -> Class {
    Class { target: Target::Rate(rate), counts, backend: Backend::Gap }
}

fn line(rate: Rate) -> Port {
    Port { line: Some(rate), ..Port::default() }
}

/// An item on the line: its first byte, its bytes, and the class of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Put {
    from: u64,
    wire: u64,
    class: Option<usize>,
    filler: bool,
    at: Time,
}

/// A pacer with its frames.
struct Bench {
    pacer: Pacer,
    frames: Frames,
    now: Time,
    /// Bytes put on the line.
    bytes: u64,
}

impl Bench {
    fn new(port: Port, classes: &[Class]) -> Bench {
        let queued: Vec<Queued> = classes.iter().map(|&class| (class, FIFO)).collect();
        let pacer = Pacer::new(port, &queued, 14).unwrap_or_else(|why| panic!("{why}"));
        Bench { pacer, frames: Frames::new(1024, 128, 0), now: Time::ZERO, bytes: 0 }
    }

    /// Enqueues a packet of `ip` bytes now.
    fn push(&mut self, class: Option<usize>, ip: u64) {
        let frame = self.frames.receive_copy(&[0; 60], ip as usize + 14, self.now).expect("room");
        let charge = Charge { packets: 1, bytes: ip + 14 };
        let waiting = Waiting { frame: self.frames.park(frame), charge, since: self.now };
        let cx = &mut Cx { now: self.now, frames: &mut self.frames };
        assert_eq!(self.pacer.push(cx, class, waiting), None);
    }

    /// Returns the next item put on the line, at its own time.
    fn next(&mut self) -> Option<Put> {
        self.now = self.now.max(self.pacer.due()?);
        let slot = self.pacer.pop(&mut Cx { now: self.now, frames: &mut self.frames })?;
        let (class, wire, filler, at) = match slot {
            Slot::Packet { class, waiting, at } => {
                let frame = self.frames.unpark(waiting.frame);
                let wire = Filler::on_wire(frame.len());
                self.frames.absorb(frame);
                (class, wire, false, at)
            }
            Slot::Fillers { at, bytes, .. } => (None, bytes, true, at),
        };
        let put = Put { from: self.bytes, wire, class, filler, at };
        self.bytes += wire;
        Some(put)
    }

    /// Returns `packets` packets of classes that always have two waiting, each class with one size.
    fn backlogged(&mut self, sizes: &[u64], packets: usize) -> Vec<Put> {
        for (i, &ip) in sizes.iter().enumerate() {
            self.push(Some(i), ip);
            self.push(Some(i), ip);
        }
        let (mut puts, mut left) = (Vec::new(), packets);
        while left > 0 {
            let put = self.next().expect("something waits");
            if let Some(class) = put.class {
                self.push(Some(class), sizes[class]);
                left -= 1;
            }
            puts.push(put);
        }
        puts
    }
}

/// Returns the starts of the packets of a class.
fn starts(puts: &[Put], class: usize) -> Vec<u64> {
    puts.iter().filter(|put| put.class == Some(class)).map(|put| put.from).collect()
}

/// The paper's figure 3: half and a quarter of the line, counted on the wire. Each packet takes 1538 bytes.
/// P1 is due every 3076 and P2 every 6152 bytes. The fourth place of each round is a gap.
#[test]
fn two_classes_share_the_line_as_in_figure_3() {
    let classes = [500, 250].map(|mbit| class(Rate::mbit(mbit), Counts::Wire));
    let puts = Bench::new(line(GBIT), &classes).backlogged(&[1500, 1500], 9);
    let round = [Some(0), Some(1), Some(0), None];
    for (n, put) in puts.iter().enumerate() {
        let from = n as u64 * 1538;
        let expected =
            Put { from, wire: 1538, class: round[n % 4], filler: n % 4 == 3, at: Time::from_nanos(from * 8) };
        assert_eq!(*put, expected, "place {n}");
    }
}

/// Figure 3 with rates that count frames with their FCS, as in the paper's tables: 1518 bytes every 3036 and
/// every 6072 byte times.
#[test]
fn a_packet_that_was_late_delays_none_after_it() {
    let classes = [500, 250].map(|mbit| class(Rate::mbit(mbit), Counts::Frame));
    let puts = Bench::new(line(GBIT), &classes).backlogged(&[1500, 1500], 6);
    let all: Vec<_> = puts.iter().map(|put| (put.class, put.from, put.wire)).collect();
    let expected = [
        (Some(0), 0, 1538),
        (Some(1), 1538, 1538),
        // Due at 3036, when the line was taken.
        (Some(0), 3076, 1538),
        (None, 4614, 6072 - 4614),
        (Some(0), 6072, 1538),
        (Some(1), 7610, 1538),
        (Some(0), 9148, 1538),
    ];
    assert_eq!(all, expected);
}

#[test]
fn holes_are_filled_to_the_byte_with_several_fillers() {
    // 8 kb/s on 1 Gb/s: a frame of 1518 bytes every 189,750,000 byte times, 1.518 s.
    let mut bench = Bench::new(line(GBIT), &[class(Rate::kbit(8), Counts::Frame)]);
    let puts = bench.backlogged(&[1500], 3);
    assert_eq!(starts(&puts, 0), [0, 189_750_000, 379_500_000]);
    let fillers = puts.iter().filter(|put| put.filler);
    assert!(fillers.clone().all(|put| (LEAST_ON_WIRE..=FULL_ON_WIRE).contains(&put.wire)));
    // The minimum: each hole of 189,748,462 bytes takes 123,374 full fillers.
    assert_eq!((fillers.count(), bench.pacer.stats().fillers), (2 * 123_374, 2 * 123_374));
    assert_eq!(puts.last().unwrap().at, Time::from_millis(2 * 1518));
}

/// ⌈84 / hole⌉ packets go out together where a hole is too short for a filler (counting IP bytes, 75 at 930
/// Mb/s, 5 at 972).
#[test]
fn what_cannot_be_filled_is_carried() {
    for (mbit, together) in [(920, 1), (930, 2), (950, 3), (960, 4), (970, 11), (972, 17)] {
        let puts = Bench::new(line(GBIT), &[class(Rate::mbit(mbit), Counts::Ip)]).backlogged(&[1500], 5000);
        let groups = puts.split(|put| put.filler).map(<[Put]>::len);
        assert_eq!(groups.max(), Some(together), "{mbit} Mb/s");
        for (n, start) in starts(&puts, 0).into_iter().enumerate() {
            let due = n as u64 * 1_500_000 / mbit;
            assert!(start <= due && due - start < LEAST_ON_WIRE, "packet {n}: {start}, due at {due}");
        }
    }
}

/// At 930 Mb/s of frames, a full one is due every 1518 × 100 / 93 = 1632.26 byte times. The next arrives when
/// 1600 have passed, 62 of them idle. That is too late to fill the hole of 94, and too early to leave.
#[test]
fn a_line_that_is_idle_stays_so_until_a_packet_is_due() {
    for runs in [false, true] {
        let port = Port { runs, ..line(GBIT) };
        let mut bench = Bench::new(port, &[class(Rate::mbit(930), Counts::Frame)]);
        let mut at = Vec::new();
        for n in 0..3 {
            bench.now = Time::from_nanos(n * 1600 * 8);
            bench.push(Some(0), 1500);
            let put = bench.next().unwrap();
            assert!(!put.filler);
            at.push(put.at.as_nanos() / 8);
        }
        assert_eq!(at, [0, 1632, 3264]);
        assert_eq!(bench.pacer.stats().fillers, 0);
    }
}

#[test]
fn a_class_that_rested_has_saved_nothing_and_loses_nothing_by_being_late() {
    let mut bench = Bench::new(line(GBIT), &[class(Rate::mbit(100), Counts::Wire)]);
    bench.push(Some(0), 1500);
    bench.push(Some(0), 1500);
    let first = bench.next().unwrap();
    while bench.next().is_some_and(|put| put.filler) {}
    // The second began at 15,380 byte times, and the queue is empty. It is backlogged again after 10 ms.
    assert_eq!((first.at, bench.now, bench.pacer.due()), (Time::ZERO, Time::from_nanos(123_040), None));
    bench.now = Time::from_millis(10);
    bench.push(Some(0), 1500);
    bench.push(Some(0), 1500);
    let third = bench.next().unwrap();
    assert_eq!((third.class, third.at), (Some(0), Time::from_millis(10)));
    while bench.next().is_some_and(|put| put.filler) {}
    assert_eq!(bench.now, Time::from_nanos(10_123_040));
}

#[test]
fn packets_of_no_class_take_what_is_left() {
    // The class has half of the line. Ten others fill the rest, and each delays it by at most one packet.
    let mut bench = Bench::new(line(GBIT), &[class(Rate::mbit(500), Counts::Wire)]);
    (0..10).for_each(|_| bench.push(None, 1500));
    let puts = bench.backlogged(&[1500], 12);
    assert_eq!(starts(&puts, 0), (0..12).map(|n| n * 3076).collect::<Vec<_>>());
    let others: Vec<u64> =
        puts.iter().filter(|put| put.class.is_none() && !put.filler).map(|put| put.from).collect();
    assert_eq!(others, (0..10).map(|n| 1538 + n * 3076).collect::<Vec<_>>());
}

#[test]
fn rates_that_do_not_fit_are_shared_as_they_are_asked_for() {
    // 800 + 400 Mb/s on 1 Gb/s: two thirds and one third of the line.
    let classes = [800, 400].map(|mbit| class(Rate::mbit(mbit), Counts::Wire));
    let mut bench = Bench::new(line(GBIT), &classes);
    let puts = bench.backlogged(&[1500, 1500], 9000);
    assert!(puts.iter().all(|put| !put.filler) && bench.pacer.stats().behind > 0);
    let count = starts(&puts, 0).len();
    assert!((5990..=6010).contains(&count), "{count} of 9000");
    // Requested bytes that did not fit are not owed: alone, the second has its rate at once.
    let classes = [900, 100, 500].map(|mbit| class(Rate::mbit(mbit), Counts::Wire));
    let mut bench = Bench::new(line(GBIT), &classes);
    bench.backlogged(&[1500; 3], 9000);
    while bench.next().is_some() {}
    let from = bench.bytes;
    let late: Vec<u64> =
        bench.backlogged(&[1500], 100).iter().filter(|p| p.class == Some(0)).map(|p| p.from).collect();
    assert!(late[99] - from >= 99 * 1538 * 10 / 9 - 84, "{}", late[99] - from);
}

#[test]
fn the_clock_back_end_has_deadlines() {
    let class = |mbit, counts| Class { backend: Backend::Clock, ..class(Rate::mbit(mbit), counts) };
    let mut bench = Bench::new(Port::default(), &[class(8, Counts::Ip), class(7, Counts::Ip)]);
    // 1000 bytes at 8 Mb/s take 1 ms, at 7 Mb/s 1,142,857 1/7 ns.
    let puts = bench.backlogged(&[1000, 1000], 15);
    let at = |class| -> Vec<u64> {
        puts.iter().filter(|put| put.class == Some(class)).map(|put| put.at.as_nanos()).collect()
    };
    assert_eq!(at(0), (0..at(0).len() as u64).map(|n| n * 1_000_000).collect::<Vec<_>>());
    assert_eq!(at(1), (0..at(1).len() as u64).map(|n| n * 8_000_000 / 7).collect::<Vec<_>>());
    // A packet of no class is not delayed.
    bench.push(None, 1000);
    assert_eq!(bench.next().map(|put| (put.class, put.at)), Some((None, bench.now)));
}

#[test]
fn runs_end_where_the_next_filler_would_begin() {
    let port = Port { runs: true, ..line(GBIT) };
    let classes = [class(Rate::mbit(10), Counts::Wire), class(Rate::mbit(500), Counts::Wire)];
    let mut bench = Bench::new(port, &classes);
    bench.push(Some(0), 1500);
    bench.push(Some(0), 1500);
    assert_eq!(bench.next().unwrap().class, Some(0));
    // The next one is due at 153,800 byte times, after 99 fillers of 1538 bytes. A packet of another class
    // arrives during the third of them.
    bench.now = Time::from_nanos((1538 * 3 + 100) * 8);
    bench.push(Some(1), 1500);
    let run = bench.next().unwrap();
    assert_eq!((run.filler, run.wire, run.at), (true, 3 * 1538, Time::from_nanos(4 * 1538 * 8)));
    let other = bench.next().unwrap();
    assert_eq!((other.class, other.at), (Some(1), Time::from_nanos(4 * 1538 * 8)));
    let run = bench.next().unwrap();
    assert_eq!((run.wire, run.at), (95 * 1538, Time::from_nanos(100 * 1538 * 8)));
    assert_eq!((bench.next().unwrap().class, bench.pacer.stats().fillers), (Some(0), 98));
}

#[test]
fn a_port_that_is_shut_owes_nothing() {
    let mut bench = Bench::new(line(GBIT), &[class(Rate::mbit(500), Counts::Wire)]);
    (0..5).for_each(|_| bench.push(Some(0), 1500));
    let first = bench.next().unwrap();
    bench.pacer.skip(Time::from_secs(1));
    let puts: Vec<Put> = core::iter::from_fn(|| bench.next()).filter(|put| !put.filler).collect();
    let at: Vec<u64> = puts.iter().map(|put| put.at.as_nanos() - 1_000_000_000).collect();
    // No filler had begun yet.
    assert_eq!((first.at, at), (Time::ZERO, (0..4).map(|n| (1538 + n * 3076) * 8).collect::<Vec<_>>()));
}

#[test]
fn what_cannot_be_paced_is_refused() {
    let check = |port: &Port, classes: &[Class]| check(port, classes).map_err(|why| why.to_string());
    let gap = class(Rate::mbit(1001), Counts::Ip);
    assert_eq!(check(&line(GBIT), &[gap]), Err("its rate, 1.001Gbit, is above the line's, 1Gbit".into()));
    assert!(check(&Port::default(), &[gap]).unwrap_err().contains("needs the rate of the line"));
    let clock = Class { backend: Backend::Clock, ..gap };
    assert!(check(&line(GBIT), &[class(GBIT, Counts::Ip), clock]).unwrap_err().contains("not by both"));
    let share = Class { target: Target::Share(500_000), ..clock };
    assert!(check(&Port::default(), &[share]).unwrap_err().contains("share of the line's"));
    assert_eq!(share.rate(Some(GBIT)), Some(Rate::mbit(500)));
    let short = Port { longest: 167, ..line(GBIT) };
    assert!(check(&short, &[class(GBIT, Counts::Ip)]).unwrap_err().contains("fillers of 168"));
    assert_eq!(check(&Port { longest: 168, ..short }, &[class(GBIT, Counts::Ip)]), Ok(()));
}

#[test]
fn another_rate_counts_from_the_next_packet_on() {
    let mut bench = Bench::new(line(GBIT), &[class(Rate::mbit(500), Counts::Wire)]);
    (0..4).for_each(|_| bench.push(Some(0), 1500));
    bench.next().unwrap();
    bench.pacer.set_rate(0, Rate::mbit(250));
    let puts: Vec<Put> = core::iter::from_fn(|| bench.next()).collect();
    assert_eq!(starts(&puts, 0), [3076, 3076 + 6152, 3076 + 2 * 6152]);
}

/// Rates of Ethernet lines.
const LINES: [u64; 5] = [1_000, 10_000, 25_000, 100_000, 400_000];

/// A class from 8 kb/s to the rate of the line, with packets of one size.
fn any_class(line: u64) -> impl Strategy<Value = (u64, u64)> {
    (3.9f64..(line as f64 * 1e6).log10(), 46u64..=1500)
        .prop_map(|(exponent, ip)| (10f64.powf(exponent) as u64, ip))
}

proptest! {
    /// Alone, each packet begins where exact arithmetic says, or up to 83 byte times before. The line is
    /// never idle, and its time is exact.
    #[test]
    fn a_class_alone_is_exact((line_mbit, (bps, ip)) in prop::sample::select(&LINES[..]).prop_flat_map(|l| (Just(l), any_class(l))),
                              counts in prop::sample::select(&Counts::ALL[..])) {
        let rate = Rate::from_bps(bps.max(8_000).min(line_mbit * 1_000_000)).unwrap();
        let port = Port { runs: true, ..line(Rate::mbit(line_mbit)) };
        let mut bench = Bench::new(port, &[class(rate, counts.1)]);
        let puts = bench.backlogged(&[ip], 200);
        let size = Size::of(Charge { packets: 1, bytes: ip + 14 }, 14, ip as usize + 14);
        let (counted, line_bps) = (u128::from(size.counted(counts.1)), u128::from(line_mbit) * 1_000_000);
        let mut free = 0;
        for (n, put) in puts.iter().filter(|put| !put.filler).enumerate() {
            let due = (n as u128 * counted * line_bps / u128::from(rate.bps())) as u64;
            // At rates that the line cannot carry at this size, packets are late: the line is full.
            let earliest = due.max(free);
            prop_assert!(put.from <= earliest && earliest - put.from < LEAST_ON_WIRE, "packet {}: {:?}, due at {}", n, put, due);
            free = put.from + put.wire;
            let at = u128::from(put.from) * 8_000_000_000 / line_bps;
            prop_assert_eq!(u128::from(put.at.as_nanos()), at);
        }
        let holes = puts.windows(2).all(|pair| pair[0].from + pair[0].wire == pair[1].from);
        prop_assert!(holes);
    }

    /// If the classes fit on the line, each packet finishes within one packet after its class is due again.
    /// Over any time each class has sent what exact arithmetic says, to one packet.
    #[test]
    fn classes_that_fit_have_their_rates(shares in prop::collection::vec((1u64..1000, 46u64..=1500), 1..12), load in 500u64..=1000) {
        let sum: u64 = shares.iter().map(|s| s.0).sum();
        let rates: Vec<u64> = shares.iter().map(|s| (s.0 * load * 1_000_000 / sum).max(8_000)).collect();
        prop_assume!(rates.iter().sum::<u64>() <= 1_000_000_000);
        let classes: Vec<Class> =
            rates.iter().map(|&bps| class(Rate::from_bps(bps).unwrap(), Counts::Wire)).collect();
        let sizes: Vec<u64> = shares.iter().map(|s| s.1).collect();
        let mut bench = Bench::new(line(GBIT), &classes);
        let puts = bench.backlogged(&sizes, 600);
        prop_assert_eq!(bench.pacer.stats().behind, 0);
        for (i, (&bps, &ip)) in rates.iter().zip(&sizes).enumerate() {
            let wire = (ip + 38).max(84);
            let due = |n: usize| (n as u128 * u128::from(wire) * 1_000_000_000 / u128::from(bps)) as u64;
            for (n, start) in starts(&puts, i).into_iter().enumerate() {
                prop_assert!(start + LEAST_ON_WIRE > due(n), "class {} packet {}: {} due {}", i, n, start, due(n));
                prop_assert!(start + wire <= due(n + 1) + FULL_ON_WIRE + 1, "class {} packet {}: {} due {}", i, n, start, due(n));
            }
        }
    }

    /// For any arrivals: no frame is lost, times never go backwards, and no packet begins before it arrived.
    #[test]
    fn nothing_is_lost(steps in prop::collection::vec((0u64..200_000, prop::option::of(0usize..3), 46u64..=1500), 1..200), runs: bool, gap: bool) {
        let backend = if gap { Backend::Gap } else { Backend::Clock };
        let classes: Vec<Class> =
            [3, 200, 700].iter().map(|&m| Class { backend, ..class(Rate::mbit(m), Counts::Ip) }).collect();
        let mut bench = Bench::new(Port { runs, ..line(GBIT) }, &classes);
        let (mut last, mut packets) = (Time::ZERO, 0);
        let mut came = [vec![], vec![], vec![], vec![]];
        let mut left = [0; 4];
        let mut take = |bench: &mut Bench, came: &[Vec<Time>; 4]| {
            let put = bench.next().unwrap();
            assert!(put.at >= last && put.at <= bench.now);
            last = put.at;
            if !put.filler {
                let queue = put.class.map_or(3, |class| class);
                assert!(put.at >= came[queue][left[queue]]);
                left[queue] += 1;
                packets += 1;
            }
        };
        for &(wait, class, ip) in &steps {
            let then = bench.now + Duration::from_nanos(wait);
            while bench.pacer.due().is_some_and(|due| due <= then) {
                take(&mut bench, &came);
            }
            bench.now = then;
            came[class.unwrap_or(3)].push(then);
            bench.push(class, ip);
        }
        while bench.pacer.due().is_some() {
            take(&mut bench, &came);
        }
        prop_assert_eq!(packets, steps.len());
        prop_assert_eq!(bench.frames.free_chunks(), bench.frames.chunks());
    }
}
