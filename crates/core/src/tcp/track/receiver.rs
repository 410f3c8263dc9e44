//! The acknowledgements of a receiver, for an observer that does not see the data. Each is compared with the
//! one before.

use crate::packet::wire::Seq;

/// Largest shift (RFC 7323 §2.3), assumed where no SYN was seen.
pub const MOST_SCALE: u8 = 14;
/// Consecutive acknowledgements that do not fit, after which the state is discarded.
const DOUBTS: u8 = 8;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receiver {
    ack: Seq,
    window: u16,
    /// Shift of its windows, if a SYN was seen.
    scale: Option<u8>,
    known: bool,
    doubts: u8,
}

/// Relation of an acknowledgement to the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// The first one: there is no state before it.
    First,
    /// Acknowledges this many bytes more.
    More(u32),
    /// An older acknowledgement, or one that cannot be the receiver's. It changes nothing.
    Disbelieved,
}

impl Receiver {
    /// Returns the state of a connection that begins with a SYN of the receiver, which offers this shift of
    /// its windows (RFC 7323 §2.2).
    pub fn begun(scale: Option<u8>) -> Receiver {
        Receiver { scale: Some(scale.unwrap_or(0).min(MOST_SCALE)), ..Receiver::default() }
    }

    /// Returns the last acknowledged number, and its window.
    pub fn last(&self) -> (Seq, u16) {
        (self.ack, self.window)
    }

    /// Returns whether an acknowledgement was believed.
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// Returns the shift of its windows, or the largest possible one.
    pub fn scale(&self) -> u8 {
        self.scale.unwrap_or(MOST_SCALE)
    }

    /// Notes an acknowledgement of `ack` with the window field `window`. Enough consecutive ones that do not
    /// fit discard the state.
    pub fn acks(&mut self, ack: Seq, window: u16) -> Acks {
        let fits = !self.ack.is_after(ack) && could_follow(self.ack, (self.window.max(1), self.scale()), ack);
        if self.known && !fits {
            self.doubts += 1;
            if self.doubts >= DOUBTS {
                *self = Receiver::default();
            }
            return Acks::Disbelieved;
        }
        let more = ack.since(self.ack);
        let known = core::mem::replace(&mut self.known, true);
        (self.ack, self.window, self.doubts) = (ack, window, 0);
        if known {
            Acks::More(more)
        } else {
            Acks::First
        }
    }
}

/// Returns whether a receiver that has acknowledged `from` with a window field of this shift can acknowledge
/// `to`.
pub fn could_follow(from: Seq, (window, scale): (u16, u8), to: Seq) -> bool {
    to.since(from) <= u32::from(window) << scale
}
