//! Owners of the places in a table: classes, and within a class the sources on the LAN's side.
//!
//! When all places are taken, the class with the most flows gives one up, preferably of a source with many
//! more than the others. A host that opens many connections thus displaces its own. A [silent](Silence) flow
//! goes before an active one. Active flows go only where their owner has much more than its share.
//!
//! Owners are ranked by the power of two of their flows, and a few of the highest rank are compared. All
//! operations cost a constant, whatever the number of flows, sources and classes.

use super::{ClassId, Index, NONE};
use crate::base::linked::{LinkedList, Links};

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

/// Flows of an owner by [`Kind`]: their number and their list.
#[derive(Clone, Copy)]
struct Flows {
    count: [u32; 2],
    list: [LinkedList; 2],
}

impl Flows {
    const NONE: Flows = Flows { count: [0; 2], list: [LinkedList::EMPTY; 2] };

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

/// Owners by rank.
#[derive(Clone)]
struct Ranks {
    lists: [LinkedList; RANKS],
    occupied: u32,
}

impl Ranks {
    const EMPTY: Ranks = Ranks { lists: [LinkedList::EMPTY; RANKS], occupied: 0 };

    /// Moves the owner `o` from the rank of `from` flows to that of `to`. Below `least` flows it has no rank.
    fn change(&mut self, links: &mut [Links], o: u32, (from, to): (u32, u32), least: u32) {
        let rank = |n: u32| (n >= least).then(|| n.ilog2() as usize);
        let (from, to) = (rank(from), rank(to));
        if from == to {
            return;
        }
        if let Some(rank) = from {
            self.lists[rank].remove(links, o);
            self.occupied &= !(u32::from(self.lists[rank].is_empty()) << rank);
        }
        if let Some(rank) = to {
            self.lists[rank].push(links, o);
            self.occupied |= 1 << rank;
        }
    }

    /// Returns the owner with the most flows, among those that are compared.
    fn most(&self, links: &[Links], count: impl Fn(u32) -> u32) -> Option<u32> {
        let rank = self.occupied.checked_ilog2()?;
        let all = self.lists[rank as usize].iter(|o| links[o as usize]);
        all.take(COMPARED).max_by_key(|&o| count(o))
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
    class_ranks: [Vec<Links>; 2],
    source_ranks: Box<[Links]>,
    in_class: Box<[Links]>,
    in_source: Box<[Links]>,
}

impl Owners {
    /// Returns the owners of `capacity` places.
    pub(super) fn new(capacity: u32) -> Owners {
        let links = || vec![Links::NONE; capacity as usize].into();
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
            class_ranks: [Vec::new(), Vec::new()],
            source_ranks: links(),
            in_class: links(),
            in_source: links(),
        }
    }

    /// Gives the flow `i` to the owner.
    pub(super) fn join(&mut self, i: u32, kind: Kind, owner: Owner) {
        let source = self.find(owner).unwrap_or_else(|| self.add(owner));
        self.source_of[i as usize] = source;
        let class = &mut self.classes[owner.class.index()];
        let k = kind as usize;
        class.flows.list[k].push(&mut self.in_class[..], i);
        self.sources[source as usize].flows.list[k].push(&mut self.in_source[..], i);
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
        self.classes[owner.class.index()].flows.list[k].remove(&mut self.in_class[..], i);
        self.sources[source as usize].flows.list[k].remove(&mut self.in_source[..], i);
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
            self.class_ranks.iter_mut().for_each(|links| links.resize(places as usize, Links::NONE));
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
        let first = own.list[Kind::Transient as usize].first();
        let over = first.filter(|&i| silence(i) >= 2 * ACTIVE_MS);
        over.or_else(|| self.opening(owner)).or_else(|| self.settled(owner, silence)).or(first)
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
        let oldest = self.class(class).list[k].iter(|i| self.in_class[i as usize]).take(SAMPLE);
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
                longest(&mut self.sources[source as usize].flows.list[k], &mut self.in_source, &silence)
            }
            None => longest(&mut self.classes[class.index()].flows.list[k], &mut self.in_class, &silence),
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
fn longest(list: &mut LinkedList, links: &mut [Links], silence: impl Fn(u32) -> Silence) -> Option<u32> {
    let mut victim = None;
    let mut last = list.first()?;
    for i in list.iter(|i| links[i as usize]).take(SAMPLE) {
        last = i;
        if victim.is_none_or(|(_, long)| silence(i) > long) {
            victim = Some((i, silence(i)));
        }
    }
    list.begin_behind(links, last);
    victim.map(|(i, _)| i)
}
