//! The lab: an experiment with the real Linux TCP, in network namespaces of this machine.
//!
//! ```text
//! weir-ID-cl ── (weir-ID-lan) ── weir-ID-gw ── (weir-ID-wan) ── weir-ID-sv
//! ```
//!
//! The gateway and the emulators are processes of their own (`weir device`), which run what `weir run` and
//! `weir wan` run. A link with nothing to emulate is a bare cable. Two `weir traffic` processes
//! ([`crate::execute::traffic`]) make the traffic on one clock, one for all clients and one for all servers.
//! Bytes are counted at the receiver.
//!
//! A lab removes everything that it made. It records every item in `/run/weir/lab/ID` before making it, and
//! removes it on success, failure, SIGINT and SIGTERM. After SIGKILL the processes die with the lab, and the
//! next lab removes the rest.
//!
//! Two labs can run side by side. They share only the processors, and their results show it.

mod addressing;
mod assemble;
mod capture;
mod child;
mod controls;
mod counters;
mod devices;
mod flows;
mod htb;
mod namespace;
mod nstat;
mod offload;
mod prerequisites;
mod probe;
mod rows;
mod run;
mod settings;
mod site;
mod state;
mod topology;

pub use devices::Device;
pub use namespace::Namespace;
pub use nstat::Nstat;
pub use offload::{switch_off, ALL as OFFLOADS};
pub use probe::{Probe, ProbeOutcome};
pub use run::{run, Outcome};
pub use state::LabRecord;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use weir_core::time::Duration;

/// Traffic control at the box's interface towards the WAN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnBox {
    /// The plan's gateway, if it has one.
    #[default]
    Gateway,
    /// User space alone: every frame that leaves by the interface passes an emulator that emulates nothing.
    /// Incoming frames pass in the kernel.
    Emulator,
    /// The kernel's queueing discipline HTB, with the gateway's queued classes for outgoing traffic.
    Htb,
    /// The kernel's queueing discipline TBF, at the rate of the gateway's first paced class.
    Tbf,
}

/// Options of a lab beyond the plan.
#[derive(Clone, Debug)]
pub struct Options {
    /// Part of all names, so that labs can run side by side: letters, digits, `-` and `_`. The default is
    /// made from the process number.
    pub id: Option<String>,
    /// The `weir` program that runs as gateway, emulator and traffic.
    pub program: PathBuf,
    /// Directory for captures at the hosts and at the gateway's ports.
    pub pcap: Option<PathBuf>,
    /// UDP probe beside the flows, which measures the path itself.
    pub probe: Option<Probe>,
    /// Time from which gaps in delivery count for a flow's longest gap.
    pub gap_after: Duration,
    /// Traffic control at the box.
    pub on_box: OnBox,
    /// Text of a gateway's file, which `weir run` runs in place of the plan's gateway and can read again.
    pub file: Option<String>,
    /// Number of the gateway's engines, instead of one.
    pub engines: Option<u32>,
    /// Time before a deadline for which emulators spin, instead of their default.
    pub spin: Option<Duration>,
    /// True to keep samples of TCP_INFO over time, in [`Outcome::clients`] and [`Outcome::servers`].
    pub samples: bool,
    /// True if a progress bar may be drawn.
    pub progress: bool,
    /// Flag that a signal handler sets to end the run early, with the results so far.
    pub stop: Arc<AtomicBool>,
}

impl Options {
    /// Returns the defaults: this program, no capture, a progress bar on terminals.
    pub fn new() -> std::io::Result<Options> {
        Ok(Options {
            id: None,
            program: std::env::current_exe()?,
            pcap: None,
            probe: None,
            gap_after: Duration::ZERO,
            on_box: OnBox::Gateway,
            file: None,
            engines: None,
            spin: None,
            samples: false,
            progress: true,
            stop: Arc::default(),
        })
    }

    /// Returns the defaults, with a stop flag set by SIGINT, SIGTERM and SIGHUP.
    pub fn with_signals() -> std::io::Result<Options> {
        let options = Options::new()?;
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, options.stop.clone())?;
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use crate::experiment::plan::{FlowGroup, Plan, Ports};
    use weir_core::time::Duration;

    /// Returns a plan of one upload for a second over bare cables.
    pub fn plan() -> Plan {
        let up = FlowGroup { ports: Ports::Shared(5000), ..FlowGroup::new("up") };
        let interval = Duration::from_millis(100);
        Plan { interval, groups: vec![up], ..Plan::new("test", Duration::from_secs(1)) }
    }
}
