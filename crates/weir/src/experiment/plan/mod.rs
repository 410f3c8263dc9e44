//! The plan of an experiment, as a file describes it, for a world (the lab or the simulator) to execute.
//! Plans are made by [`crate::experiment::config::experiment`] and are already valid, so a world has nothing
//! left to check.
//!
//! The topology is the usual dumbbell, or a [`Graph`]:
//!
//! ```text
//! clients ── LAN ── gateway ── WAN out ──▶ servers
//!                           ◀── WAN back ─
//! ```
//!
//! The client of a flow is on the LAN, its server beyond the WAN, and the client opens the connection.
//! [`Flow::direction`] says which of the two sends the data.

mod added;
mod flow;
mod graph;
mod lab;
mod measure;
mod network;
mod room;
mod tcp;

pub use added::Added;
pub use flow::{Arrivals, Before, Flow, FlowGroup, Kind, Length, Ports, Protocol, Sources};
pub use graph::{Graph, GraphLink, GraphNode, Hop};
pub use lab::{BoxKind, Ip, Lab};
pub use measure::{
    has, matches, Aggregate, Expect, Field, Measure, Of, Op, Quantity, Reference, ReferenceRow, Subject,
    Target, Tolerance,
};
pub use network::{HostGroup, Path};
pub use room::{MOST_BINS, MOST_INTERVALS};
pub use tcp::{
    Accepts, Tcp, TcpSetting, Value, DEFAULT_CC, QUIC_CONTROLS, QUIC_SETTINGS, SHORTHANDS, TCP_SETTINGS,
    WINDOWS,
};

pub use crate::result::metric::SeriesKind;
use crate::result::Parity;

use core::net::SocketAddr;
use weir_core::flow::Key;
use weir_core::gateway::{ClassConfig, Compiled, Config, Direction};
use weir_core::time::Duration;

/// One experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Name: letters, digits, `-`, `_` and `.`, so that it can be part of file names.
    pub name: String,
    /// Title for readers, which says what the experiment shows.
    pub title: String,
    /// Duration from the time at which the first flow may start. At least one bin.
    pub duration: Duration,
    /// Length of the intervals in the result and in the table. A multiple of `bin`.
    pub interval: Duration,
    /// Length of the bins in which received bytes are recorded: 1 us to 1 s, at most 10 million bins. It
    /// divides `interval`, `duration` and every time in an expectation or a reference about rates, so that
    /// all of them can be computed from the bins. Whole milliseconds in the lab.
    pub bin: Duration,
    /// Seed of all random draws.
    pub seed: u64,
    /// Links of the dumbbell; bare if there is a graph.
    pub path: Path,
    /// Network of nodes and links instead of the dumbbell. Each host is then at one of its nodes, and each
    /// flow has hosts at both ends. Simulator only.
    pub graph: Option<Graph>,
    /// Box of the gateway in the lab.
    pub lab: Lab,
    /// Hosts besides the two of every dumbbell, each behind an access link of its own, which is bare in the
    /// lab.
    pub hosts: Vec<HostGroup>,
    /// Configuration of the gateway; `None` for a plain bridge.
    pub gateway: Option<Config>,
    /// Flows, group by group in the order of the file. Identifiers are unique.
    pub groups: Vec<FlowGroup>,
    /// Series to record besides received bytes. Simulator only.
    pub series: Vec<SeriesKind>,
    /// Interval between samples. `None` records every change of flows. It samples queues, which change with
    /// every packet, 1000 times over the duration.
    pub sample: Option<Duration>,
    /// Allowed difference between simulator and lab.
    pub parity: Option<Parity>,
    /// Variants that run beside the experiment, for expectations to compare with.
    pub baselines: Vec<Baseline>,
    /// Expectations that the result must satisfy.
    pub expects: Vec<Expect>,
    /// Values that a paper reports for the same experiment.
    pub reference: Option<Reference>,
    /// SHA-256 of the file, in hexadecimal: `made_by.config_sha256` of the result.
    pub config_sha256: String,
}

