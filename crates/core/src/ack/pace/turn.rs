//! State of the law *share*, kept in the fields of a [`Pace`] that no release at a rate uses then.

use super::Pace;
use crate::ack::Turn;
use crate::rate::Rate;

impl Pace {
    /// What the law *share* keeps.
    pub fn turn(&self) -> Turn {
        Turn { early: self.credit, deficit: self.ahead, next: self.smooth_milli, prev: self.progress }
    }

    /// See [`Pace::turn`].
    pub fn set_turn(&mut self, turn: Turn) {
        (self.credit, self.ahead) = (turn.early, turn.deficit);
        (self.smooth_milli, self.progress) = (turn.next, turn.prev);
    }

    /// What share of its class's rate the flow has now, as payload.
    pub fn set_share(&mut self, share: Rate) {
        self.rate_bps = share.bps();
    }
}
