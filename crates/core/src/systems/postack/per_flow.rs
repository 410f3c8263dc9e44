//! Scalable PostACK (section 6, figs 13 and 14): ACKs leave with the last packet of their flow in its queue.

use super::{Driver, Rules};

/// See the module documentation.
pub(super) struct PerFlow;

impl Rules for PerFlow {
    fn name(&self) -> &'static str {
        "dequeue"
    }
    fn driver(&self) -> Driver {
        Driver::Queues
    }
}
