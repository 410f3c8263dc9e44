//! The specification of what a traffic process plays.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use weir_core::dist::Distribution;

/// The ends of flows and probes that one process plays. All times count from the epoch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The epoch on CLOCK_MONOTONIC; without it [`serve`](super::serve) waits to be told.
    #[serde(default)]
    pub epoch_ns: Option<u64>,
    /// When everything ends, finished or not.
    pub stop_ns: u64,
    /// Length of the bins that received bytes are counted in.
    #[serde(default = "default_bin")]
    pub bin_ns: u64,
    /// Time between two samples of a sender's TCP_INFO; longer when many flows share the process.
    #[serde(default = "default_sample")]
    pub sample_ns: u64,
    /// How long a flow that ran out of time may take to say goodbye before it is reset.
    #[serde(default = "default_linger")]
    pub linger_ns: u64,
    /// Ends of TCP flows.
    #[serde(default)]
    pub flows: Vec<FlowSpec>,
    /// Ends of flows of UDP datagrams.
    #[serde(default)]
    pub datagrams: Vec<DatagramSpec>,
    /// Ends of UDP probes.
    #[serde(default)]
    pub probes: Vec<ProbeSpec>,
}

const fn default_bin() -> u64 {
    10_000_000
}
const fn default_sample() -> u64 {
    20_000_000
}
const fn default_linger() -> u64 {
    1_000_000_000
}

/// Who opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// This end, at the flow's start.
    Connect,
    /// The peer; this end listens from the beginning.
    Listen,
}

/// How much a flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// So many bytes, however long that takes.
    Bytes(u64),
    /// As much as goes until this time.
    UntilNs(u64),
}

/// Who sends when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Play {
    /// The end that [`FlowSpec::sends`].
    #[default]
    OneWay,
    /// Both ends all the time, each as much as the flow's amount says.
    BothWays,
    /// The end that connects asks, the other one answers, one after the other until the time is up.
    Exchange {
        /// Bytes of a request.
        request: u64,
        /// Bytes of a response.
        response: u64,
    },
}

/// One end of a TCP flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Name in the report.
    pub id: String,
    /// Who opens the connection.
    pub role: Role,
    /// This end's address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
    /// Whether this end sends the data; the other end receives.
    pub sends: bool,
    /// Who sends when.
    #[serde(default)]
    pub play: Play,
    /// When the connection is opened.
    pub start_ns: u64,
    /// How much is sent.
    pub amount: Amount,
    /// Congestion control of this end, by the kernel's name.
    #[serde(default)]
    pub cc: Option<String>,
    /// TCP_MAXSEG.
    #[serde(default)]
    pub mss: Option<u32>,
    /// Largest window this end advertises, in bytes. Newer kernels may exceed it, by less than
    /// three times, until the first data has been read.
    #[serde(default)]
    pub rwnd: Option<u32>,
    /// SO_SNDBUF as the application asks for it; the kernel doubles it for its bookkeeping.
    #[serde(default)]
    pub sndbuf: Option<u32>,
    /// Without TCP_NODELAY.
    #[serde(default)]
    pub nagle: bool,
    /// The client's SYN carries what is written first, if the kernel has a cookie of the server (Fast Open).
    #[serde(default)]
    pub fast_open: bool,
    /// Only gaps in delivery that end after this time count as the longest.
    #[serde(default)]
    pub gap_after_ns: u64,
    /// Keep the samples of TCP_INFO over time.
    #[serde(default)]
    pub series: bool,
}

/// Bytes of a datagram's number.
pub(super) const NUMBER: usize = 8;
/// Most payload bytes of a datagram.
const LONGEST: u16 = 65_507;

/// A distribution as the traffic processes are told.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Distribution", rename_all = "snake_case")]
enum Drawn {
    Constant(u64),
    Uniform { min: u64, max: u64 },
    Exponential { mean: u64 },
    Pareto { scale: u64, shape: f64, min: u64, max: Option<u64> },
    BoundedPareto { min: u64, shape: f64, max: u64 },
    Empirical(Vec<u64>),
}

/// Times on and off of a flow of datagrams, nanoseconds, and the seed that they are drawn with.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnOff {
    /// Lengths of the times on, at least 1 us.
    #[serde(with = "Drawn")]
    pub on: Distribution,
    /// Lengths of the times off.
    #[serde(with = "Drawn")]
    pub off: Distribution,
    /// Seed.
    pub seed: u64,
}

/// One end of a flow of UDP datagrams at a constant rate, on and off if told to. Each begins with its number.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatagramSpec {
    /// Name in the report.
    pub id: String,
    /// This end's address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
    /// Whether this end sends.
    pub sends: bool,
    /// Payload in bits per second.
    pub rate_bps: u64,
    /// Payload bytes of a datagram, 8 to 65,507.
    pub size: u16,
    /// When the first datagram is sent.
    pub start_ns: u64,
    /// How much is sent: whole datagrams, so that the last may exceed it.
    pub amount: Amount,
    /// The rate is that of the times on; without it there is no other.
    #[serde(default)]
    pub on_off: Option<OnOff>,
}

