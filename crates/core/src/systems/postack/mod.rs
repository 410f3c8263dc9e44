//! PostACK: an ACK for each packet that leaves a queue.

mod events;

pub(crate) use events::{Alone, Came, Departure, Next};
