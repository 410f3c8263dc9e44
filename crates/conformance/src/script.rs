//! Script of the frames that both ends of a connection send, with their times.

use weir_core::frame::Checksum;
use weir_core::rig::{Ends, TestFrame};
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::Flags;

/// Payload of a full segment: with timestamps, over IPv6 and with two VLAN tags it still fits into a frame.
pub const MSS: u32 = 1_400;
/// Bytes that the receiver acknowledges at once in [`Script::backlog`]: more than any preset releases unheld.
pub const BACKLOG: u32 = 100 * MSS;

/// One end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Sender of the data.
    Sender,
    /// Receiver, which acknowledges the data.
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
    /// Time.
    pub at: Time,
    /// End that sends it, or in whose name it is sent.
    pub from: Side,
    /// The frame.
    pub frame: TestFrame,
    /// Label of the case; empty for most.
    pub label: &'static str,
    /// False for frames that another host sends in an end's name, and for frames that the end will discard:
    /// they need not be believed.
    pub believed: bool,
    /// True for a frame that is not believed, though no box can tell it from the end's own acknowledgements.
    pub fits: bool,
}

/// Properties of a connection's opening.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Window shifts, the sender's first; `None` does not offer the option.
    pub scale: (Option<u8>, Option<u8>),
    /// True if both ends have timestamps.
    pub timestamps: bool,
    /// Flags beside SYN, and beside SYN and ACK.
    pub flags: (Flags, Flags),
}

impl Default for Opening {
    fn default() -> Opening {
        Opening { scale: (Some(7), Some(7)), timestamps: false, flags: (Flags::NONE, Flags::NONE) }
    }
}

/// Frames in order of time. The methods add frames at a time that moves on.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// The connection.
    pub ends: Ends,
    events: Vec<Event>,
    now: Time,
    label: &'static str,
    forged: bool,
    fits: bool,
    /// Window shifts in use, the sender's first.
    scale: (u8, u8),
    /// Clocks of the ends' timestamps, the sender's first.
    clocks: Option<(u32, u32)>,
    /// Bytes that the sender has sent, that the receiver has acknowledged, and that the receiver has sent.
    sent: u32,
    acked: u32,
    said: u32,
    /// Flags of the receiver's ACKs beside ACK.
    flags: Flags,
    /// True if the sender need not learn of more.
    over: bool,
}

impl Script {
    /// Creates an empty script of connection `number`.
    pub fn new(number: u8) -> Script {
        Script { ends: Ends { number, ..Ends::default() }, ..Script::default() }
    }

    /// Frames in order of time.
    pub fn events(&self) -> &[Event] {
        &self.events
    }
    /// Takes out the frames so far. A long connection is played piece by piece.
    pub fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
    /// Time of the last frame.
    pub fn end(&self) -> Time {
        self.events.last().map_or(Time::ZERO, |e| e.at)
    }
    /// Window shift of an end.
    pub fn scale_of(&self, side: Side) -> u8 {
        match side {
            Side::Sender => self.scale.0,
            Side::Receiver => self.scale.1,
        }
    }
    /// Returns whether the sender need not learn of everything that the receiver acknowledged.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Breaks the connection off: acknowledgements not yet told need not be told.
    pub fn over(&mut self) {
        self.over = true;
    }
    /// Adds these flags to all further ACKs of the receiver.
    pub fn always(&mut self, flags: Flags) {
        self.flags = flags;
    }
    /// Lets time pass.
    pub fn wait_ms(&mut self, ms: u64) -> &mut Script {
        self.now += Duration::from_millis(ms);
        self
    }
    /// Lets time pass.
    pub fn wait_us(&mut self, us: u64) -> &mut Script {
        self.now += Duration::from_micros(us);
        self
    }
    /// Labels the next frame.
    pub fn label(&mut self, label: &'static str) -> &mut Script {
        self.label = label;
        self
    }
    /// Marks the next frame as one that must not be believed.
    pub fn forged(&mut self) -> &mut Script {
        self.forged = true;
        self
    }

    /// Marks the next frame as one that must not be believed, and that no box can tell from the end's own.
    pub fn mimicked(&mut self) -> &mut Script {
        self.fits = true;
        self.forged()
    }

    /// Sends a frame.
    pub fn frame(&mut self, from: Side, frame: impl Into<TestFrame>) -> &mut Script {
        let (label, believed) = (std::mem::take(&mut self.label), !std::mem::take(&mut self.forged));
        let fits = std::mem::take(&mut self.fits);
        self.events.push(Event { at: self.now, from, frame: frame.into(), label, believed, fits });
        self
    }
    /// Sends a segment.
    pub fn put(&mut self, from: Side, segment: SegmentBuilder) -> &mut Script {
        self.frame(from, segment.build())
    }
    /// Sends a segment whose checksum a device has still to complete.
    pub fn put_partial(&mut self, from: Side, segment: SegmentBuilder) -> &mut Script {
        let frame = TestFrame::bytes(&segment.build()).checksum(Checksum::Partial);
        self.frame(from, frame)
    }

