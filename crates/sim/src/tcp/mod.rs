//! A simulated TCP endpoint: real headers, payload that is only a length.
//!
//! - `config`: what can be set for a connection;
//! - `segment`: headers to bytes and back;
//! - `rtt`: RTT estimation and the retransmission time-out (RFC 6298);
//! - `scoreboard`: what is in flight, SACKed and lost (RFC 2018, 6675, 8985);
//! - `reassembly`: what has been received out of order (RFC 2018, 2883);
//! - `connection`: the endpoint that composes them.
//!
//! Stream offsets are 64-bit and never wrap; sequence numbers exist on the wire only.

pub mod config;
pub mod reassembly;
pub mod rtt;
pub mod scoreboard;
pub mod segment;

pub use config::{Recovery, TcpConfig};
