//! Steering of everything: the programs of `all.bpf.c`.

use super::abi::AllConfig;
use super::acks::Acks;
use super::attach::{self, Attached, Hook, Order};
use super::hooks::Hooks;
use super::maps::{LeftMaps, Maps, Secret};
use super::metadata::{Arriving, Leaving};
use super::{failed, features, map, named, open, sum, Aligned, AllCounters};
use crate::sys::inherit::Heir;
use crate::sys::pod::bytes_of;
use libbpf_rs::{MapHandle, Object, ProgramMut};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use weir_core::time::Duration;

static ALL: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/all.bpf.o")));

/// Maps that programs of both kinds have in common (`own.h`, `metadata.h`).
const SHARED: [&str; 3] = ["hooks", "senders", "leaving"];

/// The loaded programs and their maps.
#[derive(Debug)]
pub struct All {
    object: Object,
    /// Heartbeat and sockets.
    pub hooks: Hooks,
    counters: MapHandle,
    order: Order,
}

impl All {
    /// Loads the programs. Without a heartbeat for `stale`, frames pass. `ethernet`: the interface has
    /// Ethernet headers.
    pub fn load(stale: Duration, ethernet: bool) -> io::Result<All> {
        All::load_behind(None, [false; 2], stale, ethernet, None)
    }

    /// As [`All::load`], for interfaces on which those that take `acks` are attached before, if there are
    /// any: both have one heartbeat and know the same sockets. Of frames that go out, and of those that come
    /// in, they redirect only those of flows that have `spilled`, or all. They are loaded on the maps of
    /// earlier programs, if there are any.
    pub fn load_behind(
        acks: Option<&Acks>,
        spilled: [bool; 2],
        stale: Duration,
        ethernet: bool,
        maps: Option<&Maps>,
    ) -> io::Result<All> {
        features::require()?;
        let (ethernet, behind) = (ethernet.into(), acks.is_some().into());
        let [spilled_out, spilled_in] = spilled.map(u8::from);
        let stale = stale.as_nanos();
        let config = AllConfig { stale, ethernet, behind, spilled_out, spilled_in, pad: [0; 4] };
        let opened = || {
            let mut open = open("all", &ALL.0)?;
            for mut map in open.maps_mut() {
                if map.name().to_string_lossy().ends_with(".rodata") {
                    map.set_initial_value(bytes_of(&config)).map_err(|e| failed("knobs", &e))?;
                }
                let name = map.name().to_string_lossy().into_owned();
                let own = maps.filter(|_| acks.is_none() || !SHARED.contains(&name.as_str()));
                own.map_or(Ok(()), |maps| maps.lend(&mut map, &name))?;
                if let Some(acks) = acks.filter(|_| SHARED.contains(&name.as_str())) {
                    let theirs = self::map(acks.object(), &name)?;
                    map.reuse_fd(theirs.as_fd()).map_err(|e| failed(&name, &e))?;
                }
            }
            Ok(open)
        };
        let object = super::load(opened, |e| features::refused("the steering of all frames", e))?;
        let order = if acks.is_some() { Order::Second } else { Order::First };
        Ok(All { hooks: Hooks::of(&object, 0)?, counters: map(&object, "counters")?, object, order })
    }

    /// Hands the maps over to the program that this process is about to execute.
    pub fn leave(&self, heir: &mut Heir) -> LeftMaps {
        LeftMaps::of(&self.object, &[] as &[OwnedFd], Secret::default(), heir)
    }

    /// Returns the program of this name, if there is one.
    pub(crate) fn find(&self, name: &str) -> Option<ProgramMut<'_>> {
        self.object.progs_mut().find(|program| program.name() == name)
    }

    fn tc(&self, program: &str, ifindex: u32, hook: Hook) -> io::Result<Attached> {
        attach::tc(&named(&self.object, program), ifindex, hook, self.order)
    }

    /// From now on, frames seen at egress of an interface that [`All::attach`] was called for leave by
    /// interface `egress` instead, and those seen at ingress by `ingress`: the two ends of an
    /// internal pair, so that each arrives at the other end. 0: they pass.
    pub fn redirect(&self, egress: u32, ingress: u32) {
        self.hooks.redirect(egress, ingress);
    }

    /// Attaches the redirecting programs to an interface.
    pub fn attach(&self, ifindex: u32) -> io::Result<Attached> {
        let ingress = self.tc("all_ingress", ifindex, Hook::Ingress)?;
        Ok(ingress.and(self.tc("all_egress", ifindex, Hook::Egress)?))
    }

    /// Attaches the program by which frames come in on the interface numbered `home` that are sent on this
    /// one, which has Ethernet headers.
    pub fn attach_return(&self, ifindex: u32, home: u32) -> io::Result<Attached> {
        let attached = attach::link_only(&named(&self.object, "all_return"), ifindex, Hook::Egress)?;
        self.hooks.lead_home(home);
        Ok(attached)
    }

    /// Drops what comes in on an interface while the engine is alive, after packet sockets have seen it: a
    /// bump in the wire.
    pub fn attach_drop(&self, ifindex: u32) -> io::Result<Attached> {
        self.tc("all_drop", ifindex, Hook::Ingress)
    }

    /// Drops whatever comes in on an interface: an end of the internal pair.
    pub fn attach_sink(&self, ifindex: u32) -> io::Result<Attached> {
        self.tc("all_sink", ifindex, Hook::Ingress)
    }

    /// Metadata of the frames that are redirected.
    pub fn arriving(&self) -> io::Result<Arriving> {
        Arriving::of(&self.object)
    }

    /// Returns the memory for metadata of frames that leave by exit `exit`, 0 or 1.
    pub fn leaving(&self, exit: usize) -> io::Result<Leaving> {
        Leaving::of(&self.object, exit, 2)
    }

    /// Returns the sum of the counters over all processors.
    pub fn counters(&self) -> io::Result<AllCounters> {
        sum(&self.counters)
    }
}
