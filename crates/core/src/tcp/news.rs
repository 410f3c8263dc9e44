//! Kinds of acknowledgements without payload, by what they tell their sender.

use crate::packet::wire::{SackBlocks, Seq};

/// Main news of an acknowledgement. If several apply, the first in this order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// SACK blocks, for data beyond a hole or data received twice (RFC 2018, RFC 2883).
    Sack,
    /// Duplicate data below its acknowledgement, with nothing missing (RFC 2883 §4.1). It answers an
    /// unsolicited probe (RFC 8985 §7), or another needless retransmission.
    Twice,
    /// A number below an earlier acknowledgement: a later ACK has overtaken it.
    Old,
    /// The window is closed.
    Closed,
    /// The window was closed and opens.
    Opens,
    /// More bytes are acknowledged.
    Progress,
    /// The number and the window are unchanged: a duplicate (RFC 5681 section 2), or no news at all.
    Duplicate,
    /// Only the window has changed.
    Window,
}

impl Kind {
    /// Classifies an acknowledgement with this number, window and SACK blocks that follows one of number `rx`
    /// and window `was`.
    pub fn of((rx, was): (Seq, u16), (ack, window): (Seq, u16), sack: &SackBlocks) -> Kind {
        let open = window != 0 && was != 0;
        if open && sack.only_twice(ack).is_some() {
            Kind::Twice
        } else if !sack.is_empty() {
            Kind::Sack
        } else if rx.is_after(ack) {
            Kind::Old // its window is history, too
        } else if window == 0 {
            Kind::Closed
        } else if was == 0 {
            Kind::Opens
        } else if ack != rx {
            Kind::Progress
        } else if window == was {
            Kind::Duplicate
        } else {
            Kind::Window
        }
    }
}

/// Largest value of the AccECN counter, which has three bits.
pub const ACE_MOST: u8 = 7;
