//! From what the nodes of a world counted to the result.

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
use weir_sim::host::EndpointReport;

/// The result, with its checks still to be made; `wall_s` is left out.
pub fn result(plan: &Plan, topology: &mut Topology, mut recorder: Recorder) -> RunResult {
    let now = topology.world.now();
    let covered = now.since(Time::ZERO);
    let mut flows = Vec::new();
    let mut series = BTreeMap::new();
    for (n, (flow, ends)) in plan.flows().zip(&topology.flows).enumerate() {
        let two = Two::of(plan, topology, ends, covered);
        flows.push(row(plan, topology, &flow, ends, &two, covered));
        let recorded = recorder.of_flow(n, &two.sender.trace, ends.between.mss);
        let received = if recorded.is_empty() { flow.id.clone() } else { format!("{}.received", flow.id) };
        series.insert(received, Series::received(plan.bin, &two.bins));
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
        gateway: gateway(topology).map(totals),
        classes: gateway(topology).map_or(Vec::new(), |g| classes(g, &flows)),
        flows,
        links,
        series,
        ..RunResult::default()
    }
}

/// What went wrong with flows, in their order.
pub fn faults(plan: &Plan, topology: &Topology) -> Vec<String> {
    let of = |(flow, ends): (Flow, &Ends)| {
        let sides = [("sender", ends.sender), ("receiver", ends.receiver)];
        let failures = sides
            .map(|(side, at)| topology.report(at).failure.map(|f| format!("flow {}, {side}: {f}", flow.id)));
        failures.into_iter().flatten().collect::<Vec<_>>()
    };
    plan.flows().zip(&topology.flows).flat_map(of).collect()
}

fn gateway(topology: &Topology) -> Option<&Gateway> {
    topology.gateway.and_then(|id| topology.world.get::<Gateway>(id))
}

/// In virtual time a gateway costs none.
fn totals(gateway: &Gateway) -> GatewayResult {
    observe::gateway(gateway.stats(), Duration::ZERO)
}

/// What both ends of a flow report.
struct Two {
    sender: EndpointReport,
    receiver: EndpointReport,
    /// Bytes received, in all bins up to the end of the run.
    bins: Vec<u64>,
}

impl Two {
    fn of(plan: &Plan, topology: &Topology, ends: &Ends, covered: Duration) -> Two {
        let (sender, receiver) = (topology.report(ends.sender), topology.report(ends.receiver));
        let count = covered.as_nanos().div_ceil(plan.bin.as_nanos().max(1)) as usize;
        let mut bins: Vec<u64> = receiver.bins.iter().map(|&b| u64::from(b)).take(count).collect();
        bins.resize(count, 0);
        Two { sender, receiver, bins }
    }
}

/// A flow's row.
fn row(
    plan: &Plan,
    topology: &Topology,
    flow: &Flow,
    ends: &Ends,
    two: &Two,
    covered: Duration,
) -> FlowResult {
    let Two { sender, receiver, bins } = two;
    let us = |d: Duration| d.as_micros();
    let (client, server) = (ends.between.client, ends.between.server);
    // What came after the flow's time was up does not count.
    let in_time = flow.end(plan.duration).as_nanos().div_ceil(plan.bin.as_nanos().max(1)) as usize;
    let last = |bytes: u64| receiver.last_received.filter(|_| receiver.received >= bytes);
    let seen = Seen {
        class: plan.class_of(flow, IpAddr::V4(*client.ip()), Some(client.port()), IpAddr::V4(*server.ip())),
        cc: tcp::name(flow.group).to_string(),
        retransmits: sender.retransmits,
        rtos: sender.rtos,
        rtt_us: sender
            .rtt
            .map_or(Quantiles::default(), |(p50, p99)| Quantiles { p50: us(p50), p99: us(p99) }),
        bytes: bins.iter().take(in_time).sum(),
        bins,
        opened: Some(flow.start),
        complete: flow.bytes.and_then(last).map(|at| at.since(Time::ZERO)),
        ..Seen::default()
    };
    let mut row = seen.row(plan, flow, covered);
    if let Some((gateway, record)) = gateway(topology).and_then(|g| Some((g, g.flow(&ends.key())?))) {
        row.class = gateway.config().classes[record.class].name.clone();
        row.pass_reason = record.pass.map(|reason| reason.name().to_string());
    }
    row
}

/// The classes, with the goodput that only the receivers know.
fn classes(gateway: &Gateway, flows: &[FlowResult]) -> Vec<ClassResult> {
    let rows = observe::classes(gateway).into_iter();
    rows.map(|class| {
        let own = flows.iter().filter(|f| f.class == class.name);
        ClassResult { bps: own.map(|f| f.goodput_bps).sum(), ..class }
    })
    .collect()
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
