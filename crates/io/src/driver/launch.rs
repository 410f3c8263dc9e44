//! Everything that the supervisor starts an engine with.

use super::{Driver, DriverConfig, Engine, InterfaceStates, Part};
use crate::bpf::{Homes, RuleBook};
use crate::port::{Exit, Input};
use crate::sys::letters::Letters;
use crate::sys::privileges::capability;
use crate::sys::{epoll, process, sandbox};
use std::io;
use std::os::fd::BorrowedFd;
use std::panic::{catch_unwind, AssertUnwindSafe};
use weir_core::frame::Frames;
use weir_core::steer::{Bound, Slot, Tally};
use weir_core::time::Time;

/// What an engine is started with.
pub struct Launch<'a> {
    /// The pool.
    pub frames: Frames,
    /// What the kernel's programs know of its flows: empty unless they take ACKs.
    pub slots: &'static [Slot],
    /// What they count of its classes that ACKs cannot slow: empty unless they take ACKs.
    pub tallies: &'static [Tally],
    /// What they hold its classes to: empty unless they take ACKs.
    pub bounds: &'static [Bound],
    /// Where its rules are written; `None` unless they take ACKs.
    pub rules: Option<RuleBook>,
    /// Engines that ran before this one: if any, frames have gone past.
    pub restarts: u32,
    /// When the gateway was set up.
    pub began: Time,
    /// Where frames come from.
    pub(crate) inputs: Vec<Input>,
    /// Ways out of LAN and WAN.
    pub(crate) exits: [Exit; 2],
    /// What is shared with the programs.
    pub(crate) programs: Part<'a>,
    /// What the supervisor says of the interfaces.
    pub(crate) interfaces: &'a InterfaceStates,
    /// From and to the supervisor's operator; `None` if there is none, and of engines beside the first.
    pub letters: Option<Letters>,
    /// Which addresses are whose, if there are several engines; `None` of those beside the first.
    pub homes: Option<Homes>,
    /// The launches of the engines beside the first.
    pub others: Vec<Launch<'a>>,
    /// Readable when the engine is to stop.
    pub(crate) stop: BorrowedFd<'a>,
    /// Hooks see what leaves, so that the way back can be judged.
    pub(crate) judged: bool,
}

impl<'a> Launch<'a> {
    /// Runs an engine for this launch and one for each of the [others](Launch::others), each on a thread of its own, until they
    /// are told to stop. Fails if one of them could not send all that it held. Where one fails before that, the process ends at
    /// once: the next one takes all flows up. Panics if there are not as many engines as launches.
    pub fn run_all<E: Engine + Send>(mut self, engines: Vec<E>, config: DriverConfig) -> io::Result<()> {
        let others = std::mem::take(&mut self.others);
        assert_eq!(engines.len(), 1 + others.len(), "an engine for each launch");
        let mut engines = engines.into_iter();
        let Some(first) = engines.next() else { return Ok(()) };
        if others.is_empty() {
            return self.run(first, config).map(drop);
        }
        std::thread::scope(|scope| {
            let start = |(launch, engine): (Launch<'a>, E)| {
                let number = launch.programs.number();
                let run = move || all_or_none(launch, engine, config.of_engine(number));
                let started =
                    std::thread::Builder::new().name(format!("engine {number}")).spawn_scoped(scope, run);
                started.unwrap_or_else(|error| fail(number, &error))
            };
            let threads: Vec<_> = others.into_iter().zip(engines).map(start).collect();
            let first = all_or_none(self, first, config);
            threads.into_iter().filter_map(|thread| thread.join().ok()).fold(first, Result::and)
        })
    }

    /// Runs an engine until it is told to stop. Fails if it could not send all that it held.
    pub fn run<E: Engine>(self, engine: E, config: DriverConfig) -> io::Result<E> {
        let rests = config.prepare_thread(self.restarts > 0);
        // What is read once from files has been read now.
        self.programs.counters();
        process::keep_status().unwrap_or_else(|error| tracing::warn!("/proc/self/status: {error}"));
        let missing = give_up_privileges()?;
        if self.restarts == 0 && self.programs.number() == 0 && !missing.is_empty() {
            tracing::info!("the engine goes without {}", missing.join(", and without "));
        }
        Driver::new(self, engine, config, rests)?.run()
    }
}

/// Runs one of several engines. If it fails before it is told to stop, this process ends.
fn all_or_none<E: Engine>(launch: Launch<'_>, engine: E, config: DriverConfig) -> io::Result<()> {
    let (number, stop) = (launch.programs.number(), launch.stop);
    // Nothing of the engine is looked at after a panic.
    let run = catch_unwind(AssertUnwindSafe(|| launch.run(engine, config).map(drop)));
    let result = run.unwrap_or_else(|_| Err(io::Error::other("it panicked")));
    match &result {
        Err(error) if !epoll::is_readable(stop) => fail(number, error),
        _ => result,
    }
}

/// Ends the process because of one engine.
fn fail(number: usize, error: &io::Error) -> ! {
    tracing::error!("engine {number}: {error}");
    process::end_now(1)
}

/// Sockets are open and memory is locked: what remains needs no privilege, but to tell the kernel of flows before
/// Linux 6.0, where every use of a map does (`kernel.unprivileged_bpf_disabled`).
fn give_up_privileges() -> io::Result<Vec<String>> {
    let old = process::kernel().is_some_and(|version| version < (6, 0));
    let keep = if old { capability::BPF | capability::SYS_ADMIN } else { capability::Set::empty() };
    sandbox::confine_engine(keep)
}
