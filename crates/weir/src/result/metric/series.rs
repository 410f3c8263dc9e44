//! Series that are recorded besides the bytes that flows received.

use super::Needs;
use crate::result::unit::Unit;

/// Recording over time, as named by `series` of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SeriesKind {
    /// Congestion window, slow-start threshold and bytes in flight of each flow.
    Cwnd,
    /// Bytes acknowledged at the sender of each flow.
    Acked,
    /// Smoothed round-trip time of each flow.
    Rtt,
    /// Backlog of each link's queue.
    Queue,
    /// Data that the gateway holds of each flow.
    Held,
}

/// A column of a series.
#[derive(Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Name in the result.
    pub name: &'static str,
    /// Recording that the column belongs to.
    pub kind: SeriesKind,
    /// Unit of its values.
    pub unit: Unit,
    /// Part of the plan without which it is not recorded.
    pub needs: Needs,
}

/// All columns of all series: those of flows, then those of links.
pub static SERIES: &[Recorded] = &[
    Recorded::new("cwnd_packets", SeriesKind::Cwnd, Unit::Count, Needs::Nothing),
    Recorded::new("ssthresh_packets", SeriesKind::Cwnd, Unit::Count, Needs::Nothing),
    Recorded::new("in_flight_bytes", SeriesKind::Cwnd, Unit::Bytes, Needs::Nothing),
    Recorded::new("acked_bytes", SeriesKind::Acked, Unit::Bytes, Needs::Nothing),
    Recorded::new("rtt_us", SeriesKind::Rtt, Unit::Micros, Needs::Tcp),
    Recorded::new("held_bytes", SeriesKind::Held, Unit::Bytes, Needs::Nothing),
    Recorded::new("queue_packets", SeriesKind::Queue, Unit::Count, Needs::Rate),
    Recorded::new("queue_bytes", SeriesKind::Queue, Unit::Bytes, Needs::Rate),
    Recorded::new("queue_delay_us", SeriesKind::Queue, Unit::Micros, Needs::Rate),
];

impl Recorded {
    const fn new(name: &'static str, kind: SeriesKind, unit: Unit, needs: Needs) -> Recorded {
        Recorded { name, kind, unit, needs }
    }

    /// Returns the column with this name.
    pub fn named(name: &str) -> Option<&'static Recorded> {
        SERIES.iter().find(|column| column.name == name)
    }

    /// Returns the columns of links, or those of flows.
    pub fn all(of_links: bool) -> impl Iterator<Item = &'static Recorded> {
        SERIES.iter().filter(move |column| column.kind.of_links() == of_links)
    }
}

impl SeriesKind {
    /// All kinds, by their names in experiments.
    pub const ALL: [(&'static str, SeriesKind); 5] = [
        ("cwnd", SeriesKind::Cwnd),
        ("acked", SeriesKind::Acked),
        ("rtt", SeriesKind::Rtt),
        ("queue", SeriesKind::Queue),
        ("held", SeriesKind::Held),
    ];

    /// Returns the name used in experiments.
    pub fn name(self) -> &'static str {
        SeriesKind::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// Returns whether it is recorded at the sender of a flow.
    pub const fn is_of_sender(self) -> bool {
        matches!(self, SeriesKind::Cwnd | SeriesKind::Acked | SeriesKind::Rtt)
    }

    /// Returns whether it is recorded for links; the others are for flows.
    pub const fn of_links(self) -> bool {
        matches!(self, SeriesKind::Queue)
    }
}
