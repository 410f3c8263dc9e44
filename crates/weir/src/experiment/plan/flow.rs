//! Flows: what they are made of, when they start and end.

use super::derived;
use weir_core::dist::Distribution;
use weir_core::gateway::Direction;
use weir_core::rate::Rate;
use weir_core::rng::Rng;
use weir_core::time::Duration;
use weir_core::wire;
use weir_sim::cc::CubicRules;
use weir_sim::tcp::Recovery;

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
    /// Who sends when.
    pub kind: Kind,
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
    /// ECN is asked for, and data sent as that of L4S senders (RFC 9331). This and all below: simulator only.
    pub l4s: Option<bool>,
    /// Segments per delayed ACK, 1 acknowledges each.
    pub delayed_ack: Option<u32>,
    /// Longest delay of an ACK.
    pub delayed_ack_timer: Option<Duration>,
    /// Segments acknowledged at once at the beginning.
    pub quick_acks: Option<u32>,
    /// Segments with PSH are acknowledged at once.
    pub push_acks: Option<bool>,
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
    /// CUBIC's fast convergence (RFC 9438 §4.7).
    pub fast_convergence: Option<bool>,
    /// Which CUBIC it is.
    pub cubic: Option<CubicRules>,
    /// Pacing of all that is sent.
    pub pacing: Option<bool>,
    /// Segments sent back to back.
    pub tso_segments: Option<u32>,
}

/// Congestion control where nothing names one: Linux's own default, whatever the host of a lab is set to.
pub const DEFAULT_CC: &str = "cubic";

/// Names of congestion controls that stand for `reno` with a kind of recovery; simulator only.
pub const SHORTHANDS: [(&str, Recovery); 2] = [("tahoe", Recovery::Tahoe), ("newreno", Recovery::NewReno)];

impl Tcp {
    /// The recovery that a name of a congestion control stands for, if it is a shorthand.
    pub fn shorthand(cc: &str) -> Option<Recovery> {
        SHORTHANDS.iter().find(|(name, _)| *name == cc).map(|(_, recovery)| *recovery)
    }

    /// The congestion control by the name that results have: `cc`, or [`DEFAULT_CC`].
    pub fn cc(&self) -> &str {
        self.cc.as_deref().unwrap_or(DEFAULT_CC)
    }

    /// The congestion control to run: [`Tcp::cc`], with `reno` for a shorthand, whose recovery is in `recovery`.
    pub fn algorithm(&self) -> &str {
        let cc = self.cc();
        if Tcp::shorthand(cc).is_some() {
            "reno"
        } else {
            cc
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
            kind: Kind::Bulk,
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
