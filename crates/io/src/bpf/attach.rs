//! Attaching programs to interfaces as links, which end with the processes that hold them.

use crate::sys::check_fd;
use crate::sys::inherit::{adopt, Heir};
use libbpf_rs::libbpf_sys as sys;
use libbpf_rs::ProgramMut;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// A side of an interface where tc programs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hook {
    /// Frames that leave by the interface.
    Egress,
    /// Frames that have come in.
    Ingress,
}

const HOOKS: [Hook; 2] = [Hook::Ingress, Hook::Egress];

/// Attached programs: they come off when the process that attached them drops this, whatever else holds it,
/// or when the last process that holds it ends. A link stays on an interface that moves to another network
/// namespace.
#[derive(Debug)]
pub struct Attached(Vec<Held>);

impl Attached {
    /// Returns whether these are links, which end with the processes that hold them. Classifiers (before
    /// Linux 6.6) outlive them: [`remove_filters`].
    pub fn ends_with_processes(&self) -> bool {
        self.0.iter().all(|held| matches!(held, Held::Link { .. }))
    }

    /// Returns whether all of them are still on their interface: anyone with the privilege for it may detach
    /// a link, or remove a classifier with its qdisc.
    pub fn is_on(&self) -> bool {
        self.0.iter().all(|held| match held {
            Held::Link { fd, .. } => is_linked(fd),
            Held::Filter { ifindex, hook, order, number, .. } => {
                filter_at(*ifindex, *hook, *order) == Some(number.load(Ordering::Relaxed))
            }
        })
    }

    /// Nothing.
    #[cfg(test)]
    pub(crate) fn none() -> Attached {
        Attached(Vec::new())
    }

    /// Hands them over to the program that this process is about to execute.
    pub fn leave(&self, heir: &mut Heir) -> Vec<LeftLink> {
        let leave = |held: &Held| match held {
            Held::Link { program, fd, .. } => {
                LeftLink { program: program.clone(), fd: Some(heir.gets(fd)), filter: None }
            }
            Held::Filter { program, ifindex, hook, order, .. } => {
                LeftLink { program: program.clone(), fd: None, filter: Some((*ifindex, *hook, *order)) }
            }
        };
        self.0.iter().map(leave).collect()
    }

    /// Takes over programs that were attached before this process executed its present program.
    pub fn adopt(left: &[LeftLink]) -> io::Result<Attached> {
        let owner = std::process::id();
        let take = |left: &LeftLink| {
            let program = left.program.clone();
            match (left.fd, left.filter) {
                (Some(fd), _) => Ok(Held::Link { program, fd: adopt(fd)?, owner }),
                (None, Some((ifindex, hook, order))) => {
                    let number = filter_at(ifindex, hook, order).unwrap_or(0).into();
                    Ok(Held::Filter { program, ifindex, hook, order, number, owner })
                }
                (None, None) => Err(io::ErrorKind::InvalidData.into()),
            }
        };
        left.iter().map(take).collect::<io::Result<_>>().map(Attached)
    }

    /// Replaces each program by the one of the same name, without a moment in which there is none.
    pub(crate) fn exchange<'a>(&self, named: impl Fn(&str) -> Option<ProgramMut<'a>>) -> io::Result<()> {
        for held in &self.0 {
            let (Held::Link { program, .. } | Held::Filter { program, .. }) = held;
            let next =
                named(program).ok_or_else(|| io::Error::other(format!("there is no program {program}")))?;
            match held {
                // SAFETY: both descriptors live, and no options are given.
                Held::Link { fd, .. } => match unsafe {
                    sys::bpf_link_update(fd.as_raw_fd(), next.as_fd().as_raw_fd(), std::ptr::null())
                } {
                    0 => {}
                    // Somebody has detached it: it is attached again soon.
                    code if code == -libc::ENOLINK => {}
                    code => return Err(io::Error::from_raw_os_error(-code)),
                },
                Held::Filter { ifindex, hook, order, number, .. } => {
                    number.store(place_filter(next.as_fd(), *ifindex, *hook, *order)?, Ordering::Relaxed)
                }
            }
        }
        Ok(())
    }

    /// Both as one.
    pub(crate) fn and(mut self, mut other: Attached) -> Attached {
        self.0.append(&mut other.0);
        self
    }
}

#[derive(Debug)]
enum Held {
    /// A link: the kernel takes it off when its last descriptor is closed.
    Link { program: String, fd: OwnedFd, owner: u32 },
    /// A classifier of kernels before 6.6: it stays until it is taken off. It is known by the number of its
    /// program: a supervisor may not ask for the program's name.
    Filter { program: String, ifindex: u32, hook: Hook, order: Order, number: AtomicU32, owner: u32 },
}

/// A program on an interface, handed over to the next program of this process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftLink {
    /// Name of the BPF program.
    program: String,
    /// Descriptor of the link.
    fd: Option<RawFd>,
    /// Place of the classifier.
    filter: Option<(u32, Hook, Order)>,
}

impl LeftLink {
    /// Name of the BPF program.
    pub fn program(&self) -> &str {
        &self.program
    }
}

