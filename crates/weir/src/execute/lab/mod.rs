//! The lab: an experiment with the real Linux TCP, in network namespaces of this machine.
//!
//! ```text
//! weir-ID-cl ── (weir-ID-lan) ── weir-ID-gw ── (weir-ID-wan) ── weir-ID-sv
//! ```
//!
//! The gateway and the emulators are processes of their own, started as they would be in the field
//! (`weir run`, `weir wan`); a link with nothing to emulate is a bare cable. Traffic is made by two
//! `weir traffic` processes ([`crate::execute::traffic`]), one for all clients and one for all servers, on one
//! clock. Bytes are counted where they are received.
//!
//! Nothing is left behind: everything is written down in `/run/weir/lab/ID` before it is made, and
//! removed on success, failure, SIGINT and SIGTERM. After SIGKILL the processes die with the lab, and
//! the next lab removes the rest.
//!
//! Two labs can run side by side; they share nothing but the processors, which is what their
//! results then show.

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

pub use namespace::Namespace;
pub use nstat::Nstat;
pub use offload::{switch_off, ALL as OFFLOADS};
pub use probe::{Probe, ProbeOutcome};
pub use run::{run, Outcome};
pub use state::Record;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use weir_core::time::Duration;

/// What runs at the box's interface towards the WAN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnBox {
    /// The plan's gateway, if it has one.
    #[default]
    Gateway,
    /// Nothing but user space: every frame that leaves by it goes through an emulator that emulates nothing; what
    /// comes in passes in the kernel.
    Emulator,
    /// The kernel's own queueing discipline HTB, with the queued classes of the plan's gateway that are for what goes out.
    Htb,
    /// The kernel's own queueing discipline TBF at the rate of the first paced class of the plan's gateway.
    Tbf,
}

/// How a lab is run, beyond what the plan says.
#[derive(Clone, Debug)]
pub struct Options {
    /// Part of all names, so that labs can run side by side: letters, digits, `-` and `_`. By default
    /// made from the process number.
    pub id: Option<String>,
    /// The `weir` program that plays gateway, emulator and traffic.
    pub program: PathBuf,
    /// Directory that frames at the gateway's ports are captured to.
    pub pcap: Option<PathBuf>,
    /// A UDP probe beside the flows, to measure the path itself.
    pub probe: Option<Probe>,
    /// Only gaps in delivery that end after this time count as a flow's longest.
    pub gap_after: Duration,
    /// What runs on the box.
    pub on_box: OnBox,
    /// Engines of the gateway, instead of one.
    pub engines: Option<u32>,
    /// How long before a deadline emulators spin, instead of their default.
    pub spin: Option<Duration>,
    /// Keep samples of TCP_INFO over time, in [`Outcome::clients`] and [`Outcome::servers`].
    pub samples: bool,
    /// Whether a progress bar may be drawn.
    pub progress: bool,
    /// Set from outside (a signal handler) to end early with what there is.
    pub stop: Arc<AtomicBool>,
}

impl Options {
    /// The defaults: this program, no capture, a progress bar on terminals.
    pub fn new() -> std::io::Result<Options> {
        Ok(Options {
            id: None,
            program: std::env::current_exe()?,
            pcap: None,
            probe: None,
            gap_after: Duration::ZERO,
            on_box: OnBox::Gateway,
            engines: None,
            spin: None,
            samples: false,
            progress: true,
            stop: Arc::default(),
        })
    }

    /// As [`Options::new`], ended early by SIGINT, SIGTERM and SIGHUP.
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

    /// One upload for a second over bare cables.
    pub fn plan() -> Plan {
        let up = FlowGroup { ports: Ports::Shared(5000), ..FlowGroup::new("up") };
        let interval = Duration::from_millis(100);
        Plan { interval, groups: vec![up], ..Plan::new("test", Duration::from_secs(1)) }
    }
}
