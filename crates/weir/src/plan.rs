//! What an experiment file says, as values: the plan that a world (the lab, later the simulator)
//! executes. A plan is made by [`crate::config::experiment`] and everything in it is already valid;
//! a world has nothing left to check.
//!
//! The topology is the usual dumbbell:
//!
//! ```text
//! clients ── LAN ── gateway ── WAN out ──▶ servers
//!                           ◀── WAN back ─
//! ```
//!
//! The client of a flow is on the LAN, its server beyond the WAN, and the client opens the
//! connection; [`Flow::direction`] says which of the two sends the data.

use core::net::IpAddr;
use weir_core::gateway::{ClassConfig, Config, Direction, Match};
use weir_core::rate::Rate;
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
    /// Length of the bins in which received bytes are recorded: 1 to 10 whole milliseconds. It divides `interval`,
    /// `duration` and every time that an expectation or a reference names, so that all of them can
    /// be computed from the bins.
    pub bin: Duration,
    /// Seed of everything random.
    pub seed: u64,
    /// The links.
    pub path: Path,
    /// The gateway; `None` for a plain bridge.
    pub gateway: Option<Config>,
    /// The flows, group by group in the order of the file. Identifiers are unique.
    pub groups: Vec<FlowGroup>,
    /// What the result must satisfy.
    pub expects: Vec<Expect>,
    /// What a paper reports for the same experiment.
    pub reference: Option<Reference>,
    /// SHA-256 of the file, in hexadecimal: `made_by.config_sha256` of the result.
    pub config_sha256: String,
}

/// The links of the dumbbell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Path {
    /// Between clients and gateway, each direction alike.
    pub lan: Link,
    /// From the gateway to the servers.
    pub wan_out: Link,
    /// From the servers to the gateway.
    pub wan_back: Link,
}

impl Path {
    /// Round-trip time with empty queues and without the time that frames take at the links' rates.
    pub fn rtt(&self) -> Duration {
        self.lan.delay + self.lan.delay + self.wan_out.delay + self.wan_back.delay
    }
}

/// One direction of a link. A link with no rate, delay or loss is a bare wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Link {
    /// Rate of the Ethernet frames without FCS, preamble and gap (what a capture shows); `None` is
    /// as fast as the machine.
    pub rate: Option<Rate>,
    /// Propagation delay.
    pub delay: Duration,
    /// Loss, before the queue.
    pub loss: Loss,
    /// Limit of the queue in front of the rate. Without a rate there is no queue.
    pub queue: Queue,
}

impl Link {
    /// A bare wire: nothing to emulate?
    pub fn is_bare(&self) -> bool {
        self.rate.is_none() && self.delay == Duration::ZERO && self.loss == Loss::None
    }
}

/// Loss on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each frame is lost independently with this probability.
    Random(Probability),
    /// Every n-th frame is lost; never 0.
    Every(u64),
}

impl Loss {
    /// Loss with a probability; none at all for zero.
    pub fn random(p: Probability) -> Loss {
        match p.trillionths() {
            0 => Loss::None,
            _ => Loss::Random(p),
        }
    }
}

/// A probability, exact in units of 10^-12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probability(u64);

impl Probability {
    /// One.
    pub const ONE: Probability = Probability(1_000_000_000_000);
    /// `n` × 10^-12; `None` above one.
    pub const fn from_trillionths(n: u64) -> Option<Probability> {
        if n <= Probability::ONE.0 {
            Some(Probability(n))
        } else {
            None
        }
    }
    /// In units of 10^-12, at most 10^12. Lose a frame when a number drawn below 10^12 is below this.
    pub const fn trillionths(self) -> u64 {
        self.0
    }
}

/// Limit of a drop-tail queue; it never counts frames in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// This many frames, never 0.
    Packets(u64),
    /// This many bytes of frames, never 0.
    Bytes(u64),
}

impl Default for Queue {
    /// 1000 packets, Linux's own default transmit queue.
    fn default() -> Queue {
        Queue::Packets(1000)
    }
}

/// `count` flows that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowGroup {
    /// The group's name; its flows are `id.0`, `id.1`, …
    pub id: String,
    /// How many, 1 to 10,000.
    pub count: u32,
    /// Congestion control as the sender's kernel names it (`reno`, `cubic`, …); `None` is the sender's
    /// default.
    pub cc: Option<String>,
    /// When flow 0 starts.
    pub start: Duration,
    /// How much later each further flow starts than the one before it.
    pub stagger: Duration,
    /// When a flow is done.
    pub length: Length,
    /// Which way the data goes.
    pub direction: Direction,
    /// Server ports: one that all flows share, or exactly one for each.
    pub ports: Ports,
    /// Maximum segment size in bytes of payload, 88 to 65,495; `None` leaves it to the MTU.
    pub mss: Option<u16>,
    /// The receiver's largest window in bytes; `None` leaves it to the receiver.
    pub rwnd: Option<u64>,
    /// Segments per delayed ACK, 1 acknowledges each. Simulator only.
    pub delayed_ack: Option<u32>,
    /// Initial congestion window in segments. Simulator only.
    pub initial_window: Option<u32>,
}

/// When a flow is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// With the experiment.
    UntilEnd,
    /// After this many bytes of payload, never 0.
    Bytes(u64),
    /// This long after its start, never 0.
    Duration(Duration),
}

/// Server ports of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// All flows connect to this one.
    Shared(u16),
    /// Flow `k` connects to port `first + k`; `first + count - 1` is a port.
    Each {
        /// Port of flow 0.
        first: u16,
    },
}

