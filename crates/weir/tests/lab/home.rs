//! A home's line is busy both ways, and a call beside it is not late.

use super::{holds, id, judged, options, root, run, turn, without_faults};
use weir::experiment::config::{experiment, gateway, Source};
use weir::result::Backend;
use weir_core::rate::Rate;

const LINE: &str = r#"
name = "home"
duration = "8s"

[path]
rtt = "30ms"

# 250 ms in each modem.
[path.wan.out]
rate = "5250kbit"
queue = "164kB"

[path.wan.back]
rate = "21Mbit"
queue = "656kB"

[[flow]]
id = "upload"
direction = "out"
count = 2

[[flow]]
id = "download"
direction = "in"
count = 2

[[flow]]
id = "talk"
protocol = "udp"
direction = "out"
rate = "100kbit"
datagram = 200

[[flow]]
id = "hear"
protocol = "udp"
direction = "in"
rate = "100kbit"
datagram = 200
"#;

/// The gateway of `weir run --dev eth0 --up 5Mbit --down 20Mbit`. Without it half of the datagrams are 200 ms
/// late each way.
#[test]
fn a_call_beside_a_full_line_is_not_late() {
    let _turn = turn();
    if !root() {
        return;
    }
    let parsed = experiment::parse(&Source::new("home", LINE)).unwrap_or_else(|e| panic!("{e}"));
    let mut plan = parsed.plan_for(Backend::Lab).unwrap_or_else(|e| panic!("{e}"));
    let [up, down] = [5, 20].map(|mbit| Some(Rate::mbit(mbit)));
    let file = gateway::line("eth0", [up, down], "delayed-per-flow", None, None, true).unwrap();
    plan.gateway = Some(gateway::parse(&file).unwrap().gateway);
    judged("a home's line", || {
        let outcome = run(&plan, &options(&id("home")));
        without_faults(&outcome)?;
        let flows = &outcome.result.flows;
        let sum = |group: &str| {
            let of = flows.iter().filter(|flow| flow.id.starts_with(group));
            of.map(|flow| flow.goodput_bps).sum::<f64>() / 1e6
        };
        for call in flows.iter().filter(|flow| flow.cc == "udp") {
            let delay = call.delay_us.expect("datagrams have arrived");
            holds(delay.p50 < 60_000, format!("{}: {delay:?}", call.id))?;
        }
        let (up, down) = (sum("upload"), sum("download"));
        holds(up > 3.5 && down > 14.0, format!("{up:.2} and {down:.2} Mbit/s"))
    });
}
