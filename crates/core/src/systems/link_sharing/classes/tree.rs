//! The tree: its state, and the offers of its classes.

mod offers;

use super::usage::Usage;
use crate::base::heap::{Entry, Heap, NOWHERE};
use crate::base::VirtualClock;
use crate::classify::spec::{check, Spec, Unsound, PRIORITIES};
use crate::frame::{Frames, Waiting};
use crate::node::Cx;
use crate::queue::{self, Queue};
use crate::queue::{LeafStats, HISTOGRAMS};
use crate::rate::Rate;
use crate::stats::DropReason;
use crate::time::Time;
use offers::{Offer, BORROWS, LEAF};

/// Number of the root, the parent of all classes at the top. The class with index `i` has number `i + 1`.
pub(super) const ROOT: u32 = 0;

/// Run-time state of a class.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) parent: u32,
    /// Index in `leaves` or `feeds`.
    pub(super) inside: Inside,
    level: u8,
    pub(super) priority: u8,
    pub(super) weight: u32,
    pub(super) rate: Option<VirtualClock>,
    pub(super) ceil: Option<VirtualClock>,
    /// Children that are backlogged.
    active: u32,
    /// Time since which it is backlogged.
    pub(super) since: Time,
    /// Remainder of its borrowed bytes that its virtual times do not show yet.
    pub(super) carried: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    /// Number of its queue.
    Leaf(u32),
    /// Number of its feed.
    Feed(u32),
}

/// The offers of a class's children.
#[derive(Debug)]
pub(super) struct Feed {
    offers: Heap<Offer>,
    /// By priority, the virtual time of the child that borrowed last.
    pub(super) virtual_time: [u64; PRIORITIES as usize],
}

/// A leaf's queue, and the counters of its departures.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) queue: Queue,
    pub(super) config: queue::Config,
    /// Rate of its departures, as far as it is known.
    pub(super) rate: Rate,
    pub(super) stats: LeafStats,
}

/// A dequeued frame.
#[derive(Debug, PartialEq, Eq)]
pub struct Popped {
    /// Index of its class.
    pub class: usize,
    /// The frame.
    pub waiting: Waiting,
    /// Time of its departure: as soon as it could leave.
    pub at: Time,
}

/// A tree of classes. Call [`Tree::advance`] before anything else at a new time. Times never go backwards.
#[derive(Debug)]
pub struct Tree {
    pub(super) now: Time,
    pub(super) classes: Vec<Class>,
    pub(super) feeds: Vec<Feed>,
    pub(super) leaves: Vec<Leaf>,
    /// By class and priority: borrowed bytes divided by the weight.
    pub(super) virtual_times: Vec<u64>,
    /// Position of each class in its parent's feed.
    places: Vec<u32>,
    /// Classes that wait for time.
    waits: Heap<Time>,
    waiting: Vec<u32>,
    /// By class: its recent rate, if a leaf guarantees its flows a rate. Otherwise empty.
    pub(super) usage: Vec<Usage>,
}

impl Tree {
    /// Returns a tree of these classes, if it is sound.
    pub fn new(specs: &[Spec]) -> Result<Tree, Unsound> {
        check(specs)?;
        let number = |i: Option<usize>| i.map_or(ROOT, |i| i as u32 + 1);
        let mut children = vec![0; specs.len() + 1];
        specs.iter().for_each(|spec| children[number(spec.parent) as usize] += 1);
        let count = children.len();
        let mut tree = Tree {
            now: Time::ZERO,
            classes: vec![Class::root()],
            feeds: vec![Feed::new(children[0])],
            leaves: Vec::new(),
            virtual_times: vec![0; count * usize::from(PRIORITIES)],
            places: vec![NOWHERE; count],
            waits: Heap::new(count),
            waiting: vec![NOWHERE; count],
            usage: Vec::new(),
        };
        if specs.iter().any(|spec| spec.flow_min.is_some()) {
            tree.usage = vec![Usage::default(); count];
        }
        for (i, spec) in specs.iter().enumerate() {
            let level = BORROWS - 1 - depth(specs, i);
            tree.add(spec, number(spec.parent), level, children[i + 1]);
        }
        Ok(tree)
    }

    fn add(&mut self, spec: &Spec, parent: u32, level: u8, children: usize) {
        let (inside, level) = match spec.queue {
            None => {
                self.feeds.push(Feed::new(children));
                (Inside::Feed(self.feeds.len() as u32 - 1), level)
            }
            Some(config) => {
                let rate = spec.ceil.or(spec.rate).unwrap_or(Rate::mbit(1000));
                let stats =
                    LeafStats { records_delay: self.leaves.len() < HISTOGRAMS, ..LeafStats::default() };
                self.leaves.push(Leaf { queue: config.build(rate), config, rate, stats });
                (Inside::Leaf(self.leaves.len() as u32 - 1), LEAF)
            }
        };
        let ceil = if spec.parent.is_none() { spec.rate } else { spec.ceil };
        let (priority, weight) = (spec.priority, spec.weight);
        let [rate, ceil] = [spec.rate, ceil].map(|rate| rate.map(|rate| VirtualClock::new(rate, Time::ZERO)));
        let class = Class { inside, level, priority, weight, rate, ceil, ..Class::root() };
        self.classes.push(Class { parent, ..class });
    }

    /// Returns the time up to which the tree has been advanced.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns whether the class with this index has a queue.
    pub fn is_leaf(&self, class: usize) -> bool {
        matches!(self.classes.get(class + 1), Some(Class { inside: Inside::Leaf(_), .. }))
    }

    /// Returns the queue of the class with this index. Panics if it has none.
    pub fn queue(&self, class: usize) -> &Queue {
        &self.leaf(class).queue
    }

