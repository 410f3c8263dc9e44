//! Frames on their way out, per port, in the order of their times.

use super::{LAN, WAN};
use crate::frame::Frame;
use crate::node::{Cx, Port, PortSet, Transmit};
use crate::stats::{DropReason, Ledger};
use crate::time::Time;
use std::collections::VecDeque;

/// Frames that may wait for a port; a port that stays blocked longer drops.
const LIMIT: usize = 4096;
/// Releases stop making ACKs for a port with this many frames waiting.
const BUSY: usize = 64;

pub(super) struct Outbox {
    queues: [VecDeque<(Time, Frame)>; 2],
    last: [Time; 2],
    /// All that is queued was refused by the ports: only they can change that.
    blocked: bool,
}

impl Outbox {
    pub(super) fn new() -> Outbox {
        let queue = || VecDeque::with_capacity(LIMIT);
        Outbox { queues: [queue(), queue()], last: [Time::ZERO; 2], blocked: false }
    }

    pub(super) fn push(&mut self, cx: &mut Cx<'_>, ledger: &mut Ledger, port: Port, at: Time, frame: Frame) {
        let n = usize::from(port == WAN);
        if self.queues[n].len() >= LIMIT {
            ledger.drops.count(DropReason::QueueFull);
            cx.drop(frame, DropReason::QueueFull);
            return;
        }
        self.blocked = false;
        self.last[n] = self.last[n].max(at);
        self.queues[n].push_back((self.last[n], frame));
    }

    pub(super) fn pop(&mut self, ledger: &mut Ledger, writable: PortSet) -> Option<Transmit> {
        let first = |n: usize, port: Port| {
            self.queues[n].front().filter(|_| writable.contains(port)).map(|f| (f.0, n, port))
        };
        let (at, n, port) = match (first(0, LAN), first(1, WAN)) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        let (_, frame) = self.queues[n].pop_front()?;
        ledger.sent += 1;
        Some(Transmit { port, at, frame })
    }

    /// Is there room for so many more?
    pub(super) fn has_room(&self, port: Port, frames: usize) -> bool {
        self.queues[usize::from(port == WAN)].len() + frames <= LIMIT
    }

    pub(super) fn busy(&self, port: Port) -> bool {
        self.queues[usize::from(port == WAN)].len() >= BUSY
    }

    /// The last poll left what is queued behind.
    pub(super) fn set_blocked(&mut self) {
        self.blocked = true;
    }

    /// When the first frame was due, unless it waits for its port.
    pub(super) fn front(&self) -> Option<Time> {
        if self.blocked {
            return None;
        }
        self.queues.iter().filter_map(|q| q.front()).map(|f| f.0).min()
    }
}