/// One flow of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow<'a> {
    /// Its identifier in results: `ten.0`.
    pub id: String,
    /// The group it belongs to.
    pub group: &'a FlowGroup,
    /// Its number in the group.
    pub index: u32,
    /// When it starts.
    pub start: Duration,
    /// The server's port.
    pub server_port: u16,
}

impl Flow<'_> {
    /// Which way its data goes.
    pub fn direction(&self) -> Direction {
        self.group.direction
    }
    /// When it ends at the latest, in an experiment of length `duration`.
    pub fn end(&self, duration: Duration) -> Duration {
        match self.group.length {
            Length::Duration(d) => duration.min(self.start + d),
            Length::UntilEnd | Length::Bytes(_) => duration,
        }
    }
}

impl FlowGroup {
    /// The first and the last server port.
    pub fn port_range(&self) -> (u16, u16) {
        match self.ports {
            Ports::Shared(p) => (p, p),
            Ports::Each { first } => (first, first + (self.count - 1) as u16),
        }
    }

    /// The flows of the group.
    pub fn flows(&self) -> impl Iterator<Item = Flow<'_>> {
        (0..self.count).map(move |index| Flow {
            id: format!("{}.{index}", self.id),
            group: self,
            index,
            start: self.start + self.stagger.saturating_mul(u64::from(index)),
            server_port: match self.ports {
                Ports::Shared(p) => p,
                Ports::Each { first } => first + index as u16,
            },
        })
    }
}

impl Plan {
    /// Uses another seed, for the gateway too.
    pub fn reseed(&mut self, seed: u64) {
        self.seed = seed;
        if let Some(g) = &mut self.gateway {
            g.seed = seed;
        }
    }

    /// Every flow, group by group.
    pub fn flows(&self) -> impl Iterator<Item = Flow<'_>> {
        self.groups.iter().flat_map(FlowGroup::flows)
    }

    /// The class that the gateway puts a flow between these two hosts into, for results and tables;
    /// the gateway itself decides by the frames. `client_port` may be unknown: then a rule that names
    /// it matches nothing.
    pub fn class_of(
        &self,
        flow: &Flow,
        client: IpAddr,
        client_port: Option<u16>,
        server: IpAddr,
    ) -> Option<&ClassConfig> {
        let client = (client, client_port);
        let server = (server, Some(flow.server_port));
        let (src, dst) = match flow.direction() {
            Direction::Out => (client, server),
            Direction::In => (server, client),
        };
        let takes = |m: &Match| {
            let ports = |range: &Option<core::ops::RangeInclusive<u16>>, port: Option<u16>| match range {
                None => true,
                Some(r) => port.is_some_and(|p| r.contains(&p)),
            };
            m.src.is_none_or(|p| p.contains(src.0))
                && m.dst.is_none_or(|p| p.contains(dst.0))
                && ports(&m.src_port, src.1)
                && ports(&m.dst_port, dst.1)
                && m.vlan.is_none_or(|v| v == 0)
        };
        self.gateway.as_ref()?.classes.iter().find(|c| {
            c.direction == flow.direction() && (c.matches.is_empty() || c.matches.iter().any(takes))
        })
    }
}

/// Something measured from a result: a value, or one per flow, interval or position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The path as it was written: `flow.ten.*.goodput_bps`.
    pub what: String,
    /// What it is about.
    pub subject: Subject,
    /// Which value of it.
    pub metric: Metric,
    /// Only from this time of the run on.
    pub from: Duration,
    /// Only up to this time of the run; `None` is the end.
    pub until: Option<Duration>,
}

/// What a measure is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Flows whose identifier matches the pattern, in which `*` is any run of characters.
    Flow(String),
    /// The link of this name: `lan.out`, `lan.back`, `wan.out`, `wan.back`.
    Link(String),
    /// Classes whose name matches the pattern.
    Class(String),
    /// The gateway as a whole.
    Gateway,
}

/// Which value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Average goodput over the measured time, in bits per second.
    Goodput,
    /// Goodput of each whole interval of this length, in bits per second.
    Intervals(Duration),
    /// The highest goodput over any window of this length that fits, in bits per second.
    MaxOver(Duration),
    /// The lowest, likewise.
    MinOver(Duration),
    /// A field of the result's object, by its path there: `["rtt_us", "p99"]`. A field that is an
    /// object of counts means their sum.
    Field(Vec<String>),
}

/// A check on the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Expect {
    /// What is measured.
    pub measure: Measure,
    /// How several values become one; `None` checks each.
    pub aggregate: Option<Aggregate>,
    /// The comparison.
    pub op: Op,
    /// What it is compared with.
    pub target: Target,
    /// How far from the target is still right.
    pub tolerance: Tolerance,
}

/// How several values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// Their sum.
    Sum,
    /// Their arithmetic mean.
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// No further from the target than the tolerance, on either side.
    Within,
    /// At most target + tolerance.
    AtMost,
    /// At least target - tolerance.
    AtLeast,
}

/// What a value is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// This value, in the unit of the metric.
    Value(f64),
    /// The rate that the gateway is set to for the flow (`flow_rate` of its class).
    FlowRate,
}

/// How far from a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// This much, in the unit of the metric.
    Absolute(f64),
    /// This fraction of the target: 0.005 is 0.5 %.
    Relative(f64),
}

/// What a paper reports for the same experiment, to be shown beside what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The source, with its figure.
    pub source: String,
    /// The rows of the comparison.
    pub rows: Vec<ReferenceRow>,
}

/// One value that a paper reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceRow {
    /// What it is, for people.
    pub name: String,
    /// The paper's value as it is printed there.
    pub paper: String,
    /// What of ours stands beside it.
    pub measure: Measure,
}
