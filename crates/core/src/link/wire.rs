//! The part of a link behind its rate: it counts serialized frames, duplicates or damages some, and puts them
//! on the line.

use super::damage::Damages;
use super::line::Line;
use super::server::Served;
use super::Config;
use crate::frame::{Charge, Frame};
use crate::node::Cx;
use crate::stats::Histogram;
use crate::time::{Duration, Time};

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) line: Line,
    damages: Option<Box<Damages>>,
    /// Serialized packets, their bytes, and the time that they took.
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) busy: Duration,
    /// Time that frames waited before.
    pub(super) queue_delay: Histogram,
}

impl Wire {
    pub(super) fn new(config: &Config) -> Wire {
        Wire {
            line: Line::new(config.delay, config.jitter, config.reorder, config.seed),
            damages: Damages::new(config.damage, config.seed),
            packets: 0,
            bytes: 0,
            busy: Duration::ZERO,
            queue_delay: Histogram::new(),
        }
    }

    /// Becomes the wire of another configuration at `now`. Its counters go on.
    pub(super) fn change(&mut self, now: Time, before: &Config, next: &Config) {
        let Config { delay, jitter, reorder, .. } = *next;
        if (before.delay, before.jitter, before.reorder) != (delay, jitter, reorder) {
            self.line.change(now, Line::new(delay, jitter, reorder, next.seed));
        }
        if before.damage != next.damage {
            self.damages = Some(Box::new(Damages::after(self.damaged(), next.damage, next.seed)));
        }
    }

    /// Returns the number of frames that came out twice, and of those that came out broken.
    pub(super) fn damaged(&self) -> (u64, u64) {
        self.damages.as_ref().map_or((0, 0), |d| (d.duplicated, d.corrupted))
    }

    /// Counts a serialized frame.
    #[inline]
    pub(super) fn count(&mut self, charge: Charge, took: Duration) {
        self.packets += u64::from(charge.packets);
        self.bytes += charge.bytes;
        self.busy = self.busy + took;
    }

    /// Passes a frame that no rate delays.
    #[inline(never)]
    pub(super) fn pass(&mut self, cx: &mut Cx<'_>, frame: Frame, charge: Charge) {
        self.count(charge, Duration::ZERO);
        self.enter(cx, frame);
    }

    /// Handles a parked frame that is through at `cx.now`.
    #[inline]
    pub(super) fn served(&mut self, cx: &mut Cx<'_>, served: Served) {
        self.count(served.charge, served.took);
        let frame = cx.frames.unpark(served.frame);
        self.enter(cx, frame);
    }

    /// Records the waiting time of a frame whose transmission begins.
    #[inline]
    pub(super) fn waited(&mut self, now: Time, since: Time) {
        self.queue_delay.record(now.since(since).as_nanos());
    }

    /// Puts a frame on the line at `cx.now`.
    #[inline(never)]
    pub(super) fn enter(&mut self, cx: &mut Cx<'_>, mut frame: Frame) {
        if let Some(damages) = &mut self.damages {
            let copy = damages.duplicate(cx, &frame);
            damages.corrupt(cx.frames, &mut frame);
            self.line.push(cx.now, frame);
            let Some(mut copy) = copy else { return };
            damages.corrupt(cx.frames, &mut copy);
            return self.line.push(cx.now, copy);
        }
        self.line.push(cx.now, frame);
    }
}
