//! A sender on the LAN, a receiver on the WAN, and a gateway between them, in virtual time.

pub mod uploads;

use core::sync::atomic::Ordering::Relaxed;
use weir_core::ack::{AckControl, Hold, Meter, Period, RateRelease, Release, SlowStart, When, Window};
use weir_core::flow::Record;
use weir_core::frame::{Checksum, Frames};
use weir_core::gateway::{ClassConfig, ClassStats, Config, Direction, Gateway, LAN, WAN};
use weir_core::node::Port;
use weir_core::rate::Rate;
use weir_core::rig::{Ends, Rig, Sent, TestFrame, Wake};
use weir_core::steer::{self, Seen, Slot};
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::{self, Flags, Seq};

pub const SENDER_ISN: u32 = 0xffff_f000; // numbers wrap soon
pub const RECEIVER_ISN: u32 = 5_000;
/// Window field of ordinary ACKs, at shift 7.
pub const WINDOW: u16 = 4_000;

pub fn ms(n: u64) -> Time {
    Time::from_millis(n)
}

pub fn config(ack: AckControl) -> Config {
    Config { classes: vec![ClassConfig::controlled("all", Direction::Out, ack)], ..Config::default() }
}

pub struct Net {
    pub rig: Rig<Gateway>,
    ends: Ends,
    seen: Vec<Sent>,
}

impl Net {
    pub fn new(ack: AckControl, quantum: Option<Duration>) -> Net {
        Net::with_config(config(ack), quantum)
    }

    pub fn with_config(config: Config, quantum: Option<Duration>) -> Net {
        let mut rig = Rig::new(Gateway::new(config));
        if let Some(q) = quantum {
            rig = rig.wake(Wake::Late(q));
        }
        let ends = Ends { isn: (SENDER_ISN, RECEIVER_ISN), window: WINDOW, ..Ends::default() };
        Net { rig, ends, seen: Vec::new() }
    }

    /// Established, in a pool of `chunks`.
    pub fn established_in(ack: AckControl, chunks: usize) -> Net {
        let mut w = Net::new(ack, None);
        w.rig = Rig::with_pool(Gateway::new(config(ack)), Frames::new(chunks, 2048, 0));
        w.shake(ms(0), RECEIVER_ISN, false);
        w
    }

    /// Established, behind hooks that take and copy as the test says.
    pub fn hooked(ack: AckControl) -> Net {
        let mut w = Net::new(ack, None);
        w.rig = Rig::new(Gateway::hooked(config(ack)));
        w.shake(ms(0), RECEIVER_ISN, false);
        w
    }

    /// The slot of the only flow.
    pub fn slot(&self) -> &Slot {
        &self.rig.node().flows.slots()[0]
    }

    /// A gateway that finds these records and slots.
    pub fn with_shared(config: Config, records: &'static mut [Record], slots: &'static [Slot]) -> Net {
        let mut w = Net::with_config(config.clone(), None);
        w.rig = Rig::new(Gateway::with_shared(config, records, slots));
        w
    }

    /// Copies of the records and slots, as an engine that dies leaves them.
    pub fn shared(&self) -> (&'static mut [Record], &'static [Slot]) {
        let node = self.rig.node();
        let slots: Box<[Slot]> = node.flows.slots().iter().map(copy).collect();
        (Box::leak(node.flows.records().to_vec().into()), Box::leak(slots))
    }

    /// The kernel let an ACK for `n` bytes pass.
    pub fn kernel_passed(&self, n: u32) {
        let seen = Seen {
            flags: steer::ACK,
            seq: Seq(RECEIVER_ISN + 1),
            ack: Seq(self.abs(n)),
            window: WINDOW,
            ..Seen::default()
        };
        self.slot().note_passed(&seen);
    }

    pub fn established(ack: AckControl) -> Net {
        Net::established_with(ack, false)
    }

    pub fn established_with(ack: AckControl, timestamps: bool) -> Net {
        let mut w = Net::new(ack, None);
        w.shake(ms(0), RECEIVER_ISN, timestamps);
        w
    }

