//! Recordings over time of flows, at their senders and in the gateway, and of links' queues.
//!
//! Without a period, senders record every change themselves. Queues and the gateway's held bytes change with
//! every packet, so they are sampled [`LOOKS`] times.

use super::flows::FlowEnd;
use super::topology::{Carrier, Topology, WiredFlow};
use crate::experiment::plan::{Plan, SeriesKind};
use crate::result::{Column, Series, UNKNOWN};
use std::collections::BTreeMap;
use weir_core::link::Link;
use weir_core::time::{Duration, Time};
use weir_sim::host::{Change, Host};

/// Number of samples of queues if no period is given.
const LOOKS: u64 = 1000;

/// Rows of a series in progress: times in nanoseconds, and values.
#[derive(Clone, Debug, Default)]
struct Rows {
    at: Vec<u64>,
    values: BTreeMap<&'static str, Vec<f64>>,
}

impl Rows {
    fn row(&mut self, at: Time, values: impl IntoIterator<Item = (&'static str, f64)>) {
        self.at.push(at.as_nanos());
        for (name, value) in values {
            self.values.entry(name).or_default().push(value);
        }
    }

    fn series(self) -> Series {
        Series {
            t_s: self.at.into_iter().map(|ns| ns as f64 / 1e9).collect(),
            columns: self.values.into_iter().map(|(name, v)| (name.to_string(), Column(v))).collect(),
        }
    }
}

/// Recorder of the series that a plan requests.
pub struct Recorder {
    kinds: Vec<SeriesKind>,
    /// True if senders are sampled too; otherwise they record every change.
    senders: bool,
    every: Duration,
    next: Option<Time>,
    /// Rows of each flow.
    flows: Vec<Rows>,
    /// Rows of each link.
    queues: Vec<Rows>,
}

impl Recorder {
    /// Returns a recorder without any rows.
    pub fn new(plan: &Plan, topology: &Topology) -> Recorder {
        let thousandth = Duration::from_nanos((plan.duration.as_nanos() / LOOKS).max(1));
        let senders = plan.sample.is_some();
        let looks = plan.series.iter().any(|kind| senders || !kind.is_of_sender());
        Recorder {
            kinds: plan.series.clone(),
            senders,
            every: plan.sample.unwrap_or(thousandth),
            next: looks.then_some(Time::ZERO),
            flows: vec![Rows::default(); topology.flows.len()],
            queues: vec![Rows::default(); topology.links.len()],
        }
    }

    /// Returns the time of the next call of [`Recorder::record`].
    pub fn next(&self) -> Option<Time> {
        self.next
    }

    /// Samples everything, at a time that is due.
    pub fn record(&mut self, topology: &mut Topology) {
        let now = topology.world.now();
        self.next = Some(now + self.every);
        if self.kinds.contains(&SeriesKind::Queue) {
            self.record_queues(topology, now);
        }
        if self.kinds.contains(&SeriesKind::Held) || self.senders {
            self.record_flows(topology, now);
        }
    }

    fn record_queues(&mut self, topology: &mut Topology, now: Time) {
        for (rows, direction) in self.queues.iter_mut().zip(&topology.links) {
            let Carrier::Node(id) = direction.carrier else { continue };
            let waiting = topology.world.with_cx(id, |link: &mut Link, cx| {
                link.advance(cx);
                link.config().rate?;
                let delay = link.queue_time(now).map_or(UNKNOWN, |delay| delay.as_nanos() as f64 / 1e3);
                Some((link.queue_packets() as f64, link.queue_bytes() as f64, delay))
            });
            let Some((packets, bytes, delay)) = waiting.flatten() else { continue };
            rows.row(now, [("queue_packets", packets), ("queue_bytes", bytes), ("queue_delay_us", delay)]);
        }
    }

    fn record_flows(&mut self, topology: &Topology, now: Time) {
        for (rows, flow) in self.flows.iter_mut().zip(&topology.flows) {
            let FlowEnd::Tcp(_, id) = flow.ends.sender.1 else { continue };
            let host = topology.world.get::<Host>(flow.sender);
            let Some(change) = host.and_then(|h| h.sample(id)) else { continue };
            let mut values = Vec::new();
            for &kind in &self.kinds {
                match kind {
                    SeriesKind::Held => values.push(("held_bytes", f64::from(held(topology, flow)))),
                    kind if self.senders => values.extend(columns(kind, &change, flow.ends.payload)),
                    _ => (),
                }
            }
            if !values.is_empty() {
                rows.row(now, values);
            }
        }
    }

    /// Returns the series of a flow by its number, each with the suffix of its name. `trace` holds every
    /// change of the sender.
    pub fn of_flow(&mut self, flow: usize, trace: &[Change], mss: u16) -> Vec<(&'static str, Series)> {
        let looked = std::mem::take(&mut self.flows[flow]);
        let mut traced = Rows::default();
        for change in trace {
            traced.row(change.at, self.kinds.iter().flat_map(|&kind| columns(kind, change, mss)));
        }
        match (traced.at.is_empty(), looked.at.is_empty()) {
            (true, true) => Vec::new(),
            (true, false) => vec![("", looked.series())],
            (false, true) => vec![("", traced.series())],
            (false, false) => vec![("", traced.series()), (".held", looked.series())],
        }
    }

    /// Returns the series of a link by its number.
    pub fn of_link(&mut self, link: usize) -> Option<Series> {
        let rows = std::mem::take(&mut self.queues[link]);
        (!rows.at.is_empty()).then(|| rows.series())
    }
}

/// Returns the columns of a kind, for a sender whose segments carry `mss` bytes.
fn columns(kind: SeriesKind, c: &Change, mss: u16) -> Vec<(&'static str, f64)> {
    let packets = |bytes: u64| bytes as f64 / f64::from(mss);
    let ssthresh = if c.ssthresh == u64::MAX { UNKNOWN } else { packets(c.ssthresh) };
    // There is no smoothed round-trip time before the first sample.
    let rtt_us = if c.srtt == Duration::ZERO { UNKNOWN } else { c.srtt.as_nanos() as f64 / 1e3 };
    match kind {
        SeriesKind::Cwnd => vec![
            ("cwnd_packets", packets(c.cwnd)),
            ("ssthresh_packets", ssthresh),
            ("in_flight_bytes", c.in_flight as f64),
        ],
        SeriesKind::Acked => vec![("acked_bytes", c.acked as f64)],
        SeriesKind::Rtt => vec![("rtt_us", rtt_us)],
        SeriesKind::Queue | SeriesKind::Held => Vec::new(),
    }
}

/// Returns the bytes of a flow that the gateways hold.
fn held(topology: &Topology, flow: &WiredFlow) -> u32 {
    topology.gateways().filter_map(|g| g.flows.flow(&flow.key())).map(|f| f.held_bytes).sum()
}
