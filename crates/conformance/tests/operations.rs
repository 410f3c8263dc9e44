//! Operations drawn at random on a gateway behind its hooks: segments of both ends with any numbers, forged
//! ones, wrong checksums, bursts, SYNs, RSTs and FINs out of place, connections that never began, datagrams,
//! packets that cannot be read as a whole, engines that hang, are killed and come back, budgets of a few.
//!
//! No byte is acknowledged that no receiver has, and no class exceeds its bound while an engine runs.
//! `WEIR_OPERATIONS=100000000 cargo test --release -p weir-conformance --test operations -- --nocapture` says
//! how many a second were played.
#![expect(clippy::disallowed_methods, reason = "how many are played, and how fast, is not the core's")]

use std::time::Instant;
use weir_core::ack::AckControl;
use weir_core::frame::Checksum;
use weir_core::gateway::{ClassConfig, Config, Direction, LAN, WAN};
use weir_core::node::Port;
use weir_core::rate::Rate;
use weir_core::rig::second::{most, Second};
use weir_core::rig::{Rig, Sent, TestFrame};
use weir_core::rng::Rng;
use weir_core::steer::{after, is_spared};
use weir_core::time::{Duration, Time};
use weir_core::wire::build::{Disguise, SegmentBuilder, Sum};
use weir_core::wire::{any_packet, checksum, other_packet, tcp, Flags, Tcp};
use weir_sim::steering::{Bounds, Steered};

const HOSTS: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 1, 1]];
/// First sequence numbers of the two ends; the second wraps soon.
const FIRST: [u32; 2] = [1, 0xffff_f001];
/// Operations after which a long run says where it is.
const MANY: u64 = 1_000_000;
/// Operations on one gateway.
const EACH: u64 = 200;

/// A segment from one end to the other.
fn segment(from: usize) -> SegmentBuilder {
    SegmentBuilder::v4(HOSTS[from], HOSTS[1 - from]).ports([4, 5][from], [5, 4][from])
}

/// Time after the last operation in which what is held is released, at most rates.
const WAIT: Duration = Duration::from_secs(100);

/// Payload of a giant segment.
const GIANT: usize = 60_000;

/// Rates of the classes whose flows share one, by the port by which their data leaves.
type Limits = [Option<Rate>; 2];

fn rig(rng: &mut Rng) -> (Rig<Steered>, Limits) {
    let mut limits = [None; 2];
    let mut class = |direction, to: Port| {
        let rate = Rate::kbit(100 << rng.below(14));
        let shares = rng.below(2) == 0;
        limits[usize::from(to.0)] = shares.then_some(rate);
        let ack = if shares { AckControl::ack_share(rate) } else { AckControl::ack_shaper(rate) };
        ClassConfig::controlled("all", direction, ack)
    };
    let classes = vec![class(Direction::Out, WAN), class(Direction::In, LAN)];
    let config = Config { classes, max_flows: 16, ..Config::default() };
    let mut rig = Rig::new(match rng.below(3) {
        0 => Steered::new(config),
        _ => Steered::within(config, &Bounds::of(1 + rng.below(8) as u32)),
    });
    let syn = segment(0).seq(FIRST[0] - 1).flags(Flags::SYN).mss(1_460).window_scale(7).ts(1, 0);
    rig.at(Time::ZERO).inject(LAN, TestFrame::bytes(&syn.build()));
    let answer = segment(1).seq(FIRST[1].wrapping_sub(1)).ack(FIRST[0]).flags(Flags::SYN | Flags::ACK);
    rig.inject(WAN, TestFrame::bytes(&answer.mss(1_460).window_scale(7).ts(1, 1).build()));
    (rig, limits)
}

fn sum_of(frame: &[u8], len: usize) -> Checksum {
    any_packet(frame, len).map_or(Checksum::Unknown, |p| checksum::verify(frame, len, &p))
}

/// Laws of all that leaves.
struct Laws {
    /// Numbers that each end has acknowledged, by the port at which it is.
    acknowledged: [u32; 2],
    limits: Limits,
    /// Bytes of data that left by each port while an engine ran.
    left: [Second; 2],
    /// An engine runs.
    runs: bool,
    /// Last time at which none did.
    unheld: Time,
}

impl Laws {
    fn check(&mut self, sent: &[Sent]) {
        for s in sent {
            let whole = any_packet(&s.bytes, s.len).ok();
            let segment = whole.and_then(|p| tcp(&s.bytes, &p).ok());
            // What has no readable address is no class's.
            let Some(p) = whole.filter(|_| segment.is_some()).or_else(|| other_packet(&s.bytes, s.len))
            else {
                continue;
            };
            let payload = segment.map_or(u64::from(p.end) - u64::from(p.l3), |t| t.payload_len.into());
            self.bound(s, payload);
            if let Some(t) = segment {
                self.belief(s, &t);
            }
        }
    }

