//! The flows of a result, from the reports of their two ends.

use crate::execute::hosts::{Ends, FlowEnds};
use crate::execute::measurements::{Datagrams, FlowMeasurements};
use crate::execute::traffic::{self, DatagramReport, FlowReport};
use crate::experiment::plan::{Classifier, Flow, Plan, Protocol, Tcp};
use crate::result::observe::flow_rate;
use crate::result::running::{GatewayFlow, GatewayReport};
use crate::result::{Back, Exchanges, FlowResult, Latency, Most, Quantiles};
use std::collections::HashMap;
use std::net::SocketAddr;
use weir_core::gateway::{ClassConfig, Direction};
use weir_core::time::Duration;

/// Data that the rows of all flows need, computed once.
pub struct Rows<'a> {
    plan: &'a Plan,
    /// Time that the run covers.
    covered: Duration,
    ends: Ends<'a>,
    classifier: Classifier,
    /// Flows that the gateway reported, by sender and receiver of the data.
    seen: HashMap<(SocketAddr, SocketAddr), &'a GatewayFlow>,
}

impl<'a> Rows<'a> {
    /// Prepares rows for the flows of a plan.
    pub fn new(plan: &'a Plan, gateway: Option<&'a GatewayReport>, covered: Duration) -> Rows<'a> {
        // The first report on a flow counts.
        let said = gateway.into_iter().flat_map(|g| &g.flows).rev();
        let seen = said.map(|f| ((f.src, f.dst), f)).collect();
        Rows { plan, covered, ends: Ends::of(plan), classifier: plan.classifier(), seen }
    }

    /// Returns the expected class of a flow's data in a direction.
    fn class(&self, flow: &Flow, ends: FlowEnds, direction: Direction) -> Option<&ClassConfig> {
        self.classifier.of(direction, &flow.group.protocol, ends.towards(direction))
    }

    /// Returns the result of the plan's `n`-th flow, a flow of TCP or QUIC, and the bytes received by bin.
    pub fn reliable(
        &self,
        flow: &Flow,
        n: usize,
        reports: (&FlowReport, &FlowReport),
    ) -> (FlowResult, Vec<u64>) {
        let (client, server) = reports;
        let (sender, receiver) = match flow.direction() {
            Direction::Out => (client, server),
            Direction::In => (server, client),
        };
        let ends = self.ends.of_flow(flow, n);
        let nanos = Duration::from_nanos;
        let got = receiver.received.as_ref();
        let bins = got.map_or(Vec::new(), |r| r.bins.dense(self.covered.as_nanos()));
        let mut measured = FlowMeasurements {
            class: self.class(flow, ends, flow.direction()),
            bytes: bins.iter().sum(),
            in_time: got.map_or(0, |r| r.bytes_in_time),
            bins: &bins,
            last: got.and_then(|r| r.last_ns).map(nanos),
            gave_up: client.gave_up || server.gave_up,
            opened: client.opened_ns.map(nanos),
            complete: got.and_then(|r| r.complete_ns).map(nanos),
            ..FlowMeasurements::default()
        };
        if let Some(sent) = &sender.sent {
            measured.cc = Tcp::of_linux(&sent.cc).to_string();
            measured.retransmits = sent.retransmits;
            measured.rtos = sent.rtos;
            measured.rtt_us =
                sent.rtt_us.map_or(Quantiles::default(), |q| Quantiles { p50: q.p50, p99: q.p99 });
        }
        let mut row = measured.row(self.plan, flow, self.covered);
        row.back = self.back(flow, ends, reports, &row);
        row.exchanges = client.exchanges.map(exchanges);
        if let Some(record) = self.seen.get(&ends.towards(flow.direction())) {
            row.pass_reason = record.pass_reason.clone();
            if !record.class.is_empty() {
                row.class = record.class.clone();
            }
        }
        (row, bins)
    }

    /// Returns the result of the plan's `n`-th flow, a datagram flow, and the bytes received by bin.
    pub fn datagrams(
        &self,
        flow: &Flow,
        n: usize,
        (client, server): (&DatagramReport, &DatagramReport),
    ) -> (FlowResult, Vec<u64>) {
        let (sender, receiver) = match flow.direction() {
            Direction::Out => (client, server),
            Direction::In => (server, client),
        };
        let got = receiver.received.as_ref();
        let bins = got.map_or(Vec::new(), |r| r.bins.dense(self.covered.as_nanos()));
        let class = self.class(flow, self.ends.of_flow(flow, n), flow.direction());
        let measured = FlowMeasurements {
            class,
            cc: "udp".to_string(),
            loss: Datagrams {
                sent: sender.sent,
                arrived: receiver.arrived,
                missing: receiver.missing,
                under_way: under_way(self.plan, flow, self.covered),
            }
            .loss(),
            delay_us: receiver.delay_us,
            bytes: bins.iter().sum(),
            in_time: got.map_or(0, |r| r.bytes_in_time),
            bins: &bins,
            last: got.and_then(|r| r.last_ns).map(Duration::from_nanos),
            opened: Some(flow.start),
            complete: got.and_then(|r| r.complete_ns).map(Duration::from_nanos),
            ..FlowMeasurements::default()
        };
        (measured.row(self.plan, flow, self.covered), bins)
    }

    /// Returns the other direction of a bidirectional flow that has this row.
    fn back(
        &self,
        flow: &Flow,
        ends: FlowEnds,
        (client, server): (&FlowReport, &FlowReport),
        row: &FlowResult,
    ) -> Option<Back> {
        let (receiver, direction) = match flow.direction() {
            Direction::Out => (client, Direction::In),
            Direction::In => (server, Direction::Out),
        };
        let (got, seconds) = (receiver.received.as_ref()?, row.end_s - row.start_s);
        let bytes = got.bins.dense(self.covered.as_nanos()).iter().sum();
        let last_s = got.last_ns.map(|last| Duration::from_nanos(last).min(self.covered).as_secs_f64());
        let class = self.class(flow, ends, direction);
        let goodput_bps = if seconds > 0.0 { got.bytes_in_time as f64 * 8.0 / seconds } else { 0.0 };
        let name = class.map_or(String::new(), |c| c.name.clone());
        let last_s = last_s.filter(|last| *last > row.end_s);
        Some(Back { class: name, target_bps: class.and_then(flow_rate), last_s, bytes, goodput_bps })
    }
}

