//! The loop that runs a node in real time.
//!
//! Each round takes what has arrived on all ports, orders it by stamp, and hands it to the node
//! with every missed deadline stepped in between, so that the node sees the same calls as in
//! virtual time; then it sleeps until shortly before the next deadline. A heartbeat in every round
//! tells the XDP programs that frames are wanted.
//!
//! A driver is one thread with one node. It never waits for a lock, and the only memory it takes
//! after the start is for inboxes that grow to their limit.

mod lateness;
mod pace;
mod step;

pub use lateness::Lateness;
pub use step::{Egress, Stepper};

use crate::bpf::{FlowKey, ObserveCounters, Observer, Shared, SteerCounters, Steering, Verdict};
use crate::port::{Port, PortStats};
use crate::sys::epoll::{Ready, Waiter};
use crate::sys::{clock, process, sched};
use pace::{Next, Pace};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use weir_core::frame::{Frame, Frames};
use weir_core::node::{self, Cx, Node, PortSet, Transmit};
use weir_core::stats::DropReason;
use weir_core::time::{Duration, Time};

/// A node that knows it runs in real time. Every method has a default: an emulator needs none.
pub trait Engine: Node {
    /// Frames have gone past the engine, through the kernel, before `cx.now`.
    fn resync(&mut self, _cx: &mut Cx<'_>) {}
    /// The engine ends: what must not die with it is due now, and is taken by `poll_transmit`
    /// after this call.
    fn stop(&mut self, _cx: &mut Cx<'_>) {}
    /// Verdicts decided since the last call, at most as many as `out` has capacity for.
    fn verdicts(&mut self, _out: &mut Vec<(FlowKey, Verdict)>) {}
    /// Changes when verdicts given so far no longer hold.
    fn generation(&self) -> u32 {
        0
    }
    /// Called every [`DriverConfig::report_every`], and once at the end.
    fn report(&mut self, _report: &Report<'_>) {}
}

/// How a driver runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverConfig {
    /// How long before a deadline it stops sleeping.
    pub spin: Duration,
    /// SCHED_FIFO priority, if permitted; `None` for the ordinary scheduler.
    pub priority: Option<u8>,
    /// CPU to stay on.
    pub cpu: Option<usize>,
    /// Frames taken from a queue in one round.
    pub batch: usize,
    /// How often [`Engine::report`] is called.
    pub report_every: Duration,
}

impl Default for DriverConfig {
    fn default() -> DriverConfig {
        DriverConfig {
            spin: Duration::from_micros(40),
            priority: Some(40),
            cpu: None,
            batch: 64,
            report_every: Duration::from_millis(100),
        }
    }
}

/// The state of a driver, for statistics.
#[derive(Debug)]
pub struct Report<'a> {
    /// The time.
    pub now: Time,
    /// The engine has ended: there will be no other.
    pub last: bool,
    /// Since the driver started.
    pub wall: Duration,
    /// CPU time that its thread has used.
    pub cpu: Duration,
    /// Rounds so far.
    pub rounds: u64,
    /// Times it had been away so long that frames went past it.
    pub resyncs: u64,
    /// Observed headers for which there was no chunk.
    pub observations_lost: u64,
    /// How late frames left.
    pub lateness: &'a Lateness,
    /// Its ports, in order.
    pub ports: Vec<PortStats>,
    /// What the steering of each port did; `None` for a port without.
    pub steering: Vec<Option<SteerCounters>>,
    /// What the observers did, in the order of their taps.
    pub observers: Vec<ObserveCounters>,
    /// Frames dropped by all, with reasons.
    pub drops: weir_core::stats::Drops,
    /// Chunks free in the pool.
    pub free_chunks: usize,
}

/// An observer, and the node's port that its copies are handed to.
#[derive(Debug)]
pub struct Tap<'a> {
    /// [`weir_core::gateway::LAN_TAP`] or [`weir_core::gateway::WAN_TAP`].
    pub port: node::Port,
    /// Where the headers come from.
    pub observer: &'a mut Observer,
}

