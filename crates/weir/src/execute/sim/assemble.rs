//! Assembly of a simulation's result from the counters of its nodes.

use super::flows::FlowEnd;
use super::series::Recorder;
use super::tcp;
use super::together;
use super::topology::{Carrier, LinkDirection, Topology, WiredFlow};
use crate::execute::measurements::{Datagrams, FlowMeasurements};
use crate::execute::room::Room;
use crate::experiment::plan::{Classifier, Flow, Plan};
use crate::result::observe;
use crate::result::{
    parent, with_flows, Backend, Bursts, ClassResult, FlowResult, GatewayResult, Latency, LinkResult, MadeBy,
    Most, PortPace, Quantiles, QuantilesMax, RunResult, Series,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use weir_core::gateway::ClassConfig;
use weir_core::link::Link;
use weir_core::stats::quantile;
use weir_core::time::{Duration, Time};
use weir_sim::host::{EndpointId, EndpointReport, Host};
use weir_sim::tcp::Failure;
use weir_sim::udp::{InFlight, UdpReport, UdpSink, UdpSource};
use weir_sim::world::NodeId;

/// Returns the result, without its checks and without `wall_s`. Of the faults it has what found no room.
pub fn result(plan: &Plan, topology: &mut Topology, mut recorder: Recorder, mut room: Room) -> RunResult {
    let now = topology.world.now();
    let covered = now.since(Time::ZERO);
    let mut flows = Vec::new();
    let mut series = BTreeMap::new();
    let classifier = plan.classifier();
    let in_flight = InFlight::of(topology.world.frames());
    for (n, (flow, wired)) in plan.flows().zip(&topology.flows).enumerate() {
        let Some(flow) = started(topology, n, flow).filter(|flow| flow.start < covered) else { continue };
        let reports = EndReports::of(plan, topology, wired, covered, &in_flight);
        let class = class(plan, &classifier, &flow, wired);
        let mut row = flow_result(plan, topology, &flow, wired, &reports, class, covered);
        let recorded = recorder.of_flow(n, &reports.sender.trace, wired.ends.payload);
        let received = if recorded.is_empty() { flow.id.clone() } else { format!("{}.received", flow.id) };
        room.keep(&mut row, &mut series, (received, received_series(plan, &reports.bins)));
        flows.push(row);
        series.extend(recorded.into_iter().map(|(part, s)| (format!("{}{part}", flow.id), s)));
    }
    for (i, direction) in topology.links.iter().enumerate() {
        series.extend(recorder.of_link(i).map(|s| (direction.name.clone(), s)));
    }
    let links = links(topology);
    RunResult {
        experiment: plan.name.clone(),
        world: Backend::Sim,
        seed: plan.seed,
        faults: room.faults(),
        duration_s: covered.as_secs_f64(),
        packets: links.iter().map(|l| l.packets).sum(),
        made_by: MadeBy { settings: tcp::in_force(plan), ..MadeBy::new(&plan.config_sha256, "") },
        parity: plan.parity,
        gateway: totals(topology).reduce(together::gateways).map(|gateway| discarded(topology, gateway)),
        classes: classes(plan, topology, &flows),
        drawn: plan.drawn(),
        flows,
        links,
        series,
        ..RunResult::default()
    }
}

/// Returns the flow with its start time. A flow that follows another one starts relative to the end of that
/// one, which is known now. Returns `None` if the other flow has not ended.
fn started<'a>(topology: &Topology, n: usize, flow: Flow<'a>) -> Option<Flow<'a>> {
    let Some(before) = flow.before else { return Some(flow) };
    let (node, end) = topology.flows[n - (flow.index - before.index) as usize].client();
    let FlowEnd::Tcp(_, id) = end else { return None };
    let over = tcp_report(topology, node, id).closed?;
    Some(Flow { start: (over + before.think).since(Time::ZERO), ..flow })
}

/// Returns the faults of flows, in the flows' order. A connection that gave up is a result, not a fault.
pub fn faults(plan: &Plan, topology: &Topology) -> Vec<String> {
    let of = |(flow, wired): (Flow, &WiredFlow)| {
        let sides = [
            ("sender", wired.sender, wired.ends.sender.1),
            ("receiver", wired.receiver, wired.ends.receiver.1),
        ];
        let fault = |(side, node, end)| match end {
            FlowEnd::Tcp(_, id) => {
                let failure = tcp_report(topology, node, id).failure.filter(|f| !f.gave_up())?;
                Some(format!("flow {}, {side}: {failure}", flow.id))
            }
            FlowEnd::Udp(_) => None,
        };
        sides.into_iter().filter_map(fault).collect::<Vec<_>>()
    };
    plan.flows().zip(&topology.flows).flat_map(of).collect()
}

fn tcp_report(topology: &Topology, node: NodeId, id: EndpointId) -> EndpointReport {
    topology.world.get::<Host>(node).map_or_else(EndpointReport::default, |h| h.report(id))
}

