//! Flow tables of the hooks, as programs in the kernel have them.

use core::hash::BuildHasherDefault;
use core::sync::atomic::Ordering::Acquire;
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use weir_core::flow::Key;
use weir_core::gateway::{Gateway, Verdict};
use weir_core::steer::Slot;
use weir_core::wire::TCP;

/// Fewest passing flows that are remembered.
pub(super) const MIN_PASSING: usize = 1024;

/// Has no random seed; the tables are never iterated.
type Hasher = BuildHasherDefault<DefaultHasher>;

/// Flows by the key that their ACKs show.
pub(super) struct Flows {
    /// Slot and tag.
    shaped: HashMap<Key, (u32, u32), Hasher>,
    passing: HashSet<Key, Hasher>,
    /// Which tally counts packets that ACKs cannot slow, if one does.
    counted: HashMap<Key, Option<u32>, Hasher>,
    /// Are some of these of TCP?
    untouched: bool,
    limit: usize,
}

/// What is known of a flow.
pub(super) enum Known<'a> {
    /// Its ACKs are controlled by this slot.
    Shaped(&'a Slot),
    /// It passes.
    Passes,
    /// Nothing.
    Not,
}

impl Flows {
    pub(super) fn new(flows: usize) -> Flows {
        Flows {
            shaped: HashMap::default(),
            passing: HashSet::default(),
            counted: HashMap::default(),
            untouched: false,
            limit: flows.max(MIN_PASSING),
        }
    }

    pub(super) fn find<'a>(&self, ack_key: &Key, slots: &'a [Slot]) -> Known<'a> {
        if let Some(&(slot, tag)) = self.shaped.get(ack_key) {
            let slot = &slots[slot as usize];
            if slot.tag.load(Acquire) == tag {
                return Known::Shaped(slot);
            }
        }
        if self.passing.contains(ack_key) {
            return Known::Passes;
        }
        Known::Not
    }

    /// The number of the tally of packets with this key, if one counts them; `None`: that is not known.
    pub(super) fn tally(&self, key: &Key) -> Option<Option<u32>> {
        self.counted.get(key).copied()
    }

    /// As [`Flows::tally`], of segments of TCP.
    pub(super) fn tally_of_segment(&self, key: &Key) -> Option<u32> {
        self.counted.get(key).copied().flatten().filter(|_| self.untouched)
    }

    /// Forgets that the flow passes.
    pub(super) fn look_again(&mut self, ack_key: &Key) {
        self.passing.remove(ack_key);
    }

    /// Fetches what the gateway has decided.
    pub(super) fn learn(&mut self, gateway: &mut Gateway) {
        for verdict in gateway.verdicts(usize::MAX) {
            match verdict {
                Verdict::Shape { ack_key, slot, tag } => {
                    self.shaped.insert(ack_key, (slot, tag));
                }
                Verdict::Forget { ack_key, slot, tag } => {
                    if self.shaped.get(&ack_key) == Some(&(slot, tag)) {
                        self.shaped.remove(&ack_key);
                    }
                }
                Verdict::Pass { ack_key } => {
                    if self.passing.len() >= self.limit {
                        self.passing.clear();
                    }
                    self.passing.insert(ack_key);
                }
                Verdict::Count { key, tally } => {
                    if self.counted.len() >= self.limit {
                        self.counted.clear();
                    }
                    self.untouched |= key.protocol() == TCP && key.src_port != 0;
                    self.counted.insert(key, tally);
                }
            }
        }
    }
}
