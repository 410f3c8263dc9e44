//! Admission of connections to classes that guarantee each of their flows a rate: a SYN is refused if what is there for the class, with
//! what it could borrow, is less than the guarantees of all its connections and one more. What is taken from the class later ends nobody's.
//!
//! A connection counts from its SYN, or from payload where that was not seen, until its FIN or RST passes in the same direction, or it
//! has been silent for a minute. What is not TCP is neither refused nor counted.

use super::Sharing;
use crate::class::{FlowMin, Refusal, Spec, Tree};
use crate::flow::{Ages, Index, Key};
use crate::frame::{Charge, Checksum, Frame, Waiting};
use crate::node::Cx;
use crate::stats::DropReason;
use crate::time::Time;
use crate::wire::{self, Flags};

/// Connections remembered at most.
const MOST: u32 = 1 << 20;
/// One that is silent for so long, in milliseconds, has no guarantee any more.
const IDLE_MS: u32 = 60_000;
/// How old a connection's place in the order of activity may get before it is renewed.
const RENEW_MS: u32 = 1_000;
/// Connections that may be found idle at once.
const EXPIRED: usize = 4;

const OPEN: usize = 0;
const FREE: usize = 1;

/// A connection.
#[derive(Clone, Copy, Debug)]
struct Known {
    key: Key,
    hash: u32,
    /// Of its class, in `guarantees`.
    guarantee: u32,
    seen_ms: u32,
}

/// What a class guarantees, and to how many.
#[derive(Clone, Copy, Debug)]
struct Guarantee {
    min: FlowMin,
    stats: AdmissionStats,
}

/// The connections of a class that guarantees them a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdmissionStats {
    /// Connections that have the guarantee now.
    pub flows: u32,
    /// SYNs that were refused so far; one that is dropped may come again.
    pub refused: u64,
}

/// See the [module documentation](self).
pub(super) struct Admission {
    /// By place of the class in the tree.
    places: Vec<Option<u32>>,
    guarantees: Vec<Guarantee>,
    known: Box<[Known]>,
    index: Index,
    ages: Ages<2>,
    seed: u64,
}

impl core::fmt::Debug for Admission {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(&self.guarantees).finish()
    }
}

impl Admission {
    /// For the classes of a tree, if any guarantees its flows a rate.
    pub(super) fn of(specs: &[Spec], flows: u32, seed: u64) -> Option<Box<Admission>> {
        let mins = || specs.iter().map(|spec| spec.flow_min);
        let mut guarantees = Vec::new();
        let places = mins().map(|min| {
            guarantees.push(Guarantee { min: min?, stats: AdmissionStats::default() });
            Some(guarantees.len() as u32 - 1)
        });
        let places = places.collect();
        if guarantees.is_empty() {
            return None;
        }
        let capacity = flows.clamp(1, MOST);
        let free = Known { key: Key::default(), hash: 0, guarantee: 0, seen_ms: 0 };
        let mut ages = Ages::new(capacity);
        (0..capacity).rev().for_each(|i| ages.add(FREE, i));
        let (known, index) = (vec![free; capacity as usize].into(), Index::new(capacity));
        Some(Admission { places, guarantees, known, index, ages, seed }.into())
    }

    /// Of the class in this place of the tree, if it guarantees anything.
    pub(super) fn stats(&self, place: usize) -> Option<AdmissionStats> {
        let guarantee = (*self.places.get(place)?)?;
        Some(self.guarantees[guarantee as usize].stats)
    }

    /// How a frame is refused that begins with these bytes and that the class in this place takes, if it is.
    pub(super) fn refusal(
        &mut self,
        tree: &Tree,
        place: usize,
        (bytes, len): (&[u8], usize),
        now: Time,
    ) -> Option<Refusal> {
        let guarantee = (*self.places.get(place)?)?;
        let packet = wire::packet(bytes, len).ok()?;
        let tcp = wire::tcp(bytes, &packet).ok()?;
        let key = Key::of_packet(bytes, &packet);
        let hash = (key.hash(self.seed) >> 32) as u32;
        let now_ms = (now.as_nanos() / 1_000_000) as u32;
        let known = self.index.find(hash, |i| self.known[i as usize].key == key);
        let ends = tcp.flags.intersects(Flags::FIN.with(Flags::RST));
        match known {
            Some(i) if ends => self.forget(i),
            Some(i) => self.touch(i, now_ms),
            None if ends => {}
            None if tcp.flags.contains(Flags::SYN) => {
                self.expire(now_ms);
                let Guarantee { min, stats } = &mut self.guarantees[guarantee as usize];
                let promised = (u64::from(stats.flows) + 1).saturating_mul(min.rate.bps());
                if promised > tree.available(place, now) || self.ages.len(FREE) == 0 {
                    stats.refused += 1;
                    return Some(min.refusal);
                }
                self.admit(key, hash, guarantee, now_ms);
            }
            // It was there before.
            None if tcp.payload_len > 0 => self.admit(key, hash, guarantee, now_ms),
            None => {}
        }
        None
    }

