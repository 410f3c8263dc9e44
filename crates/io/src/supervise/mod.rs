//! The supervisor: a small parent process that sets the host up, runs the engine as its child, and keeps
//! traffic flowing without an engine.
//!
//! ```text
//! supervisor ── fork ──▶ engine (pool, node; sockets that the supervisor opened)
//!   both hold: programs and their links, maps, slots, flow records
//!   the supervisor alone: its own senders, state, netlink events
//! ```
//!
//! - The engine dies: the supervisor starts another one at once. Meanwhile the kernel closes the first one's
//!   sockets, which takes tens of milliseconds. The new engine takes over flows, slots and the ring as they
//!   are. If no engine beats for 50 ms, the programs in the kernel let everything pass, and keep the slots of
//!   flows. The supervisor then calls `flush`, which acknowledges the bytes of held ACKs.
//! - The engine hangs: everything passes after 50 ms, and the supervisor calls `flush`, because senders that
//!   wait for held ACKs have no other segments under way. After 80 ms it kills the engine, calls `flush`
//!   again, and starts another one.
//! - SIGHUP or a client of the instance's socket: an [`Operator`] handles it.
//! - SIGTERM or SIGINT: the engine is told to stop, flushes itself and ends; the programs come off.
//! - The supervisor is killed: the engine gets SIGTERM, flushes itself and ends; the programs come off with
//!   it.
//! - Both are killed: the kernel removes the programs. Before Linux 6.6 they stay, and let everything pass.
//! - A fork fails, or engines end right after their start: everything passes, with the windows of the
//!   receivers. The supervisor tries again, at last every second (`restarts`), and logs it once.
//! - An interface goes away, comes back, is renamed, goes down or up, or changes its MTU: netlink reports it,
//!   and the programs follow. A new interface gets new sockets. The links themselves are never touched.
//!
//! Several engines are threads of one process. If one hangs, only its flows pass and are flushed. The process
//! that is started instead has all of them.
//!
//! There is one thread here beside that of the [log](crate::log), because a process with several threads
//! cannot fork safely. No others may be started before [`Supervisor::run`]. Both processes give up the
//! privileges that they no longer need.

mod attend;
mod changes;
mod check;
mod control;
mod down;
mod engine;
mod files;
mod handover;
mod prepare;
mod process;
mod records;
mod restarts;
mod senders;
mod service;
mod setup;
mod sight;
mod site;
mod state;
mod upgrade;
mod veth;
mod watch;

pub use check::{can_spill, host_problems, Problems};
pub use control::{ask, within, NoOperator, Operator};
pub use down::{down, running};
pub use handover::{Inherited, LAYOUT};
pub use records::Records;
pub use senders::{Senders, Sent};
pub use service::status;
pub use setup::{Attach, Setup, Steered, TakenAcks, MOST_ENGINES, STATE};
pub use state::may_ask;

pub use crate::sys::letters::Letters;
pub use crate::sys::pod::Pod;

use crate::driver::{HookCounters, Launch, Part};
use crate::log::Seldom;
use crate::sys::clock;
use crate::sys::epoll::{Ready, Waiter};
use crate::sys::link::Monitor;
use crate::sys::privileges::{self, capability};
use crate::sys::process::Signals;
use crate::sys::sched;
use control::Control;
use engine::Common;
use process::Process;
use records::Store;
use restarts::Restarts;
use service::Service;
use site::Site;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;
use upgrade::{Predecessor, Rehearsal};
use weir_core::steer::Slot;
use weir_core::time::{Duration, Time};

/// Interval between looks at the beat.
const LOOK: Duration = Duration::from_millis(5);
/// Interval at which a failed setup of an interface is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// Time for which windows stay bounded without an engine.
const A_WHILE: Duration = Duration::from_millis(500);

/// A host that is set up, before its engine runs.
#[derive(Debug)]
pub struct Supervisor {
    site: Site,
    signals: Signals,
    monitor: Monitor,
    control: Control,
    restarts: Restarts,
    service: Service,
    /// Number of engines that were replaced, for any reason.
    count: u32,
    /// Time at which the setup was complete.
    began: Time,
    files: files::Files,
    /// Message that it could not wait.
    cannot_wait: Seldom,
    /// True if the last engine died, and neither another one nor `flush` has sent what it held.
    owed: bool,
    /// Engines that are dying and not yet taken down by the kernel.
    dying: Vec<Process>,
    /// Memory that outlives engines.
    stores: Vec<Store>,
    /// Memory of the program before that is not yet in use.
    old_stores: Vec<Store>,
    /// Engine of the program before.
    predecessor: Option<Predecessor>,
    /// Check of the program that is to take over.
    rehearsal: Option<Rehearsal>,
}

