//! A change of configuration while flows live. Nothing is done at once: each flow follows when it is next
//! touched, by a segment or its timer, so a change costs the same whatever the number of flows.

use super::held::Held;
use super::slots::Places;
use super::{direction_of, ClassConfig, Compiled, Gateway, Share};
use crate::ack::Window;
use crate::flow::flag;
use crate::node::Cx;
use crate::steer::slot_flag;
use crate::steer::FlowBound;
use crate::time::Time;
use core::sync::atomic::Ordering::Relaxed;

/// Why a running gateway cannot take a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unchangeable {
    /// The number of flows is that of the memory it was given.
    MaxFlows,
    /// ACKs come in on a port where none were controlled at the start, so the hooks do not take them.
    Ports,
    /// No place is free for the classes of the configuration: too many went while flows still refer to them.
    Classes,
}

impl core::fmt::Display for Unchangeable {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Unchangeable::MaxFlows => "the number of flows cannot change while it runs",
            Unchangeable::Ports => "a direction in which nothing was controlled cannot be while it runs",
            Unchangeable::Classes => "too many classes",
        })
    }
}

/// Work that a change of configuration leaves.
pub struct Changed {
    /// A flow that passes untouched may be one to control now: the hooks are to forget which flows pass.
    pub reclassified: bool,
    /// The configuration of before. Dropping it takes time in proportion to its classes, and can be done by
    /// another thread.
    pub old: Compiled,
}

impl Gateway {
    /// Takes another configuration. Flows keep their numbers and handshakes, classes of the same name and
    /// direction what they counted. What a flow derives from its class (its rate, period and window) follows
    /// when it is next touched, and so does the class itself; what is held by a flow that no class controls
    /// any more is passed on then. The seed stays.
    pub fn reconfigure(&mut self, config: impl Into<Compiled>) -> Result<Changed, Unchangeable> {
        let mut config = config.into();
        if config.max_flows != self.config.max_flows {
            return Err(Unchangeable::MaxFlows);
        }
        let ((lan, wan), (had_lan, had_wan)) = (config.ack_ports(), self.hooked_ports);
        if self.hooked && (lan && !had_lan || wan && !had_wan) {
            return Err(Unchangeable::Ports);
        }
        let found = config.found_in(&self.config);
        if !self.classes.have_room(&config, found, self.tallies.most()) {
            return Err(Unchangeable::Classes);
        }
        let nested = self.classes.are_nested();
        self.classes.change(&config, found);
        config.set_seed(self.config.seed);
        let reclassified = config.takes_other_flows_than(&self.config);
        if reclassified {
            self.verdicts.forget_passing();
        }
        self.tallies.grow(self.classes.len());
        self.bounds.grow(self.classes.len());
        self.tell_tallies();
        self.timers.grow(self.table.capacity() + self.classes.len());
        if nested || self.classes.are_nested() {
            self.stand_anew();
        }
        self.generation = self.generation.wrapping_add(1);
        self.measures = config.classes.iter().any(ClassConfig::measures_delay);
        let old = core::mem::replace(&mut self.config, config);
        self.set_bounds();
        self.begin_flow_bounds();
        Ok(Changed { reclassified, old })
    }

    /// Forgets what flows sent in the last second: it kept to the rates of then, and those of now may be
    /// lower.
    fn begin_flow_bounds(&self) {
        let bounds = self.flow_bounds.get().map_or(&[][..], Places::all);
        bounds.iter().for_each(FlowBound::begin);
    }

    /// Classes stand where they belong in their trees, which are others.
    fn stand_anew(&mut self) {
        let now = self.now;
        for place in 0..self.classes.len() {
            self.tree(place).disarm(place);
        }
        for place in 0..self.classes.len() {
            if self.classes.share(place).is_some_and(Share::offers) {
                self.tree(place).settle(place, now);
            }
        }
    }

    /// The flow follows a change of configuration, if there was one. False: no class controls it any more,
    /// and it is forgotten.
    #[inline]
    pub(super) fn revise(&mut self, cx: &mut Cx<'_>, i: u32) -> bool {
        self.table[i].generation == self.generation || self.adapt(cx, i)
    }

    /// As [`Gateway::revise`], where there was a change.
    #[cold]
    fn adapt(&mut self, cx: &mut Cx<'_>, i: u32) -> bool {
        let r = &self.table[i];
        let Some(place) = self.controls(direction_of(r), &r.key) else {
            // What it holds cannot be passed on now, perhaps: it goes on as it was until then.
            return !self.retire(cx, i);
        };
        if place != self.table[i].class {
            self.move_to(cx, i, place);
        }
        if !self.table[i].obeys(self.classes.policy(place)) {
            self.clear_acks(cx, i);
        }
        self.table[i].generation = self.generation;
        self.derive(i, cx.now);
        true
    }

    /// The flow refers to another class, and what it holds is held there.
    fn move_to(&mut self, cx: &mut Cx<'_>, i: u32, place: u32) {
        self.clear_acks(cx, i);
        self.unlist(i, self.now);
        self.give_up_least(i);
        self.end_grant(i);
        let (old, held) = (self.table[i].class, self.held(i));
        self.classes[old].held_bytes -= u64::from(held.bytes);
        self.classes[old].held_acks -= u64::from(held.acks);
        self.classes.leave(old);
        self.classes.join(place);
        self.classes[place].flows += 1;
        self.table.set_class(i, place);
        self.note_held(i, Held { bytes: 0, acks: 0 });
    }

    /// Derives what the flow has of its class.
    fn derive(&mut self, i: u32, now: Time) {
        if !self.table[i].has(flag::SYNCED) {
            return; // it has nothing yet
        }
        self.follow_law(i, now);
        let policy = self.classes.policy(self.table[i].class);
        let sized = matches!(policy.window, Window::Size { .. });
        let r = &mut self.table[i];
        let segments = r.segments();
        policy.release.retune(&mut r.law, &segments, sized);
        if r.takes_turns() && !r.has(flag::CLOSED) {
            self.enlist(i, now); // of another class
        }
        let r = &self.table[i];
        let slot = &self.slots[i];
        let others = slot.flags.load(Relaxed) & !slot_flag::SIZED;
        slot.flags
            .store(others | if sized && r.has(flag::SCALE_KNOWN) { slot_flag::SIZED } else { 0 }, Relaxed);
        let limit = self.window_limit(&self.table[i]);
        self.slots[i].width.store(limit.unwrap_or(0), Relaxed);
    }

    /// Begins the law of release of the flow's class, if the flow keeps another law's state. Held bytes wait
    /// by it.
    pub(super) fn follow_law(&mut self, i: u32, now: Time) {
        let policy = *self.policy(&self.table[i]);
        if self.table[i].obeys(&policy) {
            return;
        }
        self.unlist(i, now);
        self.give_up_least(i);
        if !self.table[i].has(flag::CLOSED) {
            self.end_grant(i);
            self.stop_timer(i);
        }
        let r = &mut self.table[i];
        r.law = policy.release.begin(&r.segments(), false, now);
        r.flags &= !flag::LOSS;
        r.obey(&policy);
        if !r.has(flag::CLOSED) {
            self.wait(i, now);
        }
    }
}
