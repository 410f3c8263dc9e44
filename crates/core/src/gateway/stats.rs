//! What a gateway can be asked about itself.

use crate::stats::Ledger;

/// Why a flow, or a frame that belongs to none, passes untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PassReason {
    /// Not TCP over IP.
    NotTcp,
    /// Headers truncated, inconsistent or absurd.
    Malformed,
    /// An IP fragment.
    Fragment,
    /// The TCP checksum is complete and wrong.
    BadChecksum,
    /// No class takes the flow, or its class controls no ACKs.
    NoClass,
    /// Multipath TCP: acknowledgements are in an option (RFC 8684).
    Mptcp,
    /// TCP-AO: headers are signed (RFC 5925).
    TcpAo,
    /// TCP MD5: headers are signed (RFC 2385).
    TcpMd5,
    /// An option on an ACK that the gateway does not know.
    UnknownOption,
    /// The receiver acknowledged a number far outside anything it could have received.
    Implausible,
}

impl PassReason {
    /// Every reason, in the order of their numbers.
    pub const ALL: [PassReason; 10] = [
        PassReason::NotTcp,
        PassReason::Malformed,
        PassReason::Fragment,
        PassReason::BadChecksum,
        PassReason::NoClass,
        PassReason::Mptcp,
        PassReason::TcpAo,
        PassReason::TcpMd5,
        PassReason::UnknownOption,
        PassReason::Implausible,
    ];
    /// The name used in results.
    pub const fn name(self) -> &'static str {
        match self {
            PassReason::NotTcp => "not_tcp",
            PassReason::Malformed => "malformed",
            PassReason::Fragment => "fragment",
            PassReason::BadChecksum => "bad_checksum",
            PassReason::NoClass => "no_class",
            PassReason::Mptcp => "mptcp",
            PassReason::TcpAo => "tcp_ao",
            PassReason::TcpMd5 => "tcp_md5",
            PassReason::UnknownOption => "unknown_option",
            PassReason::Implausible => "implausible",
        }
    }
}

/// Totals of a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GatewayStats {
    /// The conservation law's account.
    pub ledger: Ledger,
    /// TCP payload bytes of frames that were handed in on a port (not its tap).
    pub user_data_bytes: u64,
    /// Copies of headers seen on taps; they are absorbed.
    pub observed: u64,
    /// Frames that passed untouched, by [`PassReason`].
    pub passed: [u64; PassReason::ALL.len()],
    /// Times a release had to wait because no chunk was free.
    pub pool_exhausted: u64,
    /// Flows in the table now.
    pub flows: u32,
    /// Flows evicted to make room.
    pub evicted: u64,
    /// Flows whose state was taken up anew after the engine had been away.
    pub resynced: u64,
}

/// Totals of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassStats {
    /// Flows taken by the class so far.
    pub flows: u64,
    /// Of those, flows that pass untouched.
    pub flows_passed: u64,
    /// Pure ACKs whose number is held instead of the packet.
    pub acks_absorbed: u64,
    /// ACKs made by the gateway.
    pub acks_generated: u64,
    /// Segments whose ACK number or window was rewritten.
    pub acks_rewritten: u64,
    /// ACKs forwarded as they came.
    pub acks_forwarded: u64,
    /// Bytes acknowledged towards the senders.
    pub acked_bytes: u64,
    /// Bytes acknowledged by receivers and not yet passed on, now.
    pub held_bytes: u64,
    /// The most of that at any time.
    pub held_bytes_peak: u64,
    /// Received ACKs whose progress is held now, counted as packets that a queue would hold.
    pub held_acks: u64,
    /// The most of that at any time.
    pub held_acks_peak: u64,
    /// Bytes acknowledged ahead of the rate and still to be repaid, now.
    pub debt_bytes: u64,
    /// Transitions into slow start.
    pub slow_starts: u64,
    /// Release times forfeited because the engine woke too late for `catch_up`.
    pub missed_releases: u64,
}
