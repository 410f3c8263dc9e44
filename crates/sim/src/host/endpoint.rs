//! Endpoints of a host: their settings, and their reports.

use crate::tcp::{Failure, TcpConfig};
use std::net::SocketAddrV4;
use std::sync::Arc;
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};

/// One end of a flow, and its application.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// True to open the connection at `start`; false to wait for the peer.
    pub opens: bool,
    /// Own address and port.
    pub local: SocketAddrV4,
    /// Address and port of the peer.
    pub remote: SocketAddrV4,
    /// Start of the flow; [`Time::MAX`] for one that [follows](super::Host::follow) another.
    pub start: Time,
    /// TCP settings, which endpoints share.
    pub tcp: Arc<TcpConfig>,
    /// Data that the application sends; `None` for one that only receives.
    pub source: Option<Source>,
    /// Length of the bins in which received payload is recorded, from time 0 on.
    pub bin: Duration,
    /// End of the flow's time: bytes received from then on are not in [`EndpointReport::received_in_time`].
    pub until: Time,
    /// True to record every change of the congestion window in [`EndpointReport::trace`].
    pub trace: bool,
}

/// Data that an application sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Payload bytes after which the application closes; `None` is endless.
    pub bytes: Option<u64>,
    /// Time at which the application stops writing and closes.
    pub until: Time,
    /// Maximum rate of writing; `None` is as fast as the connection accepts.
    pub rate: Option<Rate>,
    /// Pauses between writes; not combined with a rate.
    pub bursts: Option<Bursts>,
}

/// Bursts of an application that pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// Bytes of each burst, never 0.
    pub size: u64,
    /// Silence after the burst is acknowledged.
    pub pause: Duration,
}

/// An endpoint of a [`Host`](super::Host).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndpointId(pub u32);

/// State and counters of an endpoint up to now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointReport {
    /// Time at which the connection was established.
    pub established: Option<Time>,
    /// Time at which the connection ended: both sides closed, or it was reset or given up.
    pub closed: Option<Time>,
    /// Reason of the connection's failure, if it failed.
    pub failure: Option<Failure>,
    /// Payload bytes delivered to the application, in order.
    pub received: u64,
    /// Payload bytes of these that were delivered in the flow's time.
    pub received_in_time: u64,
    /// Time of the last delivery.
    pub last_received: Option<Time>,
    /// Time at which the end of the peer's stream had been received, with all data before it.
    pub received_all: Option<Time>,
    /// Number of the bin of the first byte.
    pub first_bin: usize,
    /// Payload bytes delivered by bin, from that of the first byte to that of the last.
    pub bins: Vec<u32>,
    /// Payload bytes acknowledged by the peer.
    pub acked: u64,
    /// Segments sent, with or without payload, retransmissions included.
    pub segments: u64,
    /// Retransmitted segments, SYNs included.
    pub retransmits: u64,
    /// Expirations of the retransmission timer, those of a SYN included.
    pub rtos: u64,
    /// Median and 99th percentile of the sampled round-trip times.
    pub rtt: Option<(Duration, Duration)>,
    /// Durations of an application's bursts, from the write until all of it was acknowledged.
    pub bursts: Vec<Duration>,
    /// Time at which the burst was written that is not, or never, acknowledged completely.
    pub burst_since: Option<Time>,
    /// Every change of the sender's windows, if requested.
    pub trace: Vec<Change>,
}

/// The sender's state after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Time of the change.
    pub at: Time,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow-start threshold in bytes; [`u64::MAX`] before the first congestion.
    pub ssthresh: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Bytes acknowledged.
    pub acked: u64,
    /// Smoothed round-trip time.
    pub srtt: Duration,
}
