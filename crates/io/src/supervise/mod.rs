//! The supervisor: a small parent process that sets the host up, runs the engine as its child, and
//! keeps traffic flowing when the engine does not.
//!
//! ```text
//! supervisor ── fork ──▶ engine (sockets, pool, node)
//!   holds: programs, links, maps, locks, flow records, raw sockets
//! ```
//!
//! - The engine dies: its sockets close, so the XDP programs pass frames to the kernel bridge at
//!   once; the supervisor calls `flush`, which acknowledges what the engine still held, and starts
//!   another engine.
//! - The engine hangs: after 50 ms without a beat the XDP programs pass frames; after 60 ms the
//!   supervisor kills it, and goes on as above without waiting for its end.
//! - SIGTERM or SIGINT: the engine is told to stop, flushes itself and ends; the host is restored.
//! - The supervisor is killed: the engine gets SIGTERM and does all that itself.
//! - Both are killed: the kernel takes the programs off; the next start restores the rest.
//!
//! What the engine takes does not pass through the bridge, so a host behind it that sends nothing
//! but ACKs for five minutes is forgotten by the bridge, which then sends frames for it to all of
//! its ports: to the right one too.
//!
//! There is one thread, because a process with several cannot fork safely: nothing may start
//! threads before [`Supervisor::run`].

mod changes;
mod check;
mod engine;
mod host;
mod lock;
mod records;
mod setup;

pub use check::Problems;
pub use engine::Launch;
pub use records::Records;
pub use setup::{BridgeUse, Senders, Setup, Steered};

pub use crate::sys::packet::RawSender;
pub use crate::sys::pod::Pod;

use crate::bpf::SteerCounters;
use crate::sys::epoll::Waiter;
use crate::sys::process::{Child, Ended, Signals};
use crate::sys::{clock, link};
use setup::Site;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use weir_core::time::{Duration, Time};

/// How often the beat is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// A look that took longer than this says more of the machine than of the engine.
const STOOD_STILL: Duration = Duration::from_millis(20);
/// How long an engine may take to open its ports: zero copy resets some links.
const START: Duration = Duration::from_secs(30);
/// How long an engine may take to stop.
const STOP: Duration = Duration::from_secs(1);
/// How long the supervisor waits before it starts an engine again.
const BACK_OFF: Duration = Duration::from_millis(5);
const MINUTE: Duration = Duration::from_secs(60);

/// A host that is set up, before its engine runs.
#[derive(Debug)]
pub struct Supervisor {
    site: Site,
    signals: Signals,
    restarts_per_minute: u32,
    hang: Duration,
    /// When engines were started again.
    restarts: VecDeque<Time>,
    count: u32,
}

/// How watching one engine ended.
enum Watched {
    /// It was told to stop, and has; whether it flushed what it held.
    Stopped { cleanly: bool },
    /// It ended by itself or was killed, and said this. `beat` tells whether it had ever run,
    /// `flushed` whether what it held has been sent.
    Lost { reason: String, beat: bool, flushed: bool },
}

impl Supervisor {
    /// Checks the host, sets it up and attaches the programs: frames still pass to the kernel. On
    /// failure the host is as it was.
    pub fn prepare(setup: &Setup) -> Result<Supervisor, Problems> {
        let signals = Signals::new()?;
        let site = setup.apply()?;
        let restarts_per_minute = setup.restarts_per_minute.max(1);
        let hang = setup.hang;
        Ok(Supervisor { site, signals, restarts_per_minute, hang, restarts: VecDeque::new(), count: 0 })
    }

    /// What the steering of LAN and WAN did so far; `None` for a port without.
    pub fn steering(&self) -> [Option<SteerCounters>; 2] {
        let counters = |i: usize| self.site.parts.places[i].steering.as_ref().and_then(|s| s.counters().ok());
        [counters(0), counters(1)]
    }

