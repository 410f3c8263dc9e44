//! What a machine kept from a run in real time.

use serde::{Deserialize, Serialize};
use std::fmt;

/// More of its processors' time than this must not go to others.
const STOLEN_PERCENT: f64 = 5.0;
/// It must not stand still for this long: an engine without a heartbeat for 50 ms lets everything pass.
const STALL_MS: f64 = 50.0;

/// How much of a machine's time a run in real time got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Time that a hypervisor gave to others, in percent of all processors' time: `steal` of `/proc/stat`, 0 where it does not tell.
    pub stolen_percent: f64,
    /// The longest time for which a thread that had nothing to wait for did not run, in milliseconds.
    pub longest_stall_ms: f64,
    /// Calls of `weir_chirp`'s programs that the kernel left out, as far as its flows noticed: each may have moved a window at random.
    #[serde(default)]
    pub skipped_programs: u64,
}

impl Machine {
    /// Can rates and times of the run be the experiment's own?
    pub fn had_time(&self) -> bool {
        self.stolen_percent < STOLEN_PERCENT && self.longest_stall_ms < STALL_MS && self.skipped_programs == 0
    }

    /// The worst of two runs.
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
