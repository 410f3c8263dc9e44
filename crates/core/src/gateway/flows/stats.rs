//! Statistics of a gateway, its classes and its flows.

use crate::ack::Pace;
use crate::flow::{flag, Key, Record};
use crate::stats::Ledger;
use crate::systems::postack::Alone;
use crate::time::Duration;

/// Reason why a flow, or a frame that belongs to none, passes untouched.
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
    /// The segment cannot be the receiver's: its numbers or the side it came from are not the flow's.
    Implausible,
    /// A receiver that sends data too, where the handshake was not seen and so the scale of its window is not
    /// known.
    UnknownScale,
    /// An ACK whose IP header has options or extension headers, which ACKs made here would lack.
    IpOptions,
    /// There is no room for a further flow: all that are known are active.
    TableFull,
    /// Segments that must not wait acknowledge too much ahead of their time.
    Early,
}

impl PassReason {
    /// Every reason, in the order of their numbers.
    pub const ALL: [PassReason; 14] = [
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
        PassReason::UnknownScale,
        PassReason::IpOptions,
        PassReason::TableFull,
        PassReason::Early,
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
            PassReason::UnknownScale => "unknown_scale",
            PassReason::IpOptions => "ip_options",
            PassReason::TableFull => "table_full",
            PassReason::Early => "early",
        }
    }

    /// Returns why a flow passes that does; see [`flag::PASSES`].
    pub(in crate::gateway) fn of(r: &Record) -> PassReason {
        PassReason::ALL[usize::from(r.pass) % PassReason::ALL.len()]
    }
}

/// Totals of a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct GatewayStats {
    /// The conservation law's account.
    pub ledger: Ledger,
    /// TCP payload bytes of frames that were handed in on a port (not its tap).
    pub user_data_bytes: u64,
    /// Copies of headers seen on taps; they are absorbed.
    pub observed: u64,
    /// Frames that passed untouched, by [`PassReason`].
    pub passed: [u64; PassReason::ALL.len()],
    /// Times releases had to wait because no chunk was free, and ACKs that could not be made ahead of theirs.
    pub pool_exhausted: u64,
    /// Flows in the table now.
    pub flows: u64,
    /// Flows evicted to make room.
    pub evicted: u64,
    /// Times that the engine stalled for so long that frames bypassed it.
    pub resynced: u64,
    /// Flows whose numbers were taken from segments that had not been believed.
    pub renewed: u64,
    /// Segments that said that a connection is over and were where its end accepts that.
    pub reset: u64,
}

/// Totals of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ClassStats {
    /// Flows taken by the class so far.
    pub flows: u64,
    /// Times that a flow of the class came to pass untouched, by reason.
    pub flows_passed: [u64; PassReason::ALL.len()],
    /// ACKs of its flows that passed as they came, by reason.
    pub passed: [u64; PassReason::ALL.len()],
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
    /// Bytes of the ACKs that wait themselves now, as frames.
    pub ack_queue_bytes: u64,
    /// The most of that at any time.
    pub ack_queue_bytes_peak: u64,
    /// Bytes that wait in its queue now, as charged, in a class whose ACKs follow its data.
    pub data_bytes: u64,
    /// The most of both together at any time.
    pub buffer_bytes_peak: u64,
    /// Packets that came to its queue of which no ACKs are controlled: they are scheduled, and nothing else.
    pub scheduled_only: ScheduledOnly,
    /// Transitions into slow start.
    pub slow_starts: u64,
    /// Flows that have the least rate of the class now.
    pub guaranteed: u64,
    /// Times that a flow began and there was too little for it to have that.
    pub best_effort: u64,
    /// Bytes that senders were permitted to send, of flows that share the class's rate.
    pub permitted_bytes: u64,
    /// Bytes charged to the class of what ACKs cannot slow.
    pub others_bytes: u64,
    /// Packets that came to the queues of flows that have spilled.
    pub spilled_packets: u64,
    /// Their bytes from the IP header on.
    pub spilled_bytes: u64,
    /// Packets that found no room in these queues.
    pub spill_dropped: u64,
    /// Their bytes from the IP header on.
    pub spill_dropped_bytes: u64,
    /// Packets that waited there and left with a mark.
    pub spill_marked: u64,
    /// Bytes of both that the class's clock was not charged, since it was too far ahead.
    pub forgiven_bytes: u64,
    /// Release times forfeited because the engine woke too late for `catch_up`.
    pub missed_releases: u64,
}

impl ClassStats {
    /// Notes the bytes that wait in the class's queue, beside the ACKs that do.
    pub(in crate::gateway) fn note_data(&mut self, bytes: u64) {
        self.data_bytes = bytes;
        self.buffer_bytes_peak = self.buffer_bytes_peak.max(bytes + self.ack_queue_bytes);
    }
}

/// Packets of a class whose ACKs follow its data of which none is controlled, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ScheduledOnly {
    /// They are not TCP, or fragments.
    pub not_tcp: u64,
    /// Their flow passes untouched ([`FlowStats::pass`] says why).
    pub untouched: u64,
    /// No ACK of their flow has come this way, since they take another path, or since the connection is only
    /// about to begin; or it is over.
    pub no_acks: u64,
}

impl ScheduledOnly {
    pub(in crate::gateway) fn count(&mut self, why: Alone, packets: u32) {
        let count = match why {
            Alone::NotTcp => &mut self.not_tcp,
            Alone::Untouched => &mut self.untouched,
            Alone::NoAcks => &mut self.no_acks,
        };
        *count += u64::from(packets);
    }
}

/// Statistics of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowStats {
    /// Key of the flow.
    pub key: Key,
    /// Index of its class.
    pub class: usize,
    /// Reason why it passes untouched, if it does.
    pub pass: Option<PassReason>,
    /// Bytes acknowledged towards the sender since this gateway began.
    pub acked_bytes: u64,
    /// Bytes acknowledged by the receiver and held.
    pub held_bytes: u32,
    /// Time that the held bytes take at the flow's rate.
    pub held_delay: Duration,
    /// Bytes acknowledged ahead of the rate.
    pub debt_bytes: u32,
    /// True if its step is halved because its sender is in slow start.
    pub slow_start: bool,
    /// Measured round-trip time beyond the gateway, zero when unknown.
    pub rtt: Duration,
    /// The window that the sender knows of, as a field of its segments.
    pub window: u16,
    /// Time between releases.
    pub period: Duration,
    /// The connection is over.
    pub closed: bool,
}

impl FlowStats {
    pub(in crate::gateway) fn of(r: &Record, class: usize) -> FlowStats {
        let (kept, held) = (r.kept(), u64::from(r.held()));
        let pace = kept.pace();
        FlowStats {
            key: r.key,
            class,
            pass: r.has(flag::PASSES).then(|| PassReason::of(r)),
            acked_bytes: r.acked,
            held_bytes: r.held(),
            held_delay: kept.rate().map_or(Duration::ZERO, |rate| rate.time_for(held)),
            debt_bytes: pace.map_or(0, Pace::debt),
            slow_start: pace.is_some_and(Pace::in_slow_start),
            rtt: Duration::from_nanos(u64::from(r.rtt_ns)),
            window: window_known(r),
            period: pace.map_or(Duration::ZERO, Pace::period),
            closed: r.has(flag::CLOSED),
        }
    }
}

/// The window field with which the right edge is told that the sender knows.
fn window_known(r: &Record) -> u16 {
    if !r.has(flag::SCALE_KNOWN | flag::EDGE_KNOWN) {
        return r.window;
    }
    let ahead = r.edge.beyond(r.tx);
    ahead.div_ceil(1 << r.scale).min(0xffff) as u16
}