/// Returns the totals of each node of each gateway. Virtual time assigns them no processor time.
fn totals(topology: &Topology) -> impl Iterator<Item = GatewayResult> + '_ {
    let gateways = topology.gateways().map(|gateway| observe::gateway(gateway.flows.stats(), Duration::ZERO));
    gateways.chain(topology.sharings().map(|sharing| observe::sharing(sharing, Duration::ZERO)))
}

/// Adds the frames discarded by the switches behind paced ports to the gateways' totals.
fn discarded(topology: &Topology, gateway: GatewayResult) -> GatewayResult {
    let discarded = topology.switches().map(|switch| switch.discarded().0).sum();
    GatewayResult { pace: gateway.pace.map(|pace| PortPace { discarded, ..pace }), ..gateway }
}

/// Reports of a flow's two ends.
#[derive(Default)]
struct EndReports {
    sender: EndpointReport,
    /// Bytes received in each bin up to the end of the run.
    bins: Vec<u64>,
    received: u64,
    in_time: u64,
    last_received: Option<Time>,
    gave_up: bool,
    loss: Option<f64>,
    delay_us: Option<QuantilesMax>,
}

impl EndReports {
    fn of(
        plan: &Plan,
        topology: &Topology,
        flow: &WiredFlow,
        covered: Duration,
        in_flight: &InFlight,
    ) -> EndReports {
        let (mut reports, first, bins) = match (flow.ends.sender.1, flow.ends.receiver.1) {
            (FlowEnd::Tcp(_, from), FlowEnd::Tcp(_, to)) => EndReports::of_tcp(topology, flow, from, to),
            _ => EndReports::of_udp(topology, flow, in_flight),
        };
        let count = covered.as_nanos().div_ceil(plan.bin.as_nanos().max(1)) as usize;
        reports.bins = vec![0; first.min(count)];
        reports.bins.extend(bins.into_iter().map(u64::from));
        // What comes at the very end of the run is of its last bin.
        let beyond: u64 = reports.bins.iter().skip(count).sum();
        reports.bins.resize(count, 0);
        reports.bins.last_mut().into_iter().for_each(|last| *last += beyond);
        reports
    }

    fn of_tcp(
        topology: &Topology,
        flow: &WiredFlow,
        from: EndpointId,
        to: EndpointId,
    ) -> (EndReports, usize, Vec<u32>) {
        let sender = tcp_report(topology, flow.sender, from);
        let EndpointReport {
            received,
            received_in_time: in_time,
            last_received,
            first_bin,
            bins,
            failure,
            ..
        } = tcp_report(topology, flow.receiver, to);
        let gave_up = sender.failure.into_iter().chain(failure).any(Failure::gave_up);
        let reports =
            EndReports { sender, received, in_time, last_received, gave_up, ..EndReports::default() };
        (reports, first_bin, bins)
    }

    fn of_udp(topology: &Topology, flow: &WiredFlow, in_flight: &InFlight) -> (EndReports, usize, Vec<u32>) {
        let Some(sink) = topology.world.get::<UdpSink>(flow.receiver) else {
            return (EndReports::default(), 0, Vec::new());
        };
        let UdpReport {
            datagrams,
            received,
            received_in_time: in_time,
            last_received,
            lost,
            bins,
            delays,
            ..
        } = sink.report().clone();
        let sent = topology.world.get::<UdpSource>(flow.sender).map_or(0, UdpSource::datagrams);
        let under_way = in_flight.to(sink);
        let loss = Datagrams { sent, arrived: datagrams, missing: lost, under_way }.loss();
        let delay_us = QuantilesMax::of_nanos(&delays);
        let reports =
            EndReports { received, in_time, last_received, loss, delay_us, ..EndReports::default() };
        (reports, 0, bins)
    }
}

/// Returns the bytes received in the bins from the first byte to the last one.
fn received_series(plan: &Plan, bins: &[u64]) -> Series {
    let is_full = |bytes: &u64| *bytes > 0;
    let first = bins.iter().position(is_full).unwrap_or(0);
    let end = bins.iter().rposition(is_full).map_or(0, |last| last + 1);
    Series::received_from(plan.bin, first, &bins[first..end])
}

fn is_udp(wired: &WiredFlow) -> bool {
    matches!(wired.ends.sender.1, FlowEnd::Udp(_))
}

/// Returns the expected class of a flow.
fn class<'a>(
    plan: &Plan,
    classifier: &'a Classifier,
    flow: &Flow,
    wired: &WiredFlow,
) -> Option<&'a ClassConfig> {
    let (client, server) = (SocketAddr::V4(wired.ends.client), SocketAddr::V4(wired.ends.server));
    let ends = if wired.ends.uploads { (client, server) } else { (server, client) };
    let class = classifier.of(flow.direction(), &flow.group.protocol, ends);
    class.filter(|_| passes_a_gateway(plan, flow))
}

