//! Attaching programs to interfaces as links, which end with the processes that hold them.

use crate::sys::check_fd;
use libbpf_rs::libbpf_sys as sys;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Where an XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver.
    Native,
    /// In the stack, after the driver has made a buffer: any driver can.
    Skb,
}

impl XdpMode {
    /// The name used in logs.
    pub const fn name(self) -> &'static str {
        match self {
            XdpMode::Native => "native",
            XdpMode::Skb => "skb",
        }
    }
}

/// An attached program: it comes off when this is dropped, in every process that holds it.
#[derive(Debug)]
pub struct Attached(#[allow(dead_code)] Held);

#[derive(Debug)]
enum Held {
    /// A link: the kernel takes it off when its last descriptor is closed.
    Link(#[allow(dead_code)] OwnedFd),
    /// A classifier of kernels before 6.6: it stays until it is taken off.
    Filter { ifindex: u32, owner: u32 },
}

pub(super) fn xdp(program: BorrowedFd<'_>, ifindex: u32, mode: XdpMode) -> io::Result<Attached> {
    let flags = match mode {
        XdpMode::Native => sys::XDP_FLAGS_DRV_MODE,
        XdpMode::Skb => sys::XDP_FLAGS_SKB_MODE,
    };
    link(program.as_raw_fd(), ifindex, sys::BPF_XDP, flags).map(|fd| Attached(Held::Link(fd)))
}

/// tcx (Linux 6.6), or a classifier where there is none.
pub(super) fn ingress(program: BorrowedFd<'_>, ifindex: u32) -> io::Result<Attached> {
    match link(program.as_raw_fd(), ifindex, sys::BPF_TCX_INGRESS, 0) {
        Ok(fd) => Ok(Attached(Held::Link(fd))),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => filter(program, ifindex),
        Err(error) => Err(error),
    }
}

fn link(program: RawFd, ifindex: u32, kind: sys::bpf_attach_type, flags: u32) -> io::Result<OwnedFd> {
    // SAFETY: zero is a valid value of these options: integers, null pointers and unions of them.
    let mut options: sys::bpf_link_create_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of_val(&options) as _;
    options.flags = flags;
    // SAFETY: `options` is valid for the call; the program is a descriptor that lives.
    let fd = unsafe { sys::bpf_link_create(program, ifindex as i32, kind, &options) };
    // libbpf says `-errno`, and sets `errno` too.
    // SAFETY: a new descriptor if not negative.
    unsafe { check_fd(fd.max(-1)) }
}

/// Weir's place among the classifiers of an interface.
const FILTER_HANDLE: u32 = 1;
const FILTER_PRIORITY: u32 = 0x7765;

fn hook(ifindex: u32) -> sys::bpf_tc_hook {
    // SAFETY: zero is a valid value of this structure of integers.
    let mut hook: sys::bpf_tc_hook = unsafe { std::mem::zeroed() };
    hook.sz = size_of_val(&hook) as _;
    hook.ifindex = ifindex as i32;
    hook.attach_point = sys::BPF_TC_INGRESS;
    hook
}

fn place() -> sys::bpf_tc_opts {
    // SAFETY: as for `hook`.
    let mut options: sys::bpf_tc_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of_val(&options) as _;
    (options.handle, options.priority) = (FILTER_HANDLE, FILTER_PRIORITY);
    options
}

fn filter(program: BorrowedFd<'_>, ifindex: u32) -> io::Result<Attached> {
    let mut hook = hook(ifindex);
    let mut options = place();
    options.prog_fd = program.as_raw_fd();
    options.flags = sys::BPF_TC_F_REPLACE;
    // SAFETY: `hook` is valid for the call. The qdisc may exist already: that is no error here.
    unsafe { sys::bpf_tc_hook_create(&mut hook) };
    // SAFETY: both are valid for the call.
    match unsafe { sys::bpf_tc_attach(&hook, &mut options) } {
        0 => Ok(Attached(Held::Filter { ifindex, owner: std::process::id() })),
        code => Err(io::Error::from_raw_os_error(-code)),
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Held::Filter { ifindex, owner } = *self {
            // A child that ends leaves it to its parent.
            if owner == std::process::id() {
                remove_filter(ifindex);
            }
        }
    }
}

/// Takes off the classifier that an earlier run may have left behind on a kernel before 6.6.
pub(crate) fn remove_filter(ifindex: u32) {
    // SAFETY: both structures are valid for the call. That there is nothing is no error here.
    unsafe { sys::bpf_tc_detach(&hook(ifindex), &place()) };
}
