//! PostACK with one queue (sections 3.2 and 6: figs 4 and 5, clocked by departures): one ACK per
//! dequeued packet. Flows ahead of their share skip a turn.

use super::{Driver, Rules, Steps};

/// See the module documentation.
pub(super) struct OneQueue;

impl Rules for OneQueue {
    fn driver(&self) -> Driver {
        Driver::Queue
    }
    fn came(&self, steps: &mut Steps, queues: u16, packets: u32) {
        steps.count(queues, packets);
    }
    fn skips(&self, steps: &mut Steps, queues: u16) -> bool {
        steps.skip(queues)
    }
    fn released(&self, steps: &mut Steps, queues: u16, used: u32) {
        steps.answer(queues, used);
    }
}
