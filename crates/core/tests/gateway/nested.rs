//! Classes that share rates by ACKs and borrow from each other, in virtual time. Senders have a window of
//! 30,000 bytes and a round trip of 20 ms, so each could send 12 Mb/s; 8 Mb/s are a byte a microsecond.

use crate::support::uploads::*;
use crate::support::*;
use weir_core::ack::{AckControl, Release, ShareRelease};
use weir_core::flow::flag;
use weir_core::gateway::{ClassConfig, Config, Direction, Match, Nested};
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};

const WINDOW: u32 = 30_000;
const ROUND: Duration = Duration::from_millis(20);

fn kbit(n: u64) -> Option<Rate> {
    Rate::from_bps(n * 1_000)
}

const OF: fn(usize) -> Nested =
    |parent| Nested { parent: Some(parent), rate: None, ceil: None, weight: 1, lends: false };

/// A class of the flows with these numbers; of none where others borrow from it.
fn class(name: &str, flows: core::ops::RangeInclusive<u16>, nested: Nested) -> ClassConfig {
    let ports = Match { src_port: Some(1_000 + flows.start()..=1_000 + flows.end()), ..Match::default() };
    let matches = if nested.lends { vec![] } else { vec![ports] };
    let ack = AckControl::ack_share(Rate::mbit(1));
    ClassConfig { matches, nested: Some(nested), ..ClassConfig::controlled(name, Direction::Out, ack) }
}

/// A site of `rate`, and classes below it.
fn site(rate: u64, below: Vec<ClassConfig>) -> Config {
    let top = Nested { parent: None, rate: kbit(rate), ceil: None, weight: 1, lends: true };
    let mut classes = vec![class("site", 0..=0, top)];
    classes.extend(below);
    let mut config = Config { classes, ..Config::default() };
    assert_eq!(config.check_nested(), Ok(()));
    for i in 0..config.classes.len() {
        let most = config.most_of(i).unwrap();
        config.classes[i].ack = Some(AckControl::ack_share(most));
    }
    config
}

/// Senders that keep their window full: what is acknowledged to them their receivers get a round trip later.
struct Busy {
    uploads: Uploads,
    at: Time,
    /// Numbers that each flow's sender was acknowledged.
    acked: Vec<u32>,
    /// Flows that send nothing more.
    idle: Vec<u16>,
    coming: std::collections::VecDeque<(Time, u16, u32)>,
}

impl Busy {
    fn new(config: Config, flows: u16) -> Busy {
        let mut uploads = Uploads::begun(config, flows, ms(20));
        (0..flows).for_each(|f| uploads.ack(ms(100), f, WINDOW));
        let acked = vec![0; usize::from(flows)];
        Busy { uploads, at: ms(100), acked, idle: Vec::new(), coming: Default::default() }
    }

    fn run(&mut self, until: Time) {
        while self.at < until {
            self.at += Duration::from_micros(500);
            while let Some((at, f, to)) = self.coming.front().copied().filter(|next| next.0 <= self.at) {
                self.coming.pop_front();
                let sent = self.uploads.run(at);
                self.note(sent);
                self.uploads.ack(at, f, to);
            }
            let sent = self.uploads.run(self.at);
            self.note(sent);
        }
    }

    fn note(&mut self, sent: Vec<(Time, u16, u32)>) {
        for (at, f, to) in sent {
            let acked = &mut self.acked[usize::from(f)];
            if to > *acked && !self.idle.contains(&f) {
                self.coming.push_back((at + ROUND, f, to + WINDOW));
            }
            *acked = to.max(*acked);
        }
    }

    /// Bits per second that each flow was acknowledged until then.
    fn rates(&mut self, until: Time) -> Vec<u64> {
        let (before, from) = (self.acked.clone(), self.at);
        self.run(until);
        let ms = self.at.since(from).as_nanos() / 1_000_000;
        self.acked.iter().zip(before).map(|(now, then)| u64::from(now - then) * 8_000 / ms).collect()
    }
}

