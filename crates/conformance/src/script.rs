//! What both ends of a connection send, and when.

use weir_core::frame::Checksum;
use weir_core::rig::{Ends, TestFrame};
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::Flags;

/// Payload of a full segment: with timestamps, over IPv6 and with two VLAN tags it still fits into a frame.
pub const MSS: u32 = 1_400;
/// What [`Script::backlog`] has the receiver acknowledge at once: more than any preset lets through unheld.
pub const BACKLOG: u32 = 100 * MSS;

/// One end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Who sends the data.
    Sender,
    /// Who acknowledges it.
    Receiver,
}

impl Side {
    /// The other end.
    pub fn other(self) -> Side {
        match self {
            Side::Sender => Side::Receiver,
            Side::Receiver => Side::Sender,
        }
    }
}

/// A frame that is sent.
#[derive(Clone, Debug)]
pub struct Event {
    /// When.
    pub at: Time,
    /// By whom.
    pub from: Side,
    /// The frame.
    pub frame: TestFrame,
    /// What the case calls it; empty for most.
    pub label: &'static str,
    /// False of what somebody else sends in an end's name, or what that end will discard: nobody has to believe it.
    pub believed: bool,
}

/// What a connection is opened with.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Window shifts, the sender's first; `None` does not offer the option.
    pub scale: (Option<u8>, Option<u8>),
    /// Both have timestamps.
    pub timestamps: bool,
    /// Flags beside SYN, and beside SYN and ACK.
    pub flags: (Flags, Flags),
}

impl Default for Opening {
    fn default() -> Opening {
        Opening { scale: (Some(7), Some(7)), timestamps: false, flags: (Flags::NONE, Flags::NONE) }
    }
}

/// What is sent, in order of time. Its methods add to it at a time that moves on.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// The connection.
    pub ends: Ends,
    events: Vec<Event>,
    now: Time,
    label: &'static str,
    forged: bool,
    /// Window shifts in use, the sender's first.
    scale: (u8, u8),
    /// The ends' clocks of timestamps, the sender's first.
    clocks: Option<(u32, u32)>,
    /// Bytes that the sender has sent and the receiver has acknowledged, and bytes that the receiver has sent.
    sent: u32,
    acked: u32,
    said: u32,
    /// Flags of the receiver's ACKs beside ACK.
    flags: Flags,
    /// Nothing need be told any more.
    over: bool,
}

impl Script {
    /// An empty one, of connection `number`.
    pub fn new(number: u8) -> Script {
        Script { ends: Ends { number, ..Ends::default() }, ..Script::default() }
    }

    /// What is sent, in order of time.
    pub fn events(&self) -> &[Event] {
        &self.events
    }
    /// When the last frame is sent.
    pub fn end(&self) -> Time {
        self.events.last().map_or(Time::ZERO, |e| e.at)
    }
    /// The window shift of an end.
    pub fn scale_of(&self, side: Side) -> u8 {
        match side {
            Side::Sender => self.scale.0,
            Side::Receiver => self.scale.1,
        }
    }
    /// Must the sender learn of everything that the receiver acknowledged?
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// The connection is broken off: what is not told yet need not be told.
    pub fn over(&mut self) {
        self.over = true;
    }
    /// The receiver's ACKs have these flags too.
    pub fn always(&mut self, flags: Flags) {
        self.flags = flags;
    }
    /// Time passes.
    pub fn wait_ms(&mut self, ms: u64) -> &mut Script {
        self.now += Duration::from_millis(ms);
        self
    }
    /// Time passes.
    pub fn wait_us(&mut self, us: u64) -> &mut Script {
        self.now += Duration::from_micros(us);
        self
    }
    /// What the next frame is called.
    pub fn label(&mut self, label: &'static str) -> &mut Script {
        self.label = label;
        self
    }
    /// The next frame is not to be believed.
    pub fn forged(&mut self) -> &mut Script {
        self.forged = true;
        self
    }

    /// Sends a frame.
    pub fn frame(&mut self, from: Side, frame: impl Into<TestFrame>) -> &mut Script {
        let (label, believed) = (std::mem::take(&mut self.label), !std::mem::take(&mut self.forged));
        self.events.push(Event { at: self.now, from, frame: frame.into(), label, believed });
        self
    }
    /// Sends a segment.
    pub fn put(&mut self, from: Side, segment: SegmentBuilder) -> &mut Script {
        self.frame(from, segment.build())
    }
    /// Sends a segment that a device has still to complete the checksum of.
    pub fn put_partial(&mut self, from: Side, segment: SegmentBuilder) -> &mut Script {
        let frame = TestFrame::bytes(&segment.build()).checksum(Checksum::Partial);
        self.frame(from, frame)
    }

    /// The connection has window shifts and timestamps, although nobody sees it begin.
    pub fn mid_stream(&mut self, shift: u8) -> &mut Script {
        self.scale = (shift, shift);
        self.wait_ms(100)
    }
    /// Clocks of timestamps, the sender's first, which tick every millisecond.
    pub fn clocks(&mut self, sender: u32, receiver: u32) {
        self.clocks = Some((sender, receiver));
    }

