//! Steering of ACKs: the programs of `acks.bpf.c` and their maps.

use super::abi::{AcksConfig, Budget};
use super::attach::{self, Attached, Hook, Order};
use super::features;
use super::hooks::Hooks;
use super::maps::{LeftMaps, Maps, Secret};
use super::metadata::Leaving;
use super::segments::Segments;
use super::several::{self, Homes, Ring};
use super::unlisted::Unlisted;
use super::{failed, map, memory, named, open, sum, AcksCounters, Aligned};
use crate::sys::inherit::Heir;
use crate::sys::mmap::{Mapping, Shared};
use crate::sys::pod::bytes_of;
use libbpf_rs::{MapCore, MapHandle, Object, OpenObject, ProgramMut};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use weir_core::quality::Sight;
use weir_core::steer::{Bound, FlowBound, FlowQueues, Slot, Spill, Tally};
use weir_core::time::Duration;

static ACKS: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/acks.bpf.o")));
static ACKS_OF_SEVERAL: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/acks_of_several.bpf.o")));

/// Prefixes that have another engine than the first, at most.
const HOMES: u32 = 1 << 20;
/// Bits of a generation that count; those above tell engines apart.
const GENERATIONS: u32 = 24;

/// Knobs of [`Acks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcksOptions {
    /// Engines, 1 to 255.
    pub engines: u32,
    /// Controlled flows of each engine at most: as many slots are made.
    pub flows: u32,
    /// Flows that are remembered to pass.
    pub passing: u32,
    /// Tallies of what ACKs cannot slow: for each engine as many as it has classes, and those that may come.
    pub tallies: u32,
    /// Bytes of each engine's ring: a power of two, at least a page.
    pub ring: u32,
    /// Without a heartbeat for so long, segments pass.
    pub stale: Duration,
    /// Openings and endings of flows are still shown until there was none for so long: an engine that was
    /// only delayed, or the next one, cannot learn later what they say.
    pub absent: Duration,
    /// The interface has Ethernet headers.
    pub ethernet: bool,
    /// ACKs of shaped flows come in on the interface: data goes out.
    pub shape_in: bool,
    /// ACKs of shaped flows go out by the interface: data comes in.
    pub shape_out: bool,
    /// SYN-ACKs that come in are taken: their window may have to be sized.
    pub size_in: bool,
    /// SYN-ACKs that go out are taken.
    pub size_out: bool,
    /// Programs behind these redirect what spills.
    pub spills: bool,
    /// Everything passes as it came: what would be done is counted, and shown to the engine.
    pub observe: bool,
    /// Pure ACKs of unknown flows that are taken.
    pub takes: Budget,
    /// Headers of unknown flows, and of packets that are no TCP, that are copied.
    pub copies: Budget,
    /// Headers of SYNs without ACK that are copied.
    pub syns: Budget,
    /// SYN-ACKs that are taken or copied.
    pub opens: Budget,
    /// Headers with RST, or FIN of flows that are not controlled, that are copied.
    pub ends: Budget,
}

impl AcksOptions {
    /// For one engine, and an interface with Ethernet headers whose flows are shaped in both directions.
    pub const fn new(flows: u32) -> AcksOptions {
        AcksOptions {
            engines: 1,
            flows,
            passing: 65_536,
            tallies: 1,
            ring: 1 << 22,
            stale: Duration::from_millis(50),
            absent: Duration::from_secs(2),
            ethernet: true,
            shape_in: true,
            shape_out: true,
            size_in: false,
            size_out: false,
            spills: false,
            observe: false,
            takes: Budget::new(20_000, AT_ONCE),
            copies: Budget::new(50_000, 1_000),
            syns: Budget::new(20_000, AT_ONCE),
            opens: Budget::new(20_000, AT_ONCE),
            ends: Budget::new(20_000, 400),
        }
    }

    /// Places for what a processor has found out of packets lately: the more the more classes there are.
    fn recent(&self) -> u32 {
        self.tallies.next_power_of_two().clamp(1 << 10, 1 << 14)
    }

