//! A gateway that schedules data, or paces ACKs, in a loop with senders and receivers that take no time. Each
//! departing data packet gives an ACK, and each departing ACK a data packet. Every flow always has data
//! queued, and holds ACKs.

use crate::ack::{AckControl, Leaf};
use crate::classify::spec::Spec;
use crate::combined::{Combined, LAN_WHOLE};
use crate::frame::{Checksum, Frame, Frames};
use crate::gateway::{ClassConfig, Config, Direction, Gateway, LAN, WAN};
use crate::node::{Cx, Node, Port, PortSet, Transmit};
use crate::queue::{self, pfq, Kind, QueueLimit};
use crate::rate::Rate;
use crate::systems::link_sharing::Sharing;
use crate::time::{Duration, Time};
use crate::wire::build::SegmentBuilder;
use crate::wire::Flags;

/// Rate of all flows together.
pub const RATE: Rate = Rate::mbit(12_000);
/// Time of a packet of 1500 bytes at that rate.
const APART: Duration = Duration::from_micros(1);
const MSS: u32 = 1_448;
/// Frames handed in at a time.
const BATCH: usize = 64;
/// Queued data packets of each flow, and held ACKs.
const EACH: u32 = 2;

/// See the [module documentation](self).
pub struct Busy {
    node: Box<dyn Node>,
    frames: Frames,
    now: Time,
    /// Time between two arriving data packets.
    apart: Duration,
    inbox: Vec<(Port, Frame)>,
    sent: Vec<Transmit>,
    data: Vec<u8>,
    ack: Vec<u8>,
    /// By flow: bytes that its receiver has acknowledged.
    acked: Vec<u32>,
    /// Port of arriving data. `None` without data.
    data_port: Option<Port>,
    /// True if ACKs arrive.
    acks: bool,
}

fn config(ack: Option<AckControl>, leaf: Leaf, flows: u32) -> Config {
    let kind = match leaf {
        Leaf::Pfq => Kind::Pfq(pfq::Params { flows: flows.max(1_024), ..pfq::Params::default() }),
        _ => Kind::Fifo,
    };
    let queue = queue::Config { limit: QueueLimit::Unlimited, kind, tins: None };
    let spec = Spec { rate: Some(RATE), queue: Some(queue), ..Spec::of(None) };
    let class = ClassConfig {
        name: "all".into(),
        direction: Direction::Out,
        matches: Vec::new(),
        ack,
        share: (leaf != Leaf::None).then_some(spec),
        nested: None,
    };
    Config { classes: vec![class], max_flows: flows, ..Config::default() }
}

fn node(ack: Option<AckControl>, leaf: Leaf, flows: u32) -> Box<dyn Node> {
    let config = config(ack, leaf, flows);
    let sharing = || Sharing::new(config.clone(), 0).expect("a sound tree");
    match (ack, leaf) {
        (None, _) => Box::new(sharing()),
        (_, Leaf::None) => Box::new(Gateway::new(config)),
        _ => Box::new(Combined::new(Gateway::new(config.clone()), sharing())),
    }
}

impl Busy {
    /// Returns a loop of `flows` flows, at [`RATE`] together.
    ///
    /// # Panics
    /// If there are more than 16 million.
    pub fn new(ack: Option<AckControl>, leaf: Leaf, flows: u32) -> Busy {
        let data = SegmentBuilder::v4([10, 0, 0, 0], [192, 0, 2, 1]).ports(40_000, 5_001).seq(1).ack(1);
        let acks = SegmentBuilder::v4([192, 0, 2, 1], [10, 0, 0, 0]).ports(5_001, 40_000).seq(1);
        let data_port = match (ack, leaf) {
            (None, _) => Some(LAN),
            (_, Leaf::None) => None,
            _ => Some(LAN_WHOLE),
        };
        let mut l = Busy {
            node: node(ack, leaf, flows),
            frames: Frames::new(8 * flows as usize + 1_024, 128, 256),
            now: Time::from_secs(1),
            apart: APART,
            inbox: Vec::new(),
            sent: Vec::new(),
            data: data.flags(Flags::ACK).ts(1, 1).build(),
            ack: acks.flags(Flags::ACK).window(10_000).ts(1, 1).build(),
            acked: vec![0; flows as usize],
            data_port,
            acks: ack.is_some(),
        };
        for f in 0..flows {
            l.open(f);
        }
        // Time stands still, so all of it waits.
        l.apart = Duration::ZERO;
        for f in (0..EACH).flat_map(|_| 0..flows) {
            l.send(f);
            l.acknowledge(f);
            l.process();
            l.sent.drain(..).for_each(|t| l.frames.transmitted(t.frame));
        }
        l.apart = APART;
        for _ in 0..4 * flows as usize / BATCH + 16 {
            l.run(&|| 0);
        }
        l
    }