/// End of the watch on one engine.
enum EngineEnd {
    /// The engine stopped as told; `cleanly` if it flushed what it held.
    Stopped { cleanly: bool },
    /// The engine ended by itself or was killed, for this reason. `lived` is the time that it ran, `None` if
    /// it never did. `flushed` says whether what it held has been sent.
    Lost { reason: String, lived: Option<Duration>, flushed: bool },
    /// The engine was killed because its sockets became useless; `ran` if it had run.
    Moved { ran: bool },
}

impl Supervisor {
    /// Checks the host, sets it up and attaches the programs; frames still pass to the kernel. A failure
    /// leaves the host as it was. From here on the process has few privileges left.
    pub fn prepare(setup: &Setup) -> Result<Supervisor, Problems> {
        let (signals, monitor) = (Signals::new()?, Monitor::new()?);
        let site = setup.apply(&signals)?;
        let control = Control::new(setup.listener(&site.locks.instance)?);
        // The supervisor has little to do, but must not wait for a processor when an engine hangs on a busy
        // machine.
        if let Err(error) = sched::prefer() {
            tracing::warn!("niceness -20 refused, engines that hang may be found late: {error}");
        }
        give_up_privileges()?;
        Ok(Supervisor::of(site, signals, monitor, control))
    }

    fn of(site: Site, signals: Signals, monitor: Monitor, control: Control) -> Supervisor {
        Supervisor {
            site,
            signals,
            monitor,
            control,
            restarts: Restarts::new(),
            service: Service::new(),
            count: 0,
            began: clock::now(),
            files: files::Files::new(),
            cannot_wait: Seldom::new(),
            owed: false,
            dying: Vec::new(),
            stores: Vec::new(),
            old_stores: Vec::new(),
            predecessor: None,
            rehearsal: None,
        }
    }

    /// Counters of the programs since the start.
    pub fn hooks(&self) -> io::Result<HookCounters> {
        self.site.programs.counters()
    }

    /// Number of engines of a process.
    pub fn engines(&self) -> usize {
        self.site.programs.engines()
    }

    /// Most classes that the kernel's programs count for all engines: 0 unless they take ACKs.
    pub fn tallies(&self) -> usize {
        self.site.programs.parts().map(|part| part.tallies().len()).sum()
    }