/// Bytes of a probe's packet that mean something: a magic number, the packet's number, when it was sent.
pub(super) const PROBE_HEADER: usize = 24;

/// One end of a UDP probe: packets at even distances, each with the time it was sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeSpec {
    /// Name in the report.
    pub id: String,
    /// This end's address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
    /// Whether this end sends.
    pub sends: bool,
    /// Packets per second.
    pub pps: u32,
    /// UDP payload of a packet in bytes, 24 at least.
    pub size: u16,
    /// Packets that are sent together, 1 at least.
    pub burst: u32,
    /// How far apart packets are to arrive, if they are to be paced.
    #[serde(default)]
    pub gap_ns: Option<u64>,
    /// When the first packet is sent.
    pub start_ns: u64,
    /// When no further one is.
    pub until_ns: u64,
}

impl FlowSpec {
    /// Does this end ever send payload?
    pub fn writes(&self) -> bool {
        self.sends || self.play != Play::OneWay
    }
    /// Does this end ever receive payload?
    pub fn reads(&self) -> bool {
        !self.sends || self.play != Play::OneWay
    }
}

impl Spec {
    /// Everything that can be wrong with a specification before anything is opened.
    pub fn check(&self) -> Result<(), String> {
        if self.bin_ns == 0 || self.sample_ns == 0 {
            return Err("bin_ns and sample_ns must be above zero".into());
        }
        let mut tuples = BTreeSet::new();
        for f in &self.flows {
            let fault = |what: &str| Err(format!("flow `{}`: {what}", f.id));
            if f.local.is_ipv4() != f.remote.is_ipv4() {
                return fault("local and remote are of different families");
            }
            if f.local.port() == 0 || f.remote.port() == 0 {
                return fault("both ports must be given: a flow is known by its addresses and ports");
            }
            if !tuples.insert((f.local, f.remote)) {
                return fault("another flow has the same addresses and ports");
            }
            match f.amount {
                Amount::Bytes(0) => return fault("bytes must be above zero"),
                Amount::UntilNs(until) if until <= f.start_ns => return fault("it ends before it starts"),
                Amount::Bytes(_) if matches!(f.play, Play::Exchange { .. }) => {
                    return fault("exchanges end by time")
                }
                _ => {}
            }
            if matches!(f.play, Play::Exchange { request: 0, .. } | Play::Exchange { response: 0, .. }) {
                return fault("requests and responses must have bytes");
            }
        }
        for d in &self.datagrams {
            let fault = |what: &str| Err(format!("datagrams `{}`: {what}", d.id));
            if d.rate_bps == 0 || matches!(d.amount, Amount::Bytes(0)) {
                return fault("nothing to send");
            }
            if !(NUMBER as u16..=LONGEST).contains(&d.size) {
                return fault("size must be 8 to 65507 bytes");
            }
            if matches!(d.amount, Amount::UntilNs(until) if until <= d.start_ns) {
                return fault("it ends before it starts");
            }
        }
        for p in &self.probes {
            let fault = |what: &str| Err(format!("probe `{}`: {what}", p.id));
            if p.pps == 0 || p.until_ns <= p.start_ns {
                return fault("nothing to send");
            }
            if usize::from(p.size) < PROBE_HEADER {
                return fault("size must be 24 bytes at least");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(flows: &str) -> Result<Spec, String> {
        let text = format!("{{\"stop_ns\": 1000, \"flows\": [{flows}]}}");
        let spec: Spec = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        spec.check().map(|()| spec)
    }

    const FLOW: &str = r#"{"id": "a", "role": "connect", "local": "10.0.0.1:1000", "remote": "10.0.0.2:2000",
        "sends": true, "start_ns": 5, "amount": {"bytes": 7}"#;

    #[test]
    fn what_is_left_out_has_a_value() {
        let s = spec(&format!("{FLOW}}}")).unwrap();
        assert_eq!((s.bin_ns, s.sample_ns, s.epoch_ns), (10_000_000, 20_000_000, None));
        assert_eq!(s.flows[0].amount, Amount::Bytes(7));
    }

    #[test]
    fn faults_name_the_flow() {
        let twice = format!("{FLOW}}}, {FLOW}}}");
        assert_eq!(spec(&twice).unwrap_err(), "flow `a`: another flow has the same addresses and ports");
        let early = FLOW.replace("\"bytes\": 7", "\"until_ns\": 5");
        assert_eq!(spec(&format!("{early}}}")).unwrap_err(), "flow `a`: it ends before it starts");
        assert!(spec(&format!("{FLOW}, \"mtu\": 9}}")).unwrap_err().contains("unknown field `mtu`"));
    }
}
