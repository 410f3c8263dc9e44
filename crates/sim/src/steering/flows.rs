//! Flow tables of the hooks, as programs in the kernel have them.

use super::bounds::{Bounds, Hasher, Lru, SEED};
use super::OBSERVED_HEAD;
use core::cell::RefCell;
use core::hash::BuildHasher;
use core::sync::atomic::Ordering::Acquire;
use std::collections::HashMap;
use std::sync::Arc;
use weir_core::flow::Key;
use weir_core::gateway::{Gateway, Verdict};
use weir_core::node::Port;
use weir_core::steer::{hash_of_source, FlowBound, Slot, Strangers};
use weir_core::time::Time;
use weir_core::track::opening;
use weir_core::wire::{Seq, Tcp, TCP};

/// Flows by the key of their ACKs.
pub(super) struct Flows {
    /// Slot and tag of each controlled flow.
    shaped: HashMap<Key, (u32, u32), Hasher>,
    passing: Lru<()>,
    /// Tally that counts unresponsive packets with each key, if any does.
    counted: Lru<Option<u32>>,
    /// True if some of these are TCP.
    untouched: bool,
    /// SYNs that exceeded their budget, by their keys.
    openings: Lru<Opening>,
    /// Bounds of flows without a slot.
    loose: RefCell<Lru<Arc<FlowBound>>>,
    strangers: Strangers,
}

/// Hash of a flow that tells it apart from others.
fn hash_of(key: &Key) -> u64 {
    Hasher::default().hash_one(key)
}

/// SYN that passed, until its answer arrives.
#[derive(Clone, Copy)]
pub(super) struct Opening {
    pub at: Time,
    pub port: Port,
    /// Sequence number after the SYN.
    pub start: Seq,
    pub len: usize,
    head: [u8; OBSERVED_HEAD],
    head_len: usize,
}

impl Opening {
    /// Makes the record from a frame with these first bytes.
    pub fn new(at: Time, port: Port, tcp: &Tcp, head: &[u8], len: usize) -> Opening {
        let head_len = head.len().min(OBSERVED_HEAD);
        let mut opening =
            Opening { at, port, start: tcp.seq.plus(1), len, head: [0; OBSERVED_HEAD], head_len };
        opening.head[..head_len].copy_from_slice(&head[..head_len]);
        opening
    }

    pub fn head(&self) -> &[u8] {
        &self.head[..self.head_len]
    }
}

/// Knowledge of a flow.
pub(super) enum Known<'a> {
    /// The flow's ACKs are controlled by this slot.
    Shaped(&'a Slot),
    /// The flow passes.
    Passes,
    /// The flow is unknown.
    Not,
}

impl Flows {
    pub(super) fn new(bounds: &Bounds) -> Flows {
        Flows {
            shaped: HashMap::default(),
            passing: Lru::new(bounds.passing),
            counted: Lru::new(bounds.counted),
            untouched: false,
            openings: Lru::new(bounds.openings),
            loose: RefCell::new(Lru::new(bounds.loose)),
            strangers: Strangers::default(),
        }
    }

    /// Calls `with` the record of the bound of a flow without a slot, by the key that its data shows.
    pub(super) fn with_loose<R>(
        &self,
        key: &Key,
        inward: bool,
        now: Time,
        with: impl FnOnce(&FlowBound) -> R,
    ) -> R {
        let mut loose = self.loose.borrow_mut();
        let known = loose.get(key);
        if known.is_none() && !self.strangers.lasts(hash_of(key), now) {
            let source = hash_of_source(if inward { &key.dst } else { &key.src }, SEED);
            return with(self.strangers.of_source(source, inward));
        }
        let bound = known.unwrap_or_else(|| {
            let bound = Arc::default();
            loose.insert(*key, Arc::clone(&bound));
            bound
        });
        with(&bound)
    }

    /// The number of the slot by which the flow's ACKs are controlled.
    pub(super) fn slot(&self, ack_key: &Key, slots: &[Slot]) -> Option<usize> {
        let &(slot, tag) = self.shaped.get(ack_key)?;
        (slots[slot as usize].tag.load(Acquire) == tag).then_some(slot as usize)
    }

    pub(super) fn find<'a>(&self, ack_key: &Key, slots: &'a [Slot]) -> Known<'a> {
        if let Some(slot) = self.slot(ack_key, slots) {
            return Known::Shaped(&slots[slot]);
        }
        if self.passing.get(ack_key).is_some() {
            return Known::Passes;
        }
        Known::Not
    }

    /// Returns the number of the tally that counts packets with this key, `Some(None)` if none does, `None`
    /// if it is unknown.
    pub(super) fn tally(&self, key: &Key) -> Option<Option<u32>> {
        self.counted.get(key)
    }

    /// Returns the tally like [`Flows::tally`], for TCP segments.
    pub(super) fn tally_of_segment(&self, key: &Key) -> Option<u32> {
        self.counted.get(key).flatten().filter(|_| self.untouched)
    }

    /// Keeps a SYN until it is answered.
    pub(super) fn keep_opening(&mut self, key: Key, opening: Opening) {
        self.openings.insert(key, opening);
    }

    /// Returns the kept SYN that is answered by a segment with this key and `ack`.
    pub(super) fn opening(&self, answer: &Key, ack: Seq) -> Option<Opening> {
        self.openings.get(&answer.reversed()).filter(|o| opening::answers(o.start, ack))
    }

    /// Forgets that the flow passes.
    pub(super) fn look_again(&mut self, ack_key: &Key) {
        self.passing.remove(ack_key);
    }

    /// Fetches the gateway's verdicts.
    pub(super) fn learn(&mut self, gateway: &mut Gateway) {
        for verdict in gateway.flows.verdicts(usize::MAX) {
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
