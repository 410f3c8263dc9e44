//! What an experiment file says, as values: the plan that a world (the lab or the simulator)
//! executes. A plan is made by [`crate::experiment::config::experiment`] and everything in it is already valid;
//! a world has nothing left to check.
//!
//! The topology is the usual dumbbell, or a [`Graph`]:
//!
//! ```text
//! clients ── LAN ── gateway ── WAN out ──▶ servers
//!                           ◀── WAN back ─
//! ```
//!
//! The client of a flow is on the LAN, its server beyond the WAN, and the client opens the
//! connection; [`Flow::direction`] says which of the two sends the data.

mod flow;
mod graph;
mod lab;
mod measure;
mod network;
mod tcp;

pub use flow::{Arrivals, Before, Flow, FlowGroup, Kind, Length, Ports, Protocol, Sources};
pub use graph::{Graph, GraphLink, GraphNode, Hop};
pub use lab::{BoxKind, Ip, Lab};
pub use measure::{
    has, matches, Aggregate, Expect, Field, Measure, Of, Op, Quantity, Reference, ReferenceRow, Subject,
    Target, Tolerance,
};
pub use network::{HostGroup, Path};
pub use tcp::{Accepts, Tcp, TcpSetting, Value, DEFAULT_CC, SHORTHANDS, TCP_SETTINGS, WINDOWS};

pub use crate::result::metric::SeriesKind;
use crate::result::Parity;

use core::net::SocketAddr;
use weir_core::flow::Key;
use weir_core::gateway::{ClassConfig, Compiled, Config, Direction};
use weir_core::time::Duration;

/// One experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Its name: letters, digits, `-`, `_` and `.`, so that it can name files.
    pub name: String,
    /// What it shows, for people.
    pub title: String,
    /// How long it runs, counted from the time at which the first flow may start. At least one bin.
    pub duration: Duration,
    /// Length of the intervals in the result and in the table. Divides into bins exactly.
    pub interval: Duration,
    /// Length of the bins in which received bytes are recorded: 1 us to 1 s, at most 10 million bins. It
    /// divides `interval`, `duration` and every time that an expectation or a reference names about rates,
    /// so that all of them can be computed from the bins. Whole milliseconds in the lab.
    pub bin: Duration,
    /// Seed of everything random.
    pub seed: u64,
    /// The links of the dumbbell; bare where there is a graph.
    pub path: Path,
    /// A network of one's own instead of that. Each host is at one of its nodes then, and each flow has hosts at both
    /// ends. Simulator only.
    pub graph: Option<Graph>,
    /// The gateway's box in the lab.
    pub lab: Lab,
    /// Hosts beyond the two that every dumbbell has, each behind an access link of its own, which are bare in the lab.
    pub hosts: Vec<HostGroup>,
    /// The gateway; `None` for a plain bridge.
    pub gateway: Option<Config>,
    /// The flows, group by group in the order of the file. Identifiers are unique.
    pub groups: Vec<FlowGroup>,
    /// What is recorded over time, besides received bytes. Simulator only.
    pub series: Vec<SeriesKind>,
    /// How often; `None` is at every change for flows, and 1000 times over the duration for queues, which
    /// change with every packet.
    pub sample: Option<Duration>,
    /// How far apart simulator and lab may be.
    pub parity: Option<Parity>,
    /// Variants of it that are run beside it, for expectations to compare with.
    pub baselines: Vec<Baseline>,
    /// What the result must satisfy.
    pub expects: Vec<Expect>,
    /// What a paper reports for the same experiment.
    pub reference: Option<Reference>,
    /// SHA-256 of the file, in hexadecimal: `made_by.config_sha256` of the result.
    pub config_sha256: String,
}

/// A variant of an experiment that is run beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// As checks call it.
    pub name: String,
    /// What is different in it, by the dotted path of the key, as it is written.
    pub settings: Vec<(String, String)>,
    /// What it says; no expectations.
    pub plan: Plan,
}

impl Plan {
    /// A plan of nothing over bare wires, reported every second, recorded every 10 ms.
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

    /// Uses another seed, for the gateway too.
    pub fn reseed(&mut self, seed: u64) {
        self.seed = seed;
        if let Some(g) = &mut self.gateway {
            g.seed = seed;
        }
        self.baselines.iter_mut().for_each(|baseline| baseline.plan.reseed(seed));
    }

    /// Time that it covers, with that of its baselines.
    pub fn time(&self) -> Duration {
        self.baselines.iter().fold(self.duration, |sum, baseline| sum.saturating_add(baseline.plan.duration))
    }

    /// Every flow, group by group. With drawn arrivals, those that would start after the end do not exist.
    pub fn flows(&self) -> impl Iterator<Item = Flow<'_>> {
        let in_time = |f: &Flow| f.start < self.duration;
        self.groups.iter().flat_map(move |g| g.flows(self.seed).take_while(in_time))
    }

    /// The links as results name them: `lan.out`, `lan.back`, `wan.out`, `wan.back`, or of each link of a graph `NAME.out` and
    /// `NAME.back`; and of each host `NAME.K.up` and `NAME.K.down`.
    pub fn links(&self) -> Vec<String> {
        let path = match &self.graph {
            None => ["lan.out", "lan.back", "wan.out", "wan.back"].map(str::to_string).to_vec(),
            Some(graph) => graph.directions().map(|(name, _)| name).collect(),
        };
        let hosts = self.hosts.iter().flat_map(|h| (0..h.count).map(|k| format!("{}.{k}", h.name)));
        path.into_iter().chain(hosts.flat_map(|h| [format!("{h}.up"), format!("{h}.down")])).collect()
    }

    /// The classes that the gateway puts flows into, for results and tables; the gateway itself decides by the frames.
    pub fn classifier(&self) -> Classifier {
        Classifier(self.gateway.clone().map(Compiled::from))
    }
}

/// The rules of a plan's gateway, compiled: a look costs the same for ten classes or twenty thousand.
#[derive(Debug)]
pub struct Classifier(Option<Compiled>);

impl Classifier {
    /// The class of what a flow sends in a direction, from the first to the second of these ends.
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

/// A seed for one purpose of one group, link or host.
pub(crate) fn derived(seed: u64, group: &str, purpose: &str) -> u64 {
    // FNV-1a: stable across versions and machines.
    let bytes = group.bytes().chain([0]).chain(purpose.bytes());
    bytes.fold(seed ^ 0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}
