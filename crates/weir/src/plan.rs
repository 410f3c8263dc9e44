//! What an experiment file says, as values: the plan that a world (the lab or the simulator)
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
use weir_core::dist::Distribution;
use weir_core::gateway::{ClassConfig, Config, Direction, Match};
use weir_core::rate::Rate;
use weir_core::rng::Rng;
use weir_core::time::Duration;
use weir_sim::cc::CubicRules;
use weir_sim::tcp::Recovery;

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
    /// Length of the bins in which received bytes are recorded: 1 us to 10 ms, at most 10 million bins. It
    /// divides `interval`, `duration` and every time that an expectation or a reference names about rates,
    /// so that all of them can be computed from the bins. Whole milliseconds in the lab.
    pub bin: Duration,
    /// Seed of everything random.
    pub seed: u64,
    /// The links.
    pub path: Path,
    /// Hosts beyond the two that every path has, each behind an access link of its own. Simulator only.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Frames of ECN-capable packets that find at least this much waiting are marked with Congestion
    /// Experienced (the threshold K of DCTCP); `None` marks nothing.
    pub mark: Option<Queue>,
    /// Bytes that each packet costs the rate and the queue beyond its IP packet; 14 counts the frame
    /// without FCS, as Linux does.
    pub overhead: u16,
    /// Bytes that the rate sends at once after it has been idle (depth of a token bucket); 0 for a wire.
    pub burst: u64,
}

impl Default for Link {
    /// A bare wire.
    fn default() -> Link {
        Link {
            rate: None,
            delay: Duration::ZERO,
            loss: Loss::None,
            queue: Queue::default(),
            mark: None,
            overhead: weir_core::link::Config::NETEM,
            burst: 0,
        }
    }
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

impl core::fmt::Display for Queue {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Queue::Packets(n) => write!(f, "{n} packets"),
            Queue::Bytes(n) => write!(f, "{n} bytes"),
        }
    }
}

/// `count` hosts that are alike, `name.0`, `name.1`, …, each behind an access link of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostGroup {
    /// The group's name.
    pub name: String,
    /// Beyond the WAN (a server)? Otherwise on the LAN (a client).
    pub wan: bool,
    /// How many, 1 to 10,000.
    pub count: u32,
    /// From the host into the network.
    pub up: Link,
    /// From the network to the host.
    pub down: Link,
}

/// Something recorded over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SeriesKind {
    /// Congestion window, slow-start threshold and bytes in flight of each flow: `cwnd_packets`, `ssthresh_packets`,
    /// `in_flight_bytes`.
    Cwnd,
    /// Bytes acknowledged at the sender of each flow: `acked_bytes`.
    Acked,
    /// Smoothed round-trip time of each flow: `rtt_us`.
    Rtt,
    /// What waits in each link's queue: `queue_packets`, `queue_bytes`.
    Queue,
    /// What the gateway holds of each flow: `held_bytes`.
    Held,
}

impl SeriesKind {
    /// Every kind, by the name used in experiments.
    pub const ALL: [(&'static str, SeriesKind); 5] = [
        ("cwnd", SeriesKind::Cwnd),
        ("acked", SeriesKind::Acked),
        ("rtt", SeriesKind::Rtt),
        ("queue", SeriesKind::Queue),
        ("held", SeriesKind::Held),
    ];

    /// The name used in experiments.
    pub fn name(self) -> &'static str {
        SeriesKind::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// The columns that it adds to a result's series.
    pub const fn columns(self) -> &'static [&'static str] {
        match self {
            SeriesKind::Cwnd => &["cwnd_packets", "ssthresh_packets", "in_flight_bytes"],
            SeriesKind::Acked => &["acked_bytes"],
            SeriesKind::Rtt => &["rtt_us"],
            SeriesKind::Queue => &["queue_packets", "queue_bytes"],
            SeriesKind::Held => &["held_bytes"],
        }
    }

    /// Is it recorded for links? The others are for flows.
    pub const fn of_links(self) -> bool {
        matches!(self, SeriesKind::Queue)
    }
}

/// How far apart results of simulator and lab may be, as fractions: 0.05 is 5 %.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Parity {
    /// Of the goodput of each group, the mean of its flows.
    pub goodput: f64,
    /// Of the completion times of finite flows, likewise.
    pub fct: f64,
}