/// Within half a percent.
fn expect(rates: &[u64], kbit: &[u64]) {
    let near = |(&rate, &kbit): (&u64, &u64)| rate.abs_diff(kbit * 1_000) <= kbit * 5;
    assert!(rates.iter().zip(kbit).all(near), "{rates:?} and not {kbit:?} kbit/s");
}

#[test]
fn what_is_borrowed_is_shared_by_weight() {
    let weighs = |name, f, weight| class(name, f..=f, Nested { weight, ..OF(0) });
    let config = site(7_000, vec![weighs("a", 0, 1), weighs("b", 1, 2), weighs("c", 2, 4)]);
    let mut busy = Busy::new(config.clone(), 3);
    busy.run(ms(1_000));
    expect(&busy.rates(ms(21_000)), &[1_000, 2_000, 4_000]);
    // Weights change while flows live, and nothing that was counted is lost.
    let before: u64 = busy.uploads.node().flows.class_stats().map(|c| c.acked_bytes).sum();
    let config = site(7_000, vec![weighs("a", 0, 4), weighs("b", 1, 2), weighs("c", 2, 1)]);
    busy.uploads.rig.node_mut().flows.reconfigure(config).unwrap();
    let now: u64 = busy.uploads.node().flows.class_stats().map(|c| c.acked_bytes).sum();
    assert_eq!(before, now);
    busy.run(ms(22_000));
    expect(&busy.rates(ms(42_000)), &[4_000, 2_000, 1_000]);
    // Without the tree each is alone, and back.
    let alone = |name, f| ClassConfig { nested: None, ..weighs(name, f, 1) };
    let classes = vec![alone("a", 0), alone("b", 1), alone("c", 2)];
    busy.uploads.rig.node_mut().flows.reconfigure(Config { classes, ..Config::default() }).unwrap();
    busy.run(ms(43_000));
    expect(&busy.rates(ms(53_000)), &[1_000, 1_000, 1_000]);
    let config = site(7_000, vec![weighs("a", 0, 1), weighs("b", 1, 2), weighs("c", 2, 4)]);
    busy.uploads.rig.node_mut().flows.reconfigure(config).unwrap();
    busy.run(ms(54_000));
    expect(&busy.rates(ms(74_000)), &[1_000, 2_000, 4_000]);
}

#[test]
fn a_class_has_its_own_and_borrows_from_the_next_above_first() {
    let own = |name, f, rate, parent| class(name, f..=f, Nested { rate: kbit(rate), ..OF(parent) });
    let lends = |name, rate| class(name, 0..=0, Nested { rate: kbit(rate), lends: true, ..OF(0) });
    let below = vec![
        lends("north", 7_000),
        lends("south", 3_000),
        own("a", 0, 4_000, 1),
        own("b", 1, 3_000, 1),
        own("c", 2, 2_000, 2),
        own("d", 3, 1_000, 2),
    ];
    let mut busy = Busy::new(site(10_000, below), 4);
    busy.run(ms(1_000));
    expect(&busy.rates(ms(21_000)), &[4_000, 3_000, 2_000, 1_000]);
    // What one leaves is its sister's.
    busy.idle = vec![3];
    busy.run(ms(22_000));
    expect(&busy.rates(ms(42_000)), &[4_000, 3_000, 3_000, 0]);
    // And what both leave is the other side's: a has 4, b 3, and of the other three each a half.
    busy.idle = vec![2, 3];
    busy.run(ms(43_000));
    expect(&busy.rates(ms(63_000)), &[5_500, 4_500, 0, 0]);
}

#[test]
fn a_ceiling_holds_and_the_rest_is_used() {
    let below =
        vec![class("slow", 0..=1, Nested { ceil: kbit(1_000), ..OF(0) }), class("fast", 2..=2, OF(0))];
    let mut busy = Busy::new(site(8_000, below), 3);
    busy.run(ms(1_000));
    let rates = busy.rates(ms(31_000));
    expect(&[rates[0] + rates[1], rates[2]], &[1_000, 7_000]);
}

