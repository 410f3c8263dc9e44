//! Congested classes. Their queues say so, and the gateway asks before it holds an ACK of a class that
//! controls ACKs [only then](crate::ack::When::Congested).

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

/// Congestion of the classes of a configuration, by their index in it. A class of which nothing is known is
/// not congested. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Congestion(Arc<[AtomicBool]>);

impl Congestion {
    /// Returns the state of `classes` classes, none of them congested.
    pub fn new(classes: usize) -> Congestion {
        Congestion((0..classes).map(|_| AtomicBool::new(false)).collect())
    }

    /// Returns whether the class with this index is congested.
    pub fn is(&self, class: usize) -> bool {
        self.0.get(class).is_some_and(|congested| congested.load(Relaxed))
    }

    /// The class with this index is congested, or not. Panics if there is none.
    pub fn set(&self, class: usize, congested: bool) {
        self.0[class].store(congested, Relaxed);
    }
}
