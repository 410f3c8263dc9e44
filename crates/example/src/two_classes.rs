//! Two bands: small packets first, and at most ten of the others.

use weir_core::queue::own::{Arrival, Length, Packet, QueueDiscipline};
use weir_core::time::Time;

/// Most bytes of a small packet.
const SMALL: u64 = 200;
/// Most packets of the second band.
const MOST: u64 = 10;

/// The discipline, which has no state of its own.
#[derive(Debug)]
pub struct TwoClasses;

impl QueueDiscipline for TwoClasses {
    fn bands(&self) -> usize {
        2
    }

    fn on_arrival(&mut self, _now: Time, packet: &Packet, queue: &Length<'_>) -> Arrival {
        match packet.bytes <= SMALL {
            true => Arrival::Keep(0),
            false if queue.bands[1].packets < MOST => Arrival::Keep(1),
            false => Arrival::Drop,
        }
    }
}
