//! The connection tracker: what to believe of segments, and for how long.
//!
//! Anyone can send a segment with a connection's addresses, and each end says what suits it. So a claim of one end is
//! *tentative* until the other end confirms it, and every relaxation of control has an exit:
//!
//! - [`Key`]: who a connection, or another flow of packets, is;
//! - [`Doubt`]: evidence about segments that do not fit a flow, or fit it and are odd;
//! - [`Extensions`]: what the two SYNs of a connection have in common; [`opening`]: what answers them;
//! - [`Stream`]: one direction of a connection's data, sent and confirmed, for whoever sees both directions;
//! - [`Receiver`]: what a receiver has acknowledged, for whoever sees nothing else.
//!
//! The tracker knows nothing of rates, queues and ACK control; these ask it. Numbers that programs in the kernel share are
//! judged there and by [`Slot::believes`](crate::steer::Slot::believes) alike.

mod doubt;
mod extensions;
mod key;
pub mod opening;
pub mod receiver;
mod stream;
#[cfg(test)]
mod tests;

pub use doubt::Doubt;
pub use extensions::Extensions;
pub use key::Key;
pub use receiver::Receiver;
pub use stream::{Acked, Data, Stream};