    /// The connection has the guarantee, if there is room to remember it.
    fn admit(&mut self, key: Key, hash: u32, guarantee: u32, now_ms: u32) {
        let Some(i) = self.ages.newest(FREE) else { return };
        self.ages.remove(FREE, i);
        self.ages.add(OPEN, i);
        self.known[i as usize] = Known { key, hash, guarantee, seen_ms: now_ms };
        self.index.insert(hash, i);
        self.guarantees[guarantee as usize].stats.flows += 1;
    }

    fn forget(&mut self, i: u32) {
        let Known { hash, guarantee, .. } = self.known[i as usize];
        self.index.remove(hash, i);
        self.ages.remove(OPEN, i);
        self.ages.add(FREE, i);
        self.guarantees[guarantee as usize].stats.flows -= 1;
    }

    fn touch(&mut self, i: u32, now_ms: u32) {
        let known = &mut self.known[i as usize];
        if now_ms.wrapping_sub(known.seen_ms) >= RENEW_MS {
            known.seen_ms = now_ms;
            self.ages.remove(OPEN, i);
            self.ages.add(OPEN, i);
        }
    }

    /// Some of those that have been silent for too long are forgotten.
    fn expire(&mut self, now_ms: u32) {
        for _ in 0..EXPIRED {
            let oldest = self.ages.oldest(OPEN);
            let idle = |i: &u32| now_ms.wrapping_sub(self.known[*i as usize].seen_ms) >= IDLE_MS;
            let Some(i) = oldest.filter(idle) else { return };
            self.forget(i);
        }
    }

    /// What `old` knows is known here. `was` has the place there of the class in each place here.
    pub(super) fn follow(&mut self, old: &mut Admission, was: impl Fn(usize) -> Option<usize>) {
        core::mem::swap(&mut self.known, &mut old.known);
        core::mem::swap(&mut self.index, &mut old.index);
        core::mem::swap(&mut self.ages, &mut old.ages);
        self.seed = old.seed;
        let new = core::mem::replace(&mut self.guarantees, old.guarantees.clone());
        for (place, guarantee) in self.places.iter_mut().enumerate() {
            let Some(own) = guarantee else { continue };
            let min = new[*own as usize].min;
            match was(place).and_then(|was| *old.places.get(was)?) {
                Some(before) => {
                    self.guarantees[before as usize].min = min;
                    *own = before;
                }
                None => {
                    self.guarantees.push(Guarantee { min, stats: AdmissionStats::default() });
                    *own = self.guarantees.len() as u32 - 1;
                }
            }
        }
    }
}

impl Sharing {
    /// How a frame that the class in this place takes is refused, if it is.
    pub(super) fn refusal(
        &mut self,
        cx: &Cx<'_>,
        way: usize,
        place: Option<usize>,
        frame: &Frame,
    ) -> Option<Refusal> {
        let way = &mut self.ways[way];
        let (admission, tree) = way.admission.as_mut().zip(way.tree.as_ref())?;
        admission.refusal(tree, place?, (cx.frames.bytes(frame), frame.len()), cx.now)
    }

    /// The frame would open a connection that is not admitted.
    pub(super) fn refuse(&mut self, cx: &mut Cx<'_>, way: usize, mut frame: Frame, refusal: Refusal) {
        let out = match refusal {
            Refusal::Drop => None,
            Refusal::Reset => reset(cx, &mut frame).map(|goes_on| if goes_on { way } else { 1 - way }),
        };
        let Some(out) = out else {
            self.ledger.drops.count(DropReason::Refused);
            return cx.drop(frame, DropReason::Refused);
        };
        let charge = Charge::of(&frame, cx.frames.bytes(&frame), self.overhead);
        let waiting = Waiting { frame: cx.frames.park(frame), charge, since: cx.now };
        self.ways[out].push_ready(cx.frames, waiting);
    }
}

/// Makes a RST of a SYN. Does it go on, and not back? `None` if it is none that can be read.
fn reset(cx: &mut Cx<'_>, frame: &mut Frame) -> Option<bool> {
    let bytes = cx.frames.bytes_mut(frame);
    let packet = wire::packet(bytes, frame.len()).ok()?;
    let tcp = wire::tcp(bytes, &packet).ok()?;
    if !wire::refuse_syn(bytes, &packet, &tcp) {
        return None;
    }
    (frame.checksum, frame.gso_size) = (Checksum::Valid, 0);
    Some(tcp.flags.contains(Flags::ACK))
}