/// What the driver shares with the programs in the kernel.
#[derive(Debug)]
pub struct Kernel<'a> {
    /// Heartbeat and verdicts.
    pub shared: &'a Shared,
    /// The steering of each port, for its counters.
    pub steering: Vec<Option<&'a Steering>>,
    /// Observers of ports whose data stays in the kernel.
    pub taps: Vec<Tap<'a>>,
}

/// After so long without a beat, the engine acts as if frames had gone past it. The XDP program's
/// own limit is 50 ms.
const AWAY: Duration = Duration::from_millis(40);
/// Observations taken in one round.
const OBSERVATIONS: usize = 256;
/// Verdicts written in one round.
const VERDICTS: usize = 64;
/// Frames handed over before the device is asked to send.
const FLUSH: usize = 32;
/// How often a port that is down, and the descriptors of a busy loop, are looked at.
const HOUSEKEEPING: Duration = Duration::from_millis(2);
/// How long the end may take to send what is due.
const LAST_FRAMES: Duration = Duration::from_millis(200);

const STOP: u64 = 1 << 32;
const TAP: u64 = 1 << 33;

/// Runs an engine over ports. The node's port `n` is the `n`th of them.
pub struct Driver<'a, E> {
    engine: E,
    frames: Frames,
    out: Out,
    kernel: Kernel<'a>,
    stepper: Stepper,
    waiter: Waiter,
    config: DriverConfig,
    inbox: Vec<(Time, node::Port, Frame)>,
    batch: Vec<Frame>,
    verdicts: Vec<(FlowKey, Verdict)>,
    started: Time,
    generation: u32,
    last_beat: Time,
    next_housekeeping: Time,
    next_report: Time,
    rounds: u64,
    resyncs: u64,
    observations_lost: u64,
}

/// The ports as the node's way out.
struct Out {
    ports: Vec<Port>,
    /// Room of each port when last asked, less what was sent since.
    room: Vec<usize>,
    unflushed: usize,
    /// A device was full at the last flush.
    unsent: bool,
    lateness: Lateness,
    error: Option<io::Error>,
}

impl Out {
    fn flush(&mut self, frames: &mut Frames) {
        (self.unflushed, self.unsent) = (0, false);
        for (port, room) in self.ports.iter_mut().zip(&mut self.room) {
            match port.flush(frames) {
                Ok(unsent) => self.unsent |= unsent,
                Err(error) => drop(self.error.get_or_insert(error)),
            }
            *room = port.room();
        }
    }
}

impl Egress for Out {
    fn writable(&mut self) -> PortSet {
        let mut set = PortSet::NONE;
        for (room, number) in self.room.iter().zip(0..) {
            if *room > 0 {
                set = set.with(node::Port(number));
            }
        }
        set
    }

    fn send(&mut self, frames: &mut Frames, transmit: Transmit) {
        let number = transmit.port.0 as usize;
        let Some(port) = self.ports.get_mut(number) else {
            return frames.drop(transmit.frame, DropReason::NotWired);
        };
        self.lateness.add(clock::now().since(transmit.at));
        port.transmit(frames, transmit.frame);
        self.room[number] = self.room[number].saturating_sub(1);
        self.unflushed += 1;
        if self.unflushed == FLUSH {
            self.flush(frames);
        }
    }
}

