//! Output for other programs: files, each whole or not at all, and the line that a command is ready.

#[cfg(feature = "linux")]
mod linux;
#[cfg(not(feature = "linux"))]
mod portable;

#[cfg(feature = "linux")]
pub use linux::Target;
#[cfg(not(feature = "linux"))]
pub use portable::Target;

/// Writes a line to standard error for the parent process. Errors are ignored.
pub fn say(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Line on standard output by which a process tells its parent that it may be used. A gateway or an emulator
/// writes it once it takes frames, a traffic process once all its listening sockets are open.
pub const READY: &str = "ready";
