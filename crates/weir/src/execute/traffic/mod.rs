//! Traffic: real flows of TCP and UDP, any number of them in one process with one event loop for each of the two, and UDP probes.
//!
//! A [`Spec`] says which ends of which flows a process plays; [`Generator::open`] opens what listens,
//! [`Generator::run`] carries them out and gives a [`Report`]. Times are nanoseconds since an epoch
//! on CLOCK_MONOTONIC, which all processes of a machine share, namespaces or not, so that what one
//! process sends and another receives lies on one axis.
//!
//! Bytes are counted where they are received, after reads of at most [`READ_MAX`] bytes that are
//! stamped one by one: counting at the sender, or in large reads, makes intervals at low rates jump.
//! Payload is neither made nor looked at: senders write one buffer of zeroes again and again, and
//! receivers discard in the kernel (`MSG_TRUNC`).
//!
//! A flow is known by its four-tuple. The connecting end binds its local port, so the listening end
//! can tell flows apart without a byte of its own in the stream: `bytes` is what the wire carries.
//!
//! Nothing here waits for a peer without a limit: [`Spec::stop_ns`] ends everything, and what went
//! wrong is said per flow.

mod alarm;
mod bins;
mod clock;
mod datagrams;
mod engine;
mod flow;
mod intake;
mod probe;
mod protocol;
mod quantile;
mod report;
mod sender;
mod socket;
mod spec;
pub(crate) mod sys;
mod talk;

pub use bins::Bins;
pub use clock::monotonic;
pub use engine::Generator;
pub use probe::{ProbeSink, ProbeSource};
pub use protocol::{serve, Control, GO, STOP};
pub use quantile::Quantiles;
pub use report::{DatagramReport, Exchanges, FlowReport, Gap, ProbeReport, Received, Report, Sent, Series};
pub use socket::READ_MAX;
pub use spec::{Amount, DatagramSpec, FlowSpec, OnOff, Play, ProbeSpec, Role, Spec};
