//! A simulated TCP endpoint: real headers, payload that is only a length.
//!
//! - `config`: what can be set for a connection;
//! - `segment`: headers to bytes and back;
//! - `connection`: opening and closing, and the two halves between:
//!   - `sender`: what leaves when, and how losses are found and repaired;
//!   - `receiver` (when to acknowledge) over `reassembly` (what came out of order).
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
