//! Everything that the supervisor hands to an engine at its start.

use super::{Driver, DriverConfig, Engine, InterfaceStates, Part};
use crate::bpf::{Homes, RuleBook, Unlisted};
use crate::port::{Exit, Input};
use crate::sys::letters::Letters;
use crate::sys::privileges::capability;
use crate::sys::{epoll, process, sandbox};
use std::io;
use std::os::fd::BorrowedFd;
use std::panic::{catch_unwind, AssertUnwindSafe};
use weir_core::frame::Frames;
use weir_core::quality::Sight;
use weir_core::steer::{Bound, FlowBound, Slot, Spill, Tally};
use weir_core::time::Time;

/// Parts that an engine is started with.
pub struct Launch<'a> {
    /// The pool of frames.
    pub frames: Frames,
    /// Slots of its flows; empty unless the programs take ACKs.
    pub slots: &'static [Slot],
    /// Tallies of its classes that ACKs cannot slow; empty unless the programs take ACKs.
    pub tallies: &'static [Tally],
    /// Bounds of its classes; empty unless the programs take ACKs.
    pub bounds: &'static [Bound],
    /// Bounds of what has no readable addresses in each direction; only for the first engine, empty unless
    /// the programs take ACKs.
    pub unread: &'static [Bound],
    /// Bounds of the flow of each slot; empty unless the programs take ACKs.
    pub flow_bounds: &'static [FlowBound],
    /// Sight of the flow of each slot; empty unless the programs take ACKs.
    pub sights: &'static [Sight],
    /// Counts of what flows spill; empty unless the programs take ACKs.
    pub spills: &'static [Spill],
    /// Map that its rules are written to; `None` unless the programs take ACKs.
    pub rules: Option<RuleBook>,
    /// Engines that ran before this one. Frames have bypassed shaping if there were any.
    pub restarts: u32,
    /// Time at which the gateway was set up.
    pub began: Time,
    /// Sources of frames.
    pub(crate) inputs: Vec<Input>,
    /// Exits to LAN and WAN.
    pub(crate) exits: [Exit; 2],
    /// The programs in the kernel.
    pub(crate) programs: Part<'a>,
    /// States of the interfaces, from the supervisor.
    pub(crate) interfaces: &'a InterfaceStates,
    /// Messages between the engine and the supervisor's operator; only for the first engine, `None` without
    /// an operator.
    pub letters: Option<Letters>,
    /// Map from addresses to engines; only for the first engine, and only if there are several.
    pub homes: Option<Homes>,
    /// Addresses with traffic that no class takes; only for the first engine, and only if it takes ACKs.
    pub unlisted: Option<Unlisted>,
    /// Launches of the engines after the first.
    pub others: Vec<Launch<'a>>,
    /// Readable when the engine is to stop.
    pub(crate) stop: BorrowedFd<'a>,
    /// True if hooks see the frames that leave, so that the way back can be judged.
    pub(crate) judged: bool,
}

impl<'a> Launch<'a> {
    /// Runs an engine for this launch and one for each of the [others](Launch::others), each on its own
    /// thread, until they are told to stop.
    ///
    /// An engine that fails before that ends the process at once, so that the next process takes over all
    /// flows.
    ///
    /// # Errors
    /// Fails if an engine could not send all frames that it held.
    ///
    /// # Panics
    /// Panics if there are not as many engines as launches.
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

    /// Runs an engine until it is told to stop. Fails if it could not send all frames that it held.
    pub fn run<E: Engine>(self, engine: E, config: DriverConfig) -> io::Result<E> {
        let rests = config.prepare_thread(self.restarts > 0);
        // Files that are read only once are read now, before privileges are given up.
        self.programs.counters();
        process::keep_status().unwrap_or_else(|error| tracing::warn!("/proc/self/status: {error}"));
        let programs = self.programs;
        let _owner = programs.hooks().own();
        let missing = give_up_privileges()?;
        if self.restarts == 0 && self.programs.number() == 0 && !missing.is_empty() {
            tracing::info!("the engine goes without {}", missing.join(", and without "));
        }
        Driver::new(self, engine, config, rests)?.run()
    }
}

/// Runs one of several engines. A failure before it is told to stop ends this process.
fn all_or_none<E: Engine>(launch: Launch<'_>, engine: E, config: DriverConfig) -> io::Result<()> {
    let (number, stop) = (launch.programs.number(), launch.stop);
    // No part of the engine is used after a panic.
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

/// Gives up privileges: sockets are open and memory is locked. Only kernels before Linux 6.0 still need some,
/// for every use of a map (`kernel.unprivileged_bpf_disabled`).
fn give_up_privileges() -> io::Result<Vec<String>> {
    let old = process::kernel().is_some_and(|version| version < (6, 0));
    let keep = if old { capability::BPF | capability::SYS_ADMIN } else { capability::Set::empty() };
    sandbox::confine_engine(keep)
}
