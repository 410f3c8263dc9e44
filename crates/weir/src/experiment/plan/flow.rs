//! Flows: their protocol, data, start and end.

use super::{derived, Tcp};
use weir_core::dist::Distribution;
use weir_core::gateway::Direction;
use weir_core::rate::Rate;
use weir_core::rng::Rng;
use weir_core::time::Duration;
use weir_core::wire;
use weir_sim::host::Bursts;

/// Group of `count` flows of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowGroup {
    /// The group's name; its flows are `id.0`, `id.1`, …
    pub id: String,
    /// Number of flows, 1 to 100,000; with drawn arrivals, the maximum.
    pub count: u32,
    /// Transport protocol.
    pub protocol: Protocol,
    /// TCP settings of both ends, with the defaults of `[tcp]` merged in.
    pub tcp: Tcp,
    /// Codepoint of the packets of both ends (DSCP, RFC 2474), below 64.
    pub dscp: u8,
    /// Start of flow 0.
    pub start: Duration,
    /// Distances between the starts of further flows.
    pub arrivals: Arrivals,
    /// Sizes of the application's bursts and of the pauses between them; `None` without pauses. Simulator
    /// only.
    pub bursts: Option<Bursts>,
    /// Sources that send one flow after the other; `None` if flows are independent. Simulator only.
    pub sources: Option<Sources>,
    /// End of a flow.
    pub length: Length,
    /// Pattern of sending.
    pub kind: Kind,
    /// Name that seeds the group's draws; `None` is the group's own name. Groups with the same name here draw
    /// the same starts, sizes and silences from the same distributions.
    pub drawn_as: Option<String>,
    /// Direction of the data. For a flow that goes both ways, the direction that results report.
    pub direction: Direction,
    /// Server ports: one that all flows share, or one for each.
    pub ports: Ports,
    /// Group of hosts that the clients are on ([`Flow::host_of`]). `None` is the path's own client host.
    pub client: Option<String>,
    /// Group of hosts that the servers are on, with the same assignment.
    pub server: Option<String>,
}

/// Pattern of sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// One end sends all the time, the other receives.
    #[default]
    Bulk,
    /// Both ends send all the time. Lab only.
    TwoWay,
    /// The client sends a request, the server answers, and the next request follows. Lab only.
    Request {
        /// Bytes of a request, never 0.
        request: u64,
        /// Bytes of a response, never 0.
        response: u64,
    },
}

/// The transport of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum Protocol {
    /// TCP. Its application writes as fast as the connection accepts, or at most at this rate.
    Tcp {
        /// Limit of the application's own rate of payload; simulator only.
        app_rate: Option<Rate>,
    },
    /// QUIC: a library's in the lab, [opaque](weir_sim::tcp::TcpConfig::opaque) TCP in the simulator. Its
    /// settings are those of TCP.
    Quic {
        /// Limit of the application's own rate of payload; simulator only.
        app_rate: Option<Rate>,
        /// Number of streams that share the data, never 0. The simulator has one.
        streams: u32,
    },
    /// UDP datagrams from the data's sender, independent of the network.
    Udp {
        /// Rate of payload while on.
        rate: Rate,
        /// Payload bytes of a datagram, 1 to 1472.
        datagram: u16,
        /// Lengths of the on and off times in nanoseconds; `None` is always on.
        on_off: Option<(Distribution, Distribution)>,
    },
}

impl Protocol {
    /// Returns whether it is TCP.
    pub const fn is_tcp(&self) -> bool {
        matches!(self, Protocol::Tcp { .. })
    }

    /// Returns whether its data is a stream of bytes that is acknowledged, and not datagrams.
    pub const fn is_reliable(&self) -> bool {
        matches!(self, Protocol::Tcp { .. } | Protocol::Quic { .. })
    }

    /// Returns the limit of the application's own rate.
    pub const fn app_rate(&self) -> Option<Rate> {
        match self {
            Protocol::Tcp { app_rate } | Protocol::Quic { app_rate, .. } => *app_rate,
            Protocol::Udp { .. } => None,
        }
    }

    /// Returns the protocol's number in IP headers.
    pub const fn number(&self) -> u8 {
        match self {
            Protocol::Tcp { .. } => wire::TCP,
            Protocol::Quic { .. } | Protocol::Udp { .. } => wire::UDP,
        }
    }
}

/// Distances between the starts of a group's flows.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// Each flow starts this much later than the previous one.
    Every(Duration),
    /// The times between starts are drawn, in nanoseconds. An exponential distribution makes a Poisson
    /// process.
    Drawn(Distribution),
}

/// Sources that send one flow after the other, a closed loop. Flow `k` belongs to source `k` modulo their
/// number. `start` and `arrivals` apply to the first flow of each source.
#[derive(Clone, Debug, PartialEq)]
pub struct Sources {
    /// Number of sources, 1 to the group's count.
    pub count: u32,
    /// Times from the end of a flow to the start of the source's next one, in nanoseconds.
    pub think: Distribution,
}

