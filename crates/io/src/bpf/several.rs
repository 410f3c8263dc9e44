//! Several engines behind one pair of programs: a ring for each, and which addresses are whose.

use super::abi::HomeKey;
use super::{failed, map, Segments};
use crate::sys::pod::bytes_of;
use libbpf_rs::libbpf_sys::{bpf_map_create_opts, size_t};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, Object};
use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A prefix of addresses on the LAN's side, and the engine that has their flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Home {
    /// The first address; IPv4 as `::ffff:a.b.c.d`.
    pub address: [u8; 16],
    /// Leading bits that all addresses share, at most 128: of IPv4 96 more than its prefix has.
    pub bits: u8,
    /// The engine's number.
    pub engine: u32,
}

impl Home {
    fn key(&self) -> HomeKey {
        HomeKey { bits: self.bits.into(), address: self.address }
    }
}

/// The list in the kernel of which engine has the flows of an address: the longest prefix counts, and what is
/// in none is the first engine's.
#[derive(Debug)]
pub struct Homes(MapHandle);

impl Homes {
    pub(super) fn of(list: &MapHandle) -> io::Result<Homes> {
        MapHandle::try_from(list).map(Homes).map_err(|e| failed("homes", &e))
    }

    /// The list says this from now on. No address is without its engine meanwhile. On an error a part of it
    /// may have been done.
    pub fn replace(&self, homes: &[Home]) -> io::Result<()> {
        let refused = |e: libbpf_rs::Error| failed("cannot write which engine has an address", &e);
        let mut gone: HashSet<Vec<u8>> = self.0.keys().collect();
        for home in homes {
            let key = home.key();
            gone.remove(bytes_of(&key));
            self.0.update(bytes_of(&key), bytes_of(&home.engine), MapFlags::ANY).map_err(refused)?;
        }
        gone.iter().try_for_each(|key| self.0.delete(key).map_err(refused))
    }
}

/// Ring of an engine.
#[derive(Debug)]
pub(super) struct Ring {
    fd: OwnedFd,
    /// Bytes.
    size: usize,
}

impl Ring {
    /// Maps it, for the one thread that consumes it.
    pub fn segments(&self) -> io::Result<Segments> {
        Segments::map(self.fd.as_fd(), self.size)
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The rings of this many engines, of this many `bytes` each: `others` if there are some.
pub(super) fn rings(
    object: &Object,
    engines: u32,
    bytes: u32,
    others: &[BorrowedFd<'_>],
) -> io::Result<Vec<Ring>> {
    let ring = |fd: BorrowedFd<'_>| Ok(Ring { fd: fd.try_clone_to_owned()?, size: bytes as usize });
    if engines == 1 {
        return Ok(vec![ring(map(object, "ring")?.as_fd())?]);
    }
    if !others.is_empty() {
        return others.iter().copied().map(ring).collect();
    }
    let all = map(object, "rings")?;
    let plain = bpf_map_create_opts { sz: size_of::<bpf_map_create_opts>() as size_t, ..Default::default() };
    let new = |number: u32| {
        let made = MapHandle::create(MapType::RingBuf, Some("ring"), 0, 0, bytes, &plain);
        let made = made.map_err(|e| failed("cannot make a ring", &e))?;
        let put = all.update(bytes_of(&number), bytes_of(&made.as_fd().as_raw_fd()), MapFlags::ANY);
        put.map_err(|e| failed("cannot put a ring in its place", &e))?;
        ring(made.as_fd())
    };
    (0..engines).map(new).collect()
}
