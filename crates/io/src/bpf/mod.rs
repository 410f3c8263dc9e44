//! The BPF programs: loading, attaching, and what is shared with them.
//!
//! [`Shared`] holds the maps of one engine: its heartbeat and the verdicts. Each port that is
//! steered has a [`Steering`] of its own, each port that is observed an [`Observer`]. Programs are
//! attached as links: they come off when the last process that holds them ends, however it ends.

mod abi;
mod acks;
#[cfg(test)]
mod acks_tests;
mod all;
mod attach;
mod features;
mod hooks;
#[cfg(test)]
mod live_tests;
mod ring;
mod segments;
#[cfg(test)]
mod tests;

pub use abi::{
    role, AcksCounters, AllCounters, Budget, FlowKey, ObserveCounters, SteerCounters, Verdict, OBSERVED_HEAD,
    SEGMENT_HEAD,
};
pub use acks::{Acks, AcksOptions, Change};
pub use all::All;
pub use attach::{remove_filters, Attached, Hook, XdpMode};
pub use features::{missing, Missing};
pub use hooks::Hooks;
pub use segments::{Fate, Segment, Segments};

use crate::sys::mmap::Mapping;
use crate::sys::pod::{self, bytes_of, Pod};
use abi::{control, FlowVerdict, SteerConfig};
use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, OpenObject, ProgramMut};
use ring::ObservationRing;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use weir_core::time::{Duration, Time};

pub(crate) use abi::{Observation, Stamp, STAMP_MAGIC};

/// libbpf reads the objects in place and wants them aligned.
#[repr(C, align(8))]
struct Aligned<B: ?Sized>(B);

static STEER: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/steer.bpf.o")));
static OBSERVE: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/observe.bpf.o")));

/// Which frames a steered port gives to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steer {
    /// Every frame.
    Full,
    /// TCP frames of flows without the verdict to pass.
    Acks,
}

/// Knobs of the steering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteerOptions {
    /// Which frames it takes.
    pub steer: Steer,
    /// Without a heartbeat for so long, frames pass.
    pub stale: Duration,
    /// Longest frame that is taken.
    pub max_len: u32,
}

/// Fails with what libbpf says, in one line.
fn failed(what: &str, error: &libbpf_rs::Error) -> io::Error {
    let kind = error.kind();
    let message = format!("{what}: {error:#}");
    match kind {
        libbpf_rs::ErrorKind::PermissionDenied => io::Error::new(io::ErrorKind::PermissionDenied, message),
        _ => io::Error::other(message),
    }
}

fn open(name: &str, object: &'static [u8]) -> io::Result<OpenObject> {
    libbpf_rs::set_print(Some((libbpf_rs::PrintLevel::Debug, log)));
    ObjectBuilder::default().open_memory(object).map_err(|e| failed(&format!("cannot open {name}"), &e))
}

/// What libbpf prints goes to the log; the verifier's reasons come as warnings.
fn log(level: libbpf_rs::PrintLevel, text: String) {
    let text = text.trim_end();
    #[cfg(test)]
    if matches!(level, libbpf_rs::PrintLevel::Warn) {
        println!("{text}");
    }
    match level {
        libbpf_rs::PrintLevel::Warn => tracing::warn!(target: "libbpf", "{text}"),
        libbpf_rs::PrintLevel::Info => tracing::debug!(target: "libbpf", "{text}"),
        libbpf_rs::PrintLevel::Debug => tracing::trace!(target: "libbpf", "{text}"),
    }
}

fn map(object: &Object, name: &str) -> io::Result<MapHandle> {
    let map = object.maps().find(|m| m.name() == name).expect("the program has this map");
    MapHandle::try_from(&map).map_err(|e| failed(name, &e))
}

fn program(object: &Object) -> ProgramMut<'_> {
    object.progs_mut().next().expect("the object has one program")
}

/// The program called `name`.
fn named<'a>(object: &'a Object, name: &str) -> ProgramMut<'a> {
    object.progs_mut().find(|p| p.name() == name).expect("the object has this program")
}

/// Sum of a per-CPU map of one entry of counters, each a `u64`.
fn sum<T: Pod>(map: &MapHandle) -> io::Result<T> {
    let values = map.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(|e| failed("counters", &e))?;
    let mut total = vec![0u64; size_of::<T>() / 8];
    for value in values.unwrap_or_default() {
        for (sum, word) in total.iter_mut().zip(value.chunks_exact(8)) {
            *sum += u64::from_ne_bytes(word.try_into().expect("eight bytes"));
        }
    }
    let bytes: Vec<u8> = total.iter().flat_map(|w| w.to_ne_bytes()).collect();
    Ok(pod::read(&bytes).expect("as long as the counters"))
}

/// The maps that all programs of one engine share.
#[derive(Debug)]
pub struct Shared {
    control: MapHandle,
    verdicts: MapHandle,
    page: Mapping,
}

