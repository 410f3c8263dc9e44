//! Assembly of a lab's result from the reports of its processes.

use super::counters::Counters;
use super::rows::Rows;
use crate::execute::room::Room;
use crate::execute::traffic::Report;
use crate::experiment::plan::{Plan, Protocol};
use crate::result::observe;
use crate::result::running::{EmulatorReport, GatewayReport, SteeringReport};
use crate::result::{
    parent, with_flows, Backend, ClassResult, Counts, FlowResult, GatewayResult, LinkResult, MadeBy,
    RunResult, Series, Status, Steering, SCHEMA,
};
use std::collections::{BTreeMap, HashMap};
use weir_core::gateway::ClassConfig;
use weir_core::time::Duration;

/// All measurements of a run.
pub struct Measured {
    /// Report of the clients' traffic process.
    pub clients: Report,
    /// Report of the servers' traffic process.
    pub servers: Report,
    /// Report of the gateway, if one ran.
    pub gateway: Option<GatewayReport>,
    /// Reports of the emulators.
    pub emulators: Vec<EmulatorReport>,
    /// Counters of the box's interface towards the clients, if it has one.
    pub lan: Option<Counters>,
    /// Counters of the box's interface towards the servers.
    pub wan: Counters,
    /// TCP settings in force.
    pub settings: BTreeMap<String, String>,
    /// Time from set-up to tear-down.
    pub wall: std::time::Duration,
    /// True if the run ended early.
    pub interrupted: bool,
}

impl Measured {
    /// Returns the time that the run covers.
    fn covered(&self, plan: &Plan) -> Duration {
        if !self.interrupted {
            return plan.duration;
        }
        Duration::from_nanos(self.clients.end_ns.min(self.servers.end_ns)).min(plan.duration)
    }

    /// Returns the faults of flows, in the flows' order. An interrupted run cuts connections, so it reports
    /// none. A connection that gave up is a result, not a fault, and so is its peer that never connected.
    pub fn faults(&self) -> Vec<String> {
        if self.interrupted {
            return Vec::new();
        }
        let sides = [("client", &self.clients, &self.servers), ("server", &self.servers, &self.clients)];
        let of = |(side, here, there): (&str, &Report, &Report)| {
            let tcp = here.flows.iter().zip(&there.flows);
            let ends = tcp.chain(here.quic.iter().zip(&there.quic)).filter(|(_, peer)| !peer.gave_up);
            let faults =
                ends.filter_map(|(f, _)| Some(format!("flow {}, {side}: {}", f.id, f.error.as_ref()?)));
            let datagrams = here.datagrams.iter();
            let datagrams =
                datagrams.filter_map(|d| Some(format!("flow {}, {side}: {}", d.id, d.error.as_ref()?)));
            faults.chain(datagrams).collect::<Vec<_>>()
        };
        sides.into_iter().flat_map(of).collect()
    }

    /// Returns the result, without its checks. Of the faults it has what found no room.
    pub fn result(&self, plan: &Plan, mut room: Room) -> RunResult {
        let covered = self.covered(plan);
        let mut tcp = self.clients.flows.iter().zip(&self.servers.flows);
        let mut quic = self.clients.quic.iter().zip(&self.servers.quic);
        let mut datagrams = self.clients.datagrams.iter().zip(&self.servers.datagrams);
        let rows = Rows::new(plan, self.gateway.as_ref(), covered);
        let mut flows = Vec::new();
        let mut series = BTreeMap::new();
        for (n, flow) in plan.flows().enumerate() {
            let row = match flow.group.protocol {
                Protocol::Tcp { .. } => tcp.next().map(|ends| rows.reliable(&flow, n, ends)),
                Protocol::Quic { .. } => quic.next().map(|ends| rows.reliable(&flow, n, ends)),
                Protocol::Udp { .. } => datagrams.next().map(|ends| rows.datagrams(&flow, n, ends)),
            };
            let Some((mut row, bins)) = row else { break };
            // Of a run that was interrupted before the flow's start there is nothing of it.
            if flow.start >= covered {
                continue;
            }
            let received = (row.id.clone(), Series::received(plan.bin, &bins));
            room.keep(&mut row, &mut series, received);
            flows.push(row);
        }
        let links = self.links();
        RunResult {
            schema: SCHEMA,
            experiment: plan.name.clone(),
            world: Backend::Lab,
            status: if self.interrupted { Status::Interrupted } else { Status::Ok },
            seed: plan.seed,
            faults: room.faults(),
            parity: plan.parity,
            duration_s: covered.as_secs_f64(),
            wall_s: self.wall.as_secs_f64(),
            packets: links.iter().map(|l| l.packets).sum(),
            made_by: MadeBy { settings: self.settings.clone(), ..made_by(plan) },
            expects: Vec::new(),
            gateway: self.gateway_result(plan),
            classes: self.classes(plan, &flows),
            drawn: plan.drawn(),
            flows,
            links,
            series,
            ..RunResult::default()
        }
    }

