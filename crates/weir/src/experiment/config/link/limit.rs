//! Limits of a link's queue: in packets, in bytes, or in multiples of what the rate sends in a round trip.

use super::Draft;
use crate::experiment::config::aqm;
use crate::experiment::config::diag::Fault;
use crate::experiment::config::units::Limit;
use crate::experiment::config::value::FromValue;
use toml::de::DeValue;
use weir_core::link::QueueLimit;

/// Bytes that the link counts for a packet with 1500 bytes of IP.
pub(super) fn full_frame(draft: &Draft) -> u32 {
    draft.link.bytes(1500) as u32
}

/// Reads the limit of a queue, which has room for a full frame.
pub(super) fn of_queue(value: &DeValue, draft: &Draft) -> Result<QueueLimit, Fault> {
    let limit = Limit::from_value(value)?;
    if limit.is_zero() {
        let help = "one packet is the least: \"1p\"; what is being sent does not wait";
        return Err(Fault::new("a queue without room passes nothing", help));
    }
    let full = u64::from(full_frame(draft));
    let small = |what: String| {
        let help = "nothing would fit; give the limit in packets: \"100p\"";
        Err(Fault::new(format!("{what} less than one full frame ({full})"), help))
    };
    match (resolved(limit, draft)?, limit, draft.link.rate) {
        (QueueLimit::Bytes(n), Limit::Bdp(_), Some(rate)) if n < full => {
            small(format!("{rate} × {} makes a queue of {n} bytes,", draft.rtt))
        }
        (QueueLimit::Bytes(n), Limit::Bytes(_), _) if n < full => small(format!("a queue of {n} bytes is")),
        (found, ..) => Ok(found),
    }
}

/// Reads the threshold of marks, which the limit of the queue must not hide. With a threshold of zero, a
/// frame is marked if any frame waits before it.
pub(super) fn below_the_limit(value: &DeValue, draft: &Draft) -> Result<QueueLimit, Fault> {
    let found = resolved(Limit::from_value(value)?, draft)?;
    let hidden = match (found, draft.link.queue) {
        (QueueLimit::Packets(mark), QueueLimit::Packets(queue)) => mark >= queue,
        (QueueLimit::Bytes(mark), QueueLimit::Bytes(queue)) => mark >= queue,
        _ => false,
    };
    if hidden {
        let (found, limit) = (counted(found, draft), counted(draft.link.queue, draft));
        let message = format!("a mark at {found} is not below the queue's limit, {limit}");
        let help = "packets that find the queue full are dropped; mark well below `queue`";
        return Err(Fault::new(message, help));
    }
    Ok(found)
}

/// Reads a threshold of RED in bytes; a number of packets counts full frames. `None` where the rate is
/// missing because it is faulty.
pub(super) fn threshold(value: &DeValue, draft: &Draft) -> Result<Option<u64>, Fault> {
    let limit = resolved(Limit::from_value(value)?, draft)?;
    draft.link.rate.map(|rate| aqm::threshold(limit.most_bytes(rate, full_frame(draft).into()))).transpose()
}

/// Computes a limit's bandwidth-delay product. A rate that is missing because it is faulty causes no further
/// fault.
pub(super) fn resolved(limit: Limit, draft: &Draft) -> Result<QueueLimit, Fault> {
    match (limit, draft.link.rate) {
        (_, None) => Ok(QueueLimit::default()),
        (Limit::Packets(n), _) => u32::try_from(n)
            .map(QueueLimit::Packets)
            .map_err(|_| Fault::bare("a queue of more packets than can be counted")),
        (Limit::Bytes(n), _) => Ok(QueueLimit::Bytes(n)),
        (Limit::Bdp(factor), Some(rate)) => factor
            .times_floor(u128::from(rate.bytes_in(draft.rtt)))
            .map(QueueLimit::Bytes)
            .ok_or_else(|| Fault::bare("a queue of more bytes than can be counted")),
    }
}

/// Describes a limit in words.
pub(super) fn counted(limit: QueueLimit, draft: &Draft) -> String {
    match limit {
        QueueLimit::Packets(n) => format!("{n} packets"),
        other => format!("{} bytes", bytes(other, draft)),
    }
}

fn bytes(limit: QueueLimit, draft: &Draft) -> u64 {
    draft.link.rate.map_or(0, |rate| limit.most_bytes(rate, full_frame(draft).into()))
}
