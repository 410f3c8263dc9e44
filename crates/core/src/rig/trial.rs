//! A connection whose ends and neighbours send anything, for tests and fuzzing. Operations of four bytes
//! drive a gateway in virtual time, and three laws are checked.
//!
//! - *Belief*: no ACK that the gateway makes or changes acknowledges a byte that the receiver has not.
//! - *Rate*: a controlled flow is acknowledged no more than its rate allows, and the bytes that may go early
//!   once.
//! - *Bound*: no class whose flows share a rate has more than 1.15 times that rate and 64 kB in any second.
//!
//! The receiver acknowledges the bytes that it has got and never more. Its options, windows, blocks and
//! resets are arbitrary, and so are the sender's FINs and resets. Third parties know the addresses and guess
//! the numbers. In a class with a bound the sender's data passes through the gateway. Some of it is beyond
//! every window. Data of connections that never began passes through it, too.

use super::second::{most, Second};
use super::{Ends, Rig, Sent, TestFrame};
use crate::ack::AckControl;
use crate::frame::Checksum;
use crate::gateway::{ClassConfig, Config, Direction, Gateway, PassReason, LAN, WAN};
use crate::node::Port;
use crate::rate::Rate;
use crate::time::{Duration, Time};
use crate::wire::build::{SegmentBuilder, Sum};
use crate::wire::{self, Flags, Seq, Tcp};

/// Bytes of an operation.
pub const OPERATION: usize = 4;
/// Rate of the flow.
const RATE: Rate = Rate::mbit(10);
/// Shift of the receiver's windows, and the field of most of them: 512,000 bytes.
const SHIFT: u32 = 7;
const WINDOW: u16 = 4_000;
/// Payload of a giant segment.
const GIANT: u64 = 60_000;
/// Distance from the numbers of the ends that is never believed.
const FAR: u32 = 1 << 30;

/// See the module documentation.
pub struct Trial {
    rig: Rig<Gateway>,
    ends: Ends,
    now: Time,
    /// Bytes that the receiver has got, bytes that the sender knows to have arrived, and the right edge up to
    /// which it may send.
    got: u64,
    told: u64,
    right: u64,
    /// Bytes that the receiver has sent.
    replied: u32,
    window: u16,
    /// Bytes acknowledged while the flow was controlled, less those that its rate allows, since that was last
    /// zero.
    excess: u64,
    /// Number of guesses by third parties so far.
    guesses: u32,
    /// Segments of third parties in the receiver's name.
    forged: Vec<Vec<u8>>,
    /// Bytes of data that crossed the gateway, of a class with a bound.
    crossed: Option<Second>,
}

impl Trial {
    /// Returns a connection behind a gateway that sizes windows (bit 0 of `form`) or keeps them, after its
    /// handshake or in mid-stream (bit 1), with a rate of its own or in a class that shares one (bit 2).
    pub fn new(form: u8) -> Trial {
        let shares = form & 4 != 0;
        let policy = match form & 5 {
            0 => AckControl::published(RATE),
            1 => AckControl::ack_shaper(RATE),
            _ => AckControl::ack_share(RATE),
        };
        let class = ClassConfig::controlled("all", Direction::Out, policy);
        let rig = Rig::new(Gateway::new(Config { classes: vec![class], max_flows: 16, ..Config::default() }));
        let ends = Ends { isn: (0xfff0_0000, 5_000), window: WINDOW, ..Ends::default() };
        let mut trial = Trial {
            rig,
            ends,
            now: Time::ZERO,
            got: 0,
            told: 0,
            right: 0,
            replied: 0,
            window: WINDOW,
            excess: 0,
            guesses: 0,
            forged: Vec::new(),
            crossed: shares.then(Second::default),
        };
        if form & 2 != 0 {
            trial.right = u64::from(WINDOW) << SHIFT;
            for _ in 0..4 {
                trial.gets(1_460);
                trial.reply(|s| s);
            }
            return trial;
        }
        let syn =
            trial.ends.sender().seq(trial.ends.isn.0).flags(Flags::SYN).mss(1460).window_scale(SHIFT as u8);
        trial.send(LAN, syn);
        trial.now = Time::from_millis(20);
        let answer = trial.ends.receiver().seq(trial.ends.isn.1).ack(trial.ends.seq(0)).mss(1460);
        let answer = answer.window_scale(SHIFT as u8).window(64_000);
        trial.send(WAN, answer.flags(Flags::SYN.with(Flags::ACK)));
        trial
    }

