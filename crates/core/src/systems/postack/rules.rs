//! The interface of a scheme to the gateway.

use super::Steps;
use crate::flow::Record;
use crate::rate::Rate;
use crate::time::Duration;
use crate::wire::Seq;

/// Event that gives turns to the flows of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    /// The class's clock, which a turn moves on by a full segment.
    Clock,
    /// A packet that leaves the class's one queue.
    Queue,
    /// A packet that leaves the class's queues, one for each flow.
    Queues,
    /// A timer of the flow: each ACK has a time of its own, behind those before it.
    Delay,
}

impl Driver {
    /// Returns whether turns come as data leaves.
    pub(crate) fn is_departure(self) -> bool {
        matches!(self, Driver::Queue | Driver::Queues)
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
    /// Returns whether a flow that holds nothing counts among those of its class all the same: it has turns
    /// to skip, or data on its way.
    fn counts(&self, _r: &Record, _queues: u16) -> bool {
        false
    }
    /// Returns whether the flow skips the turn that it has.
    fn skips(&self, _steps: &mut Steps, _queues: u16) -> bool {
        false
    }
    /// Notes that a turn has released ACKs that are worth `used` turns.
    fn released(&self, _steps: &mut Steps, _queues: u16, _used: u32) {}
    /// Returns whether data of its flows is looked at that does not wait here.
    fn watches_data(&self) -> bool {
        false
    }
    /// Notes data of the flow up to `end` that is on its way. With [`Rules::watches_data`].
    fn sent(&self, _steps: &mut Steps, _end: Seq) {}
    /// Returns the time for which an ACK of the flow is held that comes now. `rate` is the flow's part of the
    /// class's rate as payload, `rtt` the round-trip delay without what waits here. With [`Driver::Delay`].
    fn delay(&self, _r: &Record, _rate: Rate, _rtt: Duration) -> Duration {
        Duration::ZERO
    }
}
