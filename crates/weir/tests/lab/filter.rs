//! ACKs are filtered in front of a thin uplink.

use super::{holds, id, judged, options, root, run, turn, without_faults};
use weir::experiment::config::{experiment, gateway, Source};
use weir::result::Backend;
use weir_core::rate::Rate;

/// A gateway of `weir run --dev eth0 --up 100kbit`: all that goes out is taken whole, and
/// downloads stay in the kernel.
#[test]
fn a_download_behind_a_thin_uplink_has_its_rate() {
    let _turn = turn();
    if !root() {
        return;
    }
    let text = include_str!("../../../../experiments/asymmetric/10m-100k-40ms.toml");
    let text = text.replace("duration = \"30s\"", "duration = \"8s\"");
    let parsed = experiment::parse(&Source::new("experiment", text)).unwrap_or_else(|e| panic!("{e}"));
    let mut plan = parsed.plan_for(Backend::Lab).unwrap_or_else(|e| panic!("{e}"));
    let uplink = Rate::kbit(100);
    let file = gateway::line("eth0", [Some(uplink), None], "delayed-per-flow", None, None, true).unwrap();
    plan.gateway = Some(gateway::parse(&file).unwrap().gateway);
    judged("ACK filter", || {
        let outcome = run(&plan, &options(&id("filter")));
        without_faults(&outcome)?;
        let received = &outcome.gateway.as_ref().unwrap().steering.received;
        let queue = outcome.result.classes[0].queue.as_ref().unwrap();
        assert_eq!(received[1], 0, "{received:?}");
        holds(received[0] > 100 && queue.filtered > 100 && queue.packets > 100, queue)?;
        let flow = &outcome.result.flows[0];
        let late = &flow.intervals[4..];
        let mbit = late.iter().map(|i| i.bps).sum::<f64>() / late.len() as f64 / 1e6;
        // Without a filter 3.9 were measured.
        holds(mbit > 7.5, format!("{mbit:.2} Mbit/s, {queue:?}"))
    });
}
