//! State that a flow's law keeps of it, whichever law that is.

use super::ack_shaper::Pace;
use super::class_rate::Turn;
use super::postack::Steps;
use crate::flow::{flag, Record};
use crate::rate::Rate;
use crate::time::Time;

/// State of a flow by the law that keeps it.
pub(crate) enum Kept<'a> {
    /// The flow has a rate of its own.
    Rate(&'a Pace),
    /// It shares its class's rate, with turns of bytes.
    Turn(&'a Turn),
    /// State of a law whose turns are ACKs.
    Steps(&'a Steps),
}

impl Record {
    /// Returns whether the flow takes turns in its class, whose rate it shares.
    #[inline(always)]
    pub(crate) fn takes_turns(&self) -> bool {
        self.has(flag::SHARED)
    }

    /// Returns whether its turns are ACKs.
    #[inline(always)]
    pub(crate) fn takes_steps(&self) -> bool {
        self.has(flag::STEPS)
    }

    /// Returns whether its ACKs are queued themselves.
    #[inline(always)]
    pub(crate) fn queues_acks(&self) -> bool {
        self.has(flag::QUEUED)
    }

    /// Returns what the flow's law keeps of it.
    #[inline(always)]
    pub(crate) fn kept(&self) -> Kept<'_> {
        match (self.takes_turns(), self.takes_steps()) {
            (false, _) => Kept::Rate(self.law.pace()),
            (true, false) => Kept::Turn(self.law.turn()),
            (true, true) => Kept::Steps(self.law.steps()),
        }
    }

    /// Returns whether anything is held: bytes, or queued ACKs.
    #[inline]
    pub fn holds(&self) -> bool {
        self.held() > 0 || self.queues_acks() && self.law.steps().waiting_acks() > 0
    }
}

impl<'a> Kept<'a> {
    /// Returns the state of a flow with a rate of its own.
    pub(crate) fn pace(&self) -> Option<&'a Pace> {
        match self {
            Kept::Rate(pace) => Some(pace),
            Kept::Turn(_) | Kept::Steps(_) => None,
        }
    }

    /// Returns the flow's payload rate, as far as it has one.
    pub(crate) fn rate(&self) -> Option<Rate> {
        match self {
            Kept::Rate(pace) => pace.rate(),
            Kept::Turn(turn) => turn.share(),
            Kept::Steps(_) => None,
        }
    }

    /// Returns the bytes that the flow's sender has ahead of the rate, or of its turns.
    pub(crate) fn ahead(&self) -> u32 {
        match self {
            Kept::Rate(pace) => pace.debt(),
            Kept::Turn(turn) => turn.early,
            Kept::Steps(_) => 0,
        }
    }

    /// Returns the bytes of the last grant of a flow that takes turns, and when a grant was made.
    pub(crate) fn last_grant(&self) -> (u32, Time) {
        match self {
            Kept::Rate(pace) => (0, Time::from_nanos(pace.due)),
            Kept::Turn(turn) => turn.last_grant(),
            Kept::Steps(steps) => steps.last_grant(),
        }
    }
}