/// `count` flows that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowGroup {
    /// The group's name; its flows are `id.0`, `id.1`, …
    pub id: String,
    /// How many, 1 to 100,000; with drawn arrivals, how many at most.
    pub count: u32,
    /// What it is made of.
    pub protocol: Protocol,
    /// The TCP of its ends; the defaults of `[tcp]` are in it already.
    pub tcp: Tcp,
    /// When flow 0 starts.
    pub start: Duration,
    /// How the starts of the further flows follow.
    pub arrivals: Arrivals,
    /// When a flow is done.
    pub length: Length,
    /// Which way the data goes.
    pub direction: Direction,
    /// Server ports: one that all flows share, or exactly one for each.
    pub ports: Ports,
    /// Group of hosts that its clients are on, flow `k` on host `k` modulo their number; `None` is the path's own
    /// client host. Simulator only.
    pub client: Option<String>,
    /// Likewise, its servers.
    pub server: Option<String>,
}

/// The transport of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum Protocol {
    /// TCP; its application writes as fast as the connection takes it, or at most at this rate.
    Tcp {
        /// Limit of the application's own rate, payload; simulator only.
        app_rate: Option<Rate>,
    },
    /// UDP datagrams from the data's sender, whatever the network does. Simulator only.
    Udp {
        /// Rate of payload while it is on.
        rate: Rate,
        /// Payload bytes of a datagram, 1 to 1472.
        datagram: u16,
        /// Lengths of the times on and off, in nanoseconds; `None` is always on.
        on_off: Option<(Distribution, Distribution)>,
    },
}

/// The TCP of both ends of a flow. `None` leaves it to the sender's, or receiver's, own default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Congestion control as Linux names it (`reno`, `cubic`, …), or a [shorthand](SHORTHANDS). This is the
    /// name for results; [`Tcp::algorithm`] is what runs.
    pub cc: Option<String>,
    /// Maximum segment size in bytes of payload, 88 to 65,495; otherwise what the MTU allows.
    pub mss: Option<u16>,
    /// The receiver's largest window in bytes.
    pub rwnd: Option<u64>,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: Option<bool>,
    /// Segments per delayed ACK, 1 acknowledges each. This and all below: simulator only.
    pub delayed_ack: Option<u32>,
    /// Longest delay of an ACK.
    pub delayed_ack_timer: Option<Duration>,
    /// Segments acknowledged at once at the beginning.
    pub quick_acks: Option<u32>,
    /// Initial congestion window in segments.
    pub initial_window: Option<u32>,
    /// Initial slow-start threshold in segments.
    pub initial_ssthresh: Option<u32>,
    /// How losses are found and repaired.
    pub recovery: Option<Recovery>,
    /// Timestamps (RFC 7323).
    pub timestamps: Option<bool>,
    /// Smallest retransmission time-out.
    pub min_rto: Option<Duration>,
    /// Appropriate byte counting (RFC 3465).
    pub abc: Option<bool>,
    /// A slow start that looks for its end: HyStart++ (RFC 9406), or Linux's own with [`CubicRules::Linux`].
    pub hystart: Option<bool>,
    /// Which CUBIC it is.
    pub cubic: Option<CubicRules>,
    /// Pacing of all that is sent.
    pub pacing: Option<bool>,
    /// Segments sent back to back.
    pub tso_segments: Option<u32>,
}

/// Names of congestion controls that stand for `reno` with a kind of recovery; simulator only.
pub const SHORTHANDS: [(&str, Recovery); 2] = [("tahoe", Recovery::Tahoe), ("newreno", Recovery::NewReno)];

impl Tcp {
    /// The recovery that a name of a congestion control stands for, if it is a shorthand.
    pub fn shorthand(cc: &str) -> Option<Recovery> {
        SHORTHANDS.iter().find(|(name, _)| *name == cc).map(|(_, recovery)| *recovery)
    }

    /// The congestion control to run: `cc`, with `reno` for a shorthand, whose recovery is in `recovery`.
    pub fn algorithm(&self) -> Option<&str> {
        let cc = self.cc.as_deref()?;
        Some(if Tcp::shorthand(cc).is_some() { "reno" } else { cc })
    }
}

/// How the starts of the flows of a group follow each other.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// Each starts this much later than the one before.
    Every(Duration),
    /// The times between starts are drawn, in nanoseconds; exponential ones make a Poisson process.
    Drawn(Distribution),
}