    /// Opens the programs, with room in their maps for what these options say.
    fn open(&self, config: AcksConfig) -> io::Result<OpenObject> {
        let (flows, tallies) = (self.flows.max(1) * self.engines, self.tallies.max(1) * self.engines);
        let mut open = open("acks", if self.engines > 1 { &ACKS_OF_SEVERAL.0 } else { &ACKS.0 })?;
        for mut map in open.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            let result = match name.as_str() {
                // A flow that is forgotten gives its entry back a little after its slot.
                "flows" => map.set_max_entries(flows.saturating_add(flows / 8 + 64)),
                "slots" | "carried" | "flow_bounds" | "sights" => map.set_max_entries(flows),
                "tallies" => map.set_max_entries(tallies),
                "spills" if self.spills => map.set_max_entries(FlowQueues::MOST),
                "bounds" => map.set_max_entries(tallies + UNREAD),
                "places" => map.set_max_entries(2 * tallies),
                "conditions" => map.set_max_entries(2 * self.engines * config.conditions),
                "recents" => map.set_max_entries(config.recent),
                "rules" => map.set_max_entries(RULES),
                "passing" | "counted" | "loose" => map.set_max_entries(self.passing.max(1)),
                "openings" => map.set_max_entries((self.passing / 2).max(1)),
                "ring" => map.set_max_entries(self.ring),
                "hooks" | "rings" => map.set_max_entries(self.engines),
                "homes" => map.set_max_entries(HOMES),
                _ if name.ends_with(".rodata") => map.set_initial_value(bytes_of(&config)),
                _ => Ok(()),
            };
            result.map_err(|e| failed(&name, &e))?;
        }
        Ok(open)
    }

    /// Bytes of memory that the kernel takes for the maps. No privilege is needed to ask.
    pub fn memory(&self) -> io::Result<u64> {
        let mut open = self.open(self.config())?;
        // Each further engine has a ring of its own.
        let rings = u64::from(self.engines - 1) * u64::from(self.ring);
        Ok(open.maps_mut().map(|map| memory::of_map(&map)).sum::<u64>() + rings)
    }

    /// An error that says what the maps would take.
    fn too_large(&self) -> io::Error {
        let flows = self.flows.saturating_mul(self.engines);
        let needed = self.memory().unwrap_or(0).div_ceil(1 << 20);
        let message = format!(
            "there is no memory for the kernel's maps, which take {needed} MiB for {flows} flows: raise the limit of the \
             control group (`MemoryMax=` of a service), or lower `max_flows`"
        );
        io::Error::new(io::ErrorKind::OutOfMemory, message)
    }

    fn config(&self) -> AcksConfig {
        AcksConfig {
            stale: self.stale.as_nanos(),
            absent: self.absent.as_nanos(),
            budgets: [self.takes, self.copies, self.syns, self.opens, self.ends],
            ethernet: self.ethernet.into(),
            shape_in: self.shape_in.into(),
            shape_out: self.shape_out.into(),
            size_in: self.size_in.into(),
            size_out: self.size_out.into(),
            assume: 0,
            role: 0,
            observe: self.observe.into(),
            slots: self.flows.max(1),
            classes: self.tallies.max(1),
            seed: 1,
            keys: [0; 5],
            recent: self.recent(),
            conditions: self.tallies.max(1) + CONDITIONS,
            unread: self.tallies.max(1) * self.engines,
            spills: self.spills.into(),
        }
    }
}

/// Conditions of rules beside one for each class, at most.
const CONDITIONS: u32 = 4096;
/// Prefixes of rules at most, of both halves.
const RULES: u32 = 1 << 22;

/// Bounds in each map beside those of classes: one per direction, for packets without readable addresses.
const UNREAD: u32 = 2;

/// Connections that may begin at the same moment, as when a link or a server comes back: SYNs, their answers
/// and first ACKs. If the engine does not see a handshake, the window's scale stays unknown. The records of
/// all three together have room in the ring. A flood gets this number once.
const AT_ONCE: u32 = 5_000;

/// The loaded programs of one interface and what they share with the engine. A child process that was
/// forked after [`Acks::load`] has the same maps and the same slots.
#[derive(Debug)]
pub struct Acks {
    object: Object,
    /// Heartbeat, generation, sleep, sockets; of the first engine.
    pub hooks: Hooks,
    /// Hooks of the other engines.
    others: Vec<Hooks>,
    pub(super) flows: MapHandle,
    pub(super) passing: MapHandle,
    pub(super) counted: MapHandle,
    /// Ring of each engine.
    rings: Vec<Ring>,
    pub(super) secret: Secret,
    /// There is one where there are several engines.
    homes: Option<MapHandle>,
    unlisted: MapHandle,
    counters: MapHandle,
    /// Slots of all engines, one engine after the other.
    pub(super) slots: &'static [Slot],
    pub(super) tallies: &'static [Tally],
    bounds: &'static [Bound],
    flow_bounds: &'static [FlowBound],
    sights: &'static [Sight],
    /// Counts of what spills; a single one if nothing may.
    spills: &'static [Spill],
    /// Places for conditions in each half of an engine.
    pub(super) conditions: u32,
    /// The kernel updates many entries in one call (Linux 5.6).
    pub(super) batches: AtomicBool,
}

