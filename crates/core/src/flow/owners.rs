//! Owners of the places in a table: classes, and within a class the sources on the LAN's side.
//!
//! When all places are taken, the class with the most flows gives one up, preferably of a source with many
//! more than the others. A host that opens many connections thus displaces its own. A [silent](Silence) flow
//! goes before an active one. Active flows go only where their owner has much more than its share.
//!
//! Owners are ranked by the power of two of their flows, and a few of the highest rank are compared. All
//! operations cost a constant, whatever the number of flows, sources and classes.

use super::rings::Rings;
use super::{ClassId, Index, NONE};

/// Number of ranks of owners, by the logarithm of their flows.
const RANKS: usize = 32;
/// Most owners of the highest rank that are compared.
const COMPARED: usize = 4;
/// Most flows compared for the longest silence.
const SAMPLE: usize = 16;
/// Flows from which on a source is ranked, and the fraction of its class (1/16) from which on it has many.
const MANY: u32 = 8;
const MUCH: u32 = 16;
/// Transient flows that a class may have, even if other classes need places: this number, or 1/64 of all
/// places if that is more.
const OPENINGS: u32 = 16;
const OPENINGS_PART: u32 = 64;
/// Silence in milliseconds below which a flow is active. A handshake is given up after twice as long.
const ACTIVE_MS: u32 = 500;

/// Time in milliseconds since a flow was active.
pub(super) type Silence = u32;

/// Kind of a flow: settled, or transient, which gives way first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Settled,
    Transient,
}

/// An owner of flows, derived from a flow's key and class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// Place of the class.
    pub(super) class: ClassId,
    /// Hash of class and source.
    pub(super) source: u64,
}

/// Flows of an owner by [`Kind`]: their number, and the first of each list.
#[derive(Clone, Copy)]
struct Flows {
    count: [u32; 2],
    first: [u32; 2],
}

impl Flows {
    const NONE: Flows = Flows { count: [0; 2], first: [NONE; 2] };

    fn is_empty(&self) -> bool {
        self.count == [0; 2]
    }
}

#[derive(Clone, Copy)]
struct Source {
    owner: Owner,
    flows: Flows,
}

#[derive(Clone)]
struct Class {
    flows: Flows,
    /// Number of sources with a flow.
    sources: u32,
    ranks: Ranks,
}

/// Owners by rank: the first of each list.
#[derive(Clone)]
struct Ranks {
    first: [u32; RANKS],
    occupied: u32,
}

impl Ranks {
    const EMPTY: Ranks = Ranks { first: [NONE; RANKS], occupied: 0 };

    /// Moves the owner `o` from the rank of `from` flows to that of `to`. Below `least` flows it has no rank.
    fn change(&mut self, rings: &mut Rings, o: u32, (from, to): (u32, u32), least: u32) {
        let rank = |n: u32| (n >= least).then(|| n.ilog2() as usize);
        let (from, to) = (rank(from), rank(to));
        if from == to {
            return;
        }
        if let Some(rank) = from {
            rings.remove(&mut self.first[rank], o);
            self.occupied &= !(u32::from(self.first[rank] == NONE) << rank);
        }
        if let Some(rank) = to {
            rings.push(&mut self.first[rank], o);
            self.occupied |= 1 << rank;
        }
    }

    /// Returns the owner with the most flows, among those that are compared.
    fn most(&self, rings: &Rings, count: impl Fn(u32) -> u32) -> Option<u32> {
        let rank = self.occupied.checked_ilog2()?;
        rings.some(self.first[rank as usize], COMPARED).max_by_key(|&o| count(o))
    }
}

/// See the [module documentation](self).
pub(super) struct Owners {
    capacity: u32,
    /// Source of each flow. [`NONE`] if the flow has no place.
    source_of: Box<[u32]>,
    sources: Box<[Source]>,
    /// Unused source entries.
    free: Vec<u32>,
    index: Index,
    classes: Vec<Class>,
    /// Number of classes with a flow.
    active: u32,
    total: [u32; 2],
    /// Ranks of classes, by their settled and their transient flows.
    ranks: [Ranks; 2],
    class_ranks: [Rings; 2],
    source_ranks: Rings,
    in_class: Rings,
    in_source: Rings,
}