    /// Gives the connection window shifts, although no middlebox has seen it begin.
    pub fn mid_stream(&mut self, shift: u8) -> &mut Script {
        self.scale = (shift, shift);
        self.wait_ms(100)
    }
    /// Sets clocks of timestamps, the sender's first, which tick every millisecond.
    pub fn clocks(&mut self, sender: u32, receiver: u32) {
        self.clocks = Some((sender, receiver));
    }

    /// Opens the connection by a handshake over 20 ms, and 20 ms later a scaled window.
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

    /// Records the result of the handshake.
    pub fn opened(&mut self, opening: &Opening) {
        if let (Some(sender), Some(receiver)) = opening.scale {
            self.scale = (sender, receiver);
        }
    }

    /// Sends the sender's ACK of the SYN-ACK, and 20 ms later a scaled window.
    pub fn confirm(&mut self) -> &mut Script {
        let confirm = self.data(0);
        self.put(Side::Sender, confirm).wait_ms(20);
        self.ack(0).wait_ms(60)
    }

    /// SYN of the sender.
    pub fn syn(&self, opening: &Opening) -> SegmentBuilder {
        let syn = self.ends.syn().flags(Flags::SYN | opening.flags.0);
        self.stamped(with_options(syn, opening.scale.0), Side::Sender, true)
    }

    /// SYN-ACK of the receiver.
    pub fn syn_ack(&self, opening: &Opening) -> SegmentBuilder {
        let answer = self.ends.syn_ack().flags(Flags::SYN | Flags::ACK | opening.flags.1);
        self.stamped(with_options(answer, opening.scale.1), Side::Receiver, false)
    }

    /// Adds the timestamps of an end, if it has any: its own clock, and the other's of 20 ms before.
    fn stamped(&self, segment: SegmentBuilder, from: Side, first: bool) -> SegmentBuilder {
        let Some((sender, receiver)) = self.clocks else { return segment };
        let ms = (self.now.as_nanos() / 1_000_000) as u32;
        let (own, other) = if from == Side::Sender { (sender, receiver) } else { (receiver, sender) };
        let echo = if first { 0 } else { other.wrapping_add(ms.saturating_sub(20)) };
        segment.ts(own.wrapping_add(ms), echo)
    }

    /// ACK of the receiver for the first `n` bytes, to be changed and [put](Script::put).
    pub fn ack_for(&self, n: u32) -> SegmentBuilder {
        let ack = self.ends.ack(n).seq(self.said_seq(0)).flags(Flags::ACK | self.flags);
        self.stamped(ack, Side::Receiver, false)
    }

    /// Repetition of the receiver's last ACK, to be changed and [put](Script::put).
    pub fn ack_again(&self) -> SegmentBuilder {
        self.ack_for(self.acked)
    }

    /// Bytes that the sender has sent.
    pub fn has_sent(&self) -> u32 {
        self.sent
    }

    /// Next sequence number of the receiver, or one `behind` it.
    pub fn said_seq(&self, behind: u32) -> u32 {
        self.ends.isn.1.wrapping_add(1).wrapping_add(self.said).wrapping_sub(behind)
    }

    /// Segment of the sender from byte `n` on, without payload.
    pub fn data(&self, n: u32) -> SegmentBuilder {
        let segment = self.ends.data(n).ack(self.said_seq(0));
        self.stamped(segment, Side::Sender, false)
    }

    /// Sends the receiver's ACK of the first `n` bytes.
    pub fn ack(&mut self, n: u32) -> &mut Script {
        self.acked = n;
        let segment = self.ack_for(n);
        self.put(Side::Receiver, segment)
    }

    /// Sends whole segments of the sender up to byte `n`.
    pub fn send(&mut self, n: u32) -> &mut Script {
        while self.sent < n {
            let len = (n - self.sent).min(MSS);
            let segment = self.data(self.sent).payload(len as usize);
            self.put(Side::Sender, segment);
            self.sent += len;
        }
        self
    }

    /// Sends bytes of the receiver, in a segment that repeats its acknowledgement.
    pub fn say(&mut self, len: u32) -> &mut Script {
        let segment = self.ack_for(self.acked).payload(len as usize);
        self.said += len;
        self.put(Side::Receiver, segment)
    }

    /// Records that the receiver has sent more bytes, in segments that were [put](Script::put).
    pub fn has_said(&mut self, len: u32) {
        self.said += len;
    }

    /// Waits 20 ms, and then sends ACKs for [`BACKLOG`] bytes within a millisecond, two segments with each.
    /// At the rates of the suite most of them wait for half a second in a middlebox that holds ACKs.
    pub fn backlog(&mut self) -> &mut Script {
        let from = self.acked;
        self.send(from + BACKLOG).wait_ms(20);
        for n in 1..=BACKLOG / (2 * MSS) {
            self.wait_us(20).ack(from + n * 2 * MSS);
        }
        self.wait_ms(2)
    }
}

/// Adds the options of a SYN.
fn with_options(syn: SegmentBuilder, scale: Option<u8>) -> SegmentBuilder {
    let syn = syn.mss(MSS as u16);
    let syn = match scale {
        Some(shift) => syn.window_scale(shift),
        None => syn,
    };
    syn.sack_permitted()
}
