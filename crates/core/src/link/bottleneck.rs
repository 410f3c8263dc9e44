//! A queue and the service that takes frames from it: a rate, a rate that a trace changes, or the
//! opportunities of a trace.

use super::changes::Changes;
use super::deliveries::Deliveries;
use super::server::Server;
use super::trace::{Opportunities, RateTrace};
use super::wire::Wire;
use super::Config;
use crate::frame::{Charge, Frame, Waiting};
use crate::node::Cx;
use crate::queue::Queue;
use crate::rate::Rate;
use crate::time::{Duration, Time};

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Bottleneck {
    pub(super) queue: Queue,
    service: Service,
}

/// Service that takes frames from the queue.
#[derive(Debug)]
enum Service {
    /// One rate.
    Rate(Server),
    /// A rate that changes, and may be an outage.
    Traced(Server, Changes),
    /// A number of bytes at given times.
    Deliveries(Deliveries),
}

impl Bottleneck {
    /// Returns a bottleneck with this rate, or with the configuration's trace.
    pub(super) fn new(config: &Config, rate: Rate) -> Bottleneck {
        let queue = config.aqm.queue(config.queue, config.mark, rate, config.seed ^ 0x0061_716d);
        let server = || Server::new(rate, config.burst, config.timer);
        let service = match config.trace {
            None => Service::Rate(server()),
            Some(RateTrace::Rates(rates)) => Service::Traced(server(), Changes::new(rates, config.epoch)),
            Some(RateTrace::Opportunities(trace)) => {
                Service::Deliveries(Deliveries::new(trace, config.epoch))
            }
        };
        Bottleneck { queue, service }
    }

    /// Takes in a frame at `cx.now`.
    #[inline(never)]
    pub(super) fn take_in(&mut self, cx: &mut Cx<'_>, wire: &mut Wire, frame: Frame, charge: Charge) {
        self.advance(cx, wire);
        let waiting = Waiting { frame: cx.frames.park(frame), charge, since: cx.now };
        self.arrive(cx, wire, waiting);
    }

    /// Enqueues a frame at `cx.now`. Call [`Bottleneck::advance`] before.
    fn arrive(&mut self, cx: &mut Cx<'_>, wire: &mut Wire, waiting: Waiting) {
        match &mut self.service {
            Service::Rate(server) | Service::Traced(server, _) if server.is_idle() => {
                if let Some(waiting) = self.queue.pass(cx, waiting) {
                    wire.waited(cx.now, cx.now);
                    server.begin(cx.now, waiting);
                }
            }
            _ => {
                self.queue.push(cx, waiting);
            }
        }
    }

    /// Advances to `cx.now`.
    #[inline(never)]
    pub(super) fn advance(&mut self, cx: &mut Cx<'_>, wire: &mut Wire) {
        match &self.service {
            Service::Rate(server) if server.done() > cx.now => {}
            _ => self.catch_up(cx, wire),
        }
    }

    fn catch_up(&mut self, cx: &mut Cx<'_>, wire: &mut Wire) {
        let Bottleneck { queue, service } = self;
        match service {
            Service::Rate(server) => serve(server, queue, cx, wire),
            Service::Traced(server, changes) => {
                while changes.next() <= cx.now {
                    let at = changes.next();
                    serve(server, queue, &mut Cx { now: at, frames: cx.frames }, wire);
                    if server.is_settled() {
                        changes.skip_rounds(cx.now);
                    }
                    let at = changes.next();
                    match changes.step() {
                        Some(rate) => server.resume(at, rate),
                        None => server.pause(at),
                    }
                }
                serve(server, queue, cx, wire);
            }
            Service::Deliveries(deliveries) => deliver(deliveries, queue, cx, wire),
        }
    }

    /// Sets the rate from now on. The configuration has no trace any more.
    pub(super) fn set_rate(&mut self, cx: &mut Cx<'_>, config: &Config, rate: Rate) {
        self.queue.set_limit(config.queue, rate);
        match &mut self.service {
            Service::Rate(server) => server.set_rate(cx.now, rate),
            Service::Traced(server, _) => {
                server.resume(cx.now, rate);
                let server = core::mem::replace(server, Server::new(rate, 0, Duration::ZERO));
                self.service = Service::Rate(server);
            }
            Service::Deliveries(deliveries) => {
                let mut server = Server::new(rate, config.burst, config.timer);
                let begun = deliveries.take().or_else(|| self.queue.pop(cx));
                begun.into_iter().for_each(|waiting| server.begin(cx.now, waiting));
                self.service = Service::Rate(server);
            }
        }
    }

    /// Returns the time at which the next frame comes out, if all frames take exactly `delay` (`exact`).
    /// Otherwise, and before a change of the rate, returns the time at which the next step is due.
    #[inline]
    pub(super) fn due(&self, delay: Duration, exact: bool) -> Option<Time> {
        let line = if exact { delay } else { Duration::ZERO };
        match &self.service {
            Service::Rate(server) => (!server.is_idle()).then(|| server.done() + line),
            Service::Traced(server, _) if server.is_idle() => None,
            Service::Traced(server, changes) => {
                let (done, change) = (server.done(), changes.next());
                let due = if done <= change { done + line } else { change };
                (due < Time::MAX).then_some(due)
            }
            Service::Deliveries(deliveries) => {
                let idle = deliveries.is_idle() && self.queue.packets() == 0;
                (!idle).then(|| deliveries.next() + line)
            }
        }
    }
}

/// Takes one frame after the other from the queue, each when the one before is through.
fn serve(server: &mut Server, queue: &mut Queue, cx: &mut Cx<'_>, wire: &mut Wire) {
    while server.done() <= cx.now {
        let done = server.done();
        let Some(served) = server.finish() else { return };
        let mut then = Cx { now: done, frames: cx.frames };
        wire.served(&mut then, served);
        if let Some(next) = queue.pop(&mut then) {
            wire.waited(done, next.since);
            server.begin(done, next);
        }
    }
}

/// Uses the opportunities up to now.
fn deliver(deliveries: &mut Deliveries, queue: &mut Queue, cx: &mut Cx<'_>, wire: &mut Wire) {
    while deliveries.next() <= cx.now {
        if deliveries.is_idle() && queue.packets() == 0 {
            return deliveries.skip(cx.now);
        }
        let mut then = Cx { now: deliveries.next(), frames: cx.frames };
        deliveries.step();
        let mut room = Opportunities::BYTES;
        while room > 0 {
            if deliveries.is_idle() {
                let Some(next) = queue.pop(&mut then) else { break };
                wire.waited(then.now, next.since);
                deliveries.begin(then.now, next);
            }
            if let Some(served) = deliveries.send(then.now, &mut room) {
                wire.served(&mut then, served);
            }
        }
    }
}
