//! Watches on the queues of classes, for [`Congestion`].

use crate::ack::When;
use crate::classify::ClassConfig;
use crate::queue::{Bound, Queue};
use crate::rate::Rate;
use crate::systems::ack_shaper::Congestion;

/// Threshold of a class's queue: the class is congested from when more than a threshold waits until no more
/// than half of it does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    class: usize,
    above: Bound,
}

impl Watch {
    /// On the queue of the class with this index, if it has one and that matters.
    pub(crate) fn of(class: usize, config: &ClassConfig) -> Option<Watch> {
        config.share?.queue?;
        match config.ack?.when {
            When::Always => None,
            // No threshold depends on a rate.
            When::Congested { above } => Some(Watch { class, above: Bound::new(above, Rate::mbit(1)) }),
        }
    }

    /// Says how its class is with this queue.
    pub(crate) fn look(&self, queue: &Queue, congestion: &Congestion) {
        let is = congestion.is(self.class);
        let part = if is { 2 } else { 1 };
        if self.above.is_exceeded_by(queue, part) != is {
            congestion.set(self.class, !is);
        }
    }
}
