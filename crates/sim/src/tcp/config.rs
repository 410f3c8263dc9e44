//! Settings of a connection. Defaults are Linux's.

use crate::cc;
use weir_core::time::Duration;

/// Method of finding and repairing losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recovery {
    /// SACK with RACK-TLP (RFC 8985) and PRR (RFC 6937), as in Linux.
    Rack,
    /// SACK with the conservative algorithm of RFC 6675.
    Sack,
    /// Linux without SACK: NewReno with PRR. It stays in recovery until data above the recovery point is
    /// acknowledged.
    Linux,
    /// NewReno without SACK (RFC 6582).
    NewReno,
    /// Fast recovery that ends with the first ACK that advances (RFC 2001).
    Reno,
    /// ns-2's Reno with `bugFix_`: `Reno` with a memory of the recovery point.
    Ns2Reno,
    /// Fast retransmit, then slow start from SND.UNA on (Jacobson 1988).
    Tahoe,
    /// ns-2's Tahoe with `bugFix_`: `Tahoe` with a memory of the recovery point.
    Ns2Tahoe,
}

impl Recovery {
    /// All methods, by their names in experiments.
    pub const ALL: [(&'static str, Recovery); 8] = [
        ("rack", Recovery::Rack),
        ("sack", Recovery::Sack),
        ("linux", Recovery::Linux),
        ("newreno", Recovery::NewReno),
        ("reno", Recovery::Reno),
        ("ns2-reno", Recovery::Ns2Reno),
        ("tahoe", Recovery::Tahoe),
        ("ns2-tahoe", Recovery::Ns2Tahoe),
    ];

    /// Returns whether the method needs SACK.
    pub const fn uses_sack(self) -> bool {
        matches!(self, Recovery::Rack | Recovery::Sack)
    }

    /// Returns whether the method is Linux's, with SACK or without.
    pub const fn is_linux(self) -> bool {
        matches!(self, Recovery::Rack | Recovery::Linux)
    }

    /// Returns whether there is a recovery point, up to which duplicate ACKs begin no other recovery.
    pub const fn remembers(self) -> bool {
        !matches!(self, Recovery::Reno | Recovery::Tahoe)
    }

    /// Returns whether a loss leads into slow start from SND.UNA on.
    pub const fn goes_back(self) -> bool {
        matches!(self, Recovery::Tahoe | Recovery::Ns2Tahoe)
    }
}

/// Scope of the smallest time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinRto {
    /// Bounds the whole time-out: `max(SRTT + 4 × RTTVAR, min)` (RFC 6298 (2.4), which says 1 s).
    Total(Duration),
    /// Bounds the variance: `SRTT + max(4 × RTTVAR, min)`, as Linux does with its 200 ms.
    Variance(Duration),
}

/// Settings of one end of a connection.
#[derive(Clone, Debug)]
pub struct TcpConfig {
    /// Congestion control.
    pub cc: cc::Make,
    /// Options of its algorithm.
    pub cc_options: cc::Options,
    /// Method of finding and repairing losses.
    pub recovery: Recovery,
    /// Payload bytes of a full segment, 88 to 65,495. The MSS option is this plus the bytes of the
    /// timestamps.
    pub mss: u16,
    /// Initial congestion window in segments, at least 1 (RFC 6928: 10).
    pub initial_window: u32,
    /// Initial slow-start threshold in bytes; `None` is infinite.
    pub initial_ssthresh: Option<u64>,
    /// Largest receive window in bytes, up to 1,073,725,440 (RFC 7323 §2.3).
    pub receive_window: u64,
    /// Segments per ACK; 1 acknowledges each (RFC 5681 §4.2 allows up to 2).
    pub delayed_ack: u32,
    /// Maximum delay of an ACK.
    pub delayed_ack_timer: Duration,
    /// Number of segments at the beginning that are acknowledged at once (Linux: up to 16).
    pub quick_acks: u32,
    /// Acknowledges segments with PSH at once (Linux: `tcp_cleanup_rbuf`).
    pub push_acks: bool,
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// ECN (RFC 3168): negotiated, with data sent as ECT(0), and marks echoed and obeyed.
    pub ecn: bool,
    /// ECN of L4S senders (RFC 9331 §4.1): negotiated, with data sent as ECT(1).
    pub l4s: bool,
    /// Fast Open (RFC 7413): the SYN carries data if the client has a cookie of the server.
    pub fast_open: bool,
    /// Smallest retransmission time-out (RFC 6298: 1 s for the whole; Linux: 200 ms for the variance).
    pub min_rto: MinRto,
    /// Granularity of the clock of round-trip times and time-outs (G of RFC 6298), above zero.
    pub clock: Duration,
    /// Sends at a paced rate, not in bursts, even if the congestion control has no rate of its own.
    pub pacing: bool,
    /// Nagle's algorithm (RFC 9293 §3.7.4): a partial segment waits while data is in flight. Without it, as
    /// with Linux's `TCP_NODELAY`, a partial segment leaves at once. If the peer's window ends within a
    /// segment, a part leaves only behind a whole segment of the same chunk.
    pub nagle: bool,
    /// Segments sent back to back as segmentation offload would, if the window allows; 1 for none.
    pub tso_segments: u32,
    /// Looks like datagrams with encrypted contents on the way, as QUIC does: acknowledgements cannot be read
    /// or changed there.
    pub opaque: bool,
    /// Codepoint of its packets (DSCP, RFC 2474), below 64.
    pub dscp: u8,
}

impl TcpConfig {
    /// Creates Linux's defaults with this congestion control.
    pub fn new(cc: cc::Make) -> TcpConfig {
        TcpConfig {
            cc,
            cc_options: cc::Options { cubic: cc::CubicRules::Linux, ..cc::Options::default() },
            recovery: Recovery::Rack,
            mss: 1448,
            initial_window: 10,
            initial_ssthresh: None,
            receive_window: 3 << 20,
            delayed_ack: 2,
            delayed_ack_timer: Duration::from_millis(40),
            quick_acks: 16,
            push_acks: true,
            timestamps: true,
            ecn: false,
            l4s: false,
            fast_open: false,
            min_rto: MinRto::Variance(Duration::from_millis(200)),
            clock: Duration::from_nanos(1),
            pacing: false,
            nagle: false,
            tso_segments: 1,
            opaque: false,
            dscp: 0,
        }
    }
}