/// Rates of two flows in the first two classes of a site, in bits per second. The second one also has
/// datagrams with 1,500 bytes of payload, one in so many milliseconds.
fn beside_datagrams(site_kbit: u64, ceil: [u64; 2], every: u64, classes: u16) -> Vec<u64> {
    let of = |i: u16| {
        let ceil = kbit(ceil[usize::from(i.min(1))]);
        class(&format!("c{i}"), i..=i, Nested { ceil, ..OF(0) })
    };
    let mut busy = Busy::new(site(site_kbit, (0..classes).map(of).collect()), 2);
    let mut before = Vec::new();
    for t in 100..6_000 {
        if t == 2_000 {
            before = busy.acked.clone();
        }
        if t % every == 0 {
            busy.uploads.node().flows.tallies()[2].count(1, 1_528);
        }
        busy.run(ms(t + 1));
    }
    busy.acked.iter().zip(before).map(|(now, then)| u64::from(now - then) * 8 / 4).collect()
}

/// 8 Mb/s of TCP beside 6 of TCP and 6 of datagrams fit in a site of 24 Mb/s, however many classes are in it.
#[test]
fn datagrams_of_a_neighbour_take_nothing_that_a_site_has_room_for() {
    for classes in [2, 1_200] {
        let rates = beside_datagrams(24_000, [8_000, 12_000], 2, classes);
        expect(&[rates[0], rates[1] + 6_000_000], &[8_000, 12_000]);
    }
}

/// Rates in kbit/s of TCP in a site, and of floods of datagrams of 24 Mb/s in the classes with these indices.
fn beside_floods(config: Config, floods: &[usize]) -> (u64, Vec<u64>) {
    let mut busy = Busy::new(config, 1);
    let (mut before, mut passed) = (0, vec![0; floods.len()]);
    for t in 100..6_000 {
        if t == 2_000 {
            before = busy.acked[0];
        }
        for _ in 0..2 {
            for (&class, passed) in floods.iter().zip(&mut passed) {
                let flows = &busy.uploads.node().flows;
                let place = flows.places().nth(class).unwrap();
                let passes = flows.tallies()[place as usize].passes(1, 1_528, ms(t), false);
                *passed += if t >= 2_000 && passes { 1_500 } else { 0 };
            }
        }
        busy.run(ms(t + 1));
    }
    (u64::from(busy.acked[0] - before) * 8 / 4_000, passed.iter().map(|bytes| bytes * 8 / 4_000).collect())
}

/// A flow of TCP has the part of its class whatever its neighbours send: as much as each of them for each
/// unit of weight, beside what it has for itself. What one cannot use is left to the others.
#[test]
fn floods_of_datagrams_have_the_parts_of_their_classes() {
    let leaf =
        |i: u16, ceil, parent| class(&format!("c{i}"), i..=i, Nested { ceil: kbit(ceil), ..OF(parent) });
    let lends = |name, parent| class(name, 0..=0, Nested { lends: true, ..OF(parent) });
    // Within 5 % of the plain box for TCP; no flood has 5 % more than its part; and the site is used.
    let near = |config: Config, floods: &[usize], kbit: &[u64]| {
        let (tcp, others) = beside_floods(config, floods);
        assert!(tcp * 20 >= kbit[0] * 19, "{tcp} and not {kbit:?} kbit/s");
        let fair = |(&rate, &kbit): (&u64, &u64)| rate * 20 <= kbit * 21;
        assert!(others.iter().zip(&kbit[1..]).all(fair), "{others:?} and not {kbit:?} kbit/s");
        let all = tcp + others.iter().sum::<u64>();
        assert!(all * 10 >= kbit.iter().sum::<u64>() * 9, "{tcp} and {others:?} kbit/s");
    };
    for classes in [2, 1_200] {
        near(site(16_000, (0..classes).map(|i| leaf(i, 16_000, 0)).collect()), &[2], &[8_000, 8_000]);
    }
    let mut three = vec![leaf(0, 16_000, 0), leaf(1, 16_000, 0), leaf(2, 16_000, 0)];
    near(site(16_000, three.clone()), &[2, 3], &[5_333, 5_333, 5_333]);
    three[0].nested = Some(Nested { rate: kbit(6_000), ..three[0].nested.unwrap() });
    near(site(16_000, three.clone()), &[2, 3], &[9_333, 3_333, 3_333]);
    three[1].nested = Some(Nested { weight: 2, ..three[1].nested.unwrap() });
    near(site(16_000, three), &[2, 3], &[8_500, 5_000, 2_500]);
    near(site(16_000, vec![leaf(0, 2_000, 0), leaf(1, 16_000, 0)]), &[2], &[2_000, 14_000]);
    let sides = |a, b, c| {
        vec![lends("p", 0), lends("q", 0), leaf(0, 16_000, a), leaf(1, 16_000, b), leaf(2, 16_000, c)]
    };
    near(site(16_000, sides(1, 2, 2)), &[4, 5], &[8_000, 4_000, 4_000]);
    near(site(16_000, sides(1, 1, 2)), &[4, 5], &[4_000, 4_000, 8_000]);
}