/// tcx (Linux 6.6), or a classifier where there is none. A program sees frames before those that are attached
/// already: one of them may end the chain.
pub(super) fn tc(program: &ProgramMut<'_>, ifindex: u32, hook: Hook, order: Order) -> io::Result<Attached> {
    match link_only(program, ifindex, hook) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => filter(program, ifindex, hook, order),
        result => result,
    }
}

/// tcx; an error before Linux 6.6.
pub(super) fn link_only(program: &ProgramMut<'_>, ifindex: u32, hook: Hook) -> io::Result<Attached> {
    linked(program, ifindex, hook, sys::BPF_F_BEFORE)
}

fn linked(program: &ProgramMut<'_>, ifindex: u32, hook: Hook, flags: u32) -> io::Result<Attached> {
    let fd = link(program.as_fd().as_raw_fd(), ifindex, kind(hook), flags)?;
    Ok(Attached(vec![Held::Link { program: name(program), fd, owner: std::process::id() }]))
}

fn name(program: &ProgramMut<'_>) -> String {
    program.name().to_string_lossy().into_owned()
}

/// Attaches a program behind those that are there.
#[cfg(test)]
pub(super) fn last(program: &ProgramMut<'_>, ifindex: u32, hook: Hook) -> io::Result<Attached> {
    linked(program, ifindex, hook, 0)
}

const fn kind(hook: Hook) -> sys::bpf_attach_type {
    match hook {
        Hook::Egress => sys::BPF_TCX_EGRESS,
        Hook::Ingress => sys::BPF_TCX_INGRESS,
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

/// Weir's places among the classifiers of an interface, one for each [`Order`].
const FILTER_HANDLE: u32 = 1;
const FILTER_PRIORITY: u32 = 0x7765;

/// Order in which two programs of ours on one hook see a frame. Of links, the one made last sees it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Order {
    /// The first, or the only one.
    First = 0,
    /// Behind the first, which lets frames pass to it.
    Second = 1,
}

const ORDERS: [Order; 2] = [Order::First, Order::Second];
/// Beginnings of the names of its programs.
const FILTER_NAMES: [&[u8]; 2] = [b"acks_", b"all_"];

fn point(ifindex: u32, hook: Hook) -> sys::bpf_tc_hook {
    // SAFETY: zero is a valid value of this structure of integers.
    let mut point: sys::bpf_tc_hook = unsafe { std::mem::zeroed() };
    point.sz = size_of_val(&point) as _;
    point.ifindex = ifindex as i32;
    point.attach_point = match hook {
        Hook::Egress => sys::BPF_TC_EGRESS,
        Hook::Ingress => sys::BPF_TC_INGRESS,
    };
    point
}

fn place(order: Order) -> sys::bpf_tc_opts {
    // SAFETY: as for `point`.
    let mut options: sys::bpf_tc_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of_val(&options) as _;
    (options.handle, options.priority) = (FILTER_HANDLE, FILTER_PRIORITY + order as u32);
    options
}

/// Calls this in silence: libbpf warns of a qdisc that exists already, and of one or a chain that is missing.
fn in_silence<T>(call: impl FnOnce() -> T) -> T {
    let before = libbpf_rs::set_print(None);
    let result = call();
    libbpf_rs::set_print(before);
    result
}

/// Attaches a classifier. The `clsact` qdisc that it needs stays when the classifier goes: another
/// program may have come to use it.
pub(super) fn filter(
    program: &ProgramMut<'_>,
    ifindex: u32,
    hook: Hook,
    order: Order,
) -> io::Result<Attached> {
    let number = place_filter(program.as_fd(), ifindex, hook, order)?.into();
    Ok(Attached(vec![Held::Filter {
        program: name(program),
        ifindex,
        hook,
        order,
        number,
        owner: std::process::id(),
    }]))
}

/// Puts a classifier at its place, instead of the one that is there. Returns the number of its program.
fn place_filter(program: BorrowedFd<'_>, ifindex: u32, hook: Hook, order: Order) -> io::Result<u32> {
    let mut point = point(ifindex, hook);
    let mut options = place(order);
    options.prog_fd = program.as_raw_fd();
    options.flags = sys::BPF_TC_F_REPLACE;
    // SAFETY: `point` is valid for the call. The qdisc may exist already: that is no error here.
    in_silence(|| unsafe { sys::bpf_tc_hook_create(&mut point) });
    // SAFETY: both are valid for the call.
    match unsafe { sys::bpf_tc_attach(&point, &mut options) } {
        0 => Ok(options.prog_id),
        code => Err(io::Error::from_raw_os_error(-code)),
    }
}

/// Returns whether a link is on an interface. True if the kernel does not tell.
fn is_linked(link: &OwnedFd) -> bool {
    // SAFETY: zero is a valid value of this structure of integers, null pointers and unions of them.
    let mut info: sys::bpf_link_info = unsafe { std::mem::zeroed() };
    let mut len = size_of_val(&info) as u32;
    // SAFETY: `info` is valid for writes of `len` bytes, and asks for nothing that it points to.
    let told = unsafe { sys::bpf_link_get_info_by_fd(link.as_raw_fd(), &mut info, &mut len) };
    // SAFETY: the kernel has written the union's part for a link of this kind, which is integers.
    told != 0 || unsafe { info.__bindgen_anon_1.tcx.ifindex } != 0
}

impl Drop for Held {
    fn drop(&mut self) {
        match *self {
            // A child that ends leaves it to its parent.
            Held::Link { owner, .. } | Held::Filter { owner, .. } if owner != std::process::id() => {}
            Held::Link { ref fd, .. } => {
                // SAFETY: a descriptor that lives. That the interface is gone is no error here.
                let _ = unsafe { sys::bpf_link_detach(fd.as_raw_fd()) };
            }
            Held::Filter { ifindex, hook, order, .. } => {
                detach(ifindex, hook, order);
            }
        }
    }
}

fn detach(ifindex: u32, hook: Hook, order: Order) -> bool {
    // SAFETY: both structures are valid for the call. That there is nothing is no error here.
    in_silence(|| unsafe { sys::bpf_tc_detach(&point(ifindex, hook), &place(order)) == 0 })
}

/// Takes off the classifiers that an earlier run may have left behind on a kernel before 6.6, and says
/// how many there were.
pub fn remove_filters(ifindex: u32) -> usize {
    let places = HOOKS.into_iter().flat_map(|hook| ORDERS.map(|order| (hook, order)));
    places.filter(|&(hook, order)| is_ours(ifindex, hook, order) && detach(ifindex, hook, order)).count()
}

/// Number of the program at this place of ours.
fn filter_at(ifindex: u32, hook: Hook, order: Order) -> Option<u32> {
    let mut options = place(order);
    // SAFETY: both structures are valid for the call.
    let told = in_silence(|| unsafe { sys::bpf_tc_query(&point(ifindex, hook), &mut options) });
    (told == 0).then_some(options.prog_id)
}

/// Returns whether a program of ours is at this place of ours.
fn is_ours(ifindex: u32, hook: Hook, order: Order) -> bool {
    let number = filter_at(ifindex, hook, order);
    number.and_then(name_of).is_some_and(|name| is_our_name(&name))
}

/// Returns the kernel's name of a program. `None` if it is gone, or asking is not permitted.
fn name_of(program: u32) -> Option<Vec<u8>> {
    // SAFETY: the result is a new descriptor if not negative.
    let program = unsafe { check_fd(sys::bpf_prog_get_fd_by_id(program).max(-1)) }.ok()?;
    // SAFETY: zero is a valid value of this structure of integers.
    let mut info: sys::bpf_prog_info = unsafe { std::mem::zeroed() };
    let mut len = size_of_val(&info) as u32;
    // SAFETY: `info` is valid for writes of `len` bytes, and asks for nothing that it points to.
    let told = unsafe { sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &mut info, &mut len) };
    let name = info.name.iter().map(|&c| c as u8).take_while(|&c| c != 0);
    (told == 0).then(|| name.collect())
}

