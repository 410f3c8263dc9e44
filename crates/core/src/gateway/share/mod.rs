//! Classes whose flows share one rate: a byte clock per class, and a deficit round robin over the flows that
//! hold something.
//!
//! What its senders may send because of what leaves here is charged to the class's clock as
//! it leaves: first windows, releases, what a loss makes go early. What arrives without having been
//! permitted, since its sender's window grew, is charged as it arrives. While the clock is not ahead, the
//! flow whose turn it is gets its release. A flow that comes to hold something is *fresh* and goes before
//! those that have had their turn (FQ-CoDel, RFC 8290 §4.2), and a flow is *listed* until its turn comes and
//! nothing is held. No rate is computed for a flow: those that ask for less than the others get it, and the
//! others share the rest.
//!
//! Windows bound what is held, and with it what a sender that is let go may send at once: a flow's is its
//! share of the rate, for its round trip and what may wait here. The share is the rate over the average
//! number of flows listed. A window that became too large shrinks as its flow is released without its right
//! edge moving.
//!
//! Classes may be nested: then the clocks are a tree, and which class has a turn is found before the flow.
//!
//! The state of classes is in [`class_rate`](crate::systems::class_rate), that of queues in
//! [`postack`](crate::systems::postack). Here is what needs frames, slots and timers:
//!
//! - `turns`: the flow that is released next, and how much of it;
//! - `rounds`: turns of an ACK, and the delay of the WAN;
//! - `departures`: turns of an ACK as data leaves the class's queue;
//! - `one_queue`: turns of an ACK as data leaves the one queue of a class;
//! - `delays`: ACKs that have a time each;
//! - `account`: charges, and guarantees;
//! - `grants`: bytes that the hooks let pass where the rate does not bind;
//! - `others`: traffic beside the flows, which ACKs cannot slow.

mod account;
mod delays;
mod departures;
mod grants;
mod one_queue;
mod others;
mod rounds;
mod turns;