    /// Runs engines until SIGTERM or SIGINT, then restores the host.
    ///
    /// `engine` runs in a child process, from the start each time. `flush` runs here when an engine
    /// is gone that did not stop cleanly. Fails if an interface is gone, or if the first engine
    /// cannot start.
    pub fn run(
        mut self,
        engine: impl Fn(Launch<'_>) -> io::Result<()>,
        mut flush: impl FnMut(&Senders),
    ) -> io::Result<()> {
        let result = self.supervise(engine, &mut flush);
        self.site.parts.shared.beat(Time::ZERO);
        self.site.changes.undo();
        result
    }

    fn supervise(
        &mut self,
        engine: impl Fn(Launch<'_>) -> io::Result<()>,
        flush: &mut impl FnMut(&Senders),
    ) -> io::Result<()> {
        loop {
            let (child, words) = self.start(&engine)?;
            let watched = self.watch(&child, words, flush)?;
            self.site.parts.shared.beat(Time::ZERO);
            let (reason, beat) = match watched {
                Watched::Stopped { cleanly } => {
                    if !cleanly {
                        flush(&self.site.parts.senders);
                    }
                    return Ok(());
                }
                Watched::Lost { reason, beat, flushed } => {
                    if !flushed {
                        flush(&self.site.parts.senders);
                    }
                    (reason, beat)
                }
            };
            self.still_there()?;
            if !beat && self.count == 0 {
                return Err(io::Error::other(reason));
            }
            tracing::error!("{reason}; frames go through the kernel until the next engine runs");
            if self.back_off()? {
                return Ok(());
            }
        }
    }

    /// Forks an engine. What it says when it fails can be read from the stream.
    fn start(&mut self, engine: &impl Fn(Launch<'_>) -> io::Result<()>) -> io::Result<(Child, UnixStream)> {
        let (ours, mut theirs) = UnixStream::pair()?;
        let (supervisor, count) = (std::process::id(), self.count);
        let (site, signals) = (&mut self.site, &self.signals);
        let child = Child::fork(|| match engine::run(site, signals, supervisor, count, engine) {
            Ok(()) => 0,
            Err(error) => {
                // If nobody reads it, there is nobody to tell.
                let _ = theirs.write_all(error.to_string().as_bytes());
                1
            }
        })?;
        tracing::info!(pid = child.pid, "engine started");
        Ok((child, ours))
    }

    fn watch(
        &self,
        child: &Child,
        mut words: UnixStream,
        flush: &mut impl FnMut(&Senders),
    ) -> io::Result<Watched> {
        let mut waiter = Waiter::new()?;
        waiter.add(child.as_fd(), 0)?;
        waiter.add(self.signals.as_fd(), 1)?;
        let started = clock::now();
        let mut beat = false;
        let mut ready = Vec::new();
        loop {
            let before = clock::now();
            waiter.wait(before + LOOK, &mut ready)?;
            // A signal to the whole group ends the engine too: it is no loss then.
            if self.signals.next().is_some() {
                return stop(child).map(|cleanly| Watched::Stopped { cleanly });
            }
            if let Some(ended) = child.ended()? {
                let reason = describe(ended, &mut words);
                return Ok(Watched::Lost { reason, beat, flushed: false });
            }
            let (now, last) = (clock::now(), self.site.parts.shared.last_beat());
            beat |= last != Time::ZERO;
            let limit = if last == Time::ZERO { START } else { self.hang };
            // If this process had to wait too, the whole machine stood still: the engine gets its turn.
            let stood_still = now.since(before) > STOOD_STILL;
            if !stood_still && now.since(last.max(started)) > limit {
                // It does nothing more once the signal is sent; its sockets take tens of milliseconds to
                // close, and senders would wait that long for what it held.
                child.signal(libc::SIGKILL)?;
                self.site.parts.shared.beat(Time::ZERO);
                flush(&self.site.parts.senders);
                kill(child)?;
                let reason = format!("the engine hung for {limit}");
                return Ok(Watched::Lost { reason, beat, flushed: true });
            }
        }
    }

    /// Fails if an interface is gone.
    fn still_there(&self) -> io::Result<()> {
        for place in &self.site.parts.places {
            if !link::exists(place.ifindex) {
                let message = format!("interface {} has been removed", place.name);
                return Err(io::Error::new(io::ErrorKind::NotFound, message));
            }
        }
        Ok(())
    }

    /// Waits until an engine may be started again; true if told to stop.
    fn back_off(&mut self) -> io::Result<bool> {
        self.count += 1;
        let now = clock::now();
        while self.restarts.front().is_some_and(|at| now.since(*at) > MINUTE) {
            self.restarts.pop_front();
        }
        let mut until = now + BACK_OFF;
        if self.restarts.len() >= self.restarts_per_minute as usize {
            until = self.restarts[0] + MINUTE;
            tracing::error!("too many restarts: the next in {:?}", until.since(now));
        }
        let mut waiter = Waiter::new()?;
        waiter.add(self.signals.as_fd(), 1)?;
        let mut ready = Vec::new();
        while clock::now() < until {
            waiter.wait(until, &mut ready)?;
            if self.signals.next().is_some() {
                return Ok(true);
            }
        }
        self.restarts.push_back(clock::now());
        Ok(false)
    }
}

/// Tells the engine to stop; whether it did so cleanly and in time.
fn stop(child: &Child) -> io::Result<bool> {
    // It may have ended already.
    let _ = child.signal(libc::SIGTERM);
    let until = clock::now() + STOP;
    let mut waiter = Waiter::new()?;
    waiter.add(child.as_fd(), 0)?;
    let mut ready = Vec::new();
    while clock::now() < until {
        waiter.wait(until, &mut ready)?;
        if let Some(ended) = child.ended()? {
            return Ok(ended == Ended::Exited(0));
        }
    }
    tracing::warn!("the engine does not stop: killing it");
    kill(child)?;
    Ok(false)
}

/// Kills the engine and waits until it is gone: its sockets are closed then.
fn kill(child: &Child) -> io::Result<()> {
    child.signal(libc::SIGKILL)?;
    let mut waiter = Waiter::new()?;
    waiter.add(child.as_fd(), 0)?;
    let mut ready = Vec::new();
    while child.ended()?.is_none() {
        waiter.wait(clock::now() + LOOK, &mut ready)?;
    }
    Ok(())
}

fn describe(ended: Ended, words: &mut UnixStream) -> String {
    let mut said = String::new();
    // Nothing is written any more, so this does not wait.
    let _ = words.set_nonblocking(true).and_then(|()| words.read_to_string(&mut said));
    match ended {
        Ended::Exited(0) => "the engine ended by itself".to_owned(),
        Ended::Exited(_) if !said.is_empty() => said,
        Ended::Exited(code) => format!("the engine ended with code {code}"),
        Ended::Signalled(signal) => format!("the engine was ended by signal {signal}"),
    }
}
