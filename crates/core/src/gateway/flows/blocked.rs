//! Releases that cannot be carried out, because their port takes no frame or no frame is free.
//!
//! Releases for a blocked port stay on the port's wheel, which costs nothing however many flows there are.
//! Once a poll finds the port open again, all releases that came due meanwhile are carried out in their
//! order. No flow makes up for more than [`MADE_UP`]: a flow earns nothing while its port is blocked. An
//! exhausted pool blocks both ports until it is looked at again.

use crate::base::Timers;
use crate::node::{Cx, Port, PortSet, LAN, WAN};
use crate::time::{Duration, Time};

/// Release times that a flow makes up for whose port was blocked, or two of its periods if that is longer.
pub(in crate::gateway) const MADE_UP: Duration = Duration::from_millis(5);
/// Time between two looks at an exhausted pool.
const RETRY: Duration = Duration::from_millis(1);
/// The ports that ACKs leave by.
const BOTH: PortSet = PortSet::NONE.with(LAN).with(WAN);

/// Time for which a port was shut last.
#[derive(Clone, Copy)]
struct Span {
    since: Time,
    /// Once it is open again.
    until: Time,
}

pub(in crate::gateway) struct Blocked {
    /// Ports by which releases can be carried out, as the last poll found them.
    open: PortSet,
    spans: [Span; 2],
    /// Next look at an exhausted pool.
    retry: Option<Time>,
}

impl Blocked {
    pub(in crate::gateway) fn new() -> Blocked {
        Blocked { open: BOTH, spans: [Span { since: Time::MAX, until: Time::ZERO }; 2], retry: None }
    }

    /// Notes that no poll has come yet, whatever was due.
    pub(super) fn since_ever(&mut self) {
        self.open = PortSet::NONE;
        self.spans = [Span { since: Time::ZERO, until: Time::ZERO }; 2];
    }

    /// Ports by which releases can be carried out, as far as is known.
    pub(in crate::gateway) fn open(&self) -> PortSet {
        self.open
    }

    /// A release that is due at `due` can be carried out then, or when the pool is looked at.
    #[inline]
    pub(in crate::gateway) fn earliest(&self, due: Time) -> Time {
        match self.retry {
            Some(retry) => retry.max(due),
            None => due,
        }
    }

    /// Returns whether the port was blocked at `due`.
    pub(in crate::gateway) fn was(&self, port: Port, due: Time) -> bool {
        let span = &self.spans[usize::from(port.0)];
        span.since <= due && due <= span.until
    }

    /// Finds the ports by which releases can be carried out, by a poll for these.
    pub(in crate::gateway) fn find_open(&mut self, cx: &Cx<'_>, timers: &Timers<2>, writable: PortSet) {
        let mut open = writable.and(BOTH);
        if let Some(retry) = self.retry {
            if cx.now < retry {
                open = PortSet::NONE;
            } else if cx.frames.is_exhausted() {
                self.retry = Some(cx.now + RETRY);
                open = PortSet::NONE;
            } else {
                self.retry = None;
            }
        }
        if open != self.open {
            self.set_open(timers, cx.now, open);
        }
    }

    /// There is no frame for the release that is due.
    #[cold]
    pub(in crate::gateway) fn rest(&mut self, timers: &Timers<2>, now: Time) {
        self.retry = Some(now + RETRY);
        self.set_open(timers, now, PortSet::NONE);
    }

    /// Other ports are open than before.
    #[cold]
    fn set_open(&mut self, timers: &Timers<2>, now: Time, open: PortSet) {
        for port in [LAN, WAN] {
            let span = &mut self.spans[usize::from(port.0)];
            match (self.open.contains(port), open.contains(port)) {
                // What is due already could not be carried out either.
                (true, false) => span.since = timers.next(wheel(port)).min(now),
                (false, true) => span.until = now,
                _ => {}
            }
        }
        self.open = open;
    }
}

/// The wheel of the flows whose ACKs leave by a port.
pub(in crate::gateway) fn wheel(port: Port) -> usize {
    usize::from(port == WAN)
}