    fn gateway_result(&self, plan: &Plan) -> Option<GatewayResult> {
        plan.gateway.as_ref()?;
        let Some(report) = &self.gateway else { return Some(GatewayResult::default()) };
        Some(GatewayResult { steering: Some(steering(&report.steering)), ..report.gateway.clone() })
    }

    /// Returns the classes as the gateway reports them, with figures that come from the flows.
    fn classes(&self, plan: &Plan, flows: &[FlowResult]) -> Vec<ClassResult> {
        let all = plan.gateway.as_ref().map_or(&[][..], |g| &g.classes);
        let reported =
            self.gateway.iter().flat_map(|g| &g.classes).map(|c| (c.class.name.as_str(), &c.class));
        let reported: HashMap<&str, &ClassResult> = reported.collect();
        let row = |class: &ClassConfig| {
            let row = reported.get(class.name.as_str()).map_or_else(ClassResult::default, |&c| c.clone());
            let target_bps = observe::class_rate(class, 0);
            ClassResult { name: class.name.clone(), parent: parent(class, all), target_bps, ..row }
        };
        with_flows(all.iter().map(row).collect(), flows)
    }

    /// Returns the emulators' reports of their links. Bare links are reported from the counters of the
    /// gateway's interfaces.
    fn links(&self) -> Vec<LinkResult> {
        let (lan, wan) = (self.lan, self.wan);
        let lan = lan.map(|lan| {
            [("lan.out", lan.rx_packets, lan.rx_bytes), ("lan.back", lan.tx_packets, lan.tx_bytes)]
        });
        let wan = [("wan.out", wan.tx_packets, wan.tx_bytes), ("wan.back", wan.rx_packets, wan.rx_bytes)];
        let counted = lan.into_iter().flatten().chain(wan);
        let row = |(name, packets, bytes): (&str, u64, u64)| {
            let reported = self.emulators.iter().flat_map(|e| &e.links).find(|l| l.name == name);
            reported.cloned().unwrap_or_else(|| LinkResult {
                name: name.into(),
                packets,
                bytes,
                drops: Counts::new(),
                ..LinkResult::default()
            })
        };
        counted.map(row).collect()
    }
}

/// Returns when shaping was off, from the gateway's report on steering.
fn steering(report: &SteeringReport) -> Steering {
    let hook = |name| report.hooks.get(name).copied().unwrap_or(0);
    Steering {
        restarts: u64::from(report.restarts),
        resyncs: report.resyncs,
        passed_stale: hook("passed_stale"),
        passed_unknown: hook("passed_unknown"),
        ring_full: hook("ring_full"),
        over_budget: hook("over_budget"),
        doubted: hook("doubted"),
        failed: hook("failed"),
    }
}

