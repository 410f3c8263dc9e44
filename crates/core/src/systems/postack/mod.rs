//! TCP rate control and PostACK: flows of a class share its rate in turns of ACKs.
//!
//! - [`Scheme`]: the schemes, behind one interface (`rules`), a file each: `round`, `one_queue`, `per_flow`,
//!   `timer`, `basic`;
//! - `steps`: the state of a flow; `queue`: of a class's queue; `events`: what the queue tells.

mod basic;
mod events;
mod one_queue;
mod per_flow;
mod queue;
mod round;
mod rules;
mod steps;
mod timer;

pub(crate) use events::{Alone, Came, Departure, Next};
pub(crate) use queue::Departures;
pub(crate) use rules::{Driver, Rules};
pub use steps::Steps;
pub(crate) use steps::TURN;

/// A scheme by which the flows of a class are released ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Scheme {
    /// TCP rate control: a turn for each flow in the class's round.
    Round,
    /// PostACK with one queue, whose departures give turns.
    OneQueue,
    /// PostACK with a queue for each flow, whose departures release ACKs. With
    /// [`Hold::Number`](crate::ack::Hold::Number) a turn is as many bytes as the packet has.
    PerFlow,
    /// PostACK by a timer: turns by the class's clock. Flows ahead of their share skip a turn.
    Timer,
    /// Basic PostACK: each ACK is held for as long as a packet of data would wait in a queue of its flow.
    Basic,
}

impl Scheme {
    pub(crate) fn rules(self) -> &'static dyn Rules {
        match self {
            Scheme::Round => &round::Round,
            Scheme::OneQueue => &one_queue::OneQueue,
            Scheme::PerFlow => &per_flow::PerFlow,
            Scheme::Timer => &timer::Timer,
            Scheme::Basic => &basic::Basic,
        }
    }
}
