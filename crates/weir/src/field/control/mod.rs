//! Changing and asking a gateway while it runs.
//!
//! ```text
//! weir reload, weir ctl ──socket──▶ supervisor: Desk ──letters──▶ engine's thread: Remote ──slots──▶ engine
//! SIGHUP ─────────────────────────▶
//! ```
//!
//! The supervisor alone reads files. It parses them, compares what they say with what runs, and refuses what is wrong or cannot
//! change. Then the texts cross over to the engine's process, where a thread beside the engine parses them again, by the
//! same code, and compiles the rules; the engine takes the result between two batches, and gives the thread back
//! what it has no use for. So the engine never waits, for a file or for a client. The next engine is started with what ran last.

mod answer;
mod desk;
mod difference;
mod letter;
mod remote;
mod slot;
mod version;

pub use answer::{Answer, Owner};
pub(super) use desk::Desk;
pub(super) use remote::{Remote, Service};
pub use version::Version;
pub(super) use version::{Part, Running};

#[cfg(test)]
mod tests;
