//! Giving privileges up.

use rustix::thread::{self, CapabilitySet, CapabilitySets};
use std::io;

/// Capabilities that Weir works with.
pub mod capability {
    pub use rustix::thread::CapabilitySet as Set;
    /// To attach programs, set up interfaces and exceed limits of socket buffers.
    pub const NET_ADMIN: Set = Set::NET_ADMIN;
    /// To open packet sockets.
    pub const NET_RAW: Set = Set::NET_RAW;
    /// To load programs, and before Linux 5.19 to use maps.
    pub const BPF: Set = Set::BPF;
    /// To load programs that follow pointers.
    pub const PERFMON: Set = Set::PERFMON;
    /// For real-time priority.
    pub const SYS_NICE: Set = Set::SYS_NICE;
    /// To lock memory.
    pub const IPC_LOCK: Set = Set::IPC_LOCK;
    /// To take privileges from the bounding set.
    pub const SETPCAP: Set = Set::SETPCAP;
    /// To end an engine, which has another user.
    pub const KILL: Set = Set::KILL;
    /// To give an engine a user and a group of its own.
    pub const SETUID: Set = Set::SETUID;
    /// See [`SETUID`].
    pub const SETGID: Set = Set::SETGID;
    /// Stands for BPF and PERFMON.
    pub const SYS_ADMIN: Set = Set::SYS_ADMIN;

    /// Those that this thread has.
    pub fn have() -> std::io::Result<Set> {
        Ok(rustix::thread::capabilities(None)?.effective)
    }
}

/// Keeps no other capabilities than `keep`, in no set, for this thread and whatever it forks or executes, and never
/// gains any again.
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

/// Takes all but `keep` from the bounding and ambient sets of this thread, if it may.
pub fn bound_to(keep: CapabilitySet) -> io::Result<()> {
    let have = thread::capabilities(None)?;
    if have.effective.contains(CapabilitySet::SETPCAP) {
        for capability in (0..64).map(|bit| CapabilitySet::from_bits_retain(1 << bit)) {
            if !keep.contains(capability) {
                // One that the kernel does not know is not there.
                let _ = thread::remove_capability_from_bounding_set(capability);
            }
        }
    }
    let _ = thread::clear_ambient_capability_set();
    Ok(())
}
