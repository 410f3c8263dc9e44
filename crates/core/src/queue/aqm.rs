//! Active queue management (AQM) of a link's queue, by its parameters.

use super::{ack_filter, codel, dualpi2, fq_codel, own, red};
use super::{AckFilter, Codel, DualPi2, Fifo, FqCodel, OwnQueue, Queue, QueueLimit, Red};
use crate::rate::Rate;

/// Active queue management: decides which packets to drop or mark while there is room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum Aqm {
    /// No AQM: drop tail only.
    #[default]
    None,
    /// Signals by how long frames wait ([`codel`]).
    Codel(codel::Params),
    /// One queue per flow, each with CoDel ([`fq_codel`]).
    FqCodel(fq_codel::Params),
    /// Signals by the average queue length ([`red`]).
    Red(red::Params),
    /// Two queues: one for senders that react to each mark, one for the rest ([`dualpi2`]).
    DualPi2(dualpi2::Params),
    /// Erases ACKs that newer ones make redundant ([`ack_filter`]).
    AckFilter(ack_filter::Params),
    /// Discipline that a program has added ([`own`]).
    Own(own::Own),
}

impl Aqm {
    /// Returns whether this AQM marks packets.
    pub fn marks(&self) -> bool {
        match self {
            Aqm::None => false,
            Aqm::AckFilter(filter) => filter.codel.is_some_and(|codel| codel.ecn),
            // It may.
            Aqm::Own(_) => true,
            Aqm::Codel(codel) => codel.ecn,
            Aqm::FqCodel(fq) => fq.codel.ecn,
            Aqm::Red(red) => red.ecn,
            Aqm::DualPi2(_) => true,
        }
    }

    /// Scales the defaults to full frames of `bytes`, as charged: CoDel's limit, the quanta, and RED's
    /// thresholds of 5 and 15 frames.
    #[must_use]
    pub fn with_full_frames(mut self, bytes: u32) -> Aqm {
        match &mut self {
            Aqm::None | Aqm::DualPi2(_) | Aqm::Own(_) => {}
            Aqm::Codel(codel) => codel.full_frame = bytes,
            Aqm::FqCodel(fq) => (fq.quantum, fq.codel.full_frame) = (bytes, bytes),
            Aqm::Red(red) => (red.min, red.max) = (5 * u64::from(bytes), 15 * u64::from(bytes)),
            Aqm::AckFilter(filter) => {
                filter.quantum = bytes;
                filter.codel.iter_mut().for_each(|codel| codel.full_frame = bytes);
            }
        }
        self
    }

    /// Builds the queue in front of `rate`, with room for `limit`. `mark` is the threshold of step marking;
    /// only a queue without AQM uses it. Random draws and hashes come from `seed`.
    pub fn queue(&self, limit: QueueLimit, mark: Option<QueueLimit>, rate: Rate, seed: u64) -> Queue {
        match *self {
            Aqm::None => Queue::Fifo(Fifo::new(limit, mark, rate)),
            Aqm::Codel(params) => Queue::Codel(Codel::new(params, limit, rate)),
            Aqm::FqCodel(params) => Queue::FqCodel(Box::new(FqCodel::new(params, limit, rate, seed))),
            Aqm::Red(params) => Queue::Red(Box::new(Red::new(params, limit, rate, seed))),
            Aqm::DualPi2(params) => Queue::DualPi2(Box::new(DualPi2::new(params, limit, rate))),
            Aqm::AckFilter(params) => {
                let params = ack_filter::Params { seed, ..params };
                Queue::AckFilter(Box::new(AckFilter::new(params, limit, rate)))
            }
            Aqm::Own(own) => Queue::Own(Box::new(OwnQueue::new(own, limit, rate, seed))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8290 §4.1.2: a quantum is a full frame. Floyd and Jacobson 1993 §4.3: thresholds of 5 and 15.
    #[test]
    fn defaults_follow_the_full_frame() {
        let scaled = |aqm: Aqm| aqm.with_full_frames(9018);
        let codel = codel::Params { full_frame: 9018, ..codel::Params::default() };
        assert_eq!(scaled(Aqm::Codel(codel::Params::default())), Aqm::Codel(codel));
        let default = fq_codel::Params::default();
        let codel = codel::Params { full_frame: 9018, ..default.codel };
        let fq = fq_codel::Params { quantum: 9018, codel, ..default };
        assert_eq!(scaled(Aqm::FqCodel(default)), Aqm::FqCodel(fq));
        let red = red::Params { min: 45_090, max: 135_270, ..red::Params::default() };
        assert_eq!(scaled(Aqm::Red(red::Params::default())), Aqm::Red(red));
        let filter = ack_filter::Params { quantum: 9018, ..ack_filter::Params::default() };
        assert_eq!(scaled(Aqm::AckFilter(ack_filter::Params::default())), Aqm::AckFilter(filter));
        for aqm in [Aqm::None, Aqm::DualPi2(dualpi2::Params::default())] {
            assert_eq!(scaled(aqm), aqm);
        }
    }
}
