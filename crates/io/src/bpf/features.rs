//! Features that the programs need of the kernel, asked for rather than guessed from its version.

use super::failed;
use libbpf_rs::libbpf_sys as sys;
use std::ffi::CStr;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Something that this kernel lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Description of the feature.
    pub what: &'static str,
    /// The version that brought it.
    pub since: &'static str,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "this kernel has no {} (since Linux {})", self.what, self.since)
    }
}

const RING: Missing = Missing { what: "BPF ring buffers", since: "5.8" };
const MAPPED: Missing = Missing { what: "memory-mapped BPF arrays", since: "5.5" };
const ATOMICS: Missing = Missing { what: "atomic compare-and-exchange in BPF programs", since: "5.12" };

/// Returns whether a map of this kind can be made. Errors other than "no such thing" are told.
fn can_make(name: &CStr, kind: sys::bpf_map_type, sizes: (u32, u32), flags: u32) -> io::Result<bool> {
    // SAFETY: zero is a valid value of this structure of integers and null pointers.
    let mut options: sys::bpf_map_create_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of_val(&options) as _;
    options.map_flags = flags;
    let entries = if sizes.0 == 0 { 65_536 } else { 1 };
    // SAFETY: name and options are valid for the call.
    let fd = unsafe { sys::bpf_map_create(kind, name.as_ptr(), sizes.0, sizes.1, entries, &options) };
    if fd >= 0 {
        // SAFETY: a new descriptor that nothing else has; closed here.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
        return Ok(true);
    }
    match -fd {
        libc::EINVAL => Ok(false),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Returns the features that the programs need and this kernel lacks. Fails if programs may not be loaded
/// at all.
pub fn missing() -> io::Result<Vec<Missing>> {
    let mut missing = Vec::new();
    if !can_make(c"weir_probe", sys::BPF_MAP_TYPE_RINGBUF, (0, 0), 0)? {
        missing.push(RING);
    }
    if !can_make(c"weir_probe", sys::BPF_MAP_TYPE_ARRAY, (4, 8), sys::BPF_F_MMAPABLE)? {
        missing.push(MAPPED);
    }
    // Programs cannot be probed for single instructions without loading one: the version tells.
    if crate::sys::process::kernel().is_some_and(|version| version < (5, 12)) {
        missing.push(ATOMICS);
    }
    Ok(missing)
}

/// An error that names what is missing, if anything is.
pub(super) fn require() -> io::Result<()> {
    let missing = missing().map_err(|e| {
        let hint = match e.kind() {
            io::ErrorKind::PermissionDenied => " (CAP_BPF and CAP_NET_ADMIN are needed)",
            _ => "",
        };
        io::Error::new(e.kind(), format!("cannot make BPF maps: {e}{hint}"))
    })?;
    match missing.as_slice() {
        [] => Ok(()),
        some => {
            let all: Vec<String> = some.iter().map(Missing::to_string).collect();
            Err(io::Error::new(io::ErrorKind::Unsupported, all.join("; ")))
        }
    }
}

pub(super) fn refused(what: &str, error: &libbpf_rs::Error) -> io::Error {
    failed(&format!("the kernel refuses the programs for {what}"), error)
}
