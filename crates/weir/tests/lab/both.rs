//! Queues and control of ACKs in one gateway.

use super::{holds, id, judged, options, root, run, turn, without_faults};
use weir::execute::lab::Outcome;
use weir::experiment::config::{experiment, Source};
use weir::experiment::plan::Plan;
use weir::result::Backend;

/// An experiment of the repository, this many seconds long.
fn shortened(text: &str, from: &str, to: &str) -> Plan {
    let text = text.replace(&format!("duration = \"{from}\""), &format!("duration = \"{to}\""));
    let parsed = experiment::parse(&Source::new("experiment", text)).unwrap_or_else(|e| panic!("{e}"));
    parsed.plan_for(Backend::Lab).unwrap_or_else(|e| panic!("{e}"))
}

/// Goodput of the flows of a group in Mbit/s, from this interval of a second on.
fn goodput(outcome: &Outcome, group: &str, from: usize) -> Vec<f64> {
    let flows = outcome.result.flows.iter().filter(|f| f.id.starts_with(group));
    let mean = |bps: Vec<f64>| bps.iter().sum::<f64>() / bps.len() as f64 / 1e6;
    flows.map(|f| mean(f.intervals[from..].iter().map(|i| i.bps).collect())).collect()
}

#[test]
fn uploads_wait_in_queues_and_downloads_are_held_by_their_acks() {
    let _turn = turn();
    if !root() {
        return;
    }
    let plan = shortened(include_str!("../../../../experiments/sharing/both.toml"), "12s", "6s");
    judged("queues and ACKs", || {
        let outcome = run(&plan, &options(&id("both")));
        without_faults(&outcome)?;
        let gateway = outcome.gateway.as_ref().unwrap();
        // Both sets of programs were at work: ACKs came by the ring, frames that go out whole, and none that
        // come in.
        let (hooks, received) = (&gateway.steering.hooks, &gateway.steering.received);
        holds(hooks["taken"] > 100 && hooks["whole_taken"] > 1_000, hooks)?;
        assert_eq!(received[1], 0, "{received:?}");
        holds(received[0] > 1_000, received)?;
        let class = |name: &str| outcome.result.classes.iter().find(|c| c.name == name).unwrap();
        let waited = |name: &str| class(name).queue.as_ref().unwrap().packets;
        assert!(class("downloads").queue.is_none());
        holds(class("downloads").acks_absorbed > 100, class("downloads"))?;
        // ACKs that are made wait with the call.
        holds(waited("uploads") > 1_000 && waited("first") > 1_000, &outcome.result.classes)?;
        let (down, up) = (goodput(&outcome, "down", 3), goodput(&outcome, "up", 3).iter().sum::<f64>());
        let at_their_rates = down.iter().all(|d| (18.0..22.0).contains(d)) && (6.5..9.6).contains(&up);
        holds(at_their_rates, format!("down {down:.2?}, up {up:.2} Mbit/s"))
    });
}

/// The queue that tells when ACKs are held is that of the same engine.
#[test]
fn acks_are_held_while_the_queue_is_long() {
    let _turn = turn();
    if !root() {
        return;
    }
    let text = include_str!("../../../../experiments/papers/ack-shaper/congested.toml");
    let plan = shortened(text, "20s", "14s");
    judged("congestion", || {
        let outcome = run(&plan, &options(&id("congested")));
        without_faults(&outcome)?;
        let class = outcome.result.classes.iter().find(|c| c.name == "all").unwrap();
        let queue = class.queue.as_ref().unwrap();
        holds(class.acks_absorbed > 50, class)?;
        holds(queue.drops.is_empty() && queue.peak_packets < 200, queue)
    });
}
