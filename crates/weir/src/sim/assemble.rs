//! From what the nodes of a world counted to the result.

use super::ends::End;
use super::series::Recorder;
use super::tcp;
use super::topology::{By, Ends, Topology, Wire};
use crate::observe;
use crate::plan::{Flow, Plan};
use crate::result::{
    ClassResult, FlowResult, GatewayResult, LinkResult, MadeBy, Quantiles, RunResult, Seen, Series, World,
};
use std::collections::BTreeMap;
use std::net::IpAddr;
use weir_core::gateway::Gateway;
use weir_core::link::Link;
use weir_core::time::{Duration, Time};
use weir_sim::host::{EndpointId, EndpointReport, Host};
use weir_sim::udp::{UdpReport, UdpSink, UdpSource};
use weir_sim::world::NodeId;

/// The result, with its checks still to be made; `wall_s` is left out.
pub fn result(plan: &Plan, topology: &mut Topology, mut recorder: Recorder) -> RunResult {
    let now = topology.world.now();
    let covered = now.since(Time::ZERO);
    let mut flows = Vec::new();
    let mut series = BTreeMap::new();
    for (n, (flow, ends)) in plan.flows().zip(&topology.flows).enumerate() {
        let told = Told::of(plan, topology, ends, covered);
        let row = row(plan, topology, &flow, ends, &told, covered);
        let recorded = recorder.of_flow(n, &told.sender.trace, ends.between.payload);
        let received = if recorded.is_empty() { flow.id.clone() } else { format!("{}.received", flow.id) };
        series.insert(received, lived(plan, &row, &told.bins));
        flows.push(row);
        series.extend(recorded.into_iter().map(|(part, s)| (format!("{}{part}", flow.id), s)));
    }
    for (i, wire) in topology.links.iter().enumerate() {
        series.extend(recorder.of_link(i).map(|s| (wire.name.clone(), s)));
    }
    let links = links(topology, now);
    RunResult {
        experiment: plan.name.clone(),
        world: World::Sim,
        seed: plan.seed,
        duration_s: covered.as_secs_f64(),
        packets: links.iter().map(|l| l.packets).sum(),
        made_by: MadeBy::new(plan, String::new()),
        parity: plan.parity,
        gateway: topology.gateway().map(totals),
        classes: topology.gateway().map_or(Vec::new(), |g| classes(g, &flows)),
        flows,
        links,
        series,
        ..RunResult::default()
    }
}

/// What went wrong with flows, in their order.
pub fn faults(plan: &Plan, topology: &Topology) -> Vec<String> {
    let of = |(flow, ends): (Flow, &Ends)| {
        let sides = [
            ("sender", ends.sender, ends.between.sender.1),
            ("receiver", ends.receiver, ends.between.receiver.1),
        ];
        let fault = |(side, node, end)| match end {
            End::Tcp(_, id) => {
                Some(format!("flow {}, {side}: {}", flow.id, tcp_report(topology, node, id).failure?))
            }
            End::Udp(_) => None,
        };
        sides.into_iter().filter_map(fault).collect::<Vec<_>>()
    };
    plan.flows().zip(&topology.flows).flat_map(of).collect()
}

fn tcp_report(topology: &Topology, node: NodeId, id: EndpointId) -> EndpointReport {
    topology.world.get::<Host>(node).map_or_else(EndpointReport::default, |h| h.report(id))
}

/// In virtual time a gateway costs none.
fn totals(gateway: &Gateway) -> GatewayResult {
    observe::gateway(gateway.stats(), Duration::ZERO)
}

/// What both ends of a flow report.
#[derive(Default)]
struct Told {
    sender: EndpointReport,
    /// Bytes received, in all bins up to the end of the run.
    bins: Vec<u64>,
    received: u64,
    last_received: Option<Time>,
    loss: Option<f64>,
}

impl Told {
    fn of(plan: &Plan, topology: &Topology, ends: &Ends, covered: Duration) -> Told {
        let (mut told, first, bins) = match (ends.between.sender.1, ends.between.receiver.1) {
            (End::Tcp(_, from), End::Tcp(_, to)) => Told::of_tcp(topology, ends, from, to),
            _ => Told::of_udp(topology, ends),
        };
        let count = covered.as_nanos().div_ceil(plan.bin.as_nanos().max(1)) as usize;
        told.bins = vec![0; first.min(count)];
        told.bins.extend(bins.into_iter().map(u64::from));
        told.bins.resize(count, 0);
        told
    }

