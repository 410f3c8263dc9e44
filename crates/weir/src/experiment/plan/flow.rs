//! Flows: what they are made of, when they start and end.

use super::{derived, Tcp};
use weir_core::dist::Distribution;
use weir_core::gateway::Direction;
use weir_core::rate::Rate;
use weir_core::rng::Rng;
use weir_core::time::Duration;
use weir_core::wire;
use weir_sim::host::Bursts;

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
    /// What its application sends before it pauses, and for how long; `None` if it does not. Simulator only.
    pub bursts: Option<Bursts>,
    /// Who sends one flow after the other; `None` if no flow waits for another. Simulator only.
    pub sources: Option<Sources>,
    /// When a flow is done.
    pub length: Length,
    /// Who sends when.
    pub kind: Kind,
    /// Groups of the same name here have the same starts, sizes and times of silence, as far as they draw them from the same
    /// distributions; `None` is the group's own name.
    pub drawn_as: Option<String>,
    /// Which way the data goes; of a flow that goes both ways, which of them results are about.
    pub direction: Direction,
    /// Server ports: one that all flows share, or exactly one for each.
    pub ports: Ports,
    /// Group of hosts that its clients are on, flow `k` on host `k` modulo their number; `None` is the path's own
    /// client host.
    pub client: Option<String>,
    /// Likewise, its servers.
    pub server: Option<String>,
}

/// Who sends when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// One end sends all the time, the other receives.
    #[default]
    Bulk,
    /// Both ends send all the time. Lab only.
    TwoWay,
    /// The client asks, the server answers, and the next request follows. Lab only.
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

impl Protocol {
    /// Is it TCP?
    pub const fn is_tcp(&self) -> bool {
        matches!(self, Protocol::Tcp { .. })
    }

    /// Its number in IP headers.
    pub const fn number(&self) -> u8 {
        match self {
            Protocol::Tcp { .. } => wire::TCP,
            Protocol::Udp { .. } => wire::UDP,
        }
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

/// Sources that send one flow after the other: a closed loop. Flow `k` is of source `k` modulo their number, and the flows that `start` and
/// `arrivals` are about are the first ones of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Sources {
    /// How many, 1 to the group's count.
    pub count: u32,
    /// Times from the end of a flow to the start of the next one of its source, in nanoseconds.
    pub think: Distribution,
}

/// The flow that another one waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before {
    /// Its number in the group.
    pub index: u32,
    /// Time from its end to the start of the one that waits.
    pub think: Duration,
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
    /// When it starts; at the earliest, if it waits for another one.
    pub start: Duration,
    /// The flow of the same source that it waits for.
    pub before: Option<Before>,
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
    /// The number of its source, or of itself where flows have none.
    pub fn source(&self) -> u32 {
        self.group.sources.as_ref().map_or(self.index, |sources| self.index % sources.count)
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

    /// The first and the last server port.
    pub fn port_range(&self) -> (u16, u16) {
        match self.ports {
            Ports::Shared(p) => (p, p),
            Ports::Each { first } => (first, first + (self.count - 1) as u16),
        }
    }

    /// The name that draws depend on.
    pub fn drawn_as(&self) -> &str {
        self.drawn_as.as_deref().unwrap_or(&self.id)
    }

    /// Is anything of it drawn?
    pub fn draws(&self) -> bool {
        let drawn = matches!(self.arrivals, Arrivals::Drawn(_)) || matches!(self.length, Length::Drawn(_));
        drawn || self.sources.is_some() || matches!(self.protocol, Protocol::Udp { on_off: Some(_), .. })
    }

    /// The flows of the group, in the order of their starts. What is drawn is drawn from `seed` and a name, the same in every world.
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
