//! The acknowledgements of a receiver, as somebody sees them who does not see the data: each is held against the one before.

use crate::wire::after;

/// Largest shift (RFC 7323 §2.3), assumed where no SYN was seen.
pub const MOST_SCALE: u8 = 14;
/// Acknowledgements in a row that do not fit before nothing is known any more.
const DOUBTS: u8 = 8;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receiver {
    ack: u32,
    window: u16,
    /// Shift of its windows, if a SYN has told.
    scale: Option<u8>,
    known: bool,
    doubts: u8,
}

/// Relation of an acknowledgement to the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// Nothing was known before it.
    First,
    /// It acknowledges so many bytes more.
    More(u32),
    /// It is older, or cannot be the receiver's, and changes nothing.
    Disbelieved,
}

impl Receiver {
    /// A connection begins with a SYN of the receiver, which offers this shift of its windows (RFC 7323 §2.2).
    pub fn begun(scale: Option<u8>) -> Receiver {
        Receiver { scale: Some(scale.unwrap_or(0).min(MOST_SCALE)), ..Receiver::default() }
    }

    /// The last number that was acknowledged, and the window that came with it.
    pub fn last(&self) -> (u32, u16) {
        (self.ack, self.window)
    }

    /// Was an acknowledgement believed?
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// Shift of its windows, or the largest that there is.
    pub fn scale(&self) -> u8 {
        self.scale.unwrap_or(MOST_SCALE)
    }

    /// An acknowledgement of `ack` with the window field `window`. Where so many in a row do not fit what is known, nothing is.
    pub fn acks(&mut self, ack: u32, window: u16) -> Acks {
        let fits = !after(self.ack, ack) && could_follow(self.ack, (self.window.max(1), self.scale()), ack);
        if self.known && !fits {
            self.doubts += 1;
            if self.doubts >= DOUBTS {
                *self = Receiver::default();
            }
            return Acks::Disbelieved;
        }
        let more = ack.wrapping_sub(self.ack);
        let known = core::mem::replace(&mut self.known, true);
        (self.ack, self.window, self.doubts) = (ack, window, 0);
        if known {
            Acks::More(more)
        } else {
            Acks::First
        }
    }
}

/// Could a receiver that has acknowledged `from` with a window field of this shift acknowledge `to`?
pub fn could_follow(from: u32, (window, scale): (u16, u8), to: u32) -> bool {
    to.wrapping_sub(from) <= u32::from(window) << scale
}