/// Variant of an experiment that runs beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// Name used by checks.
    pub name: String,
    /// Settings that differ, by the dotted path of the key, as written.
    pub settings: Vec<(String, String)>,
    /// Plan of the variant, without expectations.
    pub plan: Plan,
}

impl Plan {
    /// Returns a plan without flows over bare wires, reported every second, recorded every 10 ms.
    pub fn new(name: &str, duration: Duration) -> Plan {
        Plan {
            name: name.into(),
            title: String::new(),
            duration,
            interval: Duration::from_secs(1).min(duration),
            bin: Duration::from_millis(10),
            seed: 1,
            path: Path::default(),
            graph: None,
            lab: Lab::default(),
            hosts: Vec::new(),
            gateway: None,
            groups: Vec::new(),
            series: Vec::new(),
            sample: None,
            parity: None,
            baselines: Vec::new(),
            expects: Vec::new(),
            reference: None,
            config_sha256: String::new(),
        }
    }

    /// Sets another seed, for the gateway too.
    pub fn reseed(&mut self, seed: u64) {
        self.seed = seed;
        if let Some(g) = &mut self.gateway {
            g.seed = seed;
        }
        self.baselines.iter_mut().for_each(|baseline| baseline.plan.reseed(seed));
    }

    /// Returns the time that the plan covers, including its baselines.
    pub fn time(&self) -> Duration {
        self.baselines.iter().fold(self.duration, |sum, baseline| sum.saturating_add(baseline.plan.duration))
    }

    /// Returns every flow, group by group. With drawn arrivals, flows that would start after the end are left
    /// out.
    pub fn flows(&self) -> impl Iterator<Item = Flow<'_>> {
        let in_time = |f: &Flow| f.start < self.duration;
        self.groups.iter().flat_map(move |g| g.flows(self.seed).take_while(in_time))
    }

    /// Returns the names of the groups whose flows are drawn, or depend on the run.
    pub fn drawn(&self) -> Vec<String> {
        self.groups.iter().filter(|group| group.draws_flows()).map(|group| group.id.clone()).collect()
    }

    /// Returns the names of the links in results: `lan.out`, `lan.back`, `wan.out`, `wan.back`, or `NAME.out`
    /// and `NAME.back` for each link of a graph. Adds `NAME.K.up` and `NAME.K.down` for each host.
    pub fn links(&self) -> Vec<String> {
        let path = match &self.graph {
            None => ["lan.out", "lan.back", "wan.out", "wan.back"].map(str::to_string).to_vec(),
            Some(graph) => graph.directions().map(|(name, _)| name).collect(),
        };
        let hosts = self.hosts.iter().flat_map(|h| (0..h.count).map(|k| format!("{}.{k}", h.name)));
        path.into_iter().chain(hosts.flat_map(|h| [format!("{h}.up"), format!("{h}.down")])).collect()
    }

    /// Returns the classifier of flows for results and tables. The gateway itself classifies frames.
    pub fn classifier(&self) -> Classifier {
        Classifier(self.gateway.clone().map(Compiled::from))
    }
}

/// Compiled rules of a plan's gateway. A lookup costs the same for ten classes as for twenty thousand.
#[derive(Debug)]
pub struct Classifier(Option<Compiled>);

impl Classifier {
    /// Returns the class of a flow's data in a direction, from the first to the second of these ends.
    pub fn of(
        &self,
        direction: Direction,
        protocol: &Protocol,
        (from, to): (SocketAddr, SocketAddr),
    ) -> Option<&ClassConfig> {
        let compiled = self.0.as_ref()?;
        let class = compiled.classify(direction, &Key::new(protocol.number(), from, to))?;
        compiled.config().classes.get(class)
    }
}

/// Derives a seed for one purpose of one group, link or host.
pub(crate) fn derived(seed: u64, group: &str, purpose: &str) -> u64 {
    // FNV-1a is stable across versions and machines.
    let bytes = group.bytes().chain([0]).chain(purpose.bytes());
    bytes.fold(seed ^ 0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}
