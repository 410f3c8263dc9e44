//! Replacement of the configuration while frames wait.

use super::way::Way;
use super::{way_of, Sharing};
use crate::classify::Direction;
use crate::frame::{Frames, Waiting};
use crate::node::Cx;
use std::collections::HashMap;

impl Sharing {
    /// Replaces this node by `next`, which has not been used. Classes of the same name and direction keep
    /// their debt for sent bytes, to the bit, their queued frames and their counters. Frames of a removed
    /// class go to the class that matches them now, whatever its limit, or leave at once if there is none.
    /// Ask for the deadline again afterwards. Returns the remains of the old node, which hold no frame.
    /// Dropping them takes time in proportion to the number of classes.
    pub fn replace(&mut self, cx: &mut Cx<'_>, mut next: Sharing) -> Sharing {
        self.ways.iter_mut().for_each(|way| way.catch_up(cx));
        next.ledger = self.ledger;
        let unpaced = self.ways.iter().filter_map(|way| Some(way.pacer.as_ref()?.unpaced().stats().drops));
        unpaced.for_each(|drops| next.ledger.drops = next.ledger.drops.with(&drops));
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

    /// Hands the state of old classes to their successors. Returns the old classes with queues that have
    /// none.
    fn adopt(&mut self, cx: &mut Cx<'_>, old: &mut Sharing) -> Vec<usize> {
        let names = old.config.classes.iter().enumerate();
        let names: HashMap<(&str, Direction), usize> =
            names.map(|(i, class)| ((class.name.as_str(), class.direction), i)).collect();
        let mut gone: Vec<bool> = (0..old.places.len()).map(|i| old.leaf(i).is_some()).collect();
        let mut pairs: [HashMap<usize, usize>; 2] = Default::default();
        let mut of_pacers: [HashMap<usize, usize>; 2] = Default::default();
        for (class, place) in self.config.classes.iter().zip(&self.places) {
            let was = names.get(&(class.name.as_str(), class.direction)).copied();
            let Some((was, place, before)) = was.and_then(|was| Some((was, (*place)?, old.places[was]?)))
            else {
                continue;
            };
            let way = way_of(class.direction);
            let (new, had) = (&mut self.ways[way], &mut old.ways[way]);
            let (paced, was_paced) = (new.paced(place), had.paced(before));
            if let (Some(pacer), Some(had)) = (&mut new.pacer, &mut had.pacer) {
                if let Some((paced, was)) = paced.zip(was_paced) {
                    pacer.adopt(cx.now, paced, had, was);
                    of_pacers[way].insert(was, paced);
                }
            }
            if paced.is_some() || was_paced.is_some() {
                continue;
            }
            pairs[way].insert(place, before);
            if let (Some(tree), Some(had)) = (&mut new.tree, &mut had.tree) {
                gone[was] &= !tree.is_leaf(place);
                tree.adopt(cx, place, had, before);
            }
        }
        for (way, pairs) in of_pacers.iter().enumerate() {
            for (was, place) in pairs {
                let (new, had) = (&mut self.ways[way], &mut old.ways[way]);
                let (place, was) = (new.first_paced + place, had.first_paced + was);
                let lanes = (new.lanes.get_mut(place), had.lanes.get_mut(was));
                if let (Some(Some(lanes)), Some(Some(before))) = lanes {
                    lanes.follow(before);
                }
            }
            if let (Some(new), Some(had)) = (&mut self.ways[way].windows, &mut old.ways[way].windows) {
                new.follow(had, |was| pairs.get(&was).copied());
            }
        }
        for (way, pairs) in pairs.iter().enumerate() {
            if let (Some(new), Some(had)) = (&mut self.ways[way].admission, &mut old.ways[way].admission) {
                new.follow(had, |place| pairs.get(&place).copied());
            }
        }
        (0..gone.len()).filter(|&i| gone[i]).collect()
    }

    /// Moves the queued frames of a removed class to the classes that match them now.
    fn take_in(&mut self, cx: &mut Cx<'_>, old: &mut Sharing, class: usize) {
        if let Some((queue, _)) = old.leaf(class) {
            self.ledger.drops = self.ledger.drops.with(&queue.stats().drops);
            self.ledger.absorbed += queue.stats().filtered;
        }
        let way = way_of(old.config.classes[class].direction);
        let Some(place) = old.places[class] else { return };
        while let Some(waiting) = old.ways[way].release(cx.frames, place) {
            let (bytes, len) = cx.frames.parked_bytes(&waiting.frame);
            let place = self.classify(bytes, len, way).map(|(place, _)| place);
            self.ways[way].admit(cx, place, waiting);
        }
    }
}

impl Way {
    /// Takes over the frames that have left the queues of the old direction, and the state of its port.
    fn follow(&mut self, cx: &mut Cx<'_>, old: &mut Way) {
        self.open = old.open;
        self.ready = core::mem::take(&mut old.ready);
        self.ready_since = old.ready_since.take();
        self.tree.iter_mut().for_each(|tree| tree.follow(cx.now));
        self.fillers = old.fillers;
        while let Some(waiting) = old.pacer.as_mut().and_then(|pacer| pacer.release(cx.frames, None)) {
            self.admit(cx, None, waiting);
        }
    }

    /// Dequeues the next frame of the class at this place.
    fn release(&mut self, frames: &Frames, place: usize) -> Option<Waiting> {
        let paced = self.paced(place);
        match (paced, &mut self.pacer, &mut self.tree) {
            (Some(_), Some(pacer), _) => pacer.release(frames, paced),
            (None, _, Some(tree)) => tree.release(frames, place),
            _ => None,
        }
    }

    /// Enqueues a frame of a removed class at this place, or lets it leave.
    fn admit(&mut self, cx: &mut Cx<'_>, place: Option<usize>, waiting: Waiting) {
        let paced = place.and_then(|place| self.paced(place));
        match (place, &mut self.tree, &mut self.pacer) {
            (_, _, Some(pacer)) if paced.is_some() => {
                pacer.push(cx, paced, waiting);
            }
            (Some(place), Some(tree), _) => tree.admit(cx, place, waiting),
            _ => self.push_ready(cx.frames, Waiting { since: cx.now, ..waiting }),
        }
    }
}