    /// Neither end is told of more than the other end has acknowledged. What has a wrong checksum tells
    /// nothing.
    fn belief(&self, sent: &Sent, tcp: &Tcp) {
        if !tcp.flags.contains(Flags::ACK) || sum_of(&sent.bytes, sent.len) == Checksum::Invalid {
            return;
        }
        let ends = self.acknowledged;
        assert!(!after(tcp.ack.0, ends[usize::from(sent.port == LAN)]), "{tcp:?} of {ends:?}");
    }

    /// No class has more in any second than its rate allows, but where it had no engine.
    fn bound(&mut self, sent: &Sent, payload: u64) {
        let port = usize::from(sent.port.0);
        let holds = self.runs && !is_spared(self.unheld, sent.at);
        let Some(rate) = self.limits[port].filter(|_| holds) else { return };
        let second = self.left[port].add(sent.at, payload);
        assert!(second <= most(rate), "{second} bytes of {rate} in the second until {:?}", sent.at);
    }

    /// An engine comes or goes at `now`: seconds without one count for nothing, nor does the time after it in
    /// which flows are spared.
    fn engine(&mut self, runs: bool, now: Time) {
        if self.runs != runs {
            self.left.iter_mut().for_each(Second::clear);
        }
        if !self.runs {
            self.unheld = now;
        }
        self.runs = runs;
    }
}

/// A connection whose ends, and whose neighbours, say what they like.
struct Play<'a> {
    rng: &'a mut Rng,
    rig: Rig<Steered>,
    laws: Laws,
    sent: [u32; 2],
    now: Time,
}

