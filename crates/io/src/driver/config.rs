//! Configuration of a driver.

use super::Spin;
use crate::sys::{process, sched};
use std::io;
use weir_core::time::Duration;

/// Configuration of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverConfig {
    /// Time before a deadline at which the driver stops sleeping.
    pub spin: Spin,
    /// Longest time that segments wait in the ring while the driver sleeps.
    pub batch_delay: Duration,
    /// SCHED_FIFO priority, if permitted; `None` for the ordinary scheduler, which prefers the process (nice
    /// −20).
    pub priority: Option<u8>,
    /// Prefers the process to those of other sessions by giving it a session of its own, if there is no
    /// priority. Only for engines that lose nothing when they end with their supervisor: a stopped engine
    /// without a supervisor is killed, because nothing continues it.
    pub session: bool,
    /// CPU to stay on.
    pub cpu: Option<usize>,
    /// Frames taken from a packet socket in one round.
    pub batch: usize,
    /// Interval between calls of [`Engine::report`](super::Engine::report).
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
    /// Configuration of engine `number`, where `self` is that of the first one. Each engine gets a processor
    /// of its own as far as there are enough.
    pub(super) fn of_engine(self, number: usize) -> DriverConfig {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let next = |cpu: usize| if cpu < cpus { (cpu + number) % cpus } else { cpu + number };
        DriverConfig { cpu: self.cpu.map(next), ..self }
    }

    /// Sets up this thread; true if it runs ahead of all ordinary ones. A refused setting makes releases late
    /// but stops nothing, so it is only logged. An `awaited` engine takes no time to lock all memory first.
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
