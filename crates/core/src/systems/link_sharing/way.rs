//! One direction: its queues, and the frames that have left them.

use super::admission::Admission;
use super::cache::Cache;
use super::classes::Tree;
use super::sound::{paced, specs, Refused, Why};
use super::spreading::Spreading;
use super::watch::Watch;
use super::windows::Windows;
use crate::classify::{Config, Direction};
use crate::frame::{Frame, Frames, List, Waiting};
use crate::node::{Cx, Port};
use crate::systems::ack_shaper::Congestion;
use crate::systems::gap_pacing::Pacer;
use crate::systems::postack::Departure;
use crate::time::Time;
use std::collections::VecDeque;

/// A direction of a gateway, with its tree if it has queued classes.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) tree: Option<Tree>,
    /// Pacer of its paced classes, if it has any.
    pub(super) pacer: Option<Box<Pacer>>,
    /// Windows of its flows, if a paced class follows them.
    pub(super) windows: Option<Box<Windows>>,
    /// Number of classes in the tree. Higher places are those of the pacer.
    pub(super) first_paced: usize,
    /// Frames made to fill holes. A run counts as one.
    pub(super) fillers: u64,
    /// Port by which its frames leave.
    pub(super) out: Port,
    /// State of the port: true if it takes frames, by the last poll.
    pub(super) open: bool,
    /// Frames that have left the tree or passed it, with their times.
    pub(super) ready: List,
    /// Time of the first of them.
    pub(super) ready_since: Option<Time>,
    pub(super) cache: Cache,
    /// Lanes of paced classes, by the place of the first. Empty if no class has any.
    pub(super) lanes: Vec<Option<Spreading>>,
    /// Admission, if a class guarantees its flows a rate.
    pub(super) admission: Option<Box<Admission>>,
    /// Watches by place. Empty if no class of the direction is watched.
    pub(super) watches: Vec<Option<Watch>>,
    pub(super) congestion: Congestion,
    /// By place: the class's index in the configuration, if its ACKs follow its data. Empty if there is no
    /// such class, or before [`Sharing::listen`](super::Sharing::listen).
    pub(super) followed: Vec<Option<usize>>,
    /// Packets that have left such classes and are not reported yet.
    pub(super) gone: VecDeque<(usize, Departure)>,
}

impl Way {
    /// Returns the direction in which frames leave by `out`, and the classes of its places. Packets are
    /// charged with `overhead` bytes on top of IP.
    pub(super) fn new(
        config: &Config,
        direction: Direction,
        out: Port,
        overhead: u16,
        congestion: Congestion,
    ) -> Result<(Way, Vec<usize>), Refused> {
        let (specs, mut classes) = specs(config, direction);
        let tree = (!specs.is_empty()).then(|| Tree::new(&specs)).transpose();
        let tree = tree.map_err(|why| Refused { class: classes[why.class()], why: Why::Tree(why) })?;
        let (paced, at_pacer) = paced(config, direction);
        let pacer = (!paced.is_empty()).then(|| Pacer::new(config.port, &paced, overhead)).transpose();
        let pacer = pacer.map_err(|why| Refused { class: at_pacer[why.class()], why: Why::Pace(why) })?;
        classes.extend(at_pacer);
        let queued = tree.is_some() || pacer.is_some();
        let mut watches: Vec<Option<Watch>> =
            classes.iter().map(|&i| Watch::of(i, &config.classes[i])).collect();
        if watches.iter().all(Option::is_none) {
            watches.clear();
        }
        let way = Way {
            tree,
            pacer: pacer.map(Box::new),
            windows: Windows::of(&paced, config.max_flows, config.seed),
            first_paced: specs.len(),
            fillers: 0,
            out,
            open: true,
            ready: List::new(),
            ready_since: None,
            lanes: Vec::new(),
            cache: Cache::new(if queued { config.max_flows } else { 1 }, config.seed),
            admission: Admission::of(&specs, config.max_flows, config.seed),
            watches,
            congestion,
            followed: Vec::new(),
            gone: VecDeque::new(),
        };
        Ok((way, classes))
    }

    /// Moves every frame that could have left by now to `ready`.
    pub(super) fn catch_up(&mut self, cx: &mut Cx<'_>) {
        if !self.open {
            return self.skip(cx);
        }
        while let Some(waiting) = self.pop_queues(cx) {
            self.push_ready(cx.frames, waiting);
        }
    }

    /// Dequeues the next frame that could have left the tree by now. Its `since` is the time at which it
    /// could.
    pub(super) fn pop_tree(&mut self, cx: &mut Cx<'_>) -> Option<Waiting> {
        let tree = self.tree.as_mut()?;
        tree.advance(cx.frames, cx.now);
        let popped = tree.pop(cx)?;
        self.watch(popped.class);
        if !self.followed.is_empty() {
            self.follow_departure(cx.frames, popped.class, popped.waiting.charge.packets);
        }
        Some(Waiting { since: popped.at, ..popped.waiting })
    }

    /// Updates the congestion of the class at this place, after arrivals or departures.
    pub(super) fn watch(&self, place: usize) {
        let Some(Some(watch)) = self.watches.get(place) else { return };
        match (self.paced(place), &self.pacer, &self.tree) {
            (Some(paced), Some(pacer), _) => watch.look(pacer.leaf(paced).0, &self.congestion),
            (None, _, Some(tree)) => watch.look(tree.queue(place), &self.congestion),
            _ => {}
        }
    }

    /// Skips the time up to now, in which nothing left.
    fn skip(&mut self, cx: &Cx<'_>) {
        if let Some(tree) = &mut self.tree {
            tree.skip(cx.frames, cx.now);
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.skip(cx.now);
        }
    }

    /// Lets a frame leave as soon as the port takes it.
    pub(super) fn push_ready(&mut self, frames: &mut Frames, waiting: Waiting) {
        self.ready_since.get_or_insert(waiting.since);
        self.ready.push(frames, waiting);
    }

    /// Opens or closes the port from now on.
    pub(super) fn set_open(&mut self, cx: &Cx<'_>, open: bool) {
        if !open || !self.open {
            self.skip(cx);
        }
        self.open = open;
    }

    /// Returns the time at which its next frame leaves, or may.
    pub(super) fn due(&self) -> Option<Time> {
        self.ready_since.or_else(|| self.queues_due())
    }

    /// Returns the next frame that has left by now, and its time.
    pub(super) fn pop(&mut self, cx: &mut Cx<'_>) -> Option<(Time, Frame)> {
        let waiting = match self.ready.pop(cx.frames) {
            None => self.pop_queues(cx)?,
            Some(waiting) => {
                self.ready_since = self.ready.head(cx.frames).map(|head| head.since);
                waiting
            }
        };
        Some((waiting.since, cx.frames.unpark(waiting.frame)))
    }
}
