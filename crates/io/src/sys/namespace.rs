//! Namespaces of one's own.

use rustix::process::{getgid, getuid};
use rustix::thread::{unshare_unsafe, UnshareFlags};
use std::io;

/// Puts this process into a user namespace of its own, in which it is root, and into a network namespace that belongs to it. Whoever
/// the user is outside stays who owns its files. Fails in a process with more than one thread, and where the system
/// does not let users do this.
pub fn become_root() -> io::Result<()> {
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    // SAFETY: file descriptors stay shared with all threads, of which there is one.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET) }?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("0 {gid} 1"))
}

/// Puts the calling thread, and what it starts, into a network namespace of its own.
pub fn new_network() -> io::Result<()> {
    // SAFETY: only the network is another one; file descriptors stay shared with the other threads.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?)
}
