//! Detectors of the end of slow start before a loss: HyStart++ (RFC 9406) or its predecessor, HyStart of
//! 2011.

mod classic;
mod plus_plus;
#[cfg(test)]
mod tests;
mod threshold;

pub use plus_plus::Brake;

use super::{Ack, Congestion, Hystart, Window};
use classic::Classic;
use plus_plus::PlusPlus;

/// Detector of a flow.
#[derive(Clone, Debug)]
pub enum SlowStartEnd {
    /// No detector: only a loss or a mark ends slow start.
    Congestion,
    /// HyStart of 2011.
    Classic(Box<Classic>),
    /// HyStart++.
    PlusPlus(Box<PlusPlus>),
}

impl SlowStartEnd {
    /// Creates the chosen detector. `paced` is true if the sender spaces its segments.
    pub fn new(hystart: Hystart, paced: bool) -> SlowStartEnd {
        match hystart {
            Hystart::Off => SlowStartEnd::Congestion,
            Hystart::Classic => SlowStartEnd::Classic(Box::new(Classic::new(paced))),
            Hystart::PlusPlus => SlowStartEnd::PlusPlus(Box::new(PlusPlus::new(paced))),
        }
    }

    /// Handles an ACK in slow start, before the window grows. Sets the threshold to the window when slow
    /// start must end.
    pub fn on_ack(&mut self, w: &mut Window, ack: &Ack) {
        let ended = match self {
            SlowStartEnd::Congestion => false,
            SlowStartEnd::Classic(h) => h.on_ack(w, ack),
            SlowStartEnd::PlusPlus(h) => h.on_ack(ack),
        };
        if ended {
            w.ssthresh = w.cwnd;
        }
    }

    /// Returns the present limit on growth.
    pub fn brake(&self) -> Brake {
        match self {
            SlowStartEnd::PlusPlus(h) => h.brake(),
            _ => Brake::NONE,
        }
    }

    /// Handles congestion. HyStart++ serves the first slow start only (RFC 9406 §4.3), since later ones know
    /// their threshold. HyStart of 2011 restarts after a time-out, as in Linux.
    pub fn on_congestion(&mut self, congestion: Congestion) {
        match self {
            SlowStartEnd::PlusPlus(h) => h.finish(),
            SlowStartEnd::Classic(h) if congestion == Congestion::Timeout => **h = h.anew(),
            _ => {}
        }
    }
}
