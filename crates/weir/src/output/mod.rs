//! Output for other programs: files, each whole or not at all, and the word that a command is ready.

#[cfg(feature = "linux")]
mod linux;
#[cfg(not(feature = "linux"))]
mod portable;

#[cfg(feature = "linux")]
pub use linux::Target;
#[cfg(not(feature = "linux"))]
pub use portable::Target;

/// Says something to whoever started the command: a line on standard error. If nobody is there, nothing is lost.
pub fn say(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Said on standard output, as a line, by a process that others start when they may use it: a gateway or an emulator once
/// it takes frames, traffic once all that listens is open.
pub const READY: &str = "ready";
