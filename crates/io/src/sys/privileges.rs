//! Privileges that a process has and gives up.

use rustix::thread::{self, CapabilitySet, CapabilitySets};
use std::io;

/// Capabilities that Weir uses.
pub mod capability {
    pub use rustix::thread::CapabilitySet as Set;
    /// Needed to attach programs, set up interfaces and exceed limits of socket buffers.
    pub const NET_ADMIN: Set = Set::NET_ADMIN;
    /// Needed to open packet sockets.
    pub const NET_RAW: Set = Set::NET_RAW;
    /// Needed to load programs, and before Linux 5.19 to use maps.
    pub const BPF: Set = Set::BPF;
    /// Needed to load programs that follow pointers.
    pub const PERFMON: Set = Set::PERFMON;
    /// Needed for real-time priority.
    pub const SYS_NICE: Set = Set::SYS_NICE;
    /// Needed to lock memory.
    pub const IPC_LOCK: Set = Set::IPC_LOCK;
    /// Needed to remove privileges from the bounding set.
    pub const SETPCAP: Set = Set::SETPCAP;
    /// Needed to end an engine, which has another user.
    pub const KILL: Set = Set::KILL;
    /// Needed to give an engine its own user and group.
    pub const SETUID: Set = Set::SETUID;
    /// Needed with [`SETUID`].
    pub const SETGID: Set = Set::SETGID;
    /// Substitute for BPF and PERFMON.
    pub const SYS_ADMIN: Set = Set::SYS_ADMIN;

    /// Capabilities of this thread.
    pub fn have() -> std::io::Result<Set> {
        Ok(rustix::thread::capabilities(None)?.effective)
    }
}

/// Keeps only the capabilities `keep`, in all sets, for this thread and all that it forks or executes. No
/// other is ever gained again.
pub fn keep_only(keep: CapabilitySet) -> io::Result<()> {
    // The bounding set first: changing it needs CAP_SETPCAP.
    bound_to(keep)?;
    let have = thread::capabilities(None)?;
    let keep = keep.intersection(have.permitted);
    let sets = CapabilitySets { effective: keep, permitted: keep, inheritable: CapabilitySet::empty() };
    thread::set_capabilities(None, sets)?;
    thread::set_no_new_privs(true)?;
    Ok(())
}

/// Removes all but `keep` from the bounding and ambient sets of this thread, if it may.
pub fn bound_to(keep: CapabilitySet) -> io::Result<()> {
    let have = thread::capabilities(None)?;
    if have.effective.contains(CapabilitySet::SETPCAP) {
        for capability in (0..64).map(|bit| CapabilitySet::from_bits_retain(1 << bit)) {
            if !keep.contains(capability) {
                // A capability that the kernel does not know needs no removal.
                let _ = thread::remove_capability_from_bounding_set(capability);
            }
        }
    }
    let _ = thread::clear_ambient_capability_set();
    Ok(())
}
