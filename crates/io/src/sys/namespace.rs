//! Namespaces for this process or thread.

use rustix::process::{getgid, getuid};
use rustix::thread::{unshare_unsafe, UnshareFlags};
use std::io;

/// Puts this process into its own user namespace, in which it is root, and into a network namespace that
/// belongs to it. Outside, its files stay those of the same user.
///
/// # Errors
/// Fails in a process with more than one thread, and where the system does not let users do this.
pub fn become_root() -> io::Result<()> {
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    // SAFETY: file descriptors stay shared with all threads, and there is only one.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET) }?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("0 {gid} 1"))
}

/// Puts the calling thread, and everything that it starts, into its own network namespace.
pub fn new_network() -> io::Result<()> {
    // SAFETY: only the network changes; file descriptors stay shared with the other threads.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?)
}
