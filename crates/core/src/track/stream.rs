//! One direction of a connection's data, as somebody between the two ends sees it: what the sender has *sent* (its own
//! word) and what the receiver has *confirmed*.

use super::receiver::MOST_SCALE;
use super::Doubt;
use crate::wire::{after, Flags, Tcp};

/// The largest window assumed of a receiver whose scale is not known: 1 MiB.
const UNSCALED: u32 = 1 << 20;
/// Largest window (RFC 7323 §2.3).
const MOST: u32 = 1 << 30;

/// See the module documentation. Numbers are the data's; arithmetic on them is serial (RFC 1982).
#[derive(Clone, Copy, Debug, Default)]
pub struct Stream {
    /// The receiver has acknowledged everything before this number.
    confirmed: u32,
    /// The sender has sent everything before this number, or says so.
    sent: u32,
    /// The largest window that the receiver has offered, in bytes; 0: none was seen.
    window: u32,
    /// Shift of the receiver's windows, once its SYN has told.
    scale: Option<u8>,
    /// Segments of the sender that do not fit, and of the receiver.
    doubts: [Doubt; 2],
    /// Number of segments that did not fit.
    disbelieved: u32,
}

/// Verdict on a segment of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// It goes on where the sender was, or further.
    New,
    /// Sent before, or it takes up no number.
    Again,
    /// It cannot be the sender's, and changes nothing.
    Disbelieved,
    /// The last segments fit each other and not what was known: the connection is known from here on.
    Renewed,
}

/// Verdict on an acknowledgement of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acked {
    /// More than before, by so many bytes.
    More(u32),
    /// No more than before.
    Nothing,
    /// It cannot be the receiver's, and changes nothing.
    Disbelieved,
    /// As [`Data::Renewed`].
    Renewed,
}

impl Stream {
    /// A stream of which nothing was seen before a segment of its sender.
    pub fn of(tcp: &Tcp) -> Stream {
        let mut stream = Stream::default();
        stream.begin(tcp.seq);
        stream
    }

    fn begin(&mut self, at: u32) {
        (self.confirmed, self.sent) = (at, at);
        self.doubts = Default::default();
    }

    /// The receiver has acknowledged everything before this number.
    pub fn confirmed(&self) -> u32 {
        self.confirmed
    }

    /// The sender has sent everything before this number.
    pub fn sent(&self) -> u32 {
        self.sent
    }

    /// Returns the bytes that are under way.
    pub fn under_way(&self) -> u32 {
        self.sent.wrapping_sub(self.confirmed)
    }

    /// Returns how many segments could not be the ends'.
    pub fn disbelieved(&self) -> u32 {
        self.disbelieved
    }

    /// The most that may be under way.
    fn room(&self) -> u32 {
        match self.scale {
            Some(_) => self.window.max(u32::from(u16::MAX)),
            None => self.window.max(UNSCALED),
        }
    }

    /// A segment of the data's sender.
    pub fn data(&mut self, tcp: &Tcp) -> Data {
        let end = end_of(tcp);
        let (from, to) = (tcp.seq.wrapping_sub(self.sent), end.wrapping_sub(self.sent));
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
        if !after(end, self.sent) {
            return Data::Again;
        }
        self.sent = end;
        Data::New
    }

    /// A segment of the data's receiver, with ACK.
    pub fn ack(&mut self, tcp: &Tcp) -> Acked {
        let beyond = after(tcp.ack, self.sent);
        let old = after(self.confirmed, tcp.ack) && self.confirmed.wrapping_sub(tcp.ack) > self.room();
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
        if !after(tcp.ack, self.confirmed) {
            return Acked::Nothing;
        }
        let more = tcp.ack.wrapping_sub(self.confirmed);
        self.confirmed = tcp.ack;
        Acked::More(more)
    }

    /// The receiver's SYN offers this shift of its windows, or none.
    pub fn scaled(&mut self, shift: Option<u8>) {
        self.scale = Some(shift.unwrap_or(0).min(MOST_SCALE));
    }

    /// The window of a SYN is not scaled (RFC 7323 §2.2).
    fn note_window(&mut self, tcp: &Tcp) {
        let shift = if tcp.flags.contains(Flags::SYN) { 0 } else { self.scale.unwrap_or(0) };
        self.window = self.window.max(u32::from(tcp.window) << shift).min(MOST);
    }
}

/// Returns the sequence number after a segment; SYN and FIN take up one each.
fn end_of(tcp: &Tcp) -> u32 {
    let one = |flag| u32::from(tcp.flags.contains(flag));
    tcp.seq.wrapping_add(tcp.payload_len).wrapping_add(one(Flags::SYN)).wrapping_add(one(Flags::FIN))
}