impl Owners {
    /// Returns the owners of `capacity` places.
    pub(super) fn new(capacity: u32) -> Owners {
        let nobody = Source { owner: Owner { class: ClassId(NONE), source: 0 }, flows: Flows::NONE };
        Owners {
            capacity,
            source_of: vec![NONE; capacity as usize].into(),
            sources: vec![nobody; capacity as usize].into(),
            free: (0..capacity).rev().collect(),
            index: Index::new(capacity),
            classes: Vec::new(),
            active: 0,
            total: [0; 2],
            ranks: [Ranks::EMPTY, Ranks::EMPTY],
            class_ranks: [Rings::new(0), Rings::new(0)],
            source_ranks: Rings::new(capacity),
            in_class: Rings::new(capacity),
            in_source: Rings::new(capacity),
        }
    }

    /// Gives the flow `i` to the owner.
    pub(super) fn join(&mut self, i: u32, kind: Kind, owner: Owner) {
        let source = self.find(owner).unwrap_or_else(|| self.add(owner));
        self.source_of[i as usize] = source;
        let class = &mut self.classes[owner.class.index()];
        let k = kind as usize;
        self.in_class.push(&mut class.flows.first[k], i);
        self.in_source.push(&mut self.sources[source as usize].flows.first[k], i);
        self.count(source, kind, 1);
    }

    /// Takes the flow `i` from its owner.
    pub(super) fn leave(&mut self, i: u32, kind: Kind) {
        let source = core::mem::replace(&mut self.source_of[i as usize], NONE);
        if source == NONE {
            return;
        }
        let k = kind as usize;
        let owner = self.sources[source as usize].owner;
        self.in_class.remove(&mut self.classes[owner.class.index()].flows.first[k], i);
        self.in_source.remove(&mut self.sources[source as usize].flows.first[k], i);
        self.count(source, kind, -1);
        if self.sources[source as usize].flows.is_empty() {
            self.index.remove(owner.source as u32, source);
            self.free.push(source);
            let class = &mut self.classes[owner.class.index()];
            class.sources -= 1;
            self.active -= u32::from(class.sources == 0);
        }
    }

    fn find(&self, owner: Owner) -> Option<u32> {
        self.index.find(owner.source as u32, |s| self.sources[s as usize].owner == owner)
    }

    fn add(&mut self, owner: Owner) -> u32 {
        let source = self.free.pop().unwrap_or_else(|| unreachable!("as many sources as places"));
        self.sources[source as usize] = Source { owner, flows: Flows::NONE };
        self.index.insert(owner.source as u32, source);
        let places = owner.class.0 + 1;
        if self.classes.len() < places as usize {
            let empty = Class { flows: Flows::NONE, sources: 0, ranks: Ranks::EMPTY };
            self.classes.resize(places as usize, empty);
            self.class_ranks.iter_mut().for_each(|rings| rings.grow(places));
        }
        let class = &mut self.classes[owner.class.index()];
        self.active += u32::from(class.sources == 0);
        class.sources += 1;
        source
    }

    /// Changes the count of flows of one kind, for a source and its class.
    fn count(&mut self, source: u32, kind: Kind, by: i32) {
        let k = kind as usize;
        let Source { owner, flows } = &mut self.sources[source as usize];
        let class = &mut self.classes[owner.class.index()];
        let change = |count: &mut u32| {
            let from = *count;
            *count = from.wrapping_add_signed(by);
            (from, *count)
        };
        let of_source = change(&mut flows.count[k]);
        let of_class = change(&mut class.flows.count[k]);
        change(&mut self.total[k]);
        if kind == Kind::Settled {
            class.ranks.change(&mut self.source_ranks, source, of_source, MANY);
        }
        self.ranks[k].change(&mut self.class_ranks[k], owner.class.0, of_class, 1);
    }

    fn class(&self, class: ClassId) -> Flows {
        self.classes.get(class.index()).map_or(Flows::NONE, |class| class.flows)
    }

    /// Returns the class with the most flows of a kind, among those that are compared.
    fn largest(&self, k: usize) -> Option<ClassId> {
        self.ranks[k].most(&self.class_ranks[k], |class| self.class(ClassId(class)).count[k]).map(ClassId)
    }

