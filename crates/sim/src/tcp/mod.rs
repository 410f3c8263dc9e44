//! Simulated TCP endpoint: real headers, and payload that is only a length.
//!
//! - `config`: settings of a connection;
//! - `segment`: headers to bytes and back;
//! - `connection`: opening and closing, and the two halves between:
//!   - `sender`: choice of the next segment, and finding and repairing losses;
//!   - `receiver` (times of ACKs) over `reassembly` (data out of order).
//!
//! Stream offsets are 64-bit and never wrap; sequence numbers exist on the wire only.

pub mod config;
pub mod connection;
mod reassembly;
mod receiver;
pub mod segment;
mod sender;

pub use config::{MinRto, Recovery, TcpConfig};
pub use connection::{Connection, Delivered, Exit, Failure, State};
pub use sender::Sender;
