//! How a driver runs.

use super::Spin;
use crate::sys::{process, sched};
use std::io;
use weir_core::time::Duration;

/// How a driver runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverConfig {
    /// How long before a deadline it stops sleeping.
    pub spin: Spin,
    /// How long segments that come by the ring may wait there while it sleeps.
    pub batch_delay: Duration,
    /// SCHED_FIFO priority, if permitted; `None` for the ordinary scheduler, which prefers the process (nice −20).
    pub priority: Option<u8>,
    /// Without a priority: prefer it to the processes of other sessions, too, by a session of its own. For engines of which
    /// nothing is lost when they end with their supervisor: nobody continues one that is stopped then, so it
    /// is killed.
    pub session: bool,
    /// CPU to stay on.
    pub cpu: Option<usize>,
    /// Frames taken from a packet socket in one round.
    pub batch: usize,
    /// How often [`Engine::report`] is called.
    pub report_every: Duration,
}

impl Default for DriverConfig {
    fn default() -> DriverConfig {
        DriverConfig {
            spin: Spin::Adaptive,
            batch_delay: Duration::from_micros(200),
            priority: Some(40),
            session: false,
            cpu: None,
            batch: 64,
            report_every: Duration::from_millis(100),
        }
    }
}

impl DriverConfig {
    /// That of the engine with this number, where the first has this: each is on a processor of its own, as far as there are some.
    pub(super) fn of_engine(self, number: usize) -> DriverConfig {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let next = |cpu: usize| if cpu < cpus { (cpu + number) % cpus } else { cpu + number };
        DriverConfig { cpu: self.cpu.map(next), ..self }
    }

    /// Sets this thread up; true if it runs ahead of all ordinary ones. Nothing here is needed to
    /// work, only to work on time: what is refused is said. One that is `awaited` has no time to lock all memory first.
    pub(crate) fn prepare_thread(&self, awaited: bool) -> bool {
        let say = |what: &str, result: io::Result<()>| match result {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!("{what} refused, releases may be late: {error}");
                false
            }
        };
        say("timer slack", sched::no_timer_slack());
        say("locking memory", process::lock_memory(!awaited));
        if let Some(cpu) = self.cpu {
            say("CPU affinity", sched::pin(cpu));
        }
        match self.priority {
            Some(priority) => say("SCHED_FIFO", sched::fifo(priority)),
            None => {
                say("niceness -20", sched::prefer());
                if self.session {
                    say("a session of its own", sched::prefer_session());
                }
                false
            }
        }
    }
}