    /// Returns the flow that gives up its place to a new one of `owner`. `None` if the other flows are
    /// entitled to their places.
    pub(super) fn victim(&mut self, owner: Owner, silence: impl Fn(u32) -> Silence) -> Option<u32> {
        let own = self.class(owner.class);
        let first = own.first[Kind::Transient as usize];
        let over = Some(first).filter(|&i| i != NONE && silence(i) >= 2 * ACTIVE_MS);
        over.or_else(|| self.opening(owner))
            .or_else(|| self.settled(owner, silence))
            .or_else(|| Some(first).filter(|&i| i != NONE))
    }

    /// Returns a transient flow of the owner's class if that has too many, or else of the class with the most
    /// if that has too many. Among its oldest such flows, the source with the most loses its oldest.
    fn opening(&self, owner: Owner) -> Option<u32> {
        let k = Kind::Transient as usize;
        let most_openings = OPENINGS.max(self.capacity / OPENINGS_PART);
        let too_many = |class: &ClassId| self.class(*class).count[k] > most_openings;
        let most = || self.largest(k);
        let class = Some(owner.class).filter(too_many).or_else(|| most().filter(too_many))?;
        let of_source = |i: u32| self.sources[self.source_of[i as usize] as usize].flows.count[k];
        let oldest = self.in_class.some(self.class(class).first[k], SAMPLE);
        oldest.reduce(|best, i| if of_source(i) > of_source(best) { i } else { best })
    }

    /// Returns a settled flow of the class with the most, or else of the owner's.
    fn settled(&mut self, owner: Owner, silence: impl Fn(u32) -> Silence) -> Option<u32> {
        let k = Kind::Settled as usize;
        let count = |class: ClassId| self.class(class).count[k];
        let most = self.largest(k).filter(|&class| count(class) > count(owner.class));
        let of_most = most.and_then(|class| self.settled_of(class, owner, &silence));
        of_most.or_else(|| self.settled_of(owner.class, owner, &silence))
    }

    /// Returns a settled flow of this class, from the source with the most if that has a large part of them.
    fn settled_of(&mut self, class: ClassId, owner: Owner, silence: impl Fn(u32) -> Silence) -> Option<u32> {
        let k = Kind::Settled as usize;
        let of_class = self.classes.get(class.index())?;
        let (have, sources) = (of_class.flows.count[k], of_class.sources.max(1));
        let own = self.find(owner).filter(|_| class == owner.class);
        let of_source = |source: u32| self.sources[source as usize].flows.count[k];
        let owned = own.map_or(0, of_source);
        let most = of_class.ranks.most(&self.source_ranks, of_source);
        let most = most.filter(|&s| of_source(s) >= owned && of_source(s).saturating_mul(MUCH) >= have);
        let too_many = match most {
            _ if class != owner.class => self.has_too_many(have, self.class(owner.class)),
            Some(source) => Some(source) != own && of_source(source) > 2 * (owned + 1).max(have / sources),
            None => false,
        };
        let victim = match most {
            Some(source) => {
                longest(&mut self.sources[source as usize].flows.first[k], &self.in_source, &silence)
            }
            None => longest(&mut self.classes[class.index()].flows.first[k], &self.in_class, &silence),
        }?;
        (too_many || silence(victim) >= ACTIVE_MS).then_some(victim)
    }

    /// Returns whether a class with `have` settled flows has more than 5/4 of the average, and more than
    /// twice as many as a class that begins another flow.
    fn has_too_many(&self, have: u32, own: Flows) -> bool {
        let classes = u64::from(self.active + u32::from(own.is_empty()));
        let total = u64::from(self.total[Kind::Settled as usize]);
        4 * u64::from(have) * classes > 5 * total && have > 2 * (own.count[Kind::Settled as usize] + 1)
    }
}

/// Returns the flow with the longest silence among some of a list. The next call begins behind these.
fn longest(first: &mut u32, rings: &Rings, silence: impl Fn(u32) -> Silence) -> Option<u32> {
    let (mut last, mut victim) = (NONE, None);
    for i in rings.some(*first, SAMPLE) {
        last = i;
        if victim.is_none_or(|(_, long)| silence(i) > long) {
            victim = Some((i, silence(i)));
        }
    }
    *first = rings.some(last, 2).last()?;
    victim.map(|(i, _)| i)
}
