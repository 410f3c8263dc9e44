//! Links and hosts.

use weir_core::rate::Rate;
use weir_core::time::Duration;

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
    /// Frames of ECN-capable packets that find more than this waiting are marked with Congestion
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