fn is_our_name(name: &[u8]) -> bool {
    FILTER_NAMES.iter().any(|ours| name.starts_with(ours))
}

/// Numbers of the programs on a tcx hook of an interface, in the order in which they see a frame. None before
/// Linux 6.6.
fn numbers(ifindex: u32, hook: Hook) -> Vec<u32> {
    let mut numbers = [0u32; 64];
    let mut options = sys::bpf_prog_query_opts { prog_ids: numbers.as_mut_ptr(), ..Default::default() };
    options.sz = size_of_val(&options) as _;
    options.__bindgen_anon_1.count = numbers.len() as u32;
    // SAFETY: the options are valid for the call, and `prog_ids` for as many numbers as they say.
    let told = unsafe { sys::bpf_prog_query_opts(ifindex as i32, kind(hook), &mut options) };
    // SAFETY: both fields of the union are the same integer.
    let count = unsafe { options.__bindgen_anon_1.count } as usize;
    let count = if told == 0 { count.min(numbers.len()) } else { 0 };
    numbers[..count].to_vec()
}

/// Programs of others on the tcx hooks of an interface, in the order in which they see a frame: hook, number
/// and name. None before Linux 6.6.
pub fn programs_of_others(ifindex: u32) -> Vec<(Hook, u32, String)> {
    let mut all = Vec::new();
    for hook in HOOKS {
        for number in numbers(ifindex, hook) {
            let name = name_of(number).unwrap_or_default();
            if !is_our_name(&name) {
                all.push((hook, number, String::from_utf8_lossy(&name).into_owned()));
            }
        }
    }
    all
}

/// Numbers of our programs on an interface, whichever process has put them there.
pub(super) fn programs_of_ours(ifindex: u32) -> Vec<u32> {
    let linked = HOOKS.into_iter().flat_map(|hook| numbers(ifindex, hook));
    let filters = HOOKS.into_iter().filter(|_| crate::sys::process::kernel() < Some((6, 6)));
    let filters = filters.flat_map(|hook| ORDERS.map(|order| filter_at(ifindex, hook, order)));
    let all = linked.chain(filters.flatten());
    all.filter(|number| name_of(*number).is_some_and(|name| is_our_name(&name))).collect()
}