/// Flow that another one waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    /// Number of the flow in the group.
    pub index: u32,
    /// Time from its end to the start of the waiting flow.
    pub think: Duration,
}

/// End of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum Length {
    /// The flow ends with the experiment.
    UntilEnd,
    /// The flow ends after this many bytes of payload, never 0.
    Bytes(u64),
    /// The flow ends at this time after its start, never 0.
    Duration(Duration),
    /// The flow ends after a number of bytes drawn for each flow.
    Drawn(Distribution),
}

/// Server ports of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// All flows connect to this port.
    Shared(u16),
    /// Flow `k` connects to port `first + k`. The last one, `first + count - 1`, is a valid port.
    Each {
        /// Port of flow 0.
        first: u16,
    },
}

/// One flow of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow<'a> {
    /// Identifier in results, such as `ten.0`.
    pub id: String,
    /// Group of the flow.
    pub group: &'a FlowGroup,
    /// Number of the flow in the group.
    pub index: u32,
    /// Start time; the earliest one if the flow waits for another.
    pub start: Duration,
    /// Flow of the same source that it waits for.
    pub before: Option<Before>,
    /// Number of bytes; `None` if the flow ends by time.
    pub bytes: Option<u64>,
    /// Port of the server.
    pub server_port: u16,
}

impl Flow<'_> {
    /// Returns the direction of the data.
    pub fn direction(&self) -> Direction {
        self.group.direction
    }
    /// Returns the number of its source, or its own number if the group has no sources.
    pub fn source(&self) -> u32 {
        self.group.sources.as_ref().map_or(self.index, |sources| self.index % sources.count)
    }
    /// Returns the number of its host in a group of `count` hosts. Flows take turns on the hosts, and those
    /// of one source are on the same host. Panics if `count` is 0.
    pub fn host_of(&self, count: u32) -> u32 {
        self.source() % count
    }
    /// Returns the latest end, in an experiment of length `duration`.
    pub fn end(&self, duration: Duration) -> Duration {
        match self.group.length {
            Length::Duration(d) => duration.min(self.start + d),
            Length::UntilEnd | Length::Bytes(_) | Length::Drawn(_) => duration,
        }
    }
}

impl FlowGroup {
    /// Returns one TCP upload with the defaults of its world, from the start to the end, to port 5001.
    pub fn new(id: &str) -> FlowGroup {
        FlowGroup {
            id: id.into(),
            count: 1,
            protocol: Protocol::Tcp { app_rate: None },
            tcp: Tcp::default(),
            dscp: 0,
            start: Duration::ZERO,
            arrivals: Arrivals::Every(Duration::ZERO),
            bursts: None,
            sources: None,
            length: Length::UntilEnd,
            kind: Kind::Bulk,
            drawn_as: None,
            direction: Direction::Out,
            ports: Ports::Shared(5001),
            client: None,
            server: None,
        }
    }

    /// Returns the first and the last server port.
    pub fn port_range(&self) -> (u16, u16) {
        match self.ports {
            Ports::Shared(p) => (p, p),
            Ports::Each { first } => (first, first + (self.count - 1) as u16),
        }
    }

    /// Returns the name that seeds the draws.
    pub fn drawn_as(&self) -> &str {
        self.drawn_as.as_deref().unwrap_or(&self.id)
    }

    /// Returns whether any property is drawn.
    pub fn draws(&self) -> bool {
        self.draws_flows() || matches!(self.protocol, Protocol::Udp { on_off: Some(_), .. })
    }

    /// Returns whether the number, the starts or the sizes of the flows are drawn, or depend on the run. A
    /// flow has a counterpart of the same name only in runs of the same seed then.
    pub fn draws_flows(&self) -> bool {
        let drawn = matches!(self.arrivals, Arrivals::Drawn(_)) || matches!(self.length, Length::Drawn(_));
        drawn || self.sources.is_some()
    }

    /// Returns the flows of the group, in the order of their starts. Draws depend only on `seed` and a name,
    /// and are equal in every world.
    pub fn flows(&self, seed: u64) -> impl Iterator<Item = Flow<'_>> {
        let [mut starts, mut sizes, mut thinking] =
            ["arrivals", "bytes", "think"].map(|what| Rng::new(derived(seed, self.drawn_as(), what)));
        let mut next = self.start;
        (0..self.count).map(move |index| {
            let waits =
                self.sources.as_ref().and_then(|all| Some((index.checked_sub(all.count)?, &all.think)));
            let before = waits.map(|(index, think)| Before {
                index,
                think: Duration::from_nanos(think.draw(&mut thinking)),
            });
            let mut start = self.start;
            if before.is_none() {
                start = next;
                next = next.saturating_add(match &self.arrivals {
                    Arrivals::Every(gap) => *gap,
                    Arrivals::Drawn(gaps) => Duration::from_nanos(gaps.draw(&mut starts)),
                });
            }
            Flow {
                id: format!("{}.{index}", self.id),
                group: self,
                index,
                start,
                before,
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
