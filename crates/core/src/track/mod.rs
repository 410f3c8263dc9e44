//! The connection tracker: what to believe of segments, and for how long.
//!
//! Anyone can send a segment with a connection's addresses, and each end says what suits it. So a claim of one end is
//! *tentative* until the other end confirms it, and every relaxation of control has an exit:
//!
//! - [`Doubt`]: evidence about segments that do not fit a flow, or fit it and are odd;
//! - [`Extensions`]: what the two SYNs of a connection have in common;
//! - [`Stream`]: one direction of a connection's data, sent and confirmed.
//!
//! The tracker knows nothing of rates, queues and ACK control; these ask it.

mod doubt;
mod extensions;
mod stream;
#[cfg(test)]
mod tests;

pub use doubt::Doubt;
pub use extensions::Extensions;
pub use stream::{Acked, Data, Stream};