/// Returns the result of a flow.
fn flow_result(
    plan: &Plan,
    topology: &Topology,
    flow: &Flow,
    wired: &WiredFlow,
    reports: &EndReports,
    class: Option<&ClassConfig>,
    covered: Duration,
) -> FlowResult {
    let us = |d: Duration| d.as_micros();
    let udp = is_udp(wired);
    let last = |bytes: u64| reports.last_received.filter(|_| reports.received >= bytes);
    let measured = FlowMeasurements {
        class,
        cc: if udp { "udp" } else { flow.group.tcp.cc() }.to_string(),
        retransmits: reports.sender.retransmits,
        rtos: reports.sender.rtos,
        gave_up: reports.gave_up,
        loss: reports.loss,
        delay_us: reports.delay_us,
        rtt_us: reports
            .sender
            .rtt
            .map_or(Quantiles::default(), |(p50, p99)| Quantiles { p50: us(p50), p99: us(p99) }),
        bytes: reports.received,
        in_time: reports.in_time,
        last: reports.last_received.map(|at| at.since(Time::ZERO)),
        bins: &reports.bins,
        opened: Some(flow.start),
        complete: flow.bytes.and_then(last).map(|at| at.since(Time::ZERO)),
    };
    let mut row = measured.row(plan, flow, covered);
    let end = flow.end(plan.duration).min(covered);
    let under_way = reports.sender.burst_since.map(|since| (Time::ZERO + end).since(since));
    row.bursts = bursts(&reports.sender.bursts, under_way);
    if let Some((gateway, record)) = topology.gateways().find_map(|g| Some((g, g.flows.flow(&wired.key())?)))
    {
        row.class = gateway.flows.config().classes[record.class].name.clone();
        row.pass_reason = record.pass.map(|reason| reason.name().to_string());
    }
    row
}

/// Returns the durations of bursts, if there were any. The unacknowledged burst counts with its duration so
/// far.
fn bursts(took: &[Duration], under_way: Option<Duration>) -> Option<Bursts> {
    let under_way_us = under_way.map(|took| took.as_micros());
    let quantiles = |last: Option<u64>| {
        let mut us: Vec<u64> = took.iter().map(|took| took.as_micros()).chain(last).collect();
        us.sort_unstable();
        [500_000, 900_000, 990_000].map(|ppm| quantile(&us, ppm))
    };
    let [p50, p90, p99] = quantiles(under_way_us).map(Option::unwrap_or_default);
    let time_us = Latency { p50, p90, p99 };
    let at_most_us = under_way_us.map(|_| {
        let [p50, p90, p99] = quantiles(Some(u64::MAX)).map(|most| most.filter(|us| *us < u64::MAX));
        Most { p50, p90, p99 }
    });
    let any = !took.is_empty() || under_way_us.is_some();
    any.then_some(Bursts { count: took.len() as u64, time_us, under_way_us, at_most_us })
}

/// Returns whether a gateway is between client and server, with the client on its LAN side.
fn passes_a_gateway(plan: &Plan, flow: &Flow) -> bool {
    let Some(graph) = &plan.graph else { return true };
    let node = |group: &Option<String>| {
        let hosts = group.as_ref().and_then(|name| plan.hosts.iter().find(|h| h.name == *name));
        hosts.and_then(|h| h.node)
    };
    let ends = node(&flow.group.client).zip(node(&flow.group.server));
    ends.is_some_and(|(client, server)| graph.leaves_a_lan(client, server))
}

/// Returns the classes, summed over all gateways, with figures that come from the flows.
fn classes(plan: &Plan, topology: &Topology, flows: &[FlowResult]) -> Vec<ClassResult> {
    let configured = plan.gateway.as_ref().map_or(&[][..], |g| &g.classes);
    let queues = topology.sharings().map(observe::queues);
    let all = topology
        .gateways()
        .map(|gateway| observe::classes(gateway, topology.world.now()))
        .chain(queues)
        .reduce(together::classes);
    let seen = |(i, class): (usize, ClassResult)| {
        let mut probes = topology.switches().filter_map(|switch| switch.probe(i));
        let probe = probes.find(|probe| probe.packets() > 0);
        let pace = class.pace.map(|pace| probe.map_or(pace.clone(), |probe| observe::seen(pace, probe)));
        ClassResult { parent: configured.get(i).and_then(|c| parent(c, configured)), pace, ..class }
    };
    with_flows(all.unwrap_or_default().into_iter().enumerate().map(seen).collect(), flows)
}

/// Returns the links' counters up to now.
fn links(topology: &mut Topology) -> Vec<LinkResult> {
    let Topology { world, links, .. } = topology;
    let row = |direction: &LinkDirection| match &direction.carrier {
        Carrier::Bare(ports) => {
            let (mut packets, mut bytes) = (0, 0);
            for &port in ports {
                let passed = world.passed(port);
                (packets, bytes) = (packets + passed.frames, bytes + passed.bytes);
            }
            LinkResult { name: direction.name.clone(), packets, bytes, ..LinkResult::default() }
        }
        Carrier::Node(id) => {
            let row = world.with_cx(*id, |link: &mut Link, cx| {
                link.advance(cx);
                observe::link(&direction.name, link, cx.now.since(Time::ZERO))
            });
            row.unwrap_or_default()
        }
    };
    links.iter().map(row).collect()
}
