//! The loop that runs a node in real time.
//!
//! Each round takes the frames that have arrived, orders them by stamp and hands them to the node. Missed
//! deadlines are stepped in between, so the node sees the same calls as in virtual time. Then the loop sleeps
//! until shortly before the next deadline ([`Spin`]). A heartbeat in every round tells the programs in the
//! kernel that frames are wanted.
//!
//! A driver is one thread with one node. Several engines are several drivers, which share nothing but the
//! programs in the kernel. A driver never waits for a lock. After the start it allocates only for inboxes,
//! which grow to a limit.

mod beat;
mod config;
mod early;
mod interfaces;
mod kernel;
mod lateness;
mod launch;
mod leg;
mod out;
mod pace;
mod report;
mod step;
mod verdicts;
mod way;
mod ways;

pub use config::DriverConfig;
pub(crate) use interfaces::InterfaceState;
pub use interfaces::InterfaceStates;
pub use kernel::{HookCounters, Part, Programs};
pub use lateness::Lateness;
pub use launch::Launch;
pub use pace::Spin;
pub use report::Report;
pub use step::{Egress, Stepper};

use crate::port::Input;
use crate::sys::clock;
use crate::sys::epoll::{Ready, Waiter};
use beat::{Beat, Standstills};
use early::Early;
use out::Out;
use pace::{Next, Pace};
use std::io;
use std::os::fd::AsFd;
use verdicts::Verdicts;
use ways::Ways;
use weir_core::frame::{Frame, Frames};
use weir_core::gateway::Verdict;
use weir_core::node::{self, Cx, Node, PortSet};
use weir_core::steer::Fields;
use weir_core::time::{Duration, Time};

/// A node and its events in real time. Every method but `node` has a default: an emulator needs none of them.
pub trait Engine {
    /// The kind of node.
    type Node: Node;
    /// The node that frames are handed to.
    fn node(&mut self) -> &mut Self::Node;
    /// Called when the kernel knows the engine: arriving frames are taken from now on.
    fn started(&mut self) {}
    /// Called when frames have bypassed the engine, through the kernel, before `cx.now`.
    fn resync(&mut self, _cx: &mut Cx<'_>) {}
    /// Called when the engine ends: everything that must survive it becomes due now, and `poll_transmit`
    /// takes it after this call. False if there is more; the driver then calls again.
    fn stop(&mut self, _cx: &mut Cx<'_>) -> bool {
        true
    }
    /// Appends verdicts for the kernel, in order, at most as many as `out` has capacity for.
    fn verdicts(&mut self, _out: &mut Vec<Verdict>) {}
    /// Called between two batches every few milliseconds: the engine may change its configuration. True if it
    /// may control flows that passed; the kernel then forgets its verdicts of passing.
    fn change(&mut self, _cx: &mut Cx<'_>) -> bool {
        false
    }
    /// True if giant segments are to be cut into their packets before the engine sees them. Called at the
    /// start and after each [`Engine::change`].
    fn splits(&self) -> bool {
        false
    }
    /// Fields of packets other than TCP that the hooks look at, for uploads and downloads. Called at the
    /// start and after every change that may control flows that passed.
    fn counted(&self) -> [Fields; 2] {
        [Fields::NONE; 2]
    }
    /// Called when the kernel has all frames that the node has sent before `now`.
    fn sent(&mut self, _now: Time) {}
    /// Called every [`DriverConfig::report_every`], and once at the end.
    fn report(&mut self, _report: &Report<'_>) {}
}

/// Interval at which a busy loop polls its descriptors.
const HOUSEKEEPING: Duration = Duration::from_millis(2);
/// Longest time that the end takes to send due frames.
const LAST_FRAMES: Duration = Duration::from_secs(2);

const STOP: u64 = 1 << 32;

/// Runs an engine. The node's ports are those of [`weir_core::gateway`].
pub struct Driver<'a, E> {
    engine: E,
    frames: Frames,
    inputs: Vec<Input>,
    out: Out,
    programs: Part<'a>,
    interfaces: &'a InterfaceStates,
    stepper: Stepper,
    waiter: Waiter,
    pace: Pace,
    config: DriverConfig,
    inbox: Vec<(Time, node::Port, Frame)>,
    early: Early,
    verdicts: Verdicts,
    started: Time,
    /// Processor time of this thread before `started`.
    cpu_before: Duration,
    beat: Beat,
    ways: Ways,
    next_housekeeping: Time,
    next_report: Time,
    rounds: u64,
}

impl<'a, E: Engine> Driver<'a, E> {
    /// A driver of `engine`; `rests` if its thread runs ahead of all ordinary ones.
    pub(crate) fn new(
        launch: Launch<'a>,
        engine: E,
        config: DriverConfig,
        rests: bool,
    ) -> io::Result<Driver<'a, E>> {
        let Launch { frames, mut inputs, exits, programs, interfaces, stop, judged, restarts, .. } = launch;
        let waiter = Waiter::new()?;
        for (input, number) in inputs.iter().zip(0..) {
            waiter.add(input.as_fd(), number)?;
        }
        waiter.add(stop, STOP)?;
        let split = engine.splits();
        inputs.iter_mut().for_each(|input| input.set_split(split));
        let now = clock::now();
        let ring = inputs.iter().any(|input| matches!(input, Input::Ring(_)));
        let out = Out::new(exits);
        let ways = Ways::new((judged, restarts == 0), now, &out, &inputs, &programs);
        Ok(Driver {
            engine,
            frames,
            inputs,
            out,
            programs,
            interfaces,
            stepper: Stepper::default(),
            waiter,
            pace: Pace::new(config.spin, config.batch_delay, ring, rests, now),
            config,
            inbox: Vec::new(),
            early: Early::new(programs.takes_frames()),
            verdicts: Verdicts::new(),
            started: now,
            cpu_before: clock::thread_cpu(),
            beat: Beat::new(),
            ways,
            next_housekeeping: now,
            next_report: now,
            rounds: 0,
        })
    }

