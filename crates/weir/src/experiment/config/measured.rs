//! Refusal of checks on a value that is never measured: they could only hold by accident.

use super::diag::Fault;
use crate::experiment::plan::{has, matches, Flow, Kind, Plan, Subject};
use crate::result::metric::Needs;
use weir_core::link::{self, Aqm};

/// Drops by a queue's active management.
const AQM_DROPS: &str = "drops.aqm";

/// Checks that the metric, which needs `needs`, is measured of something that the subject's pattern matches.
pub(super) fn check(subject: &Subject, metric: &str, needs: Needs, plan: &Plan) -> Result<(), Fault> {
    let measured = match subject {
        Subject::Flow(pattern) => {
            plan.flows().filter(|f| matches(pattern, &f.id)).any(|f| of_flow(&f, needs, plan))
        }
        Subject::Link(pattern) => {
            let drops = |l: &link::Config| metric != AQM_DROPS || l.aqm != Aqm::None;
            links(plan).any(|(name, l)| matches(pattern, &name) && has(l, needs) && drops(l))
        }
        Subject::Class(pattern) => {
            let classes = plan.gateway.iter().flat_map(|g| &g.classes);
            classes.filter(|c| matches(pattern, &c.name)).any(|c| match needs {
                Needs::Policy => c.ack.is_some(),
                Needs::FlowMin => {
                    let shared = || c.ack?.release.share()?.flow_min.map(drop);
                    c.share.is_some_and(|share| share.flow_min.is_some()) || shared().is_some()
                }
                Needs::Pace => c.share.is_some_and(|share| share.pace.is_some()),
                Needs::Queue => c.share.is_some_and(|share| share.queue.is_some()),
                _ => true,
            })
        }
        Subject::Gateway => true,
    };
    if measured {
        return Ok(());
    }
    let name = match subject {
        Subject::Flow(name) | Subject::Link(name) | Subject::Class(name) => name.as_str(),
        Subject::Gateway => "gateway",
    };
    let why = if metric == AQM_DROPS { "the link has no `aqm`" } else { why_not(needs) };
    Err(Fault::new(format!("`{metric}` of `{name}` is never measured"), why))
}

fn of_flow(flow: &Flow, needs: Needs, plan: &Plan) -> bool {
    let reliable = flow.group.protocol.is_reliable();
    match needs {
        Needs::Udp => !reliable,
        Needs::Tcp => reliable,
        Needs::LastByte => flow.bytes.is_some(),
        Needs::Gateway => plan.gateway.is_some(),
        Needs::BothWays => flow.group.kind != Kind::Bulk,
        Needs::Requests => matches!(flow.group.kind, Kind::Request { .. }),
        Needs::Pauses => flow.group.bursts.is_some(),
        _ => true,
    }
}

fn why_not(needs: Needs) -> &'static str {
    match needs {
        Needs::Udp => "TCP and QUIC have `retransmits`",
        Needs::Tcp => "of UDP there is `loss`",
        Needs::LastByte => "flows without `bytes` end with their time",
        Needs::Gateway => "there is no `[gateway]` that sets a rate",
        Needs::BothWays => "it needs kind = \"two-way\" or \"request\"",
        Needs::Requests => "it needs kind = \"request\"",
        Needs::Pauses => "it needs a `burst` and a `pause`",
        Needs::Rate => "the link has no `rate`, and without one no queue",
        Needs::Marking => "the link has no `mark`",
        Needs::Filter => "the link has no `ack_filter`",
        Needs::Emulation => "the link is bare: it has neither rate, delay nor loss",
        Needs::Policy => "the class has no `ack` policy",
        Needs::FlowMin => "the class has no `flow_min`",
        Needs::Queue => "the class has no queue",
        Needs::Pace => "the class is not paced",
        Needs::Lab | Needs::Nothing => "",
    }
}

/// Returns all links with their names in results.
fn links(plan: &Plan) -> impl Iterator<Item = (String, &link::Config)> {
    let path = match &plan.graph {
        None => vec![&plan.path.lan, &plan.path.lan, &plan.path.wan_out, &plan.path.wan_back],
        Some(graph) => graph.directions().map(|(_, link)| link).collect(),
    };
    let hosts = plan.hosts.iter().flat_map(|h| (0..h.count).flat_map(move |_| [&h.up, &h.down]));
    plan.links().into_iter().zip(path.into_iter().chain(hosts))
}

#[cfg(test)]
mod tests {
    use crate::experiment::config::{experiment, Source};

    #[test]
    fn drops_by_active_management_need_some() {
        let accepted = |link: &str, reason: &str| {
            let text = format!(
                "name = 't'\nduration = '1s'\npath.wan = {{ rate = '1Mbit', {link} }}\n[[flow]]\nid = 'f'
                [[expect]]\nwhat = 'link.wan.out.drops.{reason}'\nop = 'at_most'\ntarget = 0"
            );
            let parsed = experiment::parse(&Source::new("t.toml", text));
            parsed.map(drop).map_err(|errors| errors.to_string())
        };
        assert!(accepted("", "aqm").unwrap_err().contains("the link has no `aqm`"));
        assert_eq!((accepted("aqm = 'codel'", "aqm"), accepted("", "queue_full")), (Ok(()), Ok(())));
    }
}
