//! One report from the reports of several engines.

use crate::result::running::{EngineReport, GatewayFlow, GatewayReport, SteeringReport};
use crate::result::{Counts, Frames, GatewayResult, QuantilesMax};

/// Most flows in a report.
const MOST_FLOWS: usize = 1_000;

/// Merges the engines' reports, given in the engines' order, and makes the rows of all. The counters of
/// the programs in the kernel and the process's memory are taken from the first one. Lateness is the worst of
/// all.
pub(super) fn whole(mut parts: Vec<GatewayReport>) -> GatewayReport {
    let mut all = if parts.len() == 1 { parts.swap_remove(0) } else { merged(parts) };
    all.traffic = all.snapshot.rows();
    all
}

fn merged(mut parts: Vec<GatewayReport>) -> GatewayReport {
    let engines = parts.iter().map(engine).collect();
    let flows = in_turn(parts.iter_mut().map(|part| std::mem::take(&mut part.flows)).collect());
    let add = |mut all: GatewayReport, part: GatewayReport| {
        all.wall_s = all.wall_s.max(part.wall_s);
        all.degraded = all.degraded.or(part.degraded);
        // All engines have the same lists.
        all.notes = part.notes;
        totals(&mut all.gateway, &part.gateway);
        all.classes.extend(part.classes);
        counts(&mut all.passed, &part.passed);
        counts(&mut all.events, &part.events);
        steering(&mut all.steering, &part.steering);
        all.snapshot.add(part.snapshot);
        all
    };
    let mut all = parts.into_iter().reduce(add).unwrap_or_default();
    all.classes.sort_by_key(|class| class.place);
    GatewayReport { flows, engines, ..all }
}

fn engine(part: &GatewayReport) -> EngineReport {
    EngineReport {
        cpu_s: part.gateway.cpu_s,
        active_flows: part.classes.iter().map(|class| class.active_flows).sum(),
        held_bytes: part.classes.iter().map(|class| class.held_bytes).sum(),
    }
}

/// Takes flows from the lists in turn, beginning with the first of each.
fn in_turn(lists: Vec<Vec<GatewayFlow>>) -> Vec<GatewayFlow> {
    let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    let mut flows = Vec::new();
    while flows.len() < MOST_FLOWS {
        let before = flows.len();
        flows.extend(lists.iter_mut().filter_map(Iterator::next));
        if flows.len() == before {
            break;
        }
    }
    flows.truncate(MOST_FLOWS);
    flows
}

fn totals(all: &mut GatewayResult, part: &GatewayResult) {
    all.cpu_s += part.cpu_s;
    all.user_data_bytes += part.user_data_bytes;
    let Frames { received, made, sent, held, absorbed, dropped } = &part.frames;
    all.frames.received += received;
    all.frames.made += made;
    all.frames.sent += sent;
    all.frames.held += held;
    all.frames.absorbed += absorbed;
    counts(&mut all.frames.dropped, dropped);
}

fn counts(all: &mut Counts, part: &Counts) {
    part.iter().for_each(|(name, n)| *all.entry(name.clone()).or_default() += n);
}

fn steering(all: &mut SteeringReport, part: &SteeringReport) {
    all.resyncs += part.resyncs;
    counts(&mut all.hooks, &part.hooks);
    each(&mut all.received, &part.received);
    each(&mut all.lost, &part.lost);
    each(&mut all.sent, &part.sent);
    each(&mut all.refused, &part.refused);
    let (late, other) = (all.lateness_us, part.lateness_us);
    all.lateness_us = QuantilesMax {
        p50: late.p50.max(other.p50),
        p99: late.p99.max(other.p99),
        max: late.max.max(other.max),
    };
}

fn each(all: &mut [u64], part: &[u64]) {
    all.iter_mut().zip(part).for_each(|(sum, n)| *sum += n);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::running::GatewayClass;
    use crate::result::ClassResult;

    fn class(name: &str, place: usize, active_flows: u64) -> GatewayClass {
        let class = ClassResult { name: name.into(), ..ClassResult::default() };
        GatewayClass { class, place, active_flows, held_bytes: 100, ..GatewayClass::default() }
    }

    fn flow(port: u16) -> GatewayFlow {
        let at = |port| (std::net::Ipv4Addr::LOCALHOST, port).into();
        GatewayFlow::between(at(port), at(9))
    }

    fn report(classes: Vec<GatewayClass>, ports: &[u16]) -> GatewayReport {
        let mut report = GatewayReport { classes, wall_s: f64::from(ports[0]), ..GatewayReport::default() };
        report.flows = ports.iter().map(|port| flow(*port)).collect();
        report.gateway.cpu_s = 1.5;
        (report.gateway.frames.received, report.gateway.memory_bytes) = (7, Some(1 << 20));
        report.gateway.frames.dropped.insert("pool_exhausted".into(), 1);
        (report.steering.sent, report.steering.restarts) = (vec![1, 2], 3);
        report.steering.lateness_us = QuantilesMax { p50: u64::from(ports[0]), p99: 5, max: 9 };
        report.passed.insert("no_class".into(), 2);
        report
    }

    #[test]
    fn totals_are_summed_and_classes_stand_in_their_order() {
        let mut first = report(vec![class("a", 0, 1), class("d", 3, 0)], &[10, 11, 12]);
        first.steering.hooks.insert("taken".into(), 44);
        let second = report(vec![class("b", 1, 2), class("c", 2, 3)], &[20]);
        let all = whole(vec![first, second]);
        let names: Vec<&str> = all.classes.iter().map(|c| c.class.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
        let ports: Vec<u16> = all.flows.iter().map(|flow| flow.src.port()).collect();
        assert_eq!(ports, [10, 20, 11, 12]);
        let gateway = &all.gateway;
        assert_eq!((gateway.cpu_s, gateway.frames.received, gateway.memory_bytes), (3.0, 14, Some(1 << 20)));
        assert_eq!((gateway.frames.dropped["pool_exhausted"], all.passed["no_class"]), (2, 4));
        assert_eq!((all.wall_s, all.steering.restarts, all.steering.sent.as_slice()), (20.0, 3, &[2, 4][..]));
        assert_eq!((all.steering.hooks["taken"], all.steering.lateness_us.p50), (44, 20));
        let engines: Vec<(u64, u64)> = all.engines.iter().map(|e| (e.active_flows, e.held_bytes)).collect();
        assert_eq!(engines, [(1, 200), (5, 200)]);
    }

    #[test]
    fn one_engine_speaks_for_itself() {
        let one = whole(vec![report(vec![class("b", 1, 0), class("a", 0, 0)], &[1])]);
        assert_eq!((one.classes[0].class.name.as_str(), one.engines.len()), ("b", 0));
    }

    #[test]
    fn no_more_than_a_thousand_flows_are_listed() {
        let ports: Vec<u16> = (1..=800).collect();
        let all = whole(vec![report(vec![], &ports), report(vec![], &ports), report(vec![], &[1])]);
        assert_eq!(all.flows.len(), 1_000);
    }
}
