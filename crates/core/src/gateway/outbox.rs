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
}

impl Outbox {
    pub(super) fn new() -> Outbox {
        let queue = || VecDeque::with_capacity(LIMIT);
        Outbox { queues: [queue(), queue()], last: [Time::ZERO; 2] }
    }

    pub(super) fn push(&mut self, cx: &mut Cx<'_>, ledger: &mut Ledger, port: Port, at: Time, frame: Frame) {
        let n = usize::from(port == WAN);
        if self.queues[n].len() >= LIMIT {
            ledger.drops.count(DropReason::QueueFull);
            cx.drop(frame, DropReason::QueueFull);
            return;
        }
        self.last[n] = self.last[n].max(at);
        self.queues[n].push_back((self.last[n], frame));
    }

    /// When the first frame for a writable port was due, and that port.
    fn first(&self, writable: PortSet) -> Option<(Time, Port)> {
        let front = |port: Port| {
            let queue = &self.queues[usize::from(port == WAN)];
            queue.front().filter(|_| writable.contains(port)).map(|frame| (frame.0, port))
        };
        front(LAN).into_iter().chain(front(WAN)).min()
    }

    pub(super) fn pop(&mut self, ledger: &mut Ledger, writable: PortSet) -> Option<Transmit> {
        let (at, port) = self.first(writable)?;
        let (_, frame) = self.queues[usize::from(port == WAN)].pop_front()?;
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

    /// When the first frame for a writable port was due.
    pub(super) fn due(&self, writable: PortSet) -> Option<Time> {
        self.first(writable).map(|(at, _)| at)
    }
}
