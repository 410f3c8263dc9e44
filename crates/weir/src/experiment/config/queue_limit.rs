//! Limits of the queues of classes: reading, writing and description.

use super::diag::Fault;
use super::units::Limit;
use super::value::FromValue;
use toml::de::DeValue;
use weir_core::queue::QueueLimit;
use weir_core::rate::Rate;

/// Bytes of a full Ethernet frame without FCS.
pub(super) const FULL_FRAME: u64 = 1514;

/// Reads the limit of a queue, which has room for a full frame.
pub(super) fn read(value: &DeValue) -> Result<QueueLimit, Fault> {
    match Limit::from_value(value)? {
        Limit::Bdp(_) => {
            let help = "a class knows no round-trip time: give packets, \"100p\", or bytes, \"64KiB\"";
            Err(Fault::new("a class has no bandwidth-delay product", help))
        }
        Limit::Packets(0) => {
            Err(Fault::new("a queue without room passes nothing", "one packet is the least: \"1p\""))
        }
        Limit::Bytes(n) if n < FULL_FRAME => {
            let message = format!("a queue of {n} bytes is less than one full frame ({FULL_FRAME})");
            Err(Fault::new(message, "nothing would fit; give the limit in packets: \"100p\""))
        }
        Limit::Bytes(n) => Ok(QueueLimit::Bytes(n)),
        Limit::Packets(n) => u32::try_from(n)
            .map(QueueLimit::Packets)
            .map_err(|_| Fault::bare("a queue of more packets than can be counted")),
    }
}

/// Returns whether a queue of this limit can hold no more than `above`.
pub(super) fn hides(limit: QueueLimit, above: QueueLimit) -> bool {
    match (limit, above) {
        (QueueLimit::Packets(limit), QueueLimit::Packets(above)) => above >= limit,
        (QueueLimit::Bytes(limit), QueueLimit::Bytes(above)) => above >= limit,
        _ => false,
    }
}

/// Describes a limit in words.
pub(super) fn counted(limit: QueueLimit) -> String {
    match limit {
        QueueLimit::Packets(n) => format!("{n} packets"),
        other => format!("{} bytes", other.most_bytes(Rate::mbit(1), FULL_FRAME)),
    }
}
