//! QUIC through a gateway, in both directions.

use super::{group, holds, id, judged, options, plan, root, run, turn, without_faults};
use weir::execute::lab::Outcome;
use weir::experiment::config::{experiment, Source};
use weir::experiment::plan::{FlowGroup, Length, Protocol, Value};
use weir::result::traffic::Kind;
use weir::result::Backend;
use weir_core::gateway::Direction;
use weir_core::time::Duration as Nanos;

/// Bytes that the gateway's classes counted as QUIC, and packets that they marked.
fn counted(outcome: &Outcome) -> (u64, u64) {
    let traffic = outcome.gateway.iter().flat_map(|g| &g.traffic);
    let classes = traffic.filter(|t| t.kind == Kind::Class);
    classes.fold((0, 0), |(quic, marked), t| (quic + t.load.quic_bytes, marked + t.load.marked_packets))
}

/// One upload and one download of 3 MB, behind classes of 20 and 10 Mbit/s. A class counts the whole
/// datagram, so goodput is below its rate. Packets are ECN-capable, and some of each are marked.
#[test]
fn quic_completes_at_the_rate_of_its_class() {
    let _turn = turn();
    if !root() {
        return;
    }
    let class = |name: &str, rate: &str| {
        format!(
            "[[gateway.class]]\nname = '{name}'\ndirection = '{name}'\nrate = '{rate}'\nunresponsive = 'fair'\n"
        )
    };
    let text = format!(
        "name = 't'\nduration = '8s'\n{}{}[[flow]]\nid = 'a'\n",
        class("out", "20Mbit"),
        class("in", "10Mbit")
    );
    let file = experiment::parse(&Source::new("t.toml", text)).unwrap_or_else(|e| panic!("{e}"));
    let gateway = file.plan_for(Backend::Lab).unwrap_or_else(|e| panic!("{e}")).gateway;
    let quic = |id: &str, port, direction, streams| {
        let mut group = group(id, port, direction, Length::Bytes(3_000_000));
        group.tcp.set("ecn", Value::Switch(true));
        FlowGroup { protocol: Protocol::Quic { app_rate: None, streams }, ..group }
    };
    let groups = vec![quic("up", 443, Direction::Out, 1), quic("down", 4433, Direction::In, 4)];
    let mut plan = plan(8_000, groups);
    plan.path.wan_out.delay = Nanos::from_millis(10);
    plan.path.wan_back.delay = Nanos::from_millis(10);
    plan.gateway = gateway;
    judged("quic", || {
        let outcome = run(&plan, &options(&id("quic")));
        without_faults(&outcome)?;
        let flows = &outcome.result.flows;
        let seen: Vec<(&str, &str, u64)> =
            flows.iter().map(|f| (f.cc.as_str(), f.class.as_str(), f.bytes)).collect();
        assert_eq!(seen, [("reno", "out", 3_000_000), ("reno", "in", 3_000_000)]);
        // The library greases the fixed bit (RFC 9287) of about half of its packets.
        let (quic, marked) = counted(&outcome);
        assert!((3_000_000..4_500_000).contains(&quic), "{quic} bytes of QUIC");
        holds(marked > 0, "no packet was marked")?;
        let of_rate: Vec<f64> =
            flows.iter().zip([20e6, 10e6]).map(|(f, rate)| f.goodput_bps / rate).collect();
        holds(of_rate.iter().all(|of| (0.4..1.05).contains(of)), format!("{of_rate:.3?} of the rates"))?;
        holds(flows.iter().all(|f| f.fct_s.is_some() && f.rtt_us.p50 >= 20_000), flows)
    });
}