    /// A handshake over 20 ms, and 20 ms later a window that is scaled.
    pub fn open(&mut self, opening: Opening) -> &mut Script {
        if opening.timestamps && self.clocks.is_none() {
            self.clocks = Some((70_000, 900_000));
        }
        let (syn, syn_ack) = (self.syn(&opening), self.syn_ack(&opening));
        self.label("syn").put(Side::Sender, syn).wait_ms(20);
        self.label("syn-ack").put(Side::Receiver, syn_ack);
        self.opened(&opening);
        self.confirm()
    }

    /// What the handshake has agreed on.
    pub fn opened(&mut self, opening: &Opening) {
        if let (Some(sender), Some(receiver)) = opening.scale {
            self.scale = (sender, receiver);
        }
    }

    /// The sender's ACK of the SYN-ACK, and 20 ms later a window that is scaled.
    pub fn confirm(&mut self) -> &mut Script {
        let confirm = self.data(0);
        self.put(Side::Sender, confirm).wait_ms(20);
        self.ack(0).wait_ms(60)
    }

    /// The sender's SYN.
    pub fn syn(&self, opening: &Opening) -> SegmentBuilder {
        let syn = self.ends.syn().flags(Flags::SYN | opening.flags.0);
        self.stamped(with_options(syn, opening.scale.0), Side::Sender, true)
    }

    /// The receiver's answer.
    pub fn syn_ack(&self, opening: &Opening) -> SegmentBuilder {
        let answer = self.ends.syn_ack().flags(Flags::SYN | Flags::ACK | opening.flags.1);
        self.stamped(with_options(answer, opening.scale.1), Side::Receiver, false)
    }

    /// With the timestamps of an end, if it has any: its own clock, and the other's of 20 ms before.
    fn stamped(&self, segment: SegmentBuilder, from: Side, first: bool) -> SegmentBuilder {
        let Some((sender, receiver)) = self.clocks else { return segment };
        let ms = (self.now.as_nanos() / 1_000_000) as u32;
        let (own, other) = if from == Side::Sender { (sender, receiver) } else { (receiver, sender) };
        let echo = if first { 0 } else { other.wrapping_add(ms.saturating_sub(20)) };
        segment.ts(own.wrapping_add(ms), echo)
    }

    /// An ACK of the receiver for the first `n` bytes, to be changed and [put](Script::put).
    pub fn ack_for(&self, n: u32) -> SegmentBuilder {
        let ack = self.ends.ack(n).seq(self.said_seq(0)).flags(Flags::ACK | self.flags);
        self.stamped(ack, Side::Receiver, false)
    }

    /// The receiver's last ACK once more, to be changed and [put](Script::put).
    pub fn ack_again(&self) -> SegmentBuilder {
        self.ack_for(self.acked)
    }

    /// Bytes that the sender has sent.
    pub fn has_sent(&self) -> u32 {
        self.sent
    }

    /// The receiver's next sequence number, or one `behind` it.
    pub fn said_seq(&self, behind: u32) -> u32 {
        self.ends.isn.1.wrapping_add(1).wrapping_add(self.said).wrapping_sub(behind)
    }

    /// A segment of the sender from byte `n` on, without payload.
    pub fn data(&self, n: u32) -> SegmentBuilder {
        let segment = self.ends.data(n).ack(self.said_seq(0));
        self.stamped(segment, Side::Sender, false)
    }

    /// The receiver acknowledges the first `n` bytes.
    pub fn ack(&mut self, n: u32) -> &mut Script {
        self.acked = n;
        let segment = self.ack_for(n);
        self.put(Side::Receiver, segment)
    }

    /// The sender sends whole segments up to byte `n`.
    pub fn send(&mut self, n: u32) -> &mut Script {
        while self.sent < n {
            let len = (n - self.sent).min(MSS);
            let segment = self.data(self.sent).payload(len as usize);
            self.put(Side::Sender, segment);
            self.sent += len;
        }
        self
    }

    /// The receiver sends so many bytes of its own, in a segment that acknowledges what it has acknowledged.
    pub fn say(&mut self, len: u32) -> &mut Script {
        let segment = self.ack_for(self.acked).payload(len as usize);
        self.said += len;
        self.put(Side::Receiver, segment)
    }

    /// The receiver has sent so many bytes more, in segments that were [put](Script::put).
    pub fn has_said(&mut self, len: u32) {
        self.said += len;
    }

    /// 20 ms, and then the receiver acknowledges [`BACKLOG`] bytes more within a millisecond, two segments with each ACK. At the rates of the
    /// suite most of it waits for half a second in a middlebox that holds ACKs.
    pub fn backlog(&mut self) -> &mut Script {
        let from = self.acked;
        self.send(from + BACKLOG).wait_ms(20);
        for n in 1..=BACKLOG / (2 * MSS) {
            self.wait_us(20).ack(from + n * 2 * MSS);
        }
        self.wait_ms(2)
    }
}

/// The options of a SYN.
fn with_options(syn: SegmentBuilder, scale: Option<u8>) -> SegmentBuilder {
    let syn = syn.mss(MSS as u16);
    let syn = match scale {
        Some(shift) => syn.window_scale(shift),
        None => syn,
    };
    syn.sack_permitted()
}