    /// Carries out an operation, and checks the laws.
    pub fn step(&mut self, op: &[u8; OPERATION]) {
        let (passes, told, at) = (self.passes(), self.told, self.now);
        self.operate(op);
        if passes.is_none() && self.passes().is_none() {
            self.excess += self.told - told;
        }
        self.excess = self.excess.saturating_sub(RATE.bytes_in(self.now.since(at)));
        // Odd segments, holes and closing windows carry two seconds of the rate ahead of it, a FIN and a RST
        // a window each.
        let most = RATE.bytes_in(Duration::from_secs(2)) + 2 * (u64::from(u16::MAX) << SHIFT);
        assert!(self.excess <= most, "{} bytes ahead of the rate, {most} at most", self.excess);
    }

    /// Lets all timers run out, and checks that the gateway holds nothing back.
    pub fn finish(mut self) {
        self.now += Duration::from_secs(3_600);
        let left = self.rig.run_until(self.now);
        self.hear(&left);
        assert_eq!(self.rig.node().flows.stats().ledger.held(), 0);
        self.rig.finish();
    }

    /// Returns the reason if the flow passes.
    pub fn passes(&self) -> Option<PassReason> {
        self.rig.node().flows.flows().find_map(|flow| flow.pass)
    }

    /// Returns the gateway.
    pub fn node(&self) -> &Gateway {
        self.rig.node()
    }

    fn operate(&mut self, &[kind, a, b, c]: &[u8; OPERATION]) {
        let (small, large) = (u64::from(a), 4 * u64::from(a) * u64::from(b));
        match kind % 16 {
            4 if self.crossed.is_some() && c % 2 == 0 => self.strangers_send(large, c),
            4 if self.crossed.is_some() => {
                // Whatever the window says.
                self.data_crosses(self.got + large);
                self.reply(|s| s);
            }
            0..=4 => {
                self.gets(large);
                self.reply(|s| s);
            }
            5 => self.now += Duration::from_micros(large / 8),
            6 => self.now += Duration::from_millis(small / 4),
            7 | 8 => {
                self.gets(large);
                self.reply(|s| odd(s, c));
            }
            9 => {
                let guess = self.ends.receiver().seq(self.guess(a)).ack(self.guess(b)).flags(Flags::ACK);
                self.forge(odd(guess, c));
            }
            10 => {
                let flags =
                    [Flags::RST, Flags::FIN.with(Flags::ACK), Flags::SYN, Flags::ACK][usize::from(c % 4)];
                let (seq, ack) = (self.guess(a), self.guess(b));
                match c & 4 {
                    0 => self.send(LAN, self.ends.sender().seq(seq).ack(ack).flags(flags)),
                    _ => self.forge(self.ends.receiver().seq(seq).ack(ack).flags(flags)),
                }
            }
            11 => {
                let fin = self.data(large / 4).flags(Flags::FIN.with(Flags::ACK));
                self.send(LAN, fin);
            }
            12 if c % 2 == 0 => {
                let rst = self.data(small).flags(Flags::RST);
                self.send(LAN, rst);
            }
            12 => {
                let rst = self.answer().flags(Flags::RST);
                self.send(WAN, rst);
            }
            13 => {
                let from = self.number().wrapping_add(1_460 * u32::from(a % 8));
                self.reply(|s| s.sack(&[(from, from.wrapping_add(1_460))]));
            }
            14 => {
                self.window = [0, 1, 500, WINDOW, WINDOW, u16::MAX][usize::from(c) % 6];
                self.reply(|s| s);
            }
            _ => {
                // Damaged on its way: none of its contents counts.
                let wrong = self.answer().ack(self.number().wrapping_add(40_000)).checksum(Sum::Wrong);
                // One in 65,536 such sums is that of the pseudo-header, as offloading leaves it.
                let frame = wrong.build();
                if sum_of(&frame, frame.len()) == Some(Checksum::Invalid) {
                    self.send(WAN, wrong);
                }
                let reply = self.answer().payload(usize::from(a));
                self.replied = self.replied.wrapping_add(u32::from(a));
                self.send(WAN, reply);
            }
        }
        let left = self.rig.run_until(self.now);
        self.hear(&left);
    }

    /// Lets the receiver get `bytes` more, within the limit of the sender.
    fn gets(&mut self, bytes: u64) {
        let to = (self.got + bytes).min(self.right).max(self.got);
        match self.crossed {
            Some(_) => self.data_crosses(to),
            None => self.got = to,
        }
    }

    /// Sends the data up to the byte `to`. The receiver gets the bytes that the gateway lets pass.
    fn data_crosses(&mut self, to: u64) {
        let mut from = self.got;
        while from < to {
            let len = (to - from).min(GIANT);
            let data = self.data(from - self.got).absent_payload(len as usize);
            self.send_whole(data);
            from += len;
        }
    }

