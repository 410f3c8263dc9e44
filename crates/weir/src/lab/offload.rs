//! Switching off the offloads of a virtual interface with the oldest `SIOCETHTOOL` commands, which
//! each take one number.

use super::namespace::Namespace;
use std::io;
use std::os::fd::AsRawFd;

/// Offloads by the command of `<linux/ethtool.h>` that sets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Offload {
    /// Transmit checksums (and with them segmentation offload).
    TxChecksum = 0x17,
    /// TCP segmentation offload.
    Tso = 0x1f,
    /// Generic segmentation offload.
    Gso = 0x24,
    /// Generic receive offload.
    Gro = 0x2c,
}

impl Offload {
    /// Everything that makes frames longer than the wire's or leaves their checksums open.
    pub const ALL: [Offload; 4] = [Offload::TxChecksum, Offload::Tso, Offload::Gso, Offload::Gro];
}

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Switches `offloads` of `interface` in `namespace` off.
pub fn switch_off(namespace: &Namespace, interface: &str, offloads: &[Offload]) -> Result<(), String> {
    for &offload in offloads {
        namespace
            .inside(|| set(interface, offload, 0))
            .and_then(|done| done)
            .map_err(|e| format!("{}: {interface}: {offload:?} off: {e}", namespace.name()))?;
    }
    Ok(())
}

fn set(interface: &str, offload: Offload, data: u32) -> io::Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    let mut value = Value { command: offload as u32, data };
    // SAFETY: all-zero bytes are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: `request` names an interface and points at a `struct ethtool_value`, which is what
    // these commands read and write; both live through the call.
    let rc = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
