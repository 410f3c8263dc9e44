//! ACKs are filtered in front of a thin uplink.

use super::{id, options, root, run, turn, twice};
use weir::experiment::config::{experiment, gateway, Source};
use weir::result::Backend;
use weir_core::rate::Rate;

/// What `weir run --dev eth0 --uplink 100kbit --ack-filter` makes: all that goes out is taken whole, and downloads stay in the kernel.
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
    let filter = gateway::filter_option("delayed-per-flow", uplink).unwrap();
    plan.gateway = Some(gateway::uplink("eth0", uplink, filter).gateway);
    twice("ACK filter", || {
        let outcome = run(&plan, &options(&id("filter")));
        assert_eq!(outcome.faults, Vec::<String>::new());
        let received = &outcome.gateway.as_ref().unwrap().steering.received;
        let queue = outcome.result.classes[0].queue.as_ref().unwrap();
        assert!(received[0] > 100 && received[1] == 0, "{received:?}");
        assert!(queue.filtered > 100 && queue.packets > 100, "{queue:?}");
        let flow = &outcome.result.flows[0];
        let late = &flow.intervals[4..];
        let mbit = late.iter().map(|i| i.bps).sum::<f64>() / late.len() as f64 / 1e6;
        // Without a filter 3.9 were measured.
        match mbit > 7.5 {
            true => Ok(()),
            false => Err(format!("{mbit:.2} Mbit/s, {queue:?}")),
        }
    });
}
