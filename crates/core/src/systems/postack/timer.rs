//! PostACK by a timer (section 3.2, figs 4 and 5): the on-off variant of ACK pacing. The timer of a class
//! gives each of its `n` flows a turn in `MSS / (BW / n)`. A flow that has sent more packets to the queue
//! than its turns were for skips one turn for each.
//!
//! The paper's timer goes off for all flows at once. Here their turns are spread over its interval, one each
//! `MSS / BW`, so that their packets do not come to the queue together. A flow whose ACKs have not come yet
//! skips turns as well, since its packets take their part of the rate meanwhile.

use super::{Driver, Rules, Steps};
use crate::flow::Record;

/// See the module documentation.
pub(super) struct Timer;

impl Rules for Timer {
    fn driver(&self) -> Driver {
        Driver::Clock
    }
    fn follows_data(&self) -> bool {
        true
    }
    fn came(&self, steps: &mut Steps, queues: u16, packets: u32) {
        steps.count(queues, packets);
    }
    fn counts(&self, r: &Record, queues: u16) -> bool {
        r.law.steps().is_ahead(queues)
    }
    fn skips(&self, steps: &mut Steps, queues: u16) -> bool {
        steps.skip(queues)
    }
    fn released(&self, steps: &mut Steps, queues: u16, used: u32) {
        steps.answer(queues, used);
    }
}
