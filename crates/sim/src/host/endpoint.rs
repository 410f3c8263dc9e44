//! Endpoints of a host: what they are told, and what became of them.

use crate::tcp::{Failure, TcpConfig};
use std::net::SocketAddrV4;
use std::sync::Arc;
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};

/// One end of a flow, and its application.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Opens the connection at `start`; otherwise waits for the peer to.
    pub opens: bool,
    /// Own address.
    pub local: SocketAddrV4,
    /// The peer's.
    pub remote: SocketAddrV4,
    /// When the flow starts; [`Time::MAX`] for one that [follows](super::Host::follow) another.
    pub start: Time,
    /// Its TCP, which endpoints share.
    pub tcp: Arc<TcpConfig>,
    /// What its application sends; `None` only receives.
    pub source: Option<Source>,
    /// Received payload is recorded in bins of this length, from time 0 on.
    pub bin: Duration,
    /// Keep every change of the congestion window in [`EndpointReport::trace`].
    pub trace: bool,
}

/// What an application sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// So many bytes of payload, then it closes; `None` is without end.
    pub bytes: Option<u64>,
    /// Stops writing at this time and closes.
    pub until: Time,
    /// Writes at this rate at most; `None` is as fast as the connection takes it.
    pub rate: Option<Rate>,
    /// Pauses in between; not with a rate.
    pub bursts: Option<Bursts>,
}

/// What an application that pauses sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// Bytes that it writes together, never 0.
    pub size: u64,
    /// How long it is silent from when they are acknowledged.
    pub pause: Duration,
}

/// An endpoint of a [`Host`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndpointId(pub u32);

/// What became of an endpoint so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointReport {
    /// When the connection was established.
    pub established: Option<Time>,
    /// When it was over: both sides closed, or it was reset or given up.
    pub closed: Option<Time>,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// Payload bytes delivered to the application, in order.
    pub received: u64,
    /// When the last of them was.
    pub last_received: Option<Time>,
    /// When the peer's end of the stream was received, with all before it.
    pub received_all: Option<Time>,
    /// Number of the bin of the first byte.
    pub first_bin: usize,
    /// Payload bytes delivered by bin, from that of the first byte to that of the last.
    pub bins: Vec<u32>,
    /// Payload bytes acknowledged by the peer.
    pub acked: u64,
    /// Segments sent, with payload or without, retransmissions included.
    pub segments: u64,
    /// Segments sent again, SYNs among them.
    pub retransmits: u64,
    /// Expirations of the retransmission timer, that of a SYN among them.
    pub rtos: u64,
    /// Median and 99th percentile of the sampled round-trip times.
    pub rtt: Option<(Duration, Duration)>,
    /// Of an application that pauses: how long each burst took, from when it was written until all of it was acknowledged.
    pub bursts: Vec<Duration>,
    /// Every change of the sender's windows, if asked for.
    pub trace: Vec<Change>,
}

/// The sender's state after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// When.
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
