//! Changing and querying a gateway while it runs.
//!
//! ```text
//! weir reload, weir ctl ──socket──▶ supervisor: Desk ──letters──▶ engine's thread: Remote ──slots──▶ engine
//! SIGHUP ─────────────────────────▶
//! ```
//!
//! Only the supervisor reads files. It parses them, compares them with the running configuration, and refuses
//! errors and changes that cannot be made. Then it sends the texts to the engine's process. There a thread
//! beside the engine parses them again, with the same code, and compiles the rules. The engine takes the
//! result between two batches, and returns what it no longer needs to the thread. So the engine never waits
//! for a file or for a client. The next engine starts with the configuration that ran last.

mod answer;
mod desk;
mod difference;
mod kept;
mod letter;
mod remote;
mod slot;
mod subject;
mod version;

pub use answer::{Answer, Owner};
pub(super) use desk::Desk;
pub(super) use kept::Kept;
pub(super) use remote::{Ask, Remote, Service};
pub(super) use slot::{Late, Slot};
pub use version::Version;
pub(super) use version::{Part, Running};

#[cfg(test)]
mod tests;
