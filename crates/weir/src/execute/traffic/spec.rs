//! The specification of a traffic process.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use weir_core::dist::Distribution;

/// The ends of flows and probes that one process runs. All times count from the epoch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Epoch on CLOCK_MONOTONIC. Without it [`serve`](super::serve) waits for the `go` line.
    #[serde(default)]
    pub epoch_ns: Option<u64>,
    /// Time at which everything ends, finished or not.
    pub stop_ns: u64,
    /// Length of the bins in which received bytes are counted.
    #[serde(default = "default_bin")]
    pub bin_ns: u64,
    /// Time between two TCP_INFO samples of a sender; longer if many flows share the process.
    #[serde(default = "default_sample")]
    pub sample_ns: u64,
    /// Time that a flow may take for an orderly close after its limit, before it is reset.
    #[serde(default = "default_linger")]
    pub linger_ns: u64,
    /// Ends of TCP flows.
    #[serde(default)]
    pub flows: Vec<FlowSpec>,
    /// Ends of flows of UDP datagrams.
    #[serde(default)]
    pub datagrams: Vec<DatagramSpec>,
    /// Ends of QUIC flows.
    #[serde(default)]
    pub quic: Vec<QuicSpec>,
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

/// End that opens the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// This end, at the flow's start.
    Connect,
    /// The peer; this end listens from the beginning.
    Listen,
}

/// Amount of data of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// A number of bytes, without a time limit.
    Bytes(u64),
    /// Unlimited data until this time.
    UntilNs(u64),
}

/// Pattern of sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Play {
    /// One end sends, the one with [`FlowSpec::sends`].
    #[default]
    OneWay,
    /// Both ends send all the time, each by the flow's amount.
    BothWays,
    /// The connecting end sends requests and the other end answers, in turn until the time is up.
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
    /// End that opens the connection.
    pub role: Role,
    /// This end's address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
    /// True if this end sends the data and the other end receives.
    pub sends: bool,
    /// Pattern of sending.
    #[serde(default)]
    pub play: Play,
    /// Codepoint of this end's packets (DSCP).
    #[serde(default)]
    pub dscp: u8,
    /// Time at which the connection is opened.
    pub start_ns: u64,
    /// Amount of data to send.
    pub amount: Amount,
    /// Congestion control of this end, by the kernel's name.
    #[serde(default)]
    pub cc: Option<String>,
    /// TCP_MAXSEG.
    #[serde(default)]
    pub mss: Option<u32>,
    /// Largest window that this end advertises, in bytes. Newer kernels may exceed it, by a factor below
    /// three, until the first data has been read.
    #[serde(default)]
    pub rwnd: Option<u32>,
    /// SO_SNDBUF as the application requests it. The kernel doubles it for its own overhead.
    #[serde(default)]
    pub sndbuf: Option<u32>,
    /// True to leave TCP_NODELAY unset.
    #[serde(default)]
    pub nagle: bool,
    /// True if the client's SYN carries the first data, which needs a cookie of the server (Fast Open).
    #[serde(default)]
    pub fast_open: bool,
    /// Time from which gaps in delivery count for the longest gap.
    #[serde(default)]
    pub gap_after_ns: u64,
    /// True to keep the samples of TCP_INFO over time.
    #[serde(default)]
    pub series: bool,
}

/// One end of a QUIC flow. Its data goes in streams of one direction.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuicSpec {
    /// Name in the report.
    pub id: String,
    /// End that opens the connection.
    pub role: Role,
    /// This end's address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
    /// True if this end sends the data and the other end receives.
    pub sends: bool,
    /// Time at which the connection is opened.
    pub start_ns: u64,
    /// Amount of data to send.
    pub amount: Amount,
    /// Congestion control, by a name that QUIC has.
    pub cc: String,
    /// Number of streams that share the data, at least 1.
    pub streams: u32,
    /// Receive window of the connection and of each stream, in bytes.
    pub window: u32,
    /// True to send packets as ECN-capable.
    pub ecn: bool,
    /// Time from which gaps in delivery count for the longest gap.
    #[serde(default)]
    pub gap_after_ns: u64,
}

/// Bytes of a datagram's number.
pub(super) const NUMBER: usize = 8;
/// Bytes of the number and of the time of departure behind it.
pub(super) const STAMPED: usize = 16;
/// Most payload bytes of a datagram.
const LONGEST: u16 = 65_507;

/// Distribution in the form that traffic processes receive.
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

/// On and off times of a datagram flow in nanoseconds, and the seed of their draws.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnOff {
    /// Lengths of the on times, at least 1 us.
    #[serde(with = "Drawn")]
    pub on: Distribution,
    /// Lengths of the off times.
    #[serde(with = "Drawn")]
    pub off: Distribution,
    /// Seed of the draws.
    pub seed: u64,
}

/// One end of a UDP datagram flow at a constant rate, optionally on and off. Each datagram begins with its
/// number.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatagramSpec {
    /// Name in the report.
    pub id: String,
    /// This end's address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
    /// True if this end sends.
    pub sends: bool,
    /// Rate of payload in bits per second.
    pub rate_bps: u64,
    /// Payload bytes of a datagram, 8 to 65,507.
    pub size: u16,
    /// Codepoint of this end's packets (DSCP).
    #[serde(default)]
    pub dscp: u8,
    /// Time at which the first datagram is sent.
    pub start_ns: u64,
    /// Amount to send. The last datagram has the rest of the bytes, but at least its number.
    pub amount: Amount,
    /// On and off times. The rate applies while on; without them the flow is always on.
    #[serde(default)]
    pub on_off: Option<OnOff>,
}

/// Bytes of a probe packet's header: a magic number, the packet's number, and its sending time.
pub(super) const PROBE_HEADER: usize = 24;

/// One end of a UDP probe: evenly spaced packets that carry their sending times.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeSpec {
    /// Name in the report.
    pub id: String,
    /// This end's address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
    /// True if this end sends.
    pub sends: bool,
    /// Packets per second.
    pub pps: u32,
    /// UDP payload of a packet in bytes, at least 24.
    pub size: u16,
    /// Packets that are sent together, at least 1.
    pub burst: u32,
    /// Expected gap between arrivals, if a device paces the packets.
    #[serde(default)]
    pub gap_ns: Option<u64>,
    /// Time at which the first packet is sent.
    pub start_ns: u64,
    /// Time from which no more packets are sent.
    pub until_ns: u64,
}

impl FlowSpec {
    /// Returns whether this end ever sends payload.
    pub fn writes(&self) -> bool {
        self.sends || self.play != Play::OneWay
    }
    /// Returns whether this end ever receives payload.
    pub fn reads(&self) -> bool {
        !self.sends || self.play != Play::OneWay
    }
}

impl Spec {
    /// Checks the specification for every error that is visible before sockets are opened.
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
        for q in &self.quic {
            let fault = |what: &str| Err(format!("QUIC flow `{}`: {what}", q.id));
            if !tuples.insert((q.local, q.remote)) {
                return fault("another flow has the same addresses and ports");
            }
            if q.streams == 0 || matches!(q.amount, Amount::Bytes(0)) {
                return fault("nothing to send");
            }
            if matches!(q.amount, Amount::UntilNs(until) if until <= q.start_ns) {
                return fault("it ends before it starts");
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
