//! State of the congestion controls on this host, and the rights of this process there.

use super::{NAMES, PINNED};
use crate::sys::process::capabilities;
use std::path::Path;
use std::{fs, io};

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// Returns whether they are loaded.
pub fn is_loaded() -> bool {
    Path::new(PINNED).is_dir()
}

/// Names that sockets can choose, whichever program registered them.
pub(super) fn registered() -> Vec<&'static str> {
    let available = fs::read_to_string(AVAILABLE).unwrap_or_default();
    NAMES.into_iter().filter(|name| available.split_whitespace().any(|word| word == *name)).collect()
}

/// Name that is the default of this network namespace. The kernel keeps a default that is unloaded.
pub fn default_of_host() -> Option<&'static str> {
    let default = fs::read_to_string(DEFAULT).unwrap_or_default();
    NAMES.into_iter().find(|name| default.trim() == *name)
}

/// Checks for the rights of root, which loading programs and opening pins need.
pub(super) fn permitted() -> io::Result<()> {
    const NET_ADMIN: u64 = 1 << 12;
    const SYS_ADMIN: u64 = 1 << 21;
    const BPF: u64 = 1 << 39;
    let held = capabilities().unwrap_or(!0);
    if held & NET_ADMIN != 0 && held & (SYS_ADMIN | BPF) != 0 {
        return Ok(());
    }
    let message = "this needs root, or CAP_BPF and CAP_NET_ADMIN (try sudo)";
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}