/// Two classes of a site that is full have half of it each, of which one uses a half for its datagrams.
#[test]
fn datagrams_count_in_the_turns_of_their_class() {
    for classes in [2, 1_200] {
        expect(&beside_datagrams(16_000, [16_000, 16_000], 3, classes), &[8_000, 4_000]);
    }
}

/// A class that goes while its flows live, and its parent with it.
#[test]
fn nothing_stalls_when_classes_come_and_go() {
    let below = vec![class("a", 0..=0, OF(0)), class("b", 1..=1, OF(0))];
    let mut busy = Busy::new(site(8_000, below.clone()), 2);
    busy.run(ms(1_000));
    let all = ClassConfig::controlled("all", Direction::Out, AckControl::ack_share(Rate::mbit(4)));
    let only = Config { classes: vec![all], ..Config::default() };
    for round in 0..10u64 {
        let config = if round % 2 == 0 { only.clone() } else { site(8_000, below.clone()) };
        busy.uploads.rig.node_mut().flows.reconfigure(config).unwrap();
        let start = 1_000 + round * 2_000;
        busy.run(ms(start + 1_000));
        let sum: u64 = busy.rates(ms(start + 2_000)).iter().sum();
        expect(&[sum], &[if round % 2 == 0 { 4_000 } else { 8_000 }]);
    }
    let held: u64 = busy.uploads.node().flows.records().iter().map(|r| u64::from(r.held())).sum();
    let counted: u64 = busy.uploads.node().flows.class_stats().map(|c| c.held_bytes).sum();
    assert_eq!(held, counted);
}

/// Three flows of 8 Mb/s have at least 2.5 Mb/s each; a fourth has what they leave, until one of them ends.
#[test]
fn the_least_rate_is_for_those_for_whom_there_is_room() {
    let law = ShareRelease { flow_min: kbit(2_500), ..ShareRelease::new(Rate::mbit(8)) };
    let ack = AckControl { release: Release::Share(law), ..AckControl::ack_share(Rate::mbit(8)) };
    let all = ClassConfig::controlled("all", Direction::Out, ack);
    let mut b = Busy::new(Config { classes: vec![all], ..Config::default() }, 4);
    let sure = |b: &Busy| (0..4).map(|f| b.uploads.record(f).has(flag::GUARANTEED)).collect::<Vec<_>>();
    let counts = |b: &Busy| {
        b.uploads.node().flows.class_stats().map(|s| (s.guaranteed, s.best_effort)).collect::<Vec<_>>()
    };
    // Handshakes alone hold no guarantee.
    assert_eq!((sure(&b), counts(&b)), (vec![false; 4], vec![(0, 0)]));
    b.run(ms(1_000));
    assert_eq!((sure(&b), counts(&b)), (vec![true, true, true, false], vec![(3, 1)]));
    expect(&b.rates(ms(21_000)), &[2_500, 2_500, 2_500, 500]);
    // The fourth has it from its next turn on.
    b.idle.push(0);
    let end = b.acked[0] + WINDOW;
    b.uploads.fin(b.at, 0, end);
    b.run(ms(22_000));
    assert_eq!((sure(&b), counts(&b)), (vec![false, true, true, true], vec![(3, 1)]));
    expect(&b.rates(ms(42_000))[1..], &[2_667, 2_667, 2_667]);
}