fn made_by(plan: &Plan) -> MadeBy {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    MadeBy::new(&plan.config_sha256, kernel.trim())
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;
    use super::*;
    use crate::execute::hosts::client_port;
    use crate::execute::traffic::{Bins, FlowReport, Received, Sent};
    use crate::experiment::plan::Length;
    use crate::result::running::GatewayFlow;

    const MS: u64 = 1_000_000;

    fn received(bins: Bins, complete_ns: Option<u64>) -> Received {
        let bytes = bins.total();
        Received {
            bytes,
            bytes_in_time: bytes,
            first_ns: None,
            last_ns: None,
            complete_ns,
            eof_ns: None,
            longest_gap: None,
            bins,
        }
    }

    fn sent() -> Sent {
        Sent {
            written: 0,
            acked: 0,
            retransmits: 3,
            rtos: 1,
            rtos_counted: true,
            rtt_us: None,
            min_rtt_us: None,
            mss: 1448,
            cc: "reno".into(),
            series: None,
        }
    }

    /// Returns measurements of one upload that received 1000 bytes per 10 ms from 0.2 s to 0.7 s.
    fn measured() -> Measured {
        let mut bins = Bins::new(10 * MS);
        (20..70).for_each(|k| bins.record(k * 10 * MS, 1000));
        let client = FlowReport { opened_ns: Some(200 * MS), sent: Some(sent()), ..FlowReport::default() };
        let server = FlowReport { received: Some(received(bins, Some(695 * MS))), ..FlowReport::default() };
        let report = |f| Report { flows: vec![f], end_ns: 800 * MS, ..Report::default() };
        Measured {
            clients: report(client),
            servers: report(server),
            gateway: None,
            emulators: vec![],
            lan: Some(Counters { rx_packets: 40, ..Counters::default() }),
            wan: Counters::default(),
            settings: BTreeMap::new(),
            wall: std::time::Duration::from_secs(2),
            interrupted: false,
        }
    }

    #[test]
    fn a_finite_flow_ends_with_its_last_byte() {
        let mut p = plan();
        p.groups[0].length = Length::Bytes(50_000);
        p.groups[0].start = Duration::from_millis(200);
        let r = measured().result(&p, Room::default());
        let f = &r.flows[0];
        assert_eq!((f.start_s, f.end_s, f.fct_s), (0.2, 0.695, Some(0.495)));
        assert!((f.goodput_bps - 400_000.0 / 0.495).abs() < 1e-6);
        assert_eq!((f.retransmits, f.rtos, f.cc.as_str()), (3, 1, "reno"));
        let rows: Vec<u64> = f.intervals.iter().map(|i| i.bytes).collect();
        assert_eq!(rows, [0, 10_000, 10_000, 10_000, 10_000, 10_000][1..]);
        assert_eq!(r.series["up.0"].t_s.len(), 100);
        assert_eq!((r.packets, r.links[0].name.as_str(), r.links[0].packets), (40, "lan.out", 40));
        assert!(r.gateway.is_none());
    }

    #[test]
    fn what_has_no_room_is_left_out_and_told() {
        let r = measured().result(&plan(), Room::new(1_000, 4));
        assert_eq!((r.series.len(), r.flows[0].intervals.len(), r.faults.len()), (1, 0, 1), "{:?}", r.faults);
    }

    #[test]
    fn an_interrupted_run_covers_what_it_did() {
        let mut m = measured();
        m.interrupted = true;
        m.clients.flows[0].error = Some("reset".into());
        let r = m.result(&plan(), Room::default());
        assert_eq!((r.status, r.duration_s, r.flows[0].end_s), (Status::Interrupted, 0.8, 0.8));
        assert!(m.faults().is_empty());
        m.interrupted = false;
        assert_eq!(m.faults(), ["flow , client: reset"]);
        // A client that gave up and never reached its server is a result.
        m.clients.flows[0] = FlowReport { gave_up: true, ..FlowReport::default() };
        m.servers.flows[0].error = Some("the peer never connected".into());
        assert_eq!((m.faults(), m.result(&plan(), Room::default()).flows[0].gave_up), (vec![], 1));
    }

    #[test]
    fn the_gateway_s_words_about_a_flow_are_kept() {
        let mut m = measured();
        m.gateway = Some(GatewayReport {
            flows: vec![GatewayFlow {
                class: "ten".into(),
                pass_reason: Some("mptcp".into()),
                ..GatewayFlow::between(
                    (crate::execute::hosts::CLIENT, client_port(0)).into(),
                    (crate::execute::hosts::SERVER, 5000).into(),
                )
            }],
            ..GatewayReport::default()
        });
        assert_eq!(m.result(&plan(), Room::default()).flows[0].pass_reason.as_deref(), Some("mptcp"));
    }
}