    /// Slots of the kernel's programs: empty unless they take ACKs.
    pub fn slots(&self) -> &'static [Slot] {
        self.site.programs.slots()
    }

    /// Runs engines until SIGTERM or SIGINT, then restores the host.
    ///
    /// `engine` runs in a child process, from the start each time. `flush` runs here after an engine that did
    /// not stop cleanly, with the numbers of its slots. `forget` runs here if the state that engines leave to
    /// the next one may be what ends them; it must clear that state. `operator` handles requests of clients
    /// and SIGHUP.
    ///
    /// # Errors
    /// Fails if the first engine cannot start.
    pub fn run(
        mut self,
        engine: impl Fn(Launch<'_>) -> io::Result<()>,
        mut flush: impl FnMut(&Senders, Range<usize>),
        mut forget: impl FnMut(),
        operator: &mut impl Operator,
    ) -> io::Result<()> {
        let result = self.supervise(engine, &mut flush, &mut forget, operator);
        self.dying.drain(..).for_each(Process::end);
        self.site.programs.beat(Time::ZERO);
        self.settle(&mut flush);
        self.site.tear_down();
        result
    }

    fn supervise(
        &mut self,
        engine: impl Fn(Launch<'_>) -> io::Result<()>,
        flush: &mut impl FnMut(&Senders, Range<usize>),
        forget: &mut impl FnMut(),
        operator: &mut impl Operator,
    ) -> io::Result<()> {
        self.begin_succession()?;
        loop {
            if self.wait_for_interfaces(operator) {
                return Ok(());
            }
            let (reason, lived, least) = match self.one(&engine, flush, operator) {
                Ok(EngineEnd::Stopped { .. }) => return Ok(()),
                Ok(EngineEnd::Moved { ran }) => {
                    self.count += u32::from(ran);
                    continue;
                }
                Ok(EngineEnd::Lost { reason, lived, .. }) => (reason, lived, Duration::ZERO),
                Err(error) => (format!("cannot start an engine: {error}"), None, TRY_AGAIN),
            };
            if lived.is_none() && self.count == 0 {
                return Err(io::Error::other(reason));
            }
            self.count += 1;
            let lived = lived.unwrap_or_default();
            if self.restarts.is_news(&reason, lived, clock::now()) {
                tracing::error!("{reason}; frames go through the kernel until the next engine runs");
            }
            if self.restarts.suspects_memory(lived) {
                self.begin_empty(flush, forget);
            }
            let wait = self.restarts.wait_after(lived).max(least);
            match wait {
                Duration::ZERO => continue,
                wait if wait < A_WHILE => self.settle(flush),
                _ => self.leave(flush),
            }
            if self.idle(clock::now() + wait, operator) {
                return Ok(());
            }
        }
    }

    /// Runs one engine to its end. Sends what it held if neither it nor the next engine can.
    fn one(
        &mut self,
        engine: &impl Fn(Launch<'_>) -> io::Result<()>,
        flush: &mut impl FnMut(&Senders, Range<usize>),
        operator: &mut impl Operator,
    ) -> io::Result<EngineEnd> {
        let started = clock::now();
        let (process, cookies) = self.start(engine, operator)?;
        let watched = self.watch(&process, started, flush, operator);
        self.control.disconnect(operator);
        if watched.is_err() {
            // Two engines would share the ring. An error means that it is gone already.
            let _ = process.kill();
            self.owed = true;
        }
        if !process.is_down() {
            self.dying.push(process);
        }
        self.site.forget(&cookies);
        self.owed |= matches!(
            watched,
            Ok(EngineEnd::Stopped { cleanly: false } | EngineEnd::Lost { flushed: false, .. })
        );
        // The ring keeps segments for the next engine. Frames without a receiver would be lost.
        let next = matches!(watched, Ok(EngineEnd::Lost { flushed: false, .. }));
        if !next || self.site.programs.frames().is_some() {
            self.site.programs.beat(Time::ZERO);
            self.settle(flush);
        }
        watched
    }

    /// Sends what the last engine held, if no engine has taken it over.
    fn settle(&mut self, flush: &mut impl FnMut(&Senders, Range<usize>)) {
        if std::mem::take(&mut self.owed) {
            self.stale().for_each(|part| part.hooks().beat(Time::ZERO));
            self.flush(flush);
        }
    }

    /// Engines whose last beat is so old that segments pass them.
    fn stale(&self) -> impl Iterator<Item = Part<'_>> {
        let oldest = clock::now().saturating_sub(self.site.setup.stale);
        self.site.programs.parts().filter(move |part| part.hooks().last_beat() < oldest)
    }

    /// Leaves all flows to the kernel, with the windows of their receivers, because no engine runs for a
    /// while.
    fn leave(&mut self, flush: &mut impl FnMut(&Senders, Range<usize>)) {
        self.slots().iter().for_each(|slot| slot.width.store(0, Relaxed));
        self.site.programs.beat(Time::ZERO);
        self.owed = true;
        self.settle(flush);
    }

    /// Clears flows and segments, because state that engines leave behind may have ended them. What they held
    /// is sent first.
    fn begin_empty(&mut self, flush: &mut impl FnMut(&Senders, Range<usize>), forget: &mut impl FnMut()) {
        self.leave(flush);
        self.slots().iter().for_each(Slot::close);
        for part in self.site.programs.parts() {
            match part.segments() {
                Ok(Some(mut ring)) => drop(ring.drain(usize::MAX, |_| {})),
                Ok(None) => {}
                Err(error) => tracing::warn!("segments that wait for the next engine stay: {error}"),
            }
        }
        forget();
        tracing::error!(
            "three engines in turn ended within seconds: the next one begins without the flows of before"
        );
    }

    /// Sends what stale engines hold.
    fn flush(&self, flush: &mut impl FnMut(&Senders, Range<usize>)) {
        if let Some(senders) = &self.site.senders {
            // The records of a dead engine may be wrong, which must not end this process as well.
            let flushed = |part: Part<'_>| control::guarded(|| flush(senders, part.places()));
            if self.stale().map(flushed).filter(Option::is_none).count() > 0 {
                tracing::error!("what the engine held could not all be sent");
            }
        }
    }

    /// Forks an engine. Returns it with the cookies of its sockets.
    fn start(
        &mut self,
        engine: &impl Fn(Launch<'_>) -> io::Result<()>,
        operator: &mut impl Operator,
    ) -> io::Result<(Process, Vec<u64>)> {
        let sockets = self.site.sockets()?;
        self.site.open();
        let letters = self.control.connect(operator)?;
        let cookies = sockets.as_ref().map_or(Vec::new(), |sockets| sockets.cookies.clone());
        let (site, control, count, began) = (&self.site, &mut self.control, self.count, self.began);
        let forked = Process::fork(|| {
            site.leave_to_parent();
            control.leave_to_parent();
            let sockets = sockets.map_or_else(|| site.shared_sockets(), Ok)?;
            let signals = Signals::ends_only()?;
            let common = Common {
                programs: &site.programs,
                interfaces: &site.interfaces,
                stop: signals.as_fd(),
                pool: site.setup.pool,
                restarts: count,
                judged: site.is_judged(),
                began,
            };
            let launch = Launch { letters, ..common.launch(sockets)? };
            let result = engine(launch);
            site.programs.beat(Time::ZERO);
            result
        });
        match forked {
            Ok(process) => {
                tracing::info!(pid = process.pid(), "engine started");
                Ok((process, cookies))
            }
            Err(error) => {
                self.site.forget(&cookies);
                Err(error)
            }
        }
    }

    /// Logs the ends of dying engines that are down now.
    fn reap(&mut self) -> io::Result<()> {
        let mut gone = Ok(());
        self.dying.retain(|process| match process.ended() {
            Ok(None) => true,
            Ok(Some(ended)) => {
                tracing::info!(pid = process.pid(), "{}", process.describe(ended));
                false
            }
            Err(error) => {
                gone = Err(error);
                false
            }
        });
        gone
    }

    /// Serves requests; true if a signal demands the end.
    fn hears_the_end(&mut self, ready: &[Ready], operator: &mut impl Operator) -> bool {
        let heard = self.signals.heard();
        if heard.hangup {
            self.control.hang_up();
        }
        if !heard.ends {
            self.control.serve(ready.iter().any(|ready| ready.token == control::TOKEN), operator);
        }
        heard.ends
    }

    /// Waits until all interfaces exist; true if told to stop.
    fn wait_for_interfaces(&mut self, operator: &mut impl Operator) -> bool {
        while !self.site.is_whole() {
            if self.idle(clock::now() + TRY_AGAIN, operator) {
                return true;
            }
            self.site.reattach();
        }
        false
    }

    /// Waits until `until`, following the interfaces; true if told to stop. Without the means to wait, such
    /// as a descriptor, it returns a moment later.
    fn idle(&mut self, until: Time, operator: &mut impl Operator) -> bool {
        self.try_idle(until, operator).unwrap_or_else(|error| {
            if self.cannot_wait.is_due(clock::now()).is_some() {
                tracing::error!("the supervisor cannot wait: {error}");
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
            self.signals.heard().ends
        })
    }

    fn try_idle(&mut self, until: Time, operator: &mut impl Operator) -> io::Result<bool> {
        let mut waiter = Waiter::new()?;
        self.control.wakes(&waiter)?;
        waiter.add(self.signals.as_fd(), 1)?;
        waiter.add(self.monitor.as_fd(), 2)?;
        for process in &self.dying {
            process.wakes_at_end(&waiter, 0)?;
        }
        let mut ready = Vec::new();
        while clock::now() < until {
            // Clients are served at intervals.
            waiter.wait(until.min(clock::now() + LOOK), &mut ready)?;
            self.service.lives(clock::now());
            if self.hears_the_end(&ready, operator) {
                return Ok(true);
            }
            self.reap()?;
            self.control.refuse_upgrade(operator, "nothing has changed: no engine runs just now");
            let was_whole = self.site.is_whole();
            self.site.follow(&self.monitor.events()?)?;
            if !was_whole && self.site.is_whole() {
                break;
            }
        }
        Ok(false)
    }
}

/// Keeps only the privileges that starting another engine needs, on another interface of the same name, too.
fn give_up_privileges() -> io::Result<()> {
    use capability::{
        BPF, IPC_LOCK, KILL, NET_ADMIN, NET_RAW, PERFMON, SETGID, SETPCAP, SETUID, SYS_ADMIN, SYS_NICE,
    };
    let have = capability::have()?;
    // It includes the newer two where they are missing.
    let programs = if have.contains(BPF | PERFMON) { BPF | PERFMON } else { BPF | PERFMON | SYS_ADMIN };
    let engine = KILL | SETGID | SETUID | SETPCAP | SYS_NICE | IPC_LOCK;
    privileges::keep_only(NET_ADMIN | NET_RAW | engine | programs)
}
