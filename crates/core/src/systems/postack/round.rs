//! TCP rate control (PostACK paper, section 2.4): an ACK for each flow in the class's round.

use super::{Driver, Rules};

/// See the module documentation.
pub(super) struct Round;

impl Rules for Round {
    fn driver(&self) -> Driver {
        Driver::Clock
    }
}
