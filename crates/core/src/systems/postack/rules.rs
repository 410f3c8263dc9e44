//! The interface of a scheme to the gateway.

use super::Steps;

/// Event that gives turns to the flows of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    /// The class's clock, which a turn moves on by a full segment.
    Clock,
    /// A packet that leaves the class's one queue.
    Queue,
    /// A packet that leaves the class's queues, one for each flow.
    Queues,
}

impl Driver {
    /// Returns whether turns come as data leaves.
    pub(crate) fn is_departure(self) -> bool {
        self != Driver::Clock
    }
}

/// Interface of a scheme to the gateway. A new scheme is a file with an implementation, a variant of
/// [`Scheme`](super::Scheme) and its row in `rules`, and a row of
/// [`CLASS_PRESETS`](crate::ack::CLASS_PRESETS).
pub(crate) trait Rules {
    /// Returns the name of the law in results.
    fn name(&self) -> &'static str {
        "round"
    }
    /// Returns the event that gives turns.
    fn driver(&self) -> Driver;
    /// Returns whether data that comes to the class's queue is told of.
    fn follows_data(&self) -> bool {
        self.driver().is_departure()
    }
    /// Notes packets of the flow's data that have come to the class's queue. `queues` is the generation of
    /// the count, see [`Steps::packets`].
    fn came(&self, _steps: &mut Steps, _queues: u16, _packets: u32) {}
    /// Returns whether a flow that holds nothing has turns to skip.
    fn has_skips(&self, _steps: &Steps, _queues: u16) -> bool {
        false
    }
    /// Returns whether the flow skips the turn that it has.
    fn skips(&self, _steps: &mut Steps, _queues: u16) -> bool {
        false
    }
    /// Notes that a turn has released ACKs that are worth `used` turns.
    fn released(&self, _steps: &mut Steps, _queues: u16, _used: u32) {}
}