    fn of_tcp(topology: &Topology, ends: &Ends, from: EndpointId, to: EndpointId) -> (Told, usize, Vec<u32>) {
        let sender = tcp_report(topology, ends.sender, from);
        let EndpointReport { received, last_received, first_bin, bins, .. } =
            tcp_report(topology, ends.receiver, to);
        (Told { sender, received, last_received, ..Told::default() }, first_bin, bins)
    }

    fn of_udp(topology: &Topology, ends: &Ends) -> (Told, usize, Vec<u32>) {
        let sink =
            topology.world.get::<UdpSink>(ends.receiver).map(|s| s.report().clone()).unwrap_or_default();
        let UdpReport { datagrams, received, last_received, lost, bins, .. } = sink;
        let sent = topology.world.get::<UdpSource>(ends.sender).map_or(0, UdpSource::datagrams);
        // Of what has not been overtaken nobody knows yet, unless nothing came at all.
        let loss = match (datagrams, sent) {
            (0, 0) => None,
            (0, _) => Some(1.0),
            (n, _) => Some(lost as f64 / (lost + n) as f64),
        };
        (Told { received, last_received, loss, ..Told::default() }, 0, bins)
    }
}

/// Bytes received in the bins of a flow's life.
fn lived(plan: &Plan, row: &FlowResult, bins: &[u64]) -> Series {
    let (nanos, bin) = (|s: f64| (s * 1e9).round() as u64, plan.bin.as_nanos().max(1));
    let end = (nanos(row.end_s).div_ceil(bin) as usize).min(bins.len());
    let first = ((nanos(row.start_s) / bin) as usize).min(end);
    Series::received_from(plan.bin, first, &bins[first..end])
}

/// A flow's row.
fn row(
    plan: &Plan,
    topology: &Topology,
    flow: &Flow,
    ends: &Ends,
    told: &Told,
    covered: Duration,
) -> FlowResult {
    let us = |d: Duration| d.as_micros();
    let (client, server) = (ends.between.client, ends.between.server);
    let udp = matches!(ends.between.sender.1, End::Udp(_));
    // What came after the flow's time was up does not count.
    let in_time = flow.end(plan.duration).as_nanos().div_ceil(plan.bin.as_nanos().max(1)) as usize;
    let last = |bytes: u64| told.last_received.filter(|_| told.received >= bytes);
    let class = plan.class_of(flow, IpAddr::V4(*client.ip()), Some(client.port()), IpAddr::V4(*server.ip()));
    let seen = Seen {
        class: class.filter(|_| !udp),
        cc: if udp { "udp" } else { tcp::name(flow.group) }.to_string(),
        retransmits: told.sender.retransmits,
        rtos: told.sender.rtos,
        loss: told.loss,
        rtt_us: told
            .sender
            .rtt
            .map_or(Quantiles::default(), |(p50, p99)| Quantiles { p50: us(p50), p99: us(p99) }),
        bytes: told.bins.iter().take(in_time).sum(),
        bins: &told.bins,
        opened: Some(flow.start),
        complete: flow.bytes.and_then(last).map(|at| at.since(Time::ZERO)),
    };
    let mut row = seen.row(plan, flow, covered);
    if let Some((gateway, record)) = topology.gateway().and_then(|g| Some((g, g.flow(&ends.key())?))) {
        row.class = gateway.config().classes[record.class].name.clone();
        row.pass_reason = record.pass.map(|reason| reason.name().to_string());
    }
    row
}

/// The classes, with what only the flows tell.
fn classes(gateway: &Gateway, flows: &[FlowResult]) -> Vec<ClassResult> {
    observe::classes(gateway).into_iter().map(|class| class.with(flows)).collect()
}

/// What the links did up to `now`.
fn links(topology: &mut Topology, now: Time) -> Vec<LinkResult> {
    let Topology { world, links, .. } = topology;
    let row = |wire: &Wire| match &wire.by {
        By::Bare(counter) => {
            let (packets, bytes) = (counter.packets(), counter.bytes());
            LinkResult { name: wire.name.clone(), packets, bytes, ..LinkResult::default() }
        }
        By::Link(id) => world.get_mut::<Link>(*id).map_or_else(LinkResult::default, |link| {
            link.advance(now);
            observe::link(&wire.name, link, now.since(Time::ZERO))
        }),
    };
    links.iter().map(row).collect()
}
