//! Checks on what is never measured are errors: they could only hold by accident.

use super::units::Fault;
use crate::expect::matches;
use crate::plan::{Flow, Kind, Link, Plan, Protocol, Subject};

/// Metrics of classes that results had, and that no policy which exists has.
const OF_QUEUES: [&str; 3] = ["queue_peak_bytes", "queue_peak_packets", "drops"];

/// What is said of metrics that nothing measures yet.
pub(super) fn not_yet(kind: &str, metric: &str) -> Option<Fault> {
    let root =
        OF_QUEUES.iter().any(|m| metric == *m || metric.strip_prefix(m).is_some_and(|r| r.starts_with('.')));
    (kind == "class" && root).then(|| {
        let help = "classes control ACKs: `held_ack_peak_bytes` is the most that is held; links have queues and drops";
        Fault::new(format!("`{metric}` of a class is never measured: no policy that exists queues data"), help)
    })
}

/// Is the metric measured of anything that the subject's pattern matches?
pub(super) fn check(subject: &Subject, metric: &str, plan: &Plan) -> Result<(), Fault> {
    let measured = match subject {
        Subject::Flow(pattern) => {
            plan.flows().filter(|f| matches(pattern, &f.id)).any(|f| of_flow(&f, metric, plan))
        }
        Subject::Link(pattern) => links(plan).any(|(name, l)| matches(pattern, &name) && of_link(l, metric)),
        Subject::Class(pattern) => {
            let classes = plan.gateway.iter().flat_map(|g| &g.classes);
            classes.filter(|c| matches(pattern, &c.name)).any(|c| metric == "bps" || c.ack.is_some())
        }
        Subject::Gateway => true,
    };
    if measured {
        return Ok(());
    }
    let (name, why) = match subject {
        Subject::Flow(name) => (name.as_str(), why_not_of_flow(metric)),
        Subject::Link(name) => (name.as_str(), why_not_of_link(metric)),
        Subject::Class(name) => (name.as_str(), "the class has no `ack` policy"),
        Subject::Gateway => ("gateway", ""),
    };
    Err(Fault::new(format!("`{metric}` of `{name}` is never measured"), why))
}

fn of_flow(flow: &Flow, metric: &str, plan: &Plan) -> bool {
    let tcp = matches!(flow.group.protocol, Protocol::Tcp { .. });
    match metric.split('.').next().unwrap_or(metric) {
        "loss" => !tcp,
        "retransmits" | "rtos" | "rtt_us" => tcp,
        "fct_s" => flow.bytes.is_some(),
        "target_bps" => plan.gateway.is_some(),
        "back" => flow.group.kind != Kind::Bulk,
        "exchanges" => matches!(flow.group.kind, Kind::Request { .. }),
        _ => true,
    }
}

fn why_not_of_flow(metric: &str) -> &'static str {
    match metric.split('.').next().unwrap_or(metric) {
        "loss" => "of TCP there is `retransmits`",
        "fct_s" => "flows without `bytes` end with their time",
        "target_bps" => "there is no `[gateway]` that sets a rate",
        "back" => "it needs kind = \"two-way\" or \"request\"",
        "exchanges" => "it needs kind = \"request\"",
        _ => "of UDP there is `loss`",
    }
}

fn of_link(link: &Link, metric: &str) -> bool {
    match metric.split('.').next().unwrap_or(metric) {
        "utilization" | "queue_us" | "queue_packets" | "queue_bytes" => link.rate.is_some(),
        "marks" => link.mark.is_some(),
        "drops" => !link.is_bare(),
        _ => true,
    }
}

fn why_not_of_link(metric: &str) -> &'static str {
    match metric.split('.').next().unwrap_or(metric) {
        "marks" => "the link has no `mark`",
        "drops" => "the link is bare: it has neither rate, delay nor loss",
        _ => "the link has no `rate`, and without one no queue",
    }
}

/// Every link with the name that results have for it.
fn links(plan: &Plan) -> impl Iterator<Item = (String, &Link)> {
    let path = [&plan.path.lan, &plan.path.lan, &plan.path.wan_out, &plan.path.wan_back];
    let hosts = plan.hosts.iter().flat_map(|h| (0..h.count).flat_map(move |_| [&h.up, &h.down]));
    plan.links().into_iter().zip(path.into_iter().chain(hosts))
}