    pub fn established_waking(ack: AckControl, quantum: Duration) -> Net {
        let mut w = Net::new(ack, Some(quantum));
        w.shake(ms(0), RECEIVER_ISN, false);
        w
    }

    pub fn v6(ack: AckControl, tags: usize) -> Net {
        Net::established_on(ack, (true, tags, 0))
    }

    /// Returns ends whose packets are of IPv6 or not, behind so many tags, in this session of PPPoE.
    pub fn established_on(ack: AckControl, (v6, tags, session): (bool, usize, u16)) -> Net {
        let mut w = Net::new(ack, None);
        (w.ends.v6, w.ends.tags, w.ends.session) = (v6, tags, session);
        w.shake(ms(0), RECEIVER_ISN, false);
        w
    }

    pub fn handshake(&mut self) {
        self.shake(ms(0), RECEIVER_ISN, false);
    }

    pub fn handshake_flags(&mut self, syn: Flags, syn_ack: Flags) {
        let s = self.sender().seq(self.ends.isn.0).flags(syn).mss(1460).window_scale(7);
        self.inject_at(ms(0), LAN, s);
        let a =
            self.receiver().seq(RECEIVER_ISN).ack(self.ends.seq(0)).flags(syn_ack).mss(1460).window_scale(7);
        self.inject_at(ms(20), WAN, a);
        self.run(ms(20));
    }

    pub fn handshake_at(&mut self, t: Time, sender_isn: u32, receiver_isn: u32) {
        self.ends.isn.0 = sender_isn;
        let syn = self.sender().seq(sender_isn).flags(Flags::SYN).mss(1460).window_scale(7).sack_permitted();
        self.inject_at(t, LAN, syn);
        let answer = self
            .receiver()
            .seq(receiver_isn)
            .ack(sender_isn.wrapping_add(1))
            .flags(Flags(Flags::SYN.0 | Flags::ACK.0))
            .mss(1460)
            .window_scale(7)
            .sack_permitted();
        self.inject_at(t, WAN, answer);
    }

    /// Established over a round trip of `rtt` beyond the gateway.
    pub fn established_over(ack: AckControl, rtt: Duration) -> Net {
        let mut w = Net::new(ack, None);
        w.shake_over(rtt, ms(0), RECEIVER_ISN, false);
        w
    }

    pub fn shake(&mut self, t: Time, receiver_isn: u32, timestamps: bool) {
        self.shake_over(Duration::from_millis(20), t, receiver_isn, timestamps);
    }

    fn shake_over(&mut self, rtt: Duration, t: Time, receiver_isn: u32, timestamps: bool) {
        let ts = |s: SegmentBuilder, v, e| if timestamps { s.ts(v, e) } else { s };
        let syn =
            self.sender().seq(self.ends.isn.0).flags(Flags::SYN).mss(1460).window_scale(7).sack_permitted();
        self.inject_at(t, LAN, ts(syn, 1, 0));
        let answer = self
            .receiver()
            .seq(receiver_isn)
            .ack(self.ends.seq(0))
            .flags(Flags(Flags::SYN.0 | Flags::ACK.0))
            .window(64_000)
            .mss(1460)
            .window_scale(7)
            .sack_permitted();
        self.inject_at(t + rtt, WAN, ts(answer, 1, 1));
        // The SYN-ACK's window is not scaled; from here on 512,000 bytes are allowed.
        let update = self.ack_segment(0);
        self.inject_at(ms(400), WAN, ts(update, 1, 1));
        self.run(ms(500));
        self.seen.clear();
    }

    fn sender(&self) -> SegmentBuilder {
        self.ends.sender()
    }

    fn receiver(&self) -> SegmentBuilder {
        self.ends.receiver()
    }

    /// A sequence number of the data, from one relative to its first byte.
    pub fn abs(&self, n: u32) -> u32 {
        self.ends.seq(n)
    }

