//! One direction of a connection's data, as seen between the two ends: the data that the sender has *sent*
//! (its own claim) and the data that the receiver has *confirmed*.

use super::receiver::MOST_SCALE;
use super::Doubt;
use crate::packet::wire::{Flags, Seq, Tcp};

/// Largest window assumed of a receiver whose scale is not known: 1 MiB.
const UNSCALED: u32 = 1 << 20;
/// Largest window (RFC 7323 §2.3).
const MOST: u32 = 1 << 30;

/// See the module documentation. Numbers are the data's. Their arithmetic is serial (RFC 1982).
#[derive(Clone, Copy, Debug, Default)]
pub struct Stream {
    /// Number up to which the receiver has acknowledged.
    confirmed: Seq,
    /// Number up to which the sender has sent, by its own claim.
    sent: Seq,
    /// Largest window that the receiver has offered, in bytes. 0: none was seen.
    window: u32,
    /// Shift of the receiver's windows, once its SYN was seen.
    scale: Option<u8>,
    /// Segments that do not fit, of the sender and of the receiver.
    doubts: [Doubt; 2],
    /// Number of segments that did not fit.
    disbelieved: u32,
}

/// Verdict on a segment of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// New data at the sender's last number, or beyond.
    New,
    /// Data sent before, or a segment that takes up no number.
    Again,
    /// A segment that cannot be the sender's. It changes nothing.
    Disbelieved,
    /// The last segments fit each other and not the state. The state restarts from here.
    Renewed,
}

/// Verdict on an acknowledgement of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acked {
    /// Acknowledges this many bytes more.
    More(u32),
    /// Acknowledges no more than before.
    Nothing,
    /// A segment that cannot be the receiver's. It changes nothing.
    Disbelieved,
    /// The state restarts, see [`Data::Renewed`].
    Renewed,
}

impl Stream {
    /// Returns a stream whose first seen segment is this one of its sender.
    pub fn of(tcp: &Tcp) -> Stream {
        let mut stream = Stream::default();
        stream.begin(tcp.seq);
        stream
    }

    fn begin(&mut self, at: Seq) {
        (self.confirmed, self.sent) = (at, at);
        self.doubts = Default::default();
    }

    /// Returns the number up to which the receiver has acknowledged.
    pub fn confirmed(&self) -> Seq {
        self.confirmed
    }

    /// Returns the number up to which the sender has sent.
    pub fn sent(&self) -> Seq {
        self.sent
    }

    /// Returns the bytes in flight.
    pub fn under_way(&self) -> u32 {
        self.sent.since(self.confirmed)
    }

    /// Returns the number of segments that could not be the ends'.
    pub fn disbelieved(&self) -> u32 {
        self.disbelieved
    }

    /// Returns the most bytes that may be in flight.
    fn room(&self) -> u32 {
        match self.scale {
            Some(_) => self.window.max(u32::from(u16::MAX)),
            None => self.window.max(UNSCALED),
        }
    }

    /// Judges a segment of the data's sender.
    pub fn data(&mut self, tcp: &Tcp) -> Data {
        let end = end_of(tcp);
        let (from, to) = (tcp.seq.since(self.sent), end.since(self.sent));
        let (ahead, behind) = (to as i32, (from as i32).wrapping_neg());
        if i64::from(ahead) > i64::from(self.room()) || i64::from(behind) > i64::from(self.room()) {
            self.disbelieved = self.disbelieved.saturating_add(1);
            if !self.doubts[0].disbelieved(tcp.seq, tcp.ack) {
                return Data::Disbelieved;
            }
            self.begin(tcp.seq);
            self.sent = end;
            return Data::Renewed;
        }
        self.doubts[0].believed();
        if !end.is_after(self.sent) {
            return Data::Again;
        }
        self.sent = end;
        Data::New
    }

    /// Judges a segment of the data's receiver, with ACK.
    pub fn ack(&mut self, tcp: &Tcp) -> Acked {
        let beyond = tcp.ack.is_after(self.sent);
        let old = self.confirmed.is_after(tcp.ack) && self.confirmed.since(tcp.ack) > self.room();
        if beyond || old {
            self.disbelieved = self.disbelieved.saturating_add(1);
            if !self.doubts[1].disbelieved(tcp.seq, tcp.ack) {
                return Acked::Disbelieved;
            }
            self.begin(tcp.ack);
            self.note_window(tcp);
            return Acked::Renewed;
        }
        self.doubts[1].believed();
        self.note_window(tcp);
        if !tcp.ack.is_after(self.confirmed) {
            return Acked::Nothing;
        }
        let more = tcp.ack.since(self.confirmed);
        self.confirmed = tcp.ack;
        Acked::More(more)
    }

    /// Notes that the receiver's SYN offers this shift of its windows, or none.
    pub fn scaled(&mut self, shift: Option<u8>) {
        self.scale = Some(shift.unwrap_or(0).min(MOST_SCALE));
    }

    /// Notes a window. The window of a SYN is not scaled (RFC 7323 §2.2).
    fn note_window(&mut self, tcp: &Tcp) {
        let shift = if tcp.flags.contains(Flags::SYN) { 0 } else { self.scale.unwrap_or(0) };
        self.window = self.window.max(u32::from(tcp.window) << shift).min(MOST);
    }
}

/// Returns the sequence number after a segment. SYN and FIN take up one each.
fn end_of(tcp: &Tcp) -> Seq {
    let one = |flag| u32::from(tcp.flags.contains(flag));
    tcp.seq.plus(tcp.payload_len).plus(one(Flags::SYN)).plus(one(Flags::FIN))
}
