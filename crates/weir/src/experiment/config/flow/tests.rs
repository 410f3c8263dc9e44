//! Tests of the keys of flows, and of the flows that they make.

use crate::experiment::config::{experiment, Source};
use crate::experiment::plan::{Arrivals, Length, Plan, Protocol};
use crate::result::Backend;
use weir_core::dist::Distribution;
use weir_core::link::{Loss, QueueLimit};
use weir_core::rate::Rate;
use weir_core::time::Duration;

fn plan(flow: &str) -> Plan {
    let text = format!("name = 'x'\nduration = '10s'\nseed = 3\n[[flow]]\nid = 'a'\n{flow}\n");
    experiment::parse(&Source::new("t.toml", text)).unwrap_or_else(|e| panic!("{e}")).plan
}

#[test]
fn distributions() {
    let length = |text: &str| plan(&format!("bytes = {text}")).groups[0].length.clone();
    assert_eq!(length("'5kB'"), Length::Bytes(5000));
    for (text, want) in [
        ("{ uniform = [1000, '1KiB'] }", Distribution::Uniform { min: 1000, max: 1024 }),
        ("{ exponential = '30kB' }", Distribution::Exponential { mean: 30_000 }),
        (
            "{ pareto = '1kB', shape = 1.5 }",
            Distribution::Pareto { scale: 1000, shape: 1.5, min: 1000, max: None },
        ),
        (
            "{ pareto = '900B', shape = 2, min = '1kB', max = '2kB' }",
            Distribution::Pareto { scale: 900, shape: 2.0, min: 1000, max: Some(2000) },
        ),
        (
            "{ bounded_pareto = '1kB', shape = 0.5, max = '2kB' }",
            Distribution::BoundedPareto { min: 1000, shape: 0.5, max: 2000 },
        ),
        ("{ list = [7, '1kB', 7] }", Distribution::Empirical(vec![7, 1000, 7])),
    ] {
        assert_eq!(length(text), Length::Drawn(want), "{text}");
    }
}

/// 20 flows per second for 10 s are 200 ± 4 × √200; none begins after the end.
#[test]
fn a_poisson_process_goes_on_until_the_end() {
    let plan = plan("arrivals = { poisson = '20/s' }\nbytes = { exponential = '1kB' }");
    assert_eq!(plan.groups[0].arrivals, Arrivals::Drawn(Distribution::Exponential { mean: 50_000_000 }));
    let flows: Vec<_> = plan.flows().collect();
    assert!((144..=256).contains(&flows.len()), "{}", flows.len());
    assert!(flows.windows(2).all(|w| w[0].start <= w[1].start));
    assert!(flows.iter().all(|f| f.start < plan.duration && f.bytes.is_some_and(|n| n > 0)));
    assert_eq!((flows[0].start, flows[7].id.as_str()), (Duration::ZERO, "a.7"));
    let again: Vec<_> = plan.flows().map(|f| (f.start, f.bytes)).collect();
    assert_eq!(again, flows.iter().map(|f| (f.start, f.bytes)).collect::<Vec<_>>());
    let mut other = plan.clone();
    other.reseed(4);
    assert_ne!(other.flows().nth(1).map(|f| f.start), Some(flows[1].start));
}

#[test]
fn groups_that_are_drawn_alike_have_the_same_flows() {
    let drawn = "arrivals = { poisson = '20/s' }\nbytes = { exponential = '1kB' }";
    let plan =
        plan(&format!("{drawn}\n[[flow]]\nid = 'b'\ndrawn_as = 'a'\n{drawn}\n[[flow]]\nid = 'c'\n{drawn}"));
    let [a, b, c] = [0, 1, 2].map(|i: usize| {
        let flows = plan.groups[i].flows(plan.seed).take(100);
        flows.map(|f| (f.start, f.bytes)).collect::<Vec<_>>()
    });
    assert_eq!(a, b);
    assert_ne!(a, c);
}

#[test]
fn count_limits_drawn_arrivals() {
    assert_eq!(plan("arrivals = '1s'").flows().count(), 10);
    assert_eq!(plan("arrivals = '1s'\ncount = 3").flows().count(), 3);
}

#[test]
fn udp() {
    let text = "protocol = 'udp'\nrate = '5Mbit'\non = '1s'\noff = { exponential = '2s' }";
    let on_off =
        Some((Distribution::Constant(1_000_000_000), Distribution::Exponential { mean: 2_000_000_000 }));
    let want = Protocol::Udp { rate: Rate::mbit(5), datagram: 1472, on_off };
    assert_eq!(plan(text).groups[0].protocol, want);
}

#[test]
fn quic() {
    let plan = plan("protocol = 'quic'\nstreams = 3\ncc = 'newreno'\n[tcp]\nfast_open = true");
    let group = &plan.groups[0];
    assert_eq!(group.protocol, Protocol::Quic { app_rate: None, streams: 3 });
    assert_eq!((group.port_range(), group.tcp.cc(), group.tcp.opens_fast()), ((443, 443), "newreno", false));
}

#[test]
fn hosts() {
    let text = "client = 'c'\n[path]\nrtt = '40ms'\n[[host]]\nname = 'c'\nside = 'lan'\nrate = '10Mbit'\nqueue = '1bdp'\ndelay = '1ms'\ndown = { loss_every = 9 }";
    let plan = plan(text);
    let host = &plan.hosts[0];
    assert_eq!(plan.groups[0].client.as_deref(), Some("c"));
    // 10 Mbit/s × (40 + 2 × 1) ms
    assert_eq!((host.wan, host.up.queue), (false, QueueLimit::Bytes(52_500)));
    assert_eq!((host.up.delay, host.down.delay), (Duration::from_millis(1), Duration::from_millis(1)));
    assert_eq!((host.up.loss, host.down.loss), (Loss::None, Loss::every(9).unwrap()));
    assert_eq!(plan.links()[4..], ["c.0.up".to_string(), "c.0.down".to_string()]);
}

/// Without a path that takes time, only a class slows a flow: one of its direction, port and protocol, with a
/// rate or a queue.
#[test]
fn only_a_class_that_may_take_a_flow_slows_it_down() {
    let simulated = |class: &str| {
        let class = format!("[[gateway.class]]\nname = 'c'\n{class}");
        let text = format!("name = 'x'\nduration = '1s'\n[[flow]]\nid = 'a'\nport = 5001\n{class}\n");
        let file = experiment::parse(&Source::new("t.toml", text)).unwrap_or_else(|e| panic!("{e}"));
        file.worlds().contains(&Backend::Sim)
    };
    let acks = "ack = { preset = 'ack-shaper', flow_rate = '1Mbit' }";
    for (rule, taken) in [
        ("match = [{ dst_port = 5001 }]", true),
        ("match = [{ dst_port = 80 }, { src = '10.0.0.0/8' }]", true),
        ("match = [{ dst_port = 80 }]", false),
    ] {
        assert_eq!(simulated(&format!("direction = 'out'\n{rule}\n{acks}")), taken, "{rule}");
    }
    assert!(!simulated(&format!("direction = 'in'\n{acks}")));
}
