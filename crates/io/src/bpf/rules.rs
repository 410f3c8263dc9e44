//! Rules of the core, compiled into maps that the programs look up.
//!
//! There are two halves of everything. The rules of a configuration are written into the half that no packet
//! is classified by, which may take a while, and then hold from one packet to the next. Keys of the other
//! half stay until the half is written again.

use super::abi::{hooks, rules, RuleGroup, RuleKey};
use super::acks::Acks;
use super::{failed, map};
use crate::sys::mmap::Mapping;
use crate::sys::pod::{self, bytes_of};
use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::Mutex;
use weir_core::gateway::{Condition, Rules};

/// Entries that one call of the kernel writes at most.
const BATCH: usize = 4096;
/// Bytes of an entry of an array of 32-bit numbers: the kernel rounds up.
const PLACE: usize = 8;

/// The place where an engine's rules are written.
#[derive(Debug)]
pub struct RuleBook {
    rules: MapHandle,
    conditions: Mapping,
    places: Mapping,
    words: Mapping,
    engine: usize,
    /// Places for classes in each half.
    classes: usize,
    conditions_of_half: usize,
    /// Keys of each half, if they are known: of an engine before this one they are not.
    keys: Mutex<[Option<Vec<RuleKey>>; 2]>,
}

/// Rules that are written and do not hold yet.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Staged {
    half: usize,
    /// Parts that have rules, at egress and at ingress.
    parts: [u32; 2],
}

impl RuleBook {
    /// Returns the book in which the rules of the engine with this number are written.
    pub fn of(acks: &Acks, engine: usize) -> io::Result<RuleBook> {
        let mapped = |name: &str, each: usize| {
            let map = map(acks.object(), name)?;
            Mapping::of_fd(map.as_fd(), map.max_entries() as usize * each, 0, true)
        };
        let places = mapped("places", PLACE)?;
        Ok(RuleBook {
            rules: map(acks.object(), "rules")?,
            conditions: mapped("conditions", size_of::<Condition>())?,
            classes: places.len() / PLACE / 2 / acks.engines(),
            places,
            words: mapped("hooks", hooks::SIZE)?,
            engine,
            conditions_of_half: acks.conditions as usize,
            keys: Mutex::new([None, None]),
        })
    }

    fn word(&self, way: usize) -> &std::sync::atomic::AtomicU32 {
        self.words.atomic_u32(self.engine * hooks::SIZE + hooks::RULES + 4 * way)
    }

    /// Writes the rules of packets that go out and that come in. On an error those that hold go on to do so.
    pub fn stage(&self, of: [&Rules; 2]) -> io::Result<Staged> {
        let half = 1 - (self.word(0).load(Acquire) & rules::HALF) as usize;
        let mut keys = self.keys.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let old = keys[half].take().unwrap_or_else(|| self.left(half));
        self.remove(&old)?;
        let mut first = 0;
        let mut all = (Vec::new(), Vec::new());
        for (way, rules) in of.into_iter().enumerate() {
            self.write_conditions(half, first, &rules.conditions)?;
            all.0.extend(rules.groups.iter().map(|group| RuleKey {
                bits: rules::BITS + u32::from(group.bits),
                engine: self.engine as u8,
                table: half as u8
                    | if way == 1 { rules::INWARD } else { 0 }
                    | (group.part as u8) << rules::PART,
                prefix: group.prefix,
                pad: [0; 2],
            }));
            all.1.extend(rules.groups.iter().map(|group| RuleGroup {
                class: group.class,
                first: first as u32 + group.first,
                count: group.count,
            }));
            first += rules.conditions.len();
        }
        let written = self.write(&all.0, &all.1);
        keys[half] = Some(all.0);
        written.map(|()| Staged { half, parts: of.map(Rules::parts) })
    }

    /// Classifies packets by rules that were staged last. `places` are those of the configuration's classes,
    /// and some class of a direction has a bound if it is `bounded`.
    pub fn hold(&self, staged: Staged, places: impl Iterator<Item = u32>, bounded: [bool; 2]) {
        let Staged { half, parts } = staged;
        let from = (self.engine * 2 + half) * self.classes;
        for (class, place) in places.take(self.classes).enumerate() {
            let place = self.engine * self.classes + place as usize;
            self.places.atomic_u32((from + class) * PLACE).store(place as u32, Relaxed);
        }
        for way in 0..2 {
            let version = (self.word(way).load(Relaxed) >> rules::VERSION).wrapping_add(1);
            let bound = if bounded[way] { rules::BOUND } else { 0 };
            let word = half as u32 | parts[way] << rules::PARTS | bound | version << rules::VERSION;
            self.word(way).store(word, Release);
        }
    }

    fn write_conditions(&self, half: usize, first: usize, conditions: &[Condition]) -> io::Result<()> {
        if first + conditions.len() > self.conditions_of_half {
            let most = self.conditions_of_half;
            return Err(io::Error::other(format!("rules have more than {most} conditions in all")));
        }
        let from = (self.engine * 2 + half) * self.conditions_of_half + first;
        for (at, condition) in (from..).zip(conditions) {
            for (word, bytes) in bytes_of(condition).chunks_exact(4).enumerate() {
                let value = u32::from_ne_bytes(bytes.try_into().expect("four bytes"));
                self.conditions.atomic_u32(at * size_of::<Condition>() + 4 * word).store(value, Relaxed);
            }
        }
        Ok(())
    }

    /// Returns the keys that an earlier engine left in a half.
    fn left(&self, half: usize) -> Vec<RuleKey> {
        let ours =
            |key: &RuleKey| usize::from(key.engine) == self.engine && usize::from(key.table) & 1 == half;
        self.rules.keys().filter_map(|key| pod::read::<RuleKey>(&key)).filter(ours).collect()
    }

    fn remove(&self, keys: &[RuleKey]) -> io::Result<()> {
        for keys in keys.chunks(BATCH) {
            let bytes: Vec<u8> = keys.iter().flat_map(|key| bytes_of(key).iter().copied()).collect();
            if self.rules.delete_batch(&bytes, keys.len() as u32, MapFlags::ANY, MapFlags::ANY).is_ok() {
                continue;
            }
            for key in keys {
                match self.rules.delete(bytes_of(key)) {
                    Err(e) if e.kind() != ErrorKind::NotFound => {
                        return Err(failed("cannot remove a rule", &e));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn write(&self, keys: &[RuleKey], groups: &[RuleGroup]) -> io::Result<()> {
        let refused = |e: libbpf_rs::Error| failed("cannot write a rule", &e);
        for (keys, groups) in keys.chunks(BATCH).zip(groups.chunks(BATCH)) {
            let both: (Vec<u8>, Vec<u8>) = (
                keys.iter().flat_map(|key| bytes_of(key).iter().copied()).collect(),
                groups.iter().flat_map(|group| bytes_of(group).iter().copied()).collect(),
            );
            let count = keys.len() as u32;
            if self.rules.update_batch(&both.0, &both.1, count, MapFlags::ANY, MapFlags::ANY).is_ok() {
                continue;
            }
            for (key, group) in keys.iter().zip(groups) {
                self.rules.update(bytes_of(key), bytes_of(group), MapFlags::ANY).map_err(refused)?;
            }
        }
        Ok(())
    }
}
