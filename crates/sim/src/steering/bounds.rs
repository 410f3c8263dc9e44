//! Bounds of the hooks: budgets for traffic without a slot, and the sizes of maps.

use core::cell::Cell;
use core::hash::BuildHasherDefault;
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use weir_core::flow::Key;
use weir_core::steer::hash_of_source;
use weir_core::time::{Duration, Time};

/// Rate per second and burst of segments that are shown to the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    interval: Duration,
    burst: u32,
}

impl Budget {
    /// Returns a budget of `rate` a second and `burst` at once; neither is 0.
    pub const fn new(rate: u32, burst: u32) -> Budget {
        Budget { interval: Duration::from_nanos(1_000_000_000 / rate as u64), burst }
    }
}

/// Kinds of budgets, in the order of `enum budgets` of the programs in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// Pure ACKs of unknown flows, which are taken.
    Takes,
    /// Headers of unknown flows, and of packets other than TCP.
    Copies,
    /// Headers of SYNs without ACK.
    Syns,
    /// SYN-ACKs.
    Opens,
    /// Headers with FIN or RST.
    Ends,
}

/// Limits of the hooks: unknown traffic to show, and flows to remember.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Budget of pure ACKs of unknown flows.
    pub takes: Budget,
    /// Budget of headers of unknown flows, and of packets other than TCP.
    pub copies: Budget,
    /// Budget of headers of SYNs without ACK.
    pub syns: Budget,
    /// Budget of SYN-ACKs.
    pub opens: Budget,
    /// Budget of headers with FIN or RST.
    pub ends: Budget,
    /// Number of flows that are remembered as passing.
    pub passing: usize,
    /// Number of keys whose class is remembered.
    pub counted: usize,
    /// Number of SYNs that are kept until they are answered.
    pub openings: usize,
    /// Number of flows without a slot that have a record of their own.
    pub loose: usize,
}

impl Bounds {
    /// Returns budgets of `n` each second for every kind, and maps of `n` entries.
    pub const fn of(n: u32) -> Bounds {
        let few = Budget::new(n, n);
        let n = n as usize;
        let (passing, counted, openings, loose) = (n, n, n, n);
        Bounds {
            takes: few,
            copies: few,
            syns: few,
            opens: few,
            ends: few,
            passing,
            counted,
            openings,
            loose,
        }
    }
}

impl Default for Bounds {
    /// Returns the bounds of the programs in the kernel.
    fn default() -> Bounds {
        Bounds {
            takes: Budget::new(20_000, 5_000),
            copies: Budget::new(50_000, 1_000),
            syns: Budget::new(20_000, 5_000),
            opens: Budget::new(20_000, 5_000),
            ends: Budget::new(20_000, 400),
            passing: 65_536,
            counted: 65_536,
            openings: 32_768,
            loose: 16_384,
        }
    }
}

/// Number of groups of addresses on the LAN's side.
const SOURCES: usize = 1024;
/// Divisors for a group's own part of a budget's rate and of its burst.
const OWN_RATE: u64 = 1024;
const OWN_BURST: u64 = 256;

/// Times at which a group's next segment is due, in the shared part of the budget and in its own.
#[derive(Clone, Copy)]
struct Stream {
    due: i64,
    own: i64,
}

/// Due time of an unused stream, long ago.
const UNUSED: i64 = i64::MIN / 2;

/// State of the budgets, with the arithmetic of `within` of the programs in the kernel.
pub(super) struct Budgets {
    budgets: [Budget; 5],
    streams: Vec<[Stream; 5]>,
    due: [i64; 5],
}

impl Budgets {
    pub fn new(bounds: &Bounds) -> Budgets {
        Budgets {
            budgets: [bounds.takes, bounds.copies, bounds.syns, bounds.opens, bounds.ends],
            streams: vec![[Stream { due: UNUSED, own: UNUSED }; 5]; SOURCES],
            due: [UNUSED; 5],
        }
    }

    /// Takes one segment from a source's budget, if one is left.
    pub fn within(&mut self, which: Unknown, source: usize, now: Time) -> bool {
        let which = which as usize;
        let Budget { interval, burst } = self.budgets[which];
        let (interval, at) = (interval.as_nanos() as i64, now.as_nanos() as i64);
        let burst = interval * i64::from(burst);
        let stream = &mut self.streams[source][which];
        let own = (interval * OWN_RATE as i64, burst * (OWN_RATE / OWN_BURST) as i64);
        paced(&mut stream.own, own.0, own.1, at)
            || paced(&mut stream.due, interval, burst, at)
                && paced(&mut self.due[which], interval - interval / 4, burst, at)
    }
}

/// Takes one segment from a stream, if one is left.
fn paced(due: &mut i64, interval: i64, burst: i64, at: i64) -> bool {
    let next = (*due).max(at - burst) + interval;
    if next > at {
        return false;
    }
    *due = next;
    true
}