    /// Runs until it is told to stop. Fails if some of the engine's last frames could not be sent.
    pub(crate) fn run(mut self) -> io::Result<E> {
        let mut ready = Vec::new();
        self.programs.hooks().count(self.engine.counted());
        self.beat(clock::now());
        self.engine.started();
        loop {
            let now = clock::now();
            let again = self.round(now);
            let due = self.engine.node().next_deadline(self.out.writable());
            let deadline = due.into_iter().chain(self.early.next()).min();
            let from = clock::now();
            match self.pace.next(from, deadline, again) {
                Next::Sleep(until) => self.sleep(from, until, &mut ready)?,
                Next::Nap(until) => {
                    clock::sleep_until(until);
                    self.pace.awake(from, until, clock::now());
                }
                Next::Run => {}
            }
            if now >= self.next_housekeeping {
                self.next_housekeeping = now + HOUSEKEEPING;
                self.waiter.look(&mut ready)?;
                self.ways.tell(now, self.interfaces);
                self.change();
            }
            if ready.drain(..).any(|event| event.token == STOP) {
                break;
            }
            if now >= self.next_report {
                self.next_report = now + self.config.report_every;
                self.report(now, false);
            }
        }
        self.finish()?;
        Ok(self.engine)
    }

    /// Sleeps until a frame comes, or until `until` at the latest.
    fn sleep(&mut self, from: Time, until: Time, ready: &mut Vec<Ready>) -> io::Result<()> {
        let hooks = self.programs.hooks();
        for input in &self.inputs {
            if let Input::Ring(ring) = input {
                if !hooks.sleep(ring) {
                    return Ok(());
                }
            }
        }
        self.waiter.wait(until, ready)?;
        hooks.awake();
        self.pace.awake(from, until, clock::now());
        Ok(())
    }

    /// Runs one round: beat, take, hand in, send. Returns the time of the next attempt if frames wait for a
    /// device.
    fn round(&mut self, now: Time) -> Option<Time> {
        self.rounds += 1;
        self.beat(now);
        self.out.flush(&mut self.frames, now);
        self.take(now);
        self.hand_in();
        // Frames may have arrived after `now`, but no frame that is due later may leave yet.
        self.stepper.catch_up(self.engine.node(), &mut self.frames, &mut self.out, now);
        // Verdicts come before the frames: the answer to a segment that leaves may then find its flow's slot.
        self.verdicts.write(&mut self.engine, &self.programs);
        let again = self.out.flush(&mut self.frames, now);
        if self.out.waiting() == 0 {
            self.engine.sent(self.stepper.last());
        }
        if self.interfaces.is_apart() {
            self.ways.wait();
        } else if self.ways.look(now, &mut self.frames, &mut self.out, &self.inputs, &self.programs) {
            let now = self.stepper.last();
            self.engine.resync(&mut Cx { now, frames: &mut self.frames });
        }
        again
    }

    fn beat(&mut self, now: Time) {
        if self.beat.at(now) {
            let now = now.max(self.stepper.last());
            self.engine.resync(&mut Cx { now, frames: &mut self.frames });
        }
        if let Some(Standstills { times, longest }) = self.beat.news(now) {
            tracing::warn!(times, %longest, "the engine stalled: frames bypassed it");
        }
        self.programs.hooks().beat(now);
    }

