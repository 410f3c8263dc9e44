//! Mirrors of the structures in `abi.h`.

use crate::sys::pod::Pod;
use std::net::IpAddr;

/// A flow as seen on the port it comes in on, everything in network order (`struct flow_key`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct FlowKey {
    /// Source address; IPv4 as `::ffff:a.b.c.d`.
    pub src: [u8; 16],
    /// Destination address.
    pub dst: [u8; 16],
    /// Source port.
    pub sport: [u8; 2],
    /// Destination port.
    pub dport: [u8; 2],
    /// Outer VLAN identifier, 0 for untagged.
    pub outer_vlan: [u8; 2],
    /// Inner VLAN identifier, 0 for none.
    pub inner_vlan: [u8; 2],
}
// SAFETY: arrays of bytes.
unsafe impl Pod for FlowKey {}

impl FlowKey {
    /// The key of frames from `src` to `dst` with these VLAN identifiers.
    pub fn new(src: (IpAddr, u16), dst: (IpAddr, u16), outer_vlan: u16, inner_vlan: u16) -> FlowKey {
        FlowKey {
            src: mapped(src.0),
            dst: mapped(dst.0),
            sport: src.1.to_be_bytes(),
            dport: dst.1.to_be_bytes(),
            outer_vlan: outer_vlan.to_be_bytes(),
            inner_vlan: inner_vlan.to_be_bytes(),
        }
    }
}

fn mapped(addr: IpAddr) -> [u8; 16] {
    match addr {
        IpAddr::V4(a) => a.to_ipv6_mapped().octets(),
        IpAddr::V6(a) => a.octets(),
    }
}

/// What is done with the frames of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Verdict {
    /// They go to the engine.
    Take = 0,
    /// They stay in the kernel.
    Pass = 1,
}

/// `struct flow_verdict`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct FlowVerdict {
    pub verdict: u32,
    pub generation: u32,
}
// SAFETY: integers without padding.
unsafe impl Pod for FlowVerdict {}

/// Offsets in `struct control`.
pub(crate) mod control {
    pub const SIZE: usize = 16;
    pub const BEAT: usize = 0;
    pub const GENERATION: usize = 8;
}

/// `struct steer_config`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct SteerConfig {
    pub stale: u64,
    pub mode: u32,
    pub max_len: u32,
}
// SAFETY: integers without padding.
unsafe impl Pod for SteerConfig {}

/// What a port's steering did with frames (`struct steer_counters`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SteerCounters {
    /// To the engine.
    pub taken: u64,
    /// To the kernel: the flow's verdict.
    pub passed_verdict: u64,
    /// To the kernel: not TCP, a fragment, or cut short.
    pub passed_other: u64,
    /// To the kernel: the engine is away.
    pub passed_stale: u64,
    /// To the kernel: no socket on the queue.
    pub passed_unbound: u64,
    /// To the kernel: longer than a chunk takes.
    pub passed_long: u64,
}
// SAFETY: integers without padding.
unsafe impl Pod for SteerCounters {}

/// `struct stamp`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Stamp {
    pub time: u64,
    pub magic: u64,
}
// SAFETY: integers without padding.
unsafe impl Pod for Stamp {}

pub(crate) const STAMP_MAGIC: u64 = 0x006d_6174_7372_6965;

/// Bytes of a frame that the observer copies at most.
pub const OBSERVED_HEAD: usize = 192;

/// `struct observation`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Observation {
    pub time: u64,
    pub len: u32,
    pub head_len: u32,
    pub head: [u8; OBSERVED_HEAD],
}
// SAFETY: integers without padding.
unsafe impl Pod for Observation {}

/// What an observer did (`struct observe_counters`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ObserveCounters {
    /// Headers copied.
    pub observed: u64,
    /// Not copied: the ring was full.
    pub lost: u64,
}
// SAFETY: integers without padding.
unsafe impl Pod for ObserveCounters {}

const _: () = assert!(size_of::<FlowKey>() == 40 && size_of::<FlowVerdict>() == 8);
const _: () = assert!(size_of::<SteerConfig>() == 16 && size_of::<SteerCounters>() == 48);
const _: () = assert!(size_of::<Stamp>() == 16 && size_of::<Observation>() == 208);
const _: () = assert!(size_of::<ObserveCounters>() == 16);