    /// Sends data of connections that never began.
    fn strangers_send(&mut self, bytes: u64, which: u8) {
        let stranger = self.ends.sender().ports(1_024 + self.guess(which) as u16 % 60_000, self.ends.ports.1);
        let data = stranger.seq(self.guess(which)).ack(1).flags(Flags::ACK);
        self.send_whole(data.absent_payload((bytes % GIANT) as usize));
    }

    /// Sends a segment with only its headers present, whose checksum counts as valid.
    fn send_whole(&mut self, segment: SegmentBuilder) {
        let (head, len) = segment.build_head();
        self.rig.at(self.now).inject(LAN, TestFrame::bytes(&head).long(len).checksum(Checksum::Valid));
        let left = self.rig.run_until(self.now);
        self.hear(&left);
    }

    /// Returns a guess of a third party, never near the numbers of the connection, nor near the last guess.
    fn guess(&mut self, by: u8) -> u32 {
        self.guesses = self.guesses.wrapping_add(1);
        let wild = (self.guesses ^ u32::from(by) << 24).wrapping_mul(0x9E37_79B9);
        self.number().wrapping_add(FAR + wild % FAR)
    }

    /// Sends a segment of a third party in the receiver's name.
    fn forge(&mut self, segment: SegmentBuilder) {
        self.forged.push(segment.build());
        self.send(WAN, segment);
    }

    fn number(&self) -> u32 {
        self.ends.seq(self.got as u32)
    }

    fn answer(&self) -> SegmentBuilder {
        let seq = self.ends.isn.1.wrapping_add(1).wrapping_add(self.replied);
        self.ends.receiver().seq(seq).ack(self.number()).flags(Flags::ACK).window(self.window)
    }

    fn data(&self, ahead: u64) -> SegmentBuilder {
        self.ends.sender().seq(self.ends.seq((self.got + ahead) as u32)).flags(Flags::ACK)
    }

    fn reply(&mut self, change: impl FnOnce(SegmentBuilder) -> SegmentBuilder) {
        let reply = change(self.answer());
        self.send(WAN, reply);
    }

    fn send(&mut self, port: Port, segment: SegmentBuilder) {
        self.rig.at(self.now).inject(port, TestFrame::bytes(&segment.build()));
        let left = self.rig.run_until(self.now);
        self.hear(&left);
    }

    /// Checks segments that reach the sender and are not a third party's.
    fn hear(&mut self, left: &[Sent]) {
        left.iter().filter(|sent| sent.port == WAN).for_each(|sent| self.crosses(sent));
        for sent in left.iter().filter(|sent| sent.port == LAN) {
            let Some(tcp) = tcp(sent) else { continue };
            let ahead = tcp.ack.ahead_of(Seq(self.number()));
            let damaged = sum_of(&sent.bytes, sent.len) == Some(Checksum::Invalid);
            // A forged segment may pass, but as it is: the gateway says nothing that it was told by one.
            if !tcp.flags.contains(Flags::ACK) || self.forged.contains(&sent.bytes) || damaged {
                continue;
            }
            assert!(ahead <= 0, "{ahead} bytes that the receiver has not got");
            let acked = self.got - u64::from(ahead.unsigned_abs());
            let shift = if tcp.flags.contains(Flags::SYN) { 0 } else { SHIFT };
            self.told = self.told.max(acked);
            self.right = self.right.max(acked + (u64::from(tcp.window) << shift));
        }
    }
}

impl Trial {
    /// Counts data that leaves towards the receiver.
    fn crosses(&mut self, sent: &Sent) {
        let Some(crossed) = &mut self.crossed else { return };
        let Some(data) = tcp(sent).filter(|tcp| tcp.payload_len > 0) else { return };
        let second = crossed.add(sent.at, data.payload_len.into());
        assert!(second <= most(RATE), "{second} bytes in the second that ends at {:?}", sent.at);
        if data.src_port == self.ends.ports.0 && data.seq == self.number() {
            self.got += u64::from(data.payload_len);
        }
    }
}

fn tcp(sent: &Sent) -> Option<Tcp> {
    wire::tcp(&sent.bytes, &wire::packet(&sent.bytes, sent.len).ok()?).ok()
}

fn sum_of(bytes: &[u8], len: usize) -> Option<Checksum> {
    Some(wire::checksum::verify(bytes, len, &wire::packet(bytes, len).ok()?))
}

/// Adds an option or field to the segment that prevents ACKs from being made in its place.
fn odd(segment: SegmentBuilder, which: u8) -> SegmentBuilder {
    match which % 8 {
        0 => segment.option(253, &[0, 1]),
        1 => segment.raw_options(&[8, 40, 1, 1]),
        2 => segment.option(3, &[1, 2, 3]),
        3 => segment.md5(),
        4 => segment.ao(),
        5 => segment.mptcp(),
        6 => segment.ip_options(&[1; 4]),
        _ => segment,
    }
}
