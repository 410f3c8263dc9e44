//! Traffic: real TCP, QUIC and UDP flows, and UDP probes. One process runs any number of flows, with one
//! event loop for TCP, one for QUIC and one for UDP.
//!
//! A [`Spec`] lists the ends of flows that a process runs. [`Generator::open`] opens listening sockets, and
//! [`Generator::run`] runs the flows and returns a [`Report`]. Times are nanoseconds since an epoch on
//! CLOCK_MONOTONIC, which all processes and namespaces of a machine share. So times at sender and receiver
//! are comparable.
//!
//! Bytes are counted at the receiver, after reads of at most [`READ_MAX`] bytes with a timestamp each.
//! Counting at the sender, or in large reads, makes intervals at low rates jump. Payload is neither generated
//! nor read: senders write one buffer of zeroes repeatedly, and receivers discard in the kernel
//! (`MSG_TRUNC`).
//!
//! A flow is identified by its four-tuple. The connecting end binds its local port, so the listening end can
//! identify flows without any byte in the stream. So `bytes` is exactly the payload on the wire.
//!
//! Every wait for a peer is limited: [`Spec::stop_ns`] ends everything. Errors are reported per flow.

mod alarm;
mod bins;
mod clock;
mod datagrams;
mod dues;
mod engine;
mod flow;
mod intake;
mod probe;
mod protocol;
mod quantile;
#[cfg(feature = "quic")]
mod quic;
#[cfg(not(feature = "quic"))]
#[path = "quic/absent.rs"]
mod quic;
mod report;
mod sender;
mod socket;
mod spec;
mod sys;
mod talk;

pub use bins::Bins;
pub use clock::monotonic;
pub use engine::Generator;
pub use probe::{ProbeSink, ProbeSource};
pub use protocol::{serve, Control, GO, STOP};
pub use quantile::Quantiles;
pub use report::{DatagramReport, Exchanges, FlowReport, Gap, ProbeReport, Received, Report, Sent, Series};
pub use socket::READ_MAX;
pub use spec::{Amount, DatagramSpec, FlowSpec, OnOff, Play, ProbeSpec, QuicSpec, Role, Spec};
pub use sys::tcp_info;
