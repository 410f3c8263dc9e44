//! The systems, one folder each.
//!
//! - [`ack_shaper`]: a rate for each flow, by the times at which its ACKs leave;
//! - [`ack_filter`]: ACKs that newer ones make redundant;
//! - [`gap_pacing`]: gaps between packets, of fillers or by times of departure;
//! - [`postack`]: an ACK for each packet that leaves a queue;
//! - [`class_rate`]: a rate that the flows of a class share, by their ACKs;
//! - [`link_sharing`]: a tree of classes whose leaves are queues.

pub mod ack_filter;
pub mod ack_shaper;
pub mod class_rate;
pub mod gap_pacing;
mod kept;
mod law;
pub mod link_sharing;
pub mod postack;

pub(crate) use kept::Kept;
pub(crate) use law::{Law, QUEUED};
pub use law::{Tick, Unresponsive};
