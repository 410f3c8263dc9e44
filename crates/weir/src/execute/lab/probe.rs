//! A UDP probe through a lab, which measures the precision of its emulators.
//!
//! The same probe over bare cables shows the probe's own error.

use crate::execute::hosts::Addresses;
use crate::execute::traffic::{ProbeReport, ProbeSpec, Quantiles, Spec};
use crate::experiment::plan::Plan;
use std::net::SocketAddr;
use weir_core::gateway::Direction;
use weir_core::link;
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// Ports of the probe's two ends.
const PORTS: (u16, u16) = (9_000, 9_001);
/// IPv4 and UDP headers.
const HEADERS: u64 = 20 + 8;
/// Margin between the start and the first packet, and between the last packet and the end.
const MARGIN_NS: u64 = 100_000_000;

/// Packets in one direction, evenly spaced or in bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Packets per second.
    pub pps: u32,
    /// UDP payload of a packet in bytes, at least 24.
    pub size: u16,
    /// Direction of the packets.
    pub direction: Direction,
    /// Packets that are sent together; 1 for even spacing.
    pub burst: u32,
    /// Expected gap between arrivals, if a device paces the packets.
    pub gap: Option<Duration>,
}

/// Measurements of a probe.
#[derive(Clone, Debug)]
pub struct ProbeOutcome {
    /// One-way delay that the plan configures: propagation, and the transmission time of a packet at the
    /// links' rates.
    pub configured_ns: u64,
    /// Report of the sending end.
    pub source: ProbeReport,
    /// Report of the receiving end.
    pub sink: ProbeReport,
}

impl ProbeOutcome {
    /// Returns median, 99th percentile and maximum of the path's excess delay over the configured one. In
    /// nanoseconds, up to the kernel's receive timestamp. [`ProbeReport::delay_app_ns`] would include the
    /// sink's wake-up.
    pub fn error_ns(&self) -> Option<(i64, i64, i64)> {
        let Quantiles { p50, p99, max, .. } = self.sink.delay_ns?;
        let error = |found: u64| found as i64 - self.configured_ns as i64;
        Some((error(p50), error(p99), error(max)))
    }
}

/// Adds the ends of `probe` to the work of clients and servers.
pub fn add(probe: &Probe, plan: &Plan, clients: &mut Spec, servers: &mut Spec) {
    let out = probe.direction == Direction::Out;
    let a = Addresses::of(plan.lab.ip);
    let end = plan.duration.as_nanos();
    let client = ProbeSpec {
        id: "probe".into(),
        local: SocketAddr::new(a.client, PORTS.0),
        remote: SocketAddr::new(a.server, PORTS.1),
        sends: out,
        pps: probe.pps,
        size: probe.size,
        burst: probe.burst,
        gap_ns: probe.gap.map(Duration::as_nanos),
        start_ns: MARGIN_NS.min(end / 4),
        until_ns: end - MARGIN_NS.min(end / 4),
    };
    let server = ProbeSpec {
        local: client.remote,
        remote: SocketAddr::new(a.client_on_wan(plan.lab.kind), PORTS.0),
        sends: !out,
        ..client.clone()
    };
    clients.probes.push(client);
    servers.probes.push(server);
}

/// Combines the reports of both ends.
pub fn outcome(probe: &Probe, plan: &Plan, client: &ProbeReport, server: &ProbeReport) -> ProbeOutcome {
    let (path, source, sink) = match probe.direction {
        Direction::Out => ([plan.path.lan, plan.path.wan_out], client, server),
        Direction::In => ([plan.path.wan_back, plan.path.lan], server, client),
    };
    let packet = u64::from(probe.size) + HEADERS;
    let takes = |l: &link::Config, rate: Rate| rate.time_for(l.bytes(packet));
    let delay = |l: &link::Config| (l.delay + l.rate.map_or(Duration::ZERO, |r| takes(l, r))).as_nanos();
    ProbeOutcome { configured_ns: path.iter().map(delay).sum(), source: source.clone(), sink: sink.clone() }
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;
    use super::*;
    use weir_core::rate::Rate;

    #[test]
    fn what_is_configured_is_delay_and_transmission() {
        let mut p = plan();
        p.path.wan_out.delay = Duration::from_millis(10);
        p.path.wan_out.rate = Some(Rate::mbit(10));
        let probe = Probe { pps: 10, size: 1458, direction: Direction::Out, burst: 1, gap: None };
        let sink = ProbeReport {
            delay_ns: Quantiles::of(&mut [11_200_500u64, 11_199_000]),
            ..ProbeReport::default()
        };
        let o = outcome(&probe, &p, &ProbeReport::default(), &sink);
        // A packet of 1500 bytes takes 1.2 ms at 10 Mb/s.
        assert_eq!(o.configured_ns, 11_200_000);
        assert_eq!(o.error_ns(), Some((-1_000, 500, 500)));
    }
}