impl<'a, E: Engine> Driver<'a, E> {
    /// A driver of `engine` over `ports`, whose chunks are those of `frames`.
    pub fn new(
        ports: Vec<Port>,
        kernel: Kernel<'a>,
        frames: Frames,
        engine: E,
        config: DriverConfig,
    ) -> io::Result<Driver<'a, E>> {
        let waiter = Waiter::new()?;
        for (port, number) in ports.iter().zip(0..) {
            for descriptor in port.descriptors() {
                waiter.add(descriptor, number)?;
            }
        }
        for (tap, number) in kernel.taps.iter().zip(TAP..) {
            waiter.add(tap.observer.as_fd(), number)?;
        }
        let room = vec![0; ports.len()];
        let lateness = Lateness::default();
        let out = Out { ports, room, unflushed: 0, unsent: false, lateness, error: None };
        let now = clock::now();
        Ok(Driver {
            engine,
            frames,
            out,
            kernel,
            stepper: Stepper::default(),
            waiter,
            config,
            inbox: Vec::new(),
            batch: Vec::new(),
            verdicts: Vec::with_capacity(VERDICTS),
            started: now,
            generation: 0,
            last_beat: Time::ZERO,
            next_housekeeping: now,
            next_report: now,
            rounds: 0,
            resyncs: 0,
            observations_lost: 0,
        })
    }

    /// Runs until `stop` is readable. The engine's last frames have left then; the rest of what it
    /// held is lost. Fails if an interface is gone.
    pub fn run(mut self, stop: BorrowedFd<'_>) -> io::Result<E> {
        self.waiter.add(stop, STOP)?;
        let rests = self.schedule();
        let mut ready = Vec::new();
        let mut pace = Pace::new(self.config.spin, rests, clock::now());
        loop {
            let now = clock::now();
            self.round(now)?;
            let deadline = self.engine.next_deadline(self.out.writable());
            let next = pace.next(clock::now(), deadline, self.out.unsent || self.waits());
            match next {
                Next::Sleep(until) => {
                    let from = clock::now();
                    self.waiter.wait(until, &mut ready)?;
                    pace.awake(from, clock::now());
                }
                Next::Rest(until) => {
                    let from = clock::now();
                    clock::sleep_until(until);
                    pace.awake(from, clock::now());
                    self.waiter.look(&mut ready)?;
                }
                Next::Run if now < self.next_housekeeping => continue,
                Next::Run => self.waiter.look(&mut ready)?,
            }
            if self.attend(now, &ready)? {
                break;
            }
        }
        self.finish()?;
        Ok(self.engine)
    }

    /// Sets the thread up; true if it runs ahead of all ordinary ones. Nothing here is needed to
    /// work, only to work on time: what is refused is said.
    fn schedule(&self) -> bool {
        let say = |what: &str, result: io::Result<()>| match result {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!("{what} refused, releases may be late: {error}");
                false
            }
        };
        say("timer slack", sched::no_timer_slack());
        say("locking memory", process::lock_memory());
        if let Some(cpu) = self.config.cpu {
            say("CPU affinity", sched::pin(cpu));
        }
        self.config.priority.is_some_and(|priority| say("SCHED_FIFO", sched::fifo(priority)))
    }

    /// Does a frame that is due wait for a port?
    fn waits(&self) -> bool {
        self.engine.next_deadline(PortSet::ALL).is_some_and(|due| due <= self.stepper.last())
    }

    /// One round: beat, take, hand in, send.
    fn round(&mut self, now: Time) -> io::Result<()> {
        self.rounds += 1;
        self.beat(now);
        self.out.flush(&mut self.frames);
        self.take(now);
        self.hand_in();
        // Frames may have arrived after `now`; nothing that is due later may leave.
        self.stepper.catch_up(&mut self.engine, &mut self.frames, &mut self.out, now);
        self.out.flush(&mut self.frames);
        self.write_verdicts();
        match self.out.error.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn beat(&mut self, now: Time) {
        let last = std::mem::replace(&mut self.last_beat, now);
        let away = last != Time::ZERO && now.since(last) > AWAY;
        if away {
            self.resyncs += 1;
            tracing::warn!("the engine had been away for {}: frames went past it", now.since(last));
            let now = now.max(self.stepper.last());
            self.engine.resync(&mut Cx { now, frames: &mut self.frames });
        }
        self.kernel.shared.beat(now);
    }

    /// Fills the inbox. Receive rings come first: what an observed frame caused then cannot be
    /// taken without the observation.
    fn take(&mut self, now: Time) {
        for (port, number) in self.out.ports.iter_mut().zip(0..) {
            port.receive(&mut self.frames, self.config.batch, now, &mut self.batch);
            self.inbox.extend(self.batch.drain(..).map(|f| (f.received, node::Port(number), f)));
        }
        let first_observation = self.inbox.len();
        for tap in &mut self.kernel.taps {
            for _ in 0..OBSERVATIONS {
                let Some(seen) = tap.observer.next() else { break };
                let (at, head) = (Time::from_nanos(seen.time), seen.head_len as usize);
                let head = &seen.head[..head.min(seen.head.len())];
                match self.frames.receive_copy(head, seen.len as usize, at) {
                    Some(frame) => self.inbox.push((at, tap.port, frame)),
                    None => self.observations_lost += 1,
                }
            }
        }
        // The sort keeps the order of equals: observations first.
        self.inbox.rotate_left(first_observation);
        self.inbox.sort_by_key(|(at, _, _)| *at);
    }

    fn hand_in(&mut self) {
        for arrival in self.inbox.drain(..) {
            self.stepper.deliver(&mut self.engine, &mut self.frames, &mut self.out, arrival);
        }
    }

    fn write_verdicts(&mut self) {
        let generation = self.engine.generation();
        if generation != self.generation {
            self.generation = generation;
            self.kernel.shared.next_generation();
        }
        self.engine.verdicts(&mut self.verdicts);
        for (key, verdict) in self.verdicts.drain(..) {
            // A verdict that cannot be written leaves a flow with the engine, which is right too.
            if let Err(error) = self.kernel.shared.set_verdict(&key, verdict) {
                tracing::debug!("{error}");
            }
        }
    }

    /// Looks at what became ready, and at what is done now and then. True to stop.
    fn attend(&mut self, now: Time, ready: &[Ready]) -> io::Result<bool> {
        for event in ready {
            if event.token == STOP {
                return Ok(true);
            }
            if event.error {
                if let Some(port) = self.out.ports.get_mut(event.token as usize) {
                    port.failed(&mut self.frames)?;
                }
            }
        }
        if now >= self.next_housekeeping {
            self.next_housekeeping = now + HOUSEKEEPING;
            for port in &mut self.out.ports {
                port.check(&mut self.frames)?;
            }
        }
        if now >= self.next_report {
            self.next_report = now + self.config.report_every;
            self.report(now, false);
        }
        Ok(false)
    }

    fn report(&mut self, now: Time, last: bool) {
        let report = Report {
            now,
            last,
            wall: now.since(self.started),
            cpu: clock::thread_cpu(),
            rounds: self.rounds,
            resyncs: self.resyncs,
            observations_lost: self.observations_lost,
            lateness: &self.out.lateness,
            ports: self.out.ports.iter().map(Port::stats).collect(),
            steering: self.kernel.steering.iter().map(|s| s.and_then(|s| s.counters().ok())).collect(),
            observers: self.kernel.taps.iter().map(|t| t.observer.counters().unwrap_or_default()).collect(),
            drops: *self.frames.drops(),
            free_chunks: self.frames.free_chunks(),
        };
        self.engine.report(&report);
    }

    /// Frames go to the kernel from here on; what was taken, and what the engine wants to say
    /// before it ends, still leaves.
    fn finish(&mut self) -> io::Result<()> {
        self.kernel.shared.beat(Time::ZERO);
        let until = clock::now() + LAST_FRAMES;
        let mut stopped = false;
        loop {
            let now = clock::now();
            self.take(now);
            let idle = self.inbox.is_empty();
            self.hand_in();
            self.stepper.catch_up(&mut self.engine, &mut self.frames, &mut self.out, now);
            self.out.flush(&mut self.frames);
            if idle && !stopped {
                stopped = true;
                self.engine.stop(&mut Cx { now: self.stepper.last(), frames: &mut self.frames });
            }
            self.stepper.drain(&mut self.engine, &mut self.frames, &mut self.out);
            self.out.flush(&mut self.frames);
            if idle && stopped && !self.waits() || now >= until {
                break;
            }
        }
        let now = clock::now();
        self.report(now, true);
        Ok(())
    }
}
