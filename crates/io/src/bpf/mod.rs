//! The BPF programs: loading, attaching, and what is shared with them.
//!
//! [`Acks`] takes the ACKs of controlled flows and sets back the ACK fields of their data; [`All`] takes
//! every frame; [`chirp`] registers congestion controls. Programs are attached as links: they come off when
//! the last process that holds them ends, however it ends (classifiers, before Linux 6.6, are taken off).

mod abi;
mod acks;
#[cfg(test)]
mod acks_tests;
mod all;
mod attach;
mod beats;
pub mod chirp;
#[cfg(test)]
mod chirp_tests;
mod features;
mod hooks;
#[cfg(test)]
mod live_tests;
mod maps;
mod memory;
mod metadata;
#[cfg(test)]
mod metadata_tests;
mod rules;
mod segments;
mod several;
mod unlisted;
mod verdicts;

pub use abi::{role, AcksCounters, AllCounters, Budget, Metadata, SEGMENT_HEAD};
pub use acks::{Acks, AcksOptions};
pub use all::All;
pub use attach::{programs_of_others, remove_filters, Attached, Hook, LeftLink};
pub use beats::last_beat_on;
pub use features::{missing, Missing};
pub use hooks::Hooks;
pub use maps::{LeftMaps, Maps, Secret};
pub use metadata::{Arriving, Leaving};
pub use rules::{RuleBook, Staged};
pub use segments::{Fate, SeenSegment, Segments};
pub use several::{Home, Homes};
pub use unlisted::{Unlisted, UnlistedAddress};

use crate::sys::pod::{self, Pod};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, ProgramMut};
use std::io;

/// libbpf reads the objects in place and wants them aligned.
#[repr(C, align(8))]
struct Aligned<B: ?Sized>(B);

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

/// Repetitions of a load that was interrupted.
const ATTEMPTS: u32 = 3;

/// Loads an object. A signal during verification ends it with EAGAIN. libbpf repeats the load of a program
/// five times then. This repeats that of the object, each time with a new one.
fn load(
    opened: impl Fn() -> io::Result<OpenObject>,
    refused: impl Fn(&libbpf_rs::Error) -> io::Error,
) -> io::Result<Object> {
    let mut attempts = 0..ATTEMPTS;
    loop {
        match opened()?.load() {
            Err(e) if e.kind() == libbpf_rs::ErrorKind::WouldBlock && attempts.next().is_some() => {}
            loaded => return loaded.map_err(|e| refused(&e)),
        }
    }
}

/// Writes libbpf's messages to the log. The verifier's reasons are warnings.
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