/// When a flow is done.
#[derive(Clone, Debug, PartialEq)]
pub enum Length {
    /// With the experiment.
    UntilEnd,
    /// After this many bytes of payload, never 0.
    Bytes(u64),
    /// This long after its start, never 0.
    Duration(Duration),
    /// After a number of bytes drawn for each flow.
    Drawn(Distribution),
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
#[derive(Clone, Debug, PartialEq)]
pub struct Flow<'a> {
    /// Its identifier in results: `ten.0`.
    pub id: String,
    /// The group it belongs to.
    pub group: &'a FlowGroup,
    /// Its number in the group.
    pub index: u32,
    /// When it starts.
    pub start: Duration,
    /// How many bytes it has; `None` if it ends by time.
    pub bytes: Option<u64>,
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
            Length::UntilEnd | Length::Bytes(_) | Length::Drawn(_) => duration,
        }
    }
}

impl FlowGroup {
    /// One upload over TCP with the defaults of its world, from the start to the end, to port 5001.
    pub fn new(id: &str) -> FlowGroup {
        FlowGroup {
            id: id.into(),
            count: 1,
            protocol: Protocol::Tcp { app_rate: None },
            tcp: Tcp::default(),
            start: Duration::ZERO,
            arrivals: Arrivals::Every(Duration::ZERO),
            length: Length::UntilEnd,
            direction: Direction::Out,
            ports: Ports::Shared(5001),
            client: None,
            server: None,
        }
    }

    /// The first and the last server port.
    pub fn port_range(&self) -> (u16, u16) {
        match self.ports {
            Ports::Shared(p) => (p, p),
            Ports::Each { first } => (first, first + (self.count - 1) as u16),
        }
    }

    /// The flows of the group, in the order of their starts. What is drawn is drawn from `seed` and the group's name, the same in
    /// every world.
    pub fn flows(&self, seed: u64) -> impl Iterator<Item = Flow<'_>> {
        let mut starts = Rng::new(derived(seed, &self.id, "arrivals"));
        let mut sizes = Rng::new(derived(seed, &self.id, "bytes"));
        let mut next = self.start;
        (0..self.count).map(move |index| {
            let start = next;
            next = next.saturating_add(match &self.arrivals {
                Arrivals::Every(gap) => *gap,
                Arrivals::Drawn(gaps) => Duration::from_nanos(gaps.draw(&mut starts)),
            });
            Flow {
                id: format!("{}.{index}", self.id),
                group: self,
                index,
                start,
                bytes: match &self.length {
                    Length::Bytes(n) => Some(*n),
                    Length::Drawn(sizes_of) => Some(sizes_of.draw(&mut sizes).max(1)),
                    Length::UntilEnd | Length::Duration(_) => None,
                },
                server_port: match self.ports {
                    Ports::Shared(p) => p,
                    Ports::Each { first } => first + index as u16,
                },
            }
        })
    }
}

/// A seed for one purpose of one group, link or host.
pub(crate) fn derived(seed: u64, group: &str, purpose: &str) -> u64 {
    // FNV-1a: stable across versions and machines.
    let bytes = group.bytes().chain([0]).chain(purpose.bytes());
    bytes.fold(seed ^ 0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
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
            hosts: Vec::new(),
            gateway: None,
            groups: Vec::new(),
            series: Vec::new(),
            sample: None,
            parity: None,
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
    }

    /// Every flow, group by group. With drawn arrivals, those that would start after the end do not exist.
    pub fn flows(&self) -> impl Iterator<Item = Flow<'_>> {
        let in_time = |f: &Flow| f.start < self.duration;
        self.groups.iter().flat_map(move |g| g.flows(self.seed).take_while(in_time))
    }

    /// The links as results name them: `lan.out`, `lan.back`, `wan.out`, `wan.back`, and of each host `NAME.K.up` and
    /// `NAME.K.down`.
    pub fn links(&self) -> Vec<String> {
        let path = ["lan.out", "lan.back", "wan.out", "wan.back"].map(str::to_string);
        let hosts = self.hosts.iter().flat_map(|h| (0..h.count).map(|k| format!("{}.{k}", h.name)));
        path.into_iter().chain(hosts.flat_map(|h| [format!("{h}.up"), format!("{h}.down")])).collect()
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
    /// Links whose name ([`Plan::links`]) matches the pattern.
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
    /// A column of the flow's or link's series, which holds each value until the next.
    Series {
        /// Its name: `acked_bytes`.
        column: String,
        /// The value at this time; `None` is every value of the measured time, that at its beginning included.
        at: Option<Duration>,
    },
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
