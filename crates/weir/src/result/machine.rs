//! Processor time that the machine withheld from a run in real time.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Most of the processors' time that may go to other guests.
const STOLEN_PERCENT: f64 = 5.0;
/// Shortest stall that spoils a run: an engine without a heartbeat for 50 ms lets everything pass.
const STALL_MS: f64 = 50.0;

/// Processor time available to a run in real time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Time that the hypervisor gave to other guests, in percent of all processors' time. Read from `steal`
    /// of `/proc/stat`; 0 where that is not reported.
    pub stolen_percent: f64,
    /// Longest time without running, in milliseconds, of a thread that had nothing to wait for.
    pub longest_stall_ms: f64,
    /// Calls of `weir_chirp`'s programs that the kernel skipped, as far as flows noticed. Each skipped call
    /// may have changed a window at random.
    #[serde(default)]
    pub skipped_programs: u64,
}

impl Machine {
    /// Returns whether rates and times of the run can be attributed to the experiment.
    pub fn had_time(&self) -> bool {
        self.stolen_percent < STOLEN_PERCENT && self.longest_stall_ms < STALL_MS && self.skipped_programs == 0
    }

    /// Returns the worse value of each field of two runs.
    #[must_use]
    pub fn worst(self, other: Machine) -> Machine {
        Machine {
            stolen_percent: self.stolen_percent.max(other.stolen_percent),
            longest_stall_ms: self.longest_stall_ms.max(other.longest_stall_ms),
            skipped_programs: self.skipped_programs.max(other.skipped_programs),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.0} % of its processors' time went to others, and it stood still for {:.0} ms at most",
            self.stolen_percent, self.longest_stall_ms
        )?;
        match self.skipped_programs {
            0 => Ok(()),
            n => write!(f, "; its kernel left out {n} calls of weir_chirp's programs"),
        }
    }
}
