//! Metrics of links.

use super::Needs::{Emulation, Filter, Marking, Nothing, Rate};
use super::{whole, Metric, Tables, Total};
use crate::result::unit::Unit;
use crate::result::{LinkResult, QuantilesMax};

type Link = Metric<LinkResult>;

/// Metrics of links, in the order of tables.
pub static LINK: &[Link] = &[
    Link::new(
        "packets",
        Unit::Count,
        Total::Sum,
        Nothing,
        "frames that left the link; one that came out twice counts once",
    )
    .number(|l| whole(l.packets))
    .column("packets", Tables::Run),
    Link::new("bytes", Unit::Bytes, Total::Sum, Nothing, "bytes of these frames")
        .number(|l| whole(l.bytes))
        .column("data", Tables::Run),
    Link::new("utilization", Unit::Share, Total::Mean, Rate, "share of the rate that was used")
        .number(|l| Some(l.utilization))
        .column("used", Tables::Run),
    Link::new("queue_us.p50", Unit::Micros, Total::Mean, Rate, "median time that frames waited in the queue")
        .number(|l| waited(l).and_then(|queue| whole(queue.p50)))
        .column("queue p50", Tables::Run),
    Link::new("queue_us.p99", Unit::Micros, Total::Most, Rate, "its 99th percentile")
        .number(|l| waited(l).and_then(|queue| whole(queue.p99)))
        .column("p99", Tables::Run),
    Link::new("queue_us.max", Unit::Micros, Total::Most, Rate, "the longest")
        .number(|l| waited(l).and_then(|queue| whole(queue.max)))
        .column("max", Tables::Run),
    Link::new("marks", Unit::Count, Total::Sum, Marking, "frames marked with Congestion Experienced")
        .number(|l| whole(l.marks))
        .column("marks", Tables::Run),
    Link::new("filtered", Unit::Count, Total::Sum, Filter, "ACKs that its filter erased")
        .number(|l| whole(l.filtered))
        .column("filtered", Tables::Run),
    Link::new(
        "fallback",
        Unit::Count,
        Total::Sum,
        Filter,
        "ACKs that came while its filter fell back to classical filtering",
    )
    .number(|l| whole(l.fallback)),
    Link::new("duplicated", Unit::Count, Total::Sum, Emulation, "frames that came out twice")
        .number(|l| whole(l.duplicated)),
    Link::new("corrupted", Unit::Count, Total::Sum, Emulation, "frames that came out with a bit flipped")
        .number(|l| whole(l.corrupted)),
    Link::new(
        "drops",
        Unit::Count,
        Total::Sum,
        Emulation,
        "frames dropped; `drops.queue_full` and so on by reason",
    )
    .counts(|l| &l.drops)
    .column("drops", Tables::Run),
];

/// Returns the waiting times of a link; `None` if no frame came through its queue.
fn waited(l: &LinkResult) -> Option<&QuantilesMax> {
    (l.packets > 0 || l.queue_us.max > 0).then_some(&l.queue_us)
}