impl Shared {
    /// Makes the maps, with room for `flows` verdicts.
    pub fn new(flows: u32) -> io::Result<Shared> {
        let options = |map_flags| bpf_map_create_opts {
            sz: size_of::<bpf_map_create_opts>() as _,
            map_flags,
            ..bpf_map_create_opts::default()
        };
        let mapped = options(libbpf_rs::libbpf_sys::BPF_F_MMAPABLE);
        let control = MapHandle::create(MapType::Array, Some("control"), 4, control::SIZE as u32, 1, &mapped);
        let control = control.map_err(|e| failed("cannot make the heartbeat's map", &e))?;
        let (key, value) = (size_of::<FlowKey>() as u32, size_of::<FlowVerdict>() as u32);
        let verdicts = MapHandle::create(MapType::LruHash, Some("verdicts"), key, value, flows, &options(0));
        let verdicts = verdicts.map_err(|e| failed("cannot make the verdicts' map", &e))?;
        let page = Mapping::of_fd(control.as_fd(), control::SIZE, 0, true)?;
        Ok(Shared { control, verdicts, page })
    }

    /// Says that the engine is alive; [`Time::ZERO`] says that it is not.
    pub fn beat(&self, now: Time) {
        self.page.atomic_u64(control::BEAT).store(now.as_nanos(), Ordering::Release);
    }

    /// The last beat.
    pub fn last_beat(&self) -> Time {
        Time::from_nanos(self.page.atomic_u64(control::BEAT).load(Ordering::Acquire))
    }

    /// Makes all verdicts given so far misses: the configuration changed.
    pub fn next_generation(&self) {
        self.page.atomic_u32(control::GENERATION).fetch_add(1, Ordering::AcqRel);
    }

    /// Says what is done with the frames of a flow.
    pub fn set_verdict(&self, key: &FlowKey, verdict: Verdict) -> io::Result<()> {
        let generation = self.page.atomic_u32(control::GENERATION).load(Ordering::Acquire);
        let value = FlowVerdict { verdict: verdict as u32, generation };
        let result = self.verdicts.update(bytes_of(key), bytes_of(&value), MapFlags::ANY);
        result.map_err(|e| failed("cannot write a verdict", &e))
    }
}

/// The steering of one port: a loaded XDP program, attached by [`Steering::attach`].
#[derive(Debug)]
pub struct Steering {
    object: Object,
    sockets: MapHandle,
    counters: MapHandle,
}

impl Steering {
    /// Loads the program.
    pub fn load(shared: &Shared, options: SteerOptions) -> io::Result<Steering> {
        let mut open = open("steer", &STEER.0)?;
        let config = SteerConfig {
            stale: options.stale.as_nanos(),
            mode: options.steer as u32,
            max_len: options.max_len,
        };
        for mut map in open.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            let result = match name.as_str() {
                "control" => map.reuse_fd(shared.control.as_fd()),
                "verdicts" => map.reuse_fd(shared.verdicts.as_fd()),
                // The knobs are all of the program's constants.
                _ if name.ends_with(".rodata") => map.set_initial_value(bytes_of(&config)),
                _ => Ok(()),
            };
            result.map_err(|e| failed(&name, &e))?;
        }
        let object = open.load().map_err(|e| failed("the kernel refuses the steering program", &e))?;
        let (sockets, counters) = (map(&object, "sockets")?, map(&object, "counters")?);
        Ok(Steering { object, sockets, counters })
    }

    /// Attaches the program to an interface.
    pub fn attach(&self, ifindex: u32, mode: XdpMode) -> io::Result<Attached> {
        attach::xdp(program(&self.object).as_fd(), ifindex, mode)
    }

    /// Gives the frames of a queue to a socket, until the socket is closed.
    pub fn set_socket(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let (key, value) = (queue.to_ne_bytes(), socket.as_raw_fd().to_ne_bytes());
        let result = self.sockets.update(&key, &value, MapFlags::ANY);
        result.map_err(|e| failed(&format!("cannot steer queue {queue}"), &e))
    }

    /// What it did so far.
    pub fn counters(&self) -> io::Result<SteerCounters> {
        sum(&self.counters)
    }
}

/// The observer of one port: a loaded tc program, attached by [`Observer::attach`].
#[derive(Debug)]
pub struct Observer {
    object: Object,
    fd: MapHandle,
    counters: MapHandle,
    ring: ObservationRing,
}

impl Observer {
    /// Loads the program.
    pub fn load() -> io::Result<Observer> {
        let object = open("observe", &OBSERVE.0)?.load();
        let object = object.map_err(|e| failed("the kernel refuses the observing program", &e))?;
        let (fd, counters) = (map(&object, "ring")?, map(&object, "counters")?);
        let ring = ObservationRing::map(fd.as_fd(), fd.max_entries() as usize)?;
        Ok(Observer { object, fd, counters, ring })
    }

    /// Attaches the program to what comes in on an interface.
    pub fn attach(&self, ifindex: u32) -> io::Result<Attached> {
        attach::tc(program(&self.object).as_fd(), ifindex, Hook::Ingress)
    }

    /// What it did so far.
    pub fn counters(&self) -> io::Result<ObserveCounters> {
        sum(&self.counters)
    }

    /// The oldest header that it copied.
    pub(crate) fn next(&mut self) -> Option<Observation> {
        self.ring.pop()
    }
}

impl AsFd for Observer {
    /// Readable when there are observations.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
