//! Flow tables of the hooks, as programs in the kernel have them.

use super::bounds::{Bounds, Lru};
use core::hash::BuildHasherDefault;
use core::sync::atomic::Ordering::Acquire;
use std::collections::hash_map::DefaultHasher;
use std::collections::HashMap;
use weir_core::flow::Key;
use weir_core::gateway::{Gateway, Verdict};
use weir_core::steer::Slot;
use weir_core::wire::TCP;

/// Has no random seed; the tables are never iterated.
pub(super) type Hasher = BuildHasherDefault<DefaultHasher>;

/// Flows by the key that their ACKs show.
pub(super) struct Flows {
    /// Slot and tag.
    shaped: HashMap<Key, (u32, u32), Hasher>,
    passing: Lru<()>,
    /// Which tally counts packets that ACKs cannot slow, if one does.
    counted: Lru<Option<u32>>,
    /// Are some of these of TCP?
    untouched: bool,
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
    pub(super) fn new(bounds: &Bounds) -> Flows {
        Flows {
            shaped: HashMap::default(),
            passing: Lru::new(bounds.passing),
            counted: Lru::new(bounds.counted),
            untouched: false,
        }
    }

    pub(super) fn find<'a>(&self, ack_key: &Key, slots: &'a [Slot]) -> Known<'a> {
        if let Some(&(slot, tag)) = self.shaped.get(ack_key) {
            let slot = &slots[slot as usize];
            if slot.tag.load(Acquire) == tag {
                return Known::Shaped(slot);
            }
        }
        if self.passing.get(ack_key).is_some() {
            return Known::Passes;
        }
        Known::Not
    }

    /// The number of the tally of packets with this key, if one counts them; `None`: that is not known.
    pub(super) fn tally(&self, key: &Key) -> Option<Option<u32>> {
        self.counted.get(key)
    }

    /// As [`Flows::tally`], of segments of TCP.
    pub(super) fn tally_of_segment(&self, key: &Key) -> Option<u32> {
        self.counted.get(key).flatten().filter(|_| self.untouched)
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
                    self.passing.insert(ack_key, ());
                }
                Verdict::Count { key, tally } => {
                    self.untouched |= key.protocol() == TCP && key.src_port != 0;
                    self.counted.insert(key, tally);
                }
            }
        }
    }
}
