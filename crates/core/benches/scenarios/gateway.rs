//! A gateway whose peers answer each ACK that leaves a round trip later.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::{Duration as Wall, Instant};
use weir_core::ack::{AckControl, Period, RateRelease, Release};
use weir_core::frame::{Frame, Frames};
use weir_core::gateway::{ClassConfig, Config, Direction, Gateway, LAN, WAN};
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::rate::Rate;
use weir_core::rng::Rng;
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::{self, checksum, Flags};

const SEGMENT: u32 = 1448;
const TWO_SEGMENTS: u32 = 2 * SEGMENT;
const ACKS_PER_SECOND: u64 = 1_000_000;
const APART: Duration = Duration::from_nanos(1_000_000_000 / ACKS_PER_SECOND);
/// From the gateway to sender and receiver and back.
const ROUND_TRIP: Duration = Duration::from_micros(100);
/// Between the handshakes and the first data: so long that no flow is still in the gap after its handshake.
/// Otherwise the releases of many flows fall together and come in bursts.
const SILENCE: Duration = Duration::from_millis(100);
/// ACKs that the gateway holds of each flow.
const HELD: u32 = 2;
/// Handed in together at most, as by a driver that a second of ACKs reaches in rounds.
pub const BATCH: usize = 64;

const SENDER: [u8; 4] = [10, 0, 0, 1];
/// The first receiver; the others have the following addresses.
const RECEIVER: [u8; 4] = [10, 1, 0, 0];

/// Offsets in a frame: of an address that tells the flow, and of fields of a segment.
const IP: usize = 14;
const SRC: usize = IP + 12;
const TCP: usize = IP + 20;
const ACK: usize = TCP + 8;
const TIMESTAMPS: usize = TCP + 24;

/// A receiver's ACK under way: when it arrives, of which flow, and its number.
type Flying = Reverse<(Time, u32, u32)>;

pub struct Bench {
    pub gateway: Gateway,
    frames: Frames,
    now: Time,
    /// Bytes of each flow that are under way or held.
    flight: u32,
    flying: BinaryHeap<Flying>,
    inbox: Vec<(Time, Port, Frame)>,
    sent: Vec<Transmit>,
    ack: Vec<u8>,
    flows: u32,
    /// Data segments handed in so far.
    next: u32,
    pub acks_in: u64,
    pub acks_out: u64,
    /// Nanoseconds per ACK of each full batch.
    pub batches: Vec<u64>,
}

impl Bench {
    /// A gateway that holds ACKs of each of `flows` flows, all of them backlogged.
    pub fn new(flows: u32) -> Bench {
        let mut bench = Bench::opened(flows);
        bench.start(flows, bench.flight / TWO_SEGMENTS);
        bench.run(4 * u64::from(flows));
        bench.count();
        bench
    }

    /// A gateway that has seen the handshakes of `flows` flows, and nothing else of them.
    pub fn opened(flows: u32) -> Bench {
        let bps = u64::from(TWO_SEGMENTS) * 8 * ACKS_PER_SECOND / u64::from(flows);
        // Two segments a release at any rate, so that one ACK in is one ACK out.
        let rate = Rate::from_bps(bps).unwrap();
        let period = Period::Auto { min: Duration::from_nanos(1), max: Duration::from_secs(4) };
        let release = Release::Rate(RateRelease { period, ..RateRelease::new(rate) });
        let ack = AckControl { release, ..AckControl::ack_shaper(rate) };
        let class = ClassConfig::controlled("all", Direction::Out, ack);
        let config = Config { classes: vec![class], max_flows: flows, ..Config::default() };
        let under_way = (ROUND_TRIP.as_nanos() / APART.as_nanos() / u64::from(flows)) as u32;
        let template = SegmentBuilder::v4(RECEIVER, SENDER).ports(5001, 40_000).seq(1).flags(Flags::ACK);
        let mut bench = Bench {
            gateway: Gateway::new(config),
            frames: Frames::new(4096, 2048, 1024),
            now: Time::from_secs(1),
            flight: (under_way + HELD) * TWO_SEGMENTS,
            flying: BinaryHeap::new(),
            inbox: Vec::with_capacity(BATCH),
            sent: Vec::with_capacity(2 * BATCH),
            ack: template.window(10_000).ts(1, 1).build(),
            flows,
            next: 0,
            acks_in: 0,
            acks_out: 0,
            batches: Vec::new(),
        };
        (0..flows).for_each(|flow| bench.open(flow));
        bench
    }

    /// Begins to count ACKs.
    fn count(&mut self) {
        (self.acks_in, self.acks_out) = (0, 0);
        self.batches.clear();
    }

    /// The handshake of a flow.
    fn open(&mut self, flow: u32) {
        let receiver = (u32::from_be_bytes(RECEIVER) + flow).to_be_bytes();
        let syn = SegmentBuilder::v4(SENDER, receiver).ports(40_000, 5001).seq(0).flags(Flags::SYN);
        let answer = SegmentBuilder::v4(receiver, SENDER).ports(5001, 40_000).seq(0).ack(1);
        let answer = answer.flags(Flags::SYN.with(Flags::ACK));
        for (port, segment) in [(LAN, syn), (WAN, answer)] {
            let segment = segment.mss(1460).sack_permitted().ts(1, 1).window_scale(7).build();
            let frame = self.frames.receive_copy(&segment, segment.len(), self.now).unwrap();
            self.inbox.push((self.now, port, frame));
        }
        self.process(self.now);
        self.sent.drain(..).for_each(|t| self.frames.transmitted(t.frame));
    }

