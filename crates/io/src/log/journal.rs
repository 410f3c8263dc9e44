//! Entries of journald by its native protocol: a datagram of fields, from a line of JSON.

use serde_json::{Map, Value};
use std::fmt::Write;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

/// Socket of journald.
pub const SOCKET: &str = "/run/systemd/journal/socket";

/// A journal, which may be away, and come back.
#[derive(Debug)]
pub struct Journal {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Journal {
    /// Returns the journal whose socket has this path.
    pub fn at(path: &str) -> io::Result<Journal> {
        Ok(Journal { socket: UnixDatagram::unbound()?, path: path.into() })
    }

    /// Sends a line; false if it is no JSON, or if the journal is away.
    pub fn takes(&self, line: &str) -> bool {
        let entry = serde_json::from_str(line).ok().map(|values| entry(&values));
        entry.is_some_and(|entry| self.socket.send_to(entry.as_bytes(), &self.path).is_ok())
    }
}

/// Severity of syslog.
fn priority(level: &str) -> u8 {
    match level {
        "ERROR" => 3,
        "WARN" => 4,
        "INFO" => 6,
        _ => 7,
    }
}

/// Returns the fields of a line. Values have no control characters, so none is a line of its own.
fn entry(values: &Map<String, Value>) -> String {
    let text = |key: &str| values.get(key).and_then(Value::as_str).unwrap_or_default();
    let (message, priority) = (text("message"), priority(text("level")));
    let mut entry = format!("MESSAGE={message}\nPRIORITY={priority}\nSYSLOG_IDENTIFIER=weir\n");
    let others = values.iter().filter(|(key, _)| !matches!(key.as_str(), "message" | "level" | "time"));
    for (key, value) in others {
        let name = key.to_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        // A string takes all that is written to it.
        let _ = writeln!(entry, "WEIR_{name}={}", value.as_str().unwrap_or_default());
    }
    entry
}