/// The program of a hook.
pub(super) const fn program(hook: Hook) -> &'static str {
    match hook {
        Hook::Egress => "acks_egress",
        Hook::Ingress => "acks_ingress",
    }
}

impl Acks {
    /// Loads the programs. What the kernel lacks is named with the version that brought it.
    pub fn load(options: &AcksOptions) -> io::Result<Acks> {
        Acks::load_on(options, None)
    }

    /// As [`Acks::load`], on the maps of programs that were loaded with the same knobs, if there are any.
    pub fn load_on(options: &AcksOptions, maps: Option<&Maps>) -> io::Result<Acks> {
        let acks = Acks::load_with(options, options.config(), maps)?;
        if maps.is_some() {
            return Ok(acks);
        }
        acks.others.iter().zip(1..).for_each(|(hooks, number)| hooks.count_from(number << GENERATIONS));
        Ok(acks)
    }

    /// As [`Acks::load_on`] with other knobs.
    pub(super) fn load_with(
        options: &AcksOptions,
        config: AcksConfig,
        maps: Option<&Maps>,
    ) -> io::Result<Acks> {
        features::require()?;
        // Keyed by the system's randomness.
        let random = RandomState::new();
        let keys = [1, 2, 3, 4, 5].map(|n| random.hash_one(n));
        let random = Secret { seed: random.hash_one(0) | 1, keys };
        let secret = maps.map_or(random, |maps| maps.secret);
        let config = AcksConfig { seed: secret.seed, keys: secret.keys, ..config };
        let several = options.engines > 1;
        let opened = || {
            let mut open = options.open(config)?;
            for mut map in open.maps_mut() {
                let name = map.name().to_string_lossy().into_owned();
                maps.map_or(Ok(()), |maps| maps.lend(&mut map, &name))?;
            }
            Ok(open)
        };
        let object = super::load(opened, |e| match e.kind() {
            libbpf_rs::ErrorKind::OutOfMemory => options.too_large(),
            _ => features::refused("the steering of ACKs", e),
        })?;
        let (slots, tallies) = (shared(&map(&object, "slots")?)?, shared(&map(&object, "tallies")?)?);
        let (bounds, flow_bounds) =
            (shared(&map(&object, "bounds")?)?, shared(&map(&object, "flow_bounds")?)?);
        let sights = shared(&map(&object, "sights")?)?;
        let spills = shared(&map(&object, "spills")?)?;
        Ok(Acks {
            hooks: Hooks::of(&object, 0)?,
            others: (1..options.engines as usize)
                .map(|n| Hooks::of(&object, n))
                .collect::<io::Result<_>>()?,
            flows: map(&object, "flows")?,
            passing: map(&object, "passing")?,
            counted: map(&object, "counted")?,
            rings: several::rings(
                &object,
                options.engines,
                options.ring,
                &maps.map(Maps::rings).unwrap_or_default(),
            )?,
            secret,
            homes: several.then(|| map(&object, "homes")).transpose()?,
            unlisted: map(&object, "unlisted")?,
            counters: map(&object, "counters")?,
            slots,
            tallies,
            bounds,
            flow_bounds,
            sights,
            spills,
            conditions: config.conditions,
            object,
            batches: AtomicBool::new(true),
        })
    }

    /// Attaches both programs to an interface: its number may be another one after it was away.
    pub fn attach(&self, ifindex: u32) -> io::Result<Attached> {
        let attach = |hook| attach::tc(&named(&self.object, program(hook)), ifindex, hook, Order::First);
        Ok(attach(Hook::Ingress)?.and(attach(Hook::Egress)?))
    }

    /// Attaches the program by which frames come in on the interface numbered `home` that are sent on this
    /// one, which has Ethernet headers.
    pub fn attach_return(&self, ifindex: u32, home: u32) -> io::Result<Attached> {
        let attached = attach::link_only(&named(&self.object, "acks_return"), ifindex, Hook::Egress)?;
        self.hooks.lead_home(home);
        Ok(attached)
    }

    /// A descriptor of a hook's program, as for test runs of the kernel.
    pub fn program(&self, hook: Hook) -> io::Result<OwnedFd> {
        named(&self.object, program(hook)).as_fd().try_clone_to_owned()
    }

    /// Engines that they know.
    pub fn engines(&self) -> usize {
        self.rings.len()
    }