    /// Mutable form of [`Tree::queue`].
    pub(crate) fn queue_mut(&mut self, class: usize) -> &mut Queue {
        match self.classes[class + 1].inside {
            Inside::Leaf(leaf) => &mut self.leaves[leaf as usize].queue,
            Inside::Feed(_) => panic!("a class without a queue"),
        }
    }

    /// Returns the departures of the class with this index. Panics if it has no queue.
    pub fn leaf_stats(&self, class: usize) -> &LeafStats {
        &self.leaf(class).stats
    }

    fn leaf(&self, class: usize) -> &Leaf {
        match self.classes[class + 1].inside {
            Inside::Leaf(leaf) => &self.leaves[leaf as usize],
            Inside::Feed(_) => panic!("a class without a queue"),
        }
    }

    /// Enqueues a frame in the class with this index at [`Tree::now`], which is `cx.now`. Returns the reason
    /// if it was dropped instead. Panics if the class has no queue.
    pub fn push(&mut self, cx: &mut Cx<'_>, class: usize, waiting: Waiting) -> Option<DropReason> {
        let i = class as u32 + 1;
        let Inside::Leaf(leaf) = self.classes[class + 1].inside else { panic!("a class without a queue") };
        let queue = &mut self.leaves[leaf as usize].queue;
        let rested = queue.packets() == 0;
        let dropped = queue.push(cx, waiting);
        match (rested, queue.packets() == 0) {
            (true, false) => self.begin(i),
            (false, true) => self.end(i),
            _ => {}
        }
        // The discipline may have dropped the first frame in place of the new one.
        self.refresh(cx.frames, i);
        dropped
    }

    /// Returns the time at which the next frame can leave, which is [`Tree::now`] if one already can.
    /// Otherwise it is the next time at which one may.
    pub fn due(&self) -> Option<Time> {
        match self.feeds[0].offers.first() {
            Some(_) => Some(self.now),
            None => self.waits.first().map(|wait| wait.key),
        }
    }

    /// Advances to the next time at which a frame can leave, or to `to` if that is earlier.
    pub fn advance(&mut self, frames: &Frames, to: Time) {
        while self.feeds[0].offers.first().is_none() {
            let Some(Entry { key, id }) = self.waits.first().filter(|wait| wait.key <= to) else { break };
            self.now = self.now.max(key);
            self.refresh(frames, id);
        }
        if self.feeds[0].offers.first().is_none() {
            self.now = self.now.max(to);
        }
    }

    /// Advances to `to` past frames that could have left before, and did not.
    pub fn skip(&mut self, frames: &Frames, to: Time) {
        self.now = self.now.max(to);
        while let Some(Entry { id, .. }) = self.waits.first().filter(|wait| wait.key <= to) {
            self.refresh(frames, id);
        }
    }

    /// Notes that the leaf, which was empty, is backlogged.
    fn begin(&mut self, i: u32) {
        let now = self.now;
        self.activate(i, |class| class.since = now);
    }

    /// Marks the leaf as backlogged, and calls `tell` for each class that becomes backlogged by it.
    pub(super) fn activate(&mut self, mut i: u32, mut tell: impl FnMut(&mut Class)) {
        loop {
            let class = &mut self.classes[i as usize];
            tell(class);
            i = class.parent;
            let parent = &mut self.classes[i as usize];
            parent.active += 1;
            if parent.active > 1 || i == ROOT {
                return;
            }
        }
    }

    /// Notes that the leaf is empty.
    pub(super) fn end(&mut self, mut i: u32) {
        while i != ROOT {
            i = self.classes[i as usize].parent;
            let parent = &mut self.classes[i as usize];
            parent.active -= 1;
            if parent.active > 0 {
                return;
            }
        }
    }

    /// Updates the offer of a class, and those of the classes above it as far as they change.
    pub(super) fn refresh(&mut self, frames: &Frames, mut i: u32) {
        while i != ROOT && self.refresh_one(frames, i) {
            i = self.classes[i as usize].parent;
        }
    }

    /// Updates the offer of one class. Returns whether its parent's best offer has changed.
    pub(super) fn refresh_one(&mut self, frames: &Frames, i: u32) -> bool {
        let (offer, wait) = self.offer(frames, i);
        self.waits.set(&mut self.waiting, i, wait);
        let parent = self.classes[i as usize].parent;
        let Inside::Feed(feed) = self.classes[parent as usize].inside else { return false };
        let offers = &mut self.feeds[feed as usize].offers;
        let best = offers.first();
        offers.set(&mut self.places, i, offer);
        offers.first() != best
    }

    /// Returns the leaf that sends next.
    pub(super) fn next_leaf(&self) -> Option<(u32, u32)> {
        let mut feed = 0;
        loop {
            let Entry { id, .. } = self.feeds[feed as usize].offers.first()?;
            match self.classes[id as usize].inside {
                Inside::Feed(inside) => feed = inside,
                Inside::Leaf(leaf) => return Some((id, leaf)),
            }
        }
    }
}

impl Class {
    fn root() -> Class {
        Class {
            parent: ROOT,
            inside: Inside::Feed(0),
            level: BORROWS - 1,
            priority: 0,
            weight: 1,
            rate: None,
            ceil: None,
            active: 0,
            since: Time::ZERO,
            carried: 0,
        }
    }
}

impl Feed {
    fn new(children: usize) -> Feed {
        Feed { offers: Heap::new(children), virtual_time: [0; PRIORITIES as usize] }
    }
}

/// Returns the number of classes between this one and the root.
fn depth(specs: &[Spec], i: usize) -> u8 {
    core::iter::successors(specs[i].parent, |&p| specs[p].parent).count() as u8
}