    fn open(&mut self, f: u32) {
        let [_, a, b, c] = f.to_be_bytes();
        let syn =
            SegmentBuilder::v4([10, a, b, c], [192, 0, 2, 1]).ports(40_000, 5_001).seq(0).flags(Flags::SYN);
        let answer = SegmentBuilder::v4([192, 0, 2, 1], [10, a, b, c]).ports(5_001, 40_000).seq(0).ack(1);
        let answer = answer.flags(Flags::SYN.with(Flags::ACK));
        for (port, segment) in [(LAN, syn), (WAN, answer)] {
            let segment = segment.mss(1_460).ts(1, 1).window_scale(7).build();
            let frame = self.frames.receive_copy(&segment, segment.len(), self.now).expect("room");
            self.inbox.push((port, frame));
        }
        self.process();
        self.sent.drain(..).for_each(|t| self.frames.transmitted(t.frame));
    }

    /// Lets a data packet of a flow arrive, if there is data.
    fn send(&mut self, f: u32) {
        let Some(port) = self.data_port else { return };
        self.data[26..30].copy_from_slice(&(10 << 24 | f).to_be_bytes());
        let mut frame = self.frames.receive_copy(&self.data, 1_514, self.now).expect("room");
        frame.checksum = Checksum::Valid;
        self.inbox.push((port, frame));
    }

    /// Lets an ACK of a flow arrive.
    fn acknowledge(&mut self, f: u32) {
        if !self.acks {
            return;
        }
        let acked = &mut self.acked[f as usize];
        *acked = acked.wrapping_add(MSS);
        self.ack[30..34].copy_from_slice(&(10 << 24 | f).to_be_bytes());
        self.ack[42..46].copy_from_slice(&acked.wrapping_add(1).to_be_bytes());
        let mut frame = self.frames.receive_copy(&self.ack, self.ack.len(), self.now).expect("room");
        frame.checksum = Checksum::Valid;
        self.inbox.push((WAN, frame));
    }

    /// Hands a batch to the node.
    #[inline(never)]
    fn process(&mut self) {
        let Busy { node, frames, now, inbox, sent, apart, .. } = self;
        for (port, frame) in inbox.drain(..) {
            *now += if port == WAN { Duration::ZERO } else { *apart };
            node.handle_frame(&mut Cx { now: *now, frames }, port, frame);
            while let Some(t) = node.poll_transmit(&mut Cx { now: *now, frames }, PortSet::ALL) {
                sent.push(t);
            }
        }
    }

    /// Hands in a batch. Its departures make the next one. Returns the number of departing data packets, or
    /// of ACKs without data, and the time that the node took, by a clock that counts nanoseconds.
    fn run(&mut self, clock: &impl Fn() -> u64) -> (u64, u64) {
        if self.data_port.is_none() || self.inbox.is_empty() {
            self.now += APART.saturating_mul(self.inbox.len().max(BATCH) as u64);
        }
        let begin = clock();
        self.process();
        if self.sent.is_empty() {
            while let Some(t) =
                self.node.poll_transmit(&mut Cx { now: self.now, frames: &mut self.frames }, PortSet::ALL)
            {
                self.sent.push(t);
            }
        }
        let took = clock() - begin;
        let mut count = 0;
        for t in core::mem::take(&mut self.sent) {
            let at = if t.port == WAN { 26 } else { 30 };
            let bytes = self.frames.bytes(&t.frame)[at..at + 4].try_into().unwrap_or_default();
            let f = u32::from_be_bytes(bytes) & 0x00ff_ffff;
            self.frames.transmitted(t.frame);
            count += u64::from((t.port == WAN) == self.data_port.is_some());
            match t.port == WAN {
                true if self.acks => self.acknowledge(f),
                false if self.data_port.is_none() => self.acknowledge(f),
                _ => self.send(f),
            }
        }
        (count, took)
    }

    /// Returns the nanoseconds that the node takes for `packets` packets, by a clock that counts them.
    pub fn measure(&mut self, packets: u64, clock: impl Fn() -> u64) -> u64 {
        let (mut count, mut sum) = (0, 0);
        while count < packets {
            let (left, took) = self.run(&clock);
            count += left;
            sum += took;
        }
        (u128::from(sum) * u128::from(packets) / u128::from(count.max(1))) as u64
    }
}
