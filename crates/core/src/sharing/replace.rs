//! Another configuration takes over while frames wait.

use super::{way_of, Sharing, Way};
use crate::frame::Waiting;
use crate::gateway::Direction;
use crate::node::Cx;
use std::collections::HashMap;

impl Sharing {
    /// `next`, which has not been used, takes over. Classes of the same name and direction keep what they have sent paid for, to the bit, what
    /// waits in them, and what they have counted. What waits in a class that is gone waits in the one that takes it now, whatever its
    /// limit, or leaves at once if there is none. Ask for the deadline again after this. Returns what is left of the old one,
    /// which holds no frame; to drop it takes time in proportion to its classes.
    pub fn replace(&mut self, cx: &mut Cx<'_>, mut next: Sharing) -> Sharing {
        self.ways.iter_mut().for_each(|way| way.catch_up(cx));
        next.ledger = self.ledger;
        for (new, old) in next.ways.iter_mut().zip(&mut self.ways) {
            new.follow(cx, old);
        }
        let gone = next.adopt(cx, self);
        for class in gone {
            next.take_in(cx, self, class);
        }
        next.ways.iter_mut().filter_map(|way| way.tree.as_mut()).for_each(|tree| tree.resume(cx.frames));
        next.ways.iter().for_each(|way| (0..way.watches.len()).for_each(|place| way.watch(place)));
        core::mem::replace(self, next)
    }

    /// Classes that stay have what they had. Returns the old ones with queues that do not.
    fn adopt(&mut self, cx: &mut Cx<'_>, old: &mut Sharing) -> Vec<usize> {
        let names = old.config.classes.iter().enumerate();
        let names: HashMap<(&str, Direction), usize> =
            names.map(|(i, class)| ((class.name.as_str(), class.direction), i)).collect();
        let mut gone: Vec<bool> = (0..old.places.len()).map(|i| old.leaf(i).is_some()).collect();
        let mut pairs: [HashMap<usize, usize>; 2] = Default::default();
        for (class, place) in self.config.classes.iter().zip(&self.places) {
            let was = names.get(&(class.name.as_str(), class.direction)).copied();
            let Some((was, place, before)) = was.and_then(|was| Some((was, (*place)?, old.places[was]?)))
            else {
                continue;
            };
            let way = way_of(class.direction);
            pairs[way].insert(place, before);
            if let (Some(tree), Some(had)) = (&mut self.ways[way].tree, &mut old.ways[way].tree) {
                gone[was] &= !tree.is_leaf(place);
                tree.adopt(cx, place, had, before);
            }
        }
        for (way, pairs) in pairs.iter().enumerate() {
            if let (Some(new), Some(had)) = (&mut self.ways[way].admission, &mut old.ways[way].admission) {
                new.follow(had, |place| pairs.get(&place).copied());
            }
        }
        (0..gone.len()).filter(|&i| gone[i]).collect()
    }

    /// What waits in a class that is gone goes on here.
    fn take_in(&mut self, cx: &mut Cx<'_>, old: &mut Sharing, class: usize) {
        if let Some((queue, _)) = old.leaf(class) {
            self.ledger.drops = self.ledger.drops.with(&queue.stats().drops);
            self.ledger.absorbed += queue.stats().filtered;
        }
        let way = way_of(old.config.classes[class].direction);
        let Some((tree, place)) = old.ways[way].tree.as_mut().zip(old.places[class]) else { return };
        while let Some(waiting) = tree.release(cx.frames, place) {
            let (bytes, len) = cx.frames.parked_bytes(&waiting.frame);
            let place = self.classify(bytes, len, way).map(|(place, _)| place);
            self.ways[way].admit(cx, place, waiting);
        }
    }
}

impl Way {
    /// What has left already leaves here.
    fn follow(&mut self, cx: &Cx<'_>, old: &mut Way) {
        self.open = old.open;
        self.ready = core::mem::take(&mut old.ready);
        self.ready_since = old.ready_since.take();
        self.tree.iter_mut().for_each(|tree| tree.follow(cx.now));
    }

    /// A frame of a class that is gone waits at this place, or has left.
    fn admit(&mut self, cx: &mut Cx<'_>, place: Option<usize>, waiting: Waiting) {
        match (place, &mut self.tree) {
            (Some(place), Some(tree)) => tree.admit(cx, place, waiting),
            _ => self.push_ready(cx.frames, Waiting { since: cx.now, ..waiting }),
        }
    }
}
