//! The connection tracker: which segments to believe, and for how long.
//!
//! Any host can send a segment with a connection's addresses, and each end may claim anything. A claim of one
//! end is therefore *tentative* until the other end confirms it, and every relaxation of control has an exit:
//!
//! - [`Key`]: identity of a connection, or of another flow of packets;
//! - [`Doubt`]: evidence about segments that do not fit a flow, or fit it and are odd;
//! - [`Extensions`]: extensions common to the two SYNs of a connection. [`opening`]: answers to these SYNs;
//! - [`Stream`]: one direction of a connection's data, sent and confirmed, for users that see both
//!   directions;
//! - [`Receiver`]: the acknowledgements of a receiver, for users that see only these.
//!
//! The tracker does not know rates, queues and ACK control. They use it. Numbers that are shared with
//! programs in the kernel are judged by the same rules there and in
//! [`Slot::believes`](crate::tcp::steer::Slot::believes).

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