/// Returns the group of an address.
pub(super) fn source(address: &[u8; 16]) -> usize {
    (hash_of_source(address, SEED) >> 54) as usize
}

/// Hasher without a random seed; the tables are never iterated.
pub(super) type Hasher = BuildHasherDefault<DefaultHasher>;

/// The programs in the kernel use a secret odd number.
pub(super) const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Map that evicts the least recently used entry, approximately, like the kernel's LRU maps. An entry that
/// was used since its last turn is skipped once.
pub(super) struct Lru<V> {
    entries: HashMap<Key, Entry<V>, Hasher>,
    /// Keys in the order of their turns, with their entries' numbers.
    turns: VecDeque<(Key, u64)>,
    next: u64,
    limit: usize,
}

struct Entry<V> {
    value: V,
    number: u64,
    used: Cell<bool>,
}

impl<V: Clone> Lru<V> {
    /// Returns an empty map of at most `limit` entries.
    pub fn new(limit: usize) -> Lru<V> {
        Lru { entries: HashMap::default(), turns: VecDeque::new(), next: 0, limit: limit.max(1) }
    }

    pub fn get(&self, key: &Key) -> Option<V> {
        let entry = self.entries.get(key)?;
        entry.used.set(true);
        Some(entry.value.clone())
    }

    pub fn insert(&mut self, key: Key, value: V) {
        if let Some(entry) = self.entries.get_mut(&key) {
            (entry.value, entry.used) = (value, Cell::new(true));
            return;
        }
        while self.entries.len() >= self.limit {
            self.make_room();
        }
        self.next += 1;
        self.turns.push_back((key, self.next));
        self.entries.insert(key, Entry { value, number: self.next, used: Cell::new(false) });
        // Turns of removed entries are dropped before they outnumber the others.
        if self.turns.len() > 2 * self.limit {
            let entries = &self.entries;
            self.turns.retain(|(key, number)| entries.get(key).is_some_and(|e| e.number == *number));
        }
    }

    pub fn remove(&mut self, key: &Key) {
        self.entries.remove(key);
    }

    fn make_room(&mut self) {
        let Some((key, number)) = self.turns.pop_front() else { return self.entries.clear() };
        let Some(entry) = self.entries.get(&key).filter(|e| e.number == number) else { return };
        if entry.used.take() {
            self.turns.push_back((key, number));
        } else {
            self.entries.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u8) -> Key {
        let bytes = weir_core::wire::build::SegmentBuilder::v4([10, 0, 0, n], [10, 1, 0, 1]).build();
        let packet = weir_core::wire::packet(&bytes, bytes.len()).unwrap();
        Key::of_data(&packet, &weir_core::wire::tcp(&bytes, &packet).unwrap())
    }

    #[test]
    fn a_map_forgets_what_was_not_used() {
        let mut map = Lru::new(3);
        (0..3).for_each(|n| map.insert(key(n), n));
        assert_eq!(map.get(&key(0)), Some(0));
        map.insert(key(3), 3);
        assert_eq!([0, 1, 2, 3].map(|n| map.get(&key(n))), [Some(0), None, Some(2), Some(3)]);
        map.remove(&key(2));
        map.insert(key(4), 4);
        map.insert(key(5), 5);
        assert_eq!(map.entries.len(), 3);
        (0..200).for_each(|n| {
            map.insert(key(n), n);
            map.remove(&key(n));
        });
        assert!(map.turns.len() <= 6, "{}", map.turns.len());
    }

    /// Verifies a budget of three a second: three at once, and then one each third of a second.
    #[test]
    fn a_budget_is_spent_and_earned() {
        let mut budgets = Budgets::new(&Bounds::of(3));
        let at = |ms: u64| Time::from_millis(10_000 + ms);
        let mut spend =
            |source, ms| (0..20).filter(|_| budgets.within(Unknown::Takes, source, at(ms))).count();
        assert_eq!(spend(1, 0), 3);
        assert_eq!(spend(1, 100), 0);
        assert_eq!(spend(1, 340), 1);
        // All sources together have four a second, so one is left at 340 ms.
        assert_eq!(spend(2, 340), 1);
    }

    /// Verifies that no source can spend the whole budget. Of 20,000 a second and 5,000 at once, one source
    /// gets 5,000, and all together a third more. Each has one in 51.2 ms for itself, and those of a second
    /// at once.
    #[test]
    fn no_source_spends_all() {
        let mut budgets = Budgets::new(&Bounds::default());
        let now = Time::from_secs(10);
        let mut spend = |source| (0..10_000).filter(|_| budgets.within(Unknown::Syns, source, now)).count();
        assert_eq!([1, 2, 3].map(&mut spend), [5_000 + 19, 1_666 + 19, 19]);
    }
}