    /// The first data of all flows arrives, in another order than that of their handshakes, so that
    /// neighbours in memory are not neighbours in time.
    fn start(&mut self, flows: u32, each: u32) {
        let mut order: Vec<u32> = (0..flows).collect();
        let mut rng = Rng::new(7);
        for last in (1..order.len()).rev() {
            order.swap(last, rng.below(last as u64 + 1) as usize);
        }
        let mut at = self.now + SILENCE;
        for n in 1..=each {
            for &flow in &order {
                at += APART;
                self.flying.push(Reverse((at, flow, 1 + n * TWO_SEGMENTS)));
            }
        }
    }

    /// The frame of a receiver's ACK.
    fn receive(&mut self, at: Time, flow: u32, ack: u32) -> Frame {
        let bytes = &mut self.ack;
        bytes[SRC..SRC + 4].copy_from_slice(&(u32::from_be_bytes(RECEIVER) + flow).to_be_bytes());
        bytes[IP + 10..IP + 12].fill(0);
        let sum = !checksum::sum(&bytes[IP..TCP]);
        bytes[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
        bytes[ACK..ACK + 4].copy_from_slice(&ack.to_be_bytes());
        let millis = ((at.as_nanos() / 1_000_000) as u32).to_be_bytes();
        bytes[TIMESTAMPS..TIMESTAMPS + 8].copy_from_slice(&[millis, millis].concat());
        let packet = wire::packet(bytes, bytes.len()).unwrap();
        assert!(checksum::fill(bytes, &packet));
        self.frames.receive_copy(bytes, bytes.len(), at).unwrap()
    }

    /// Hands in what has arrived before `until`, and takes what leaves. Profilers count within this function.
    #[inline(never)]
    fn process(&mut self, until: Time) -> Wall {
        let start = Instant::now();
        self.gateway.announce(&self.frames, &self.inbox);
        let mut inbox = core::mem::take(&mut self.inbox);
        for (at, port, frame) in inbox.drain(..) {
            self.catch_up(at);
            let mut cx = Cx { now: at, frames: &mut self.frames };
            self.gateway.handle_frame(&mut cx, port, black_box(frame));
            self.drain(at);
        }
        self.inbox = inbox;
        self.catch_up(until);
        start.elapsed()
    }

    /// Steps every deadline up to `until`, each at its own time.
    fn catch_up(&mut self, until: Time) {
        while let Some(due) = self.gateway.next_deadline(PortSet::ALL).filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.drain(self.now);
        }
        self.now = until;
    }

    fn drain(&mut self, now: Time) {
        let mut cx = Cx { now, frames: &mut self.frames };
        while let Some(t) = self.gateway.poll_transmit(&mut cx, PortSet::ALL) {
            self.sent.push(t);
        }
    }

    /// Sets the next ACKs off by the frames that left.
    fn answer(&mut self) {
        for t in self.sent.drain(..) {
            let bytes = self.frames.bytes(&t.frame);
            let field = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
            let (flow, ack) = (field(SRC) - u32::from_be_bytes(RECEIVER), field(ACK));
            self.flying.push(Reverse((t.at + ROUND_TRIP, flow, ack.wrapping_add(self.flight))));
            self.frames.transmitted(t.frame);
            self.acks_out += 1;
        }
    }

    /// Handles `acks` ACKs; returns the time that it took.
    pub fn run(&mut self, acks: u64) -> Wall {
        let mut spent = Wall::ZERO;
        let mut left = acks as usize;
        while left > 0 {
            // What is set off by the first of these comes later than all of them.
            let first = self.flying.peek().map(|Reverse((at, ..))| *at);
            let due = self.gateway.next_deadline(PortSet::ALL);
            let mut until = first.into_iter().chain(due).min().unwrap() + ROUND_TRIP;
            while let Some(&Reverse((at, flow, ack))) = self.flying.peek().filter(|f| f.0 .0 < until) {
                if self.inbox.len() == left.min(BATCH) {
                    until = at;
                    break;
                }
                self.flying.pop();
                let frame = self.receive(at, flow, ack);
                self.inbox.push((at, WAN, frame));
            }
            let acks = self.inbox.len();
            left -= acks;
            self.acks_in += acks as u64;
            let took = self.process(until);
            spent += took;
            if acks == BATCH {
                self.batches.push(took.as_nanos() as u64 / BATCH as u64);
            }
            self.answer();
        }
        spent
    }

    /// Hands in `segments` data segments, of all flows in turn, which leave at once. Flows have been
    /// [opened](Bench::opened) only, and have windows of 1,280,000 bytes.
    pub fn payload(&mut self, segments: u64) {
        for _ in 0..segments {
            let (flow, seq) = (self.next % self.flows, 1 + self.next / self.flows * SEGMENT);
            self.next += 1;
            let receiver = (u32::from_be_bytes(RECEIVER) + flow).to_be_bytes();
            let segment = SegmentBuilder::v4(SENDER, receiver).ports(40_000, 5001).seq(seq).ack(1);
            let (head, len) = segment.flags(Flags::ACK).ts(1, 1).payload(SEGMENT as usize).build_head();
            let frame = self.frames.receive_copy(&head, len, self.now).unwrap();
            self.inbox.push((self.now, LAN, frame));
            self.process(self.now + APART);
            self.sent.drain(..).for_each(|t| self.frames.transmitted(t.frame));
        }
    }
}