    /// Returns the slots of controlled flows, of all engines.
    pub fn slots(&self) -> &'static [Slot] {
        self.slots
    }

    /// Returns the tallies of unresponsive traffic of each class, of all engines.
    pub fn tallies(&self) -> &'static [Tally] {
        self.tallies
    }

    /// Returns the slots of the engine with this number.
    pub fn slots_of(&self, number: usize) -> &'static [Slot] {
        &self.slots[self.part(self.slots, number)]
    }

    /// Returns the tallies of the engine with this number.
    pub fn tallies_of(&self, number: usize) -> &'static [Tally] {
        &self.tallies[self.part(self.tallies, number)]
    }

    /// Returns the bounds of the classes of the engine with this number.
    pub fn bounds_of(&self, number: usize) -> &'static [Bound] {
        &self.bounds[self.part(self.tallies, number)]
    }

    /// Returns the bounds of packets without readable addresses, at egress and at ingress.
    pub fn unread(&self) -> &'static [Bound] {
        &self.bounds[self.tallies.len()..]
    }

    /// Returns the bounds of the flows, by slot, of the engine with this number.
    pub fn flow_bounds_of(&self, number: usize) -> &'static [FlowBound] {
        &self.flow_bounds[self.part(self.flow_bounds, number)]
    }

    /// Returns the sights of the flows, by slot, of the engine with this number.
    pub fn sights_of(&self, number: usize) -> &'static [Sight] {
        &self.sights[self.part(self.sights, number)]
    }

    /// Returns the counts of what flows spill.
    pub fn spills(&self) -> &'static [Spill] {
        self.spills
    }

    /// Returns an engine's part of what all engines have in equal parts.
    pub(super) fn part<T>(&self, all: &[T], number: usize) -> Range<usize> {
        let each = all.len() / self.engines();
        number * each..(number + 1) * each
    }

    /// Heartbeat, generation and sleep of the engine with this number. Panics if there is none.
    pub fn hooks_of(&self, number: usize) -> &Hooks {
        number.checked_sub(1).map_or(&self.hooks, |other| &self.others[other])
    }

    /// Maps the ring of the first engine: for the one process that consumes it.
    pub fn segments(&self) -> io::Result<Segments> {
        self.segments_of(0)
    }

    /// Maps the ring of the engine with this number: for the one thread that consumes it.
    pub fn segments_of(&self, number: usize) -> io::Result<Segments> {
        self.rings[number].segments()
    }

    /// Returns the map from addresses to engines, if there are several.
    pub fn homes(&self) -> io::Result<Option<Homes>> {
        self.homes.as_ref().map(Homes::of).transpose()
    }

    /// Returns the map of addresses with traffic that no class takes.
    pub fn unlisted(&self) -> io::Result<Unlisted> {
        Unlisted::of(&self.unlisted)
    }

    /// Returns the memory for metadata of frames that leave by exit `exit`, 0 or 1, of engine `engine`.
    pub fn leaving(&self, engine: usize, exit: usize) -> io::Result<Leaving> {
        Leaving::of(&self.object, engine * 2 + exit, self.engines() * 2)
    }

    /// Returns the sum of the counters over all processors.
    pub fn counters(&self) -> io::Result<AcksCounters> {
        sum(&self.counters)
    }

    /// Hands the maps over to the program that this process is about to execute.
    pub fn leave(&self, heir: &mut Heir) -> LeftMaps {
        LeftMaps::of(&self.object, &self.rings, self.secret, heir)
    }

    /// Returns the maps, for other programs that are loaded on them.
    #[cfg(test)]
    pub(super) fn maps(&self) -> io::Result<Maps> {
        Maps::of(&self.object, &self.rings, self.secret)
    }

    /// Returns the program of this name, if there is one.
    pub(crate) fn find(&self, name: &str) -> Option<ProgramMut<'_>> {
        self.object.progs_mut().find(|program| program.name() == name)
    }

    pub(super) fn object(&self) -> &Object {
        &self.object
    }

    /// Knobs for test runs, which have no packet sockets: every frame is from one with `role`.
    #[cfg(test)]
    pub(super) fn assuming(&self, options: &AcksOptions, role: u32) -> AcksConfig {
        AcksConfig { assume: 1, role: role as u8, ..options.config() }
    }
}

/// Maps an array of values, laid out as in the kernel, for the life of the process.
fn shared<T: Shared>(map: &MapHandle) -> io::Result<&'static [T]> {
    assert_eq!(map.value_size() as usize, size_of::<T>(), "values of {:?}", map.name());
    let len = map.max_entries() as usize * size_of::<T>();
    Ok(Mapping::of_fd(map.as_fd(), len, 0, true)?.share())
}