    pub fn ack_segment(&self, n: u32) -> SegmentBuilder {
        self.ends.ack(n)
    }

    pub fn data_segment(&self, n: u32) -> SegmentBuilder {
        self.ends.data(n)
    }

    pub fn inject_at(&mut self, t: Time, port: Port, segment: SegmentBuilder) {
        self.rig.at(t).inject(port, TestFrame::bytes(&segment.build()));
    }

    pub fn ack_at(&mut self, t: Time, n: u32) {
        let segment = self.ack_segment(n);
        self.inject_at(t, WAN, segment);
    }

    pub fn run(&mut self, until: Time) -> Vec<Sent> {
        let sent = self.rig.run_until(until);
        self.seen.extend(sent.iter().cloned());
        sent
    }

    pub fn all_numbers(&self) -> Vec<u32> {
        numbers(&self.seen).iter().map(|n| n.1).collect()
    }

    pub fn finish(&mut self) {
        assert_eq!(self.rig.node().flows.stats().ledger.held(), 0, "in + made = out + dropped + absorbed");
        self.rig.finish();
    }

    pub fn class(&self) -> ClassStats {
        *self.rig.node().flows.class_stats().next().unwrap()
    }

    pub fn debt(&self) -> u32 {
        self.rig.node().flows.flows().map(|f| f.debt_bytes).sum()
    }

    pub fn packet(&self, s: &Sent) -> wire::Packet {
        wire::packet(&s.bytes, s.len).unwrap()
    }

    pub fn tcp(&self, s: &Sent) -> wire::Tcp {
        wire::tcp(&s.bytes, &self.packet(s)).unwrap()
    }

    pub fn options(&self, s: &Sent) -> wire::TcpOptions {
        wire::tcp_options(&s.bytes, &self.packet(s), &self.tcp(s)).unwrap()
    }

    /// Acknowledgement number relative to the data's first byte.
    pub fn rel(&self, s: &Sent) -> u32 {
        self.tcp(s).ack.since(Seq(self.abs(0)))
    }

    pub fn raw_ack(&self, sent: &[Sent], n: usize) -> u32 {
        let acks: Vec<_> = sent.iter().filter(|s| s.port == LAN).collect();
        self.tcp(acks[n]).ack.0
    }

    pub fn check_sums(&self, sent: &[Sent]) {
        for s in sent {
            assert_eq!(wire::checksum::verify(&s.bytes, s.len, &self.packet(s)), Checksum::Valid);
        }
    }
}

/// Times and acknowledgement numbers, relative to the data's first byte.
pub fn numbers(sent: &[Sent]) -> Vec<(Time, u32)> {
    sent.iter()
        .map(|s| {
            let p = wire::packet(&s.bytes, s.len).unwrap();
            let ack = wire::tcp(&s.bytes, &p).unwrap().ack;
            (s.at, ack.since(Seq(SENDER_ISN.wrapping_add(1))))
        })
        .collect()
}

pub fn copy(slot: &Slot) -> Slot {
    let (n, copy) = (slot.numbers(), Slot::default());
    let (tag, flags) = (slot.tag.load(Relaxed), slot.flags.load(Relaxed));
    copy.open(tag, flags, n.tx, n.nxt, n.ts, n.edge, n.sent, n.window, n.at);
    copy
}

/// ACK shaper at 10 Mb/s every 10 ms without detection: 12,500 bytes a step.
pub fn basic() -> AckControl {
    basic_with(|_| {})
}

/// Returns the basic shaper but for this.
pub fn basic_with(change: impl FnOnce(&mut RateRelease)) -> AckControl {
    let mut release = RateRelease {
        meter: Meter::Acked,
        slow_start: SlowStart::Ignore,
        period: Period::Fixed(Duration::from_millis(10)),
        ..RateRelease::new(Rate::mbit(10))
    };
    change(&mut release);
    AckControl {
        hold: Hold::Number,
        release: Release::Rate(release),
        window: Window::Keep,
        when: When::Always,
    }
}

/// A sequence that repeats itself late: SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }
}