/// Returns the most datagrams of a flow that can be under way: those that it sent in the last two round
/// trips, or in the last second, since queues make the way longer.
fn under_way(plan: &Plan, flow: &Flow, covered: Duration) -> u64 {
    let Protocol::Udp { rate, datagram, .. } = flow.group.protocol else { return 0 };
    let sends = flow.bytes.map_or(Duration::MAX, |bytes| rate.time_for(bytes));
    let silent = covered.saturating_sub(flow.end(plan.duration).min(flow.start.saturating_add(sends)));
    let way = plan.path.rtt().saturating_mul(2).max(Duration::from_secs(1)).saturating_sub(silent);
    if way == Duration::ZERO {
        return 0;
    }
    let bits = u128::from(rate.bps()) * u128::from(way.as_nanos()) / 1_000_000_000;
    u64::try_from(bits / 8).unwrap_or(u64::MAX) / u64::from(datagram).max(1) + 1
}

fn exchanges(measured: traffic::Exchanges) -> Exchanges {
    let us = |ns: u64| ns / 1000;
    let latency = measured.latency_ns.map_or(Latency::default(), |q| Latency {
        p50: us(q.p50),
        p90: us(q.p90),
        p99: us(q.p99),
    });
    let some = |ns: u64| (ns < u64::MAX).then(|| us(ns));
    Exchanges {
        count: measured.count,
        latency_us: latency,
        under_way_us: measured.under_way_ns.map(us),
        at_most_us: measured.most_ns.map(|q| Most { p50: some(q.p50), p90: some(q.p90), p99: some(q.p99) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::config::{experiment, Source};
    use crate::result::Backend;

    /// 1 Mbit/s in datagrams of 1000 bytes are 125 a second, and one more in part. A flow that ended half a
    /// second ago has those of half a second under way, and one that ended long ago has none.
    #[test]
    fn a_flow_that_is_over_has_nothing_under_way() {
        let of = |length: &str| {
            let text = format!(
                "name = 't'\nduration = '4s'
                [path]
                rtt = '20ms'
                [[flow]]
                id = 'u'\nprotocol = 'udp'\nrate = '1Mbit'\ndatagram = 1000\n{length}"
            );
            let parsed = experiment::parse(&Source::new("t.toml", &text)).unwrap();
            let plan = parsed.plan_for(Backend::Lab).unwrap();
            let flow = plan.flows().next().unwrap();
            under_way(&plan, &flow, plan.duration)
        };
        assert_eq!(["", "duration = '3.5s'", "duration = '3s'", "bytes = '125kB'"].map(of), [126, 63, 0, 0]);
    }
}