impl Play<'_> {
    /// Plays operations on one gateway.
    fn all(rng: &mut Rng) {
        let (rig, limits) = rig(rng);
        let acknowledged = [FIRST[1], FIRST[0]];
        let laws = Laws { acknowledged, limits, left: Default::default(), runs: true, unheld: Time::ZERO };
        let mut play = Play { rng, rig, laws, sent: FIRST, now: Time::from_millis(1) };
        (0..EACH).for_each(|_| play.one());
        play.engine_comes();
        play.falls_silent();
        play.runs_until(Time::from_secs(10_000));
        assert_eq!(play.rig.node().ledger().held(), 0);
        play.rig.finish();
    }

    /// Lets time pass in which nothing comes. A gateway that holds nothing makes no more ACKs then, of
    /// whatever its flows wait for.
    fn falls_silent(&mut self) {
        self.runs_until(self.now + WAIT);
        let made = |play: &Play| play.rig.node().gateway().flows.stats().ledger.made;
        let before = made(self);
        if self.rig.node().gateway().flows.flows().all(|flow| flow.held_bytes == 0) {
            self.runs_until(self.now + WAIT);
            assert_eq!(made(self), before, "ACKs are made of nothing");
        }
    }

    fn one(&mut self) {
        let passes = Duration::from_micros(self.rng.below(30_000));
        self.runs_until(self.now + passes);
        let from = self.rng.below(2) as usize;
        match self.rng.below(100) {
            0 => self.engine_goes(Steered::hang),
            1 => self.engine_goes(Steered::kill),
            2..=5 => self.engine_comes(),
            6..=9 => self.burst(from),
            10..=12 => self.strangers(from),
            13..=14 => self.datagrams(from),
            15..=16 => self.disguised(from),
            17..=19 => self.interrupts(from),
            kind => self.talk(from, kind),
        }
    }

    fn runs_until(&mut self, until: Time) {
        self.now = until;
        let sent = self.rig.run_until(until);
        self.laws.check(&sent);
    }

    fn engine_goes(&mut self, how: fn(&mut Steered)) {
        how(self.rig.node_mut());
        self.laws.engine(false, self.now);
    }

    fn engine_comes(&mut self) {
        self.rig.node_mut().come_back();
        self.laws.engine(true, self.now);
    }

    /// One segment of an end, of an old number now and then, damaged or with odd options.
    fn talk(&mut self, from: usize, kind: u64) {
        let rng = &mut *self.rng;
        let acknowledged = &mut self.laws.acknowledged[from];
        // Some numbers are old. What is under a wrong checksum is ahead of all.
        let mut old = || if rng.below(8) == 0 { rng.below(50) as u32 * 1_448 } else { 0 };
        let (seq, mut ack) = (self.sent[from].wrapping_sub(old()), acknowledged.wrapping_sub(old()));
        let broken = kind < 30;
        ack = ack.wrapping_add(if broken { 1_000_000 } else { rng.below(8) as u32 * 1_448 });
        if after(ack, *acknowledged) && !broken {
            *acknowledged = ack;
        }
        let flags = if kind == 99 { Flags::ACK | Flags::FIN } else { Flags::ACK };
        let s = segment(from).seq(seq).ack(ack).flags(flags).window(4_000);
        let s = match kind {
            30..=34 => s.raw_options(&[253, 4, 0, 1]),
            35..=39 => s.raw_options(&[7, 40, 1, 1]),
            40..=44 => s.md5(),
            _ => s.ts((self.now.as_nanos() / 1_000_000) as u32, 1),
        };
        let payload = if rng.below(2) == 0 { 0 } else { rng.below(1_280) as u32 };
        let news = if seq == self.sent[from] && !broken { payload } else { 0 };
        self.sent[from] = self.sent[from].wrapping_add(news);
        let s = s.payload(payload as usize);
        let frame = s.checksum(if broken { Sum::Wrong } else { Sum::Valid }).build();
        // One wrong sum in 65,536 is what a device has still to complete, which hosts leave and gateways
        // believe.
        if !broken || sum_of(&frame, frame.len()) == Checksum::Invalid {
            self.rig.at(self.now).inject([LAN, WAN][from], TestFrame::bytes(&frame));
        }
    }

    /// Segments of an end, giant ones too, whatever its window says.
    fn burst(&mut self, from: usize) {
        let len = self.length();
        for _ in 0..1 + self.rng.below(64) {
            let data = segment(from).seq(self.sent[from]).ack(self.laws.acknowledged[from]).window(4_000);
            self.sent[from] = self.sent[from].wrapping_add(len as u32);
            self.inject(from, data.ts((self.now.as_nanos() / 1_000_000) as u32, 1), len);
        }
    }

    /// A segment that begins or ends connections, from either end: SYN, SYN-ACK, RST, FIN or none of
    /// them, with numbers that fit or not, any window, scale, timestamp and payload.
    fn interrupts(&mut self, from: usize) {
        let rng = &mut *self.rng;
        let fits = rng.below(2) == 0;
        let seq = if fits { self.sent[from] } else { rng.next_u64() as u32 };
        let ack = self.laws.acknowledged[from].wrapping_sub(rng.below(4) as u32 * 1_448);
        let kinds = [Flags::SYN, Flags::SYN | Flags::ACK, Flags::RST, Flags::RST | Flags::ACK];
        let odd =
            [Flags::FIN, Flags::FIN | Flags::ACK, Flags::SYN | Flags::FIN, Flags::default(), Flags::ACK];
        let all = [kinds.as_slice(), odd.as_slice()].concat();
        let flags = all[rng.below(all.len() as u64) as usize];
        let s = segment(from).seq(seq).ack(ack).flags(flags).window(rng.below(65_536) as u16);
        let s = if rng.below(2) == 0 { s.ts(rng.next_u64() as u32, rng.next_u64() as u32) } else { s };
        let opens = flags.contains(Flags::SYN) && rng.below(2) == 0;
        let s = if opens { s.mss(rng.below(9_000) as u16).window_scale(rng.below(256) as u8) } else { s };
        let payload = [0, 0, 1, 1_000][rng.below(4) as usize];
        self.rig.at(self.now).inject([LAN, WAN][from], TestFrame::bytes(&s.payload(payload).build()));
    }

    /// Segments of connections that never began.
    fn strangers(&mut self, from: usize) {
        let len = self.length();
        for _ in 0..1 + self.rng.below(32) {
            let ports = (1_024 + self.rng.below(60_000) as u16, 80);
            let data = segment(from).ports(ports.0, ports.1).seq(self.rng.next_u64() as u32);
            self.inject(from, data.ack(self.laws.acknowledged[from]), len);
        }
    }

    fn datagrams(&mut self, from: usize) {
        for _ in 0..1 + self.rng.below(64) {
            let ports = (5_000, self.rng.below(60_000) as u16);
            self.inject(from, segment(from).udp().ports(ports.0, ports.1), 1_372);
        }
    }

    /// Packets of the connection that cannot be read as a whole.
    fn disguised(&mut self, from: usize) {
        let disguise = Disguise::ALL[self.rng.below(Disguise::ALL.len() as u64) as usize];
        for _ in 0..1 + self.rng.below(64) {
            let (head, len) = segment(from).absent_payload(1_372).build_head();
            let before = head.len();
            let head = disguise.put_on(head);
            let frame = TestFrame::bytes(&head).long(len + head.len() - before).checksum(Checksum::Valid);
            self.rig.at(self.now).inject([LAN, WAN][from], frame);
        }
    }

    /// Payload of a segment: of a packet, or of a giant one.
    fn length(&mut self) -> usize {
        if self.rng.below(4) == 0 {
            self.rng.below(GIANT as u64) as usize
        } else {
            1_448
        }
    }

    /// Hands in a segment of which the headers are present.
    fn inject(&mut self, from: usize, segment: SegmentBuilder, payload: usize) {
        let (head, len) = segment.absent_payload(payload).build_head();
        let frame = TestFrame::bytes(&head).long(len).checksum(Checksum::Valid);
        self.rig.at(self.now).inject([LAN, WAN][from], frame);
    }
}

#[test]
fn no_operation_breaks_a_law() {
    let asked = std::env::var("WEIR_OPERATIONS").ok().and_then(|n| n.parse().ok());
    let operations: u64 = asked.unwrap_or(20_000);
    let begin = Instant::now();
    for n in 0..operations.div_ceil(EACH) {
        Play::all(&mut Rng::new(n));
        if (n + 1) % (MANY / EACH) == 0 {
            println!("{} operations", (n + 1) * EACH);
        }
    }
    println!("{operations} operations, {:.0} a second", operations as f64 / begin.elapsed().as_secs_f64());
}