    /// Fills the inbox.
    fn take(&mut self, now: Time) {
        for input in &mut self.inputs {
            let count = input.receive(&mut self.frames, self.config.batch, now, &mut self.inbox);
            match input {
                _ if count == 0 => {}
                Input::Ring(_) => self.pace.came(now),
                _ => self.pace.whole(now),
            }
        }
        self.early.release(now, &mut self.inbox);
        // The sort keeps the order of equals.
        self.inbox.sort_by_key(|(at, _, _)| *at);
        // Segments of a ring may have later stamps than `now`, too.
        if self.inbox.last().is_some_and(|(at, _, _)| *at > now) {
            self.early.keep(&self.frames, clock::now(), &mut self.inbox);
        }
    }

    fn hand_in(&mut self) {
        self.engine.node().announce(&self.frames, &self.inbox);
        for arrival in self.inbox.drain(..) {
            self.stepper.deliver(self.engine.node(), &mut self.frames, &mut self.out, arrival);
        }
    }

    /// Lets the engine change. Verdicts of passing, told or not yet told to the kernel, may not hold
    /// afterwards.
    fn change(&mut self) {
        let (now, frames) = (self.stepper.last(), &mut self.frames);
        if self.engine.change(&mut Cx { now, frames }) {
            self.verdicts.forget_passing();
            self.programs.hooks().next_generation();
            self.programs.hooks().count(self.engine.counted());
        }
        let split = self.engine.splits();
        self.inputs.iter_mut().for_each(|input| input.set_split(split));
    }

    fn report(&mut self, now: Time, last: bool) {
        let report = Report {
            now,
            last,
            wall: now.since(self.started),
            cpu: clock::thread_cpu() - self.cpu_before,
            rounds: self.rounds,
            resyncs: self.beat.times_away(),
            lateness: self.out.lateness(),
            margin: self.pace.margin(),
            inputs: self.inputs.iter_mut().filter_map(Input::stats).collect(),
            exits: self.out.stats(),
            hooks: self.programs.counters(),
            degraded: self.degraded(now),
            unseen: self.interfaces.unseen(),
            drops: *self.frames.drops(),
            free_chunks: self.frames.free_chunks(),
        };
        self.engine.report(&report);
    }

    /// Returns the driver's faults in words, if there are any.
    fn degraded(&self, now: Time) -> Option<String> {
        let starved = self.beat.starved(now);
        let starved = starved.map(|percent| {
            format!("the engine has no processor: in {percent} % of the time frames go past it")
        });
        let hangs = self.interfaces.is_hanging().then(|| {
            "the engine has no processor: engines hang, and are replaced, again and again".to_owned()
        });
        let known = self.interfaces.degraded().or_else(|| self.ways.degraded(now, self.interfaces));
        let all: Vec<String> = known.into_iter().chain(hangs.or(starved)).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// Gives frames back to the kernel, and sends the frames already taken and the engine's last ones.
    fn finish(&mut self) -> io::Result<()> {
        let until = clock::now() + LAST_FRAMES;
        let mut stopped = false;
        self.out.release(&mut self.frames);
        let left = loop {
            let now = clock::now();
            // The hooks take no more frames without a beat.
            self.programs.hooks().beat(Time::ZERO);
            self.early.close(now, &mut self.inbox);
            self.take(now);
            let idle = self.inbox.is_empty();
            self.hand_in();
            self.stepper.catch_up(self.engine.node(), &mut self.frames, &mut self.out, now);
            if idle && !stopped && self.out.waiting() == 0 {
                stopped = self.engine.stop(&mut Cx { now: self.stepper.last(), frames: &mut self.frames });
            }
            self.stepper.drain(self.engine.node(), &mut self.frames, &mut self.out);
            let waits = self.out.flush(&mut self.frames, now).is_some();
            self.verdicts.write(&mut self.engine, &self.programs);
            let due = self.engine.node().next_deadline(PortSet::ALL).is_some_and(|due| due <= now);
            if idle && stopped && !due && !waits {
                break 0;
            }
            if now >= until {
                break self.out.waiting().max(1);
            }
            if waits {
                clock::sleep_until(now + HOUSEKEEPING);
            }
        };
        self.report(clock::now(), true);
        match left {
            0 => Ok(()),
            left => Err(io::Error::other(format!("{left} frames could not be sent in time"))),
        }
    }
}
