//! Measures of the lab whose value a path or an early end could falsify.

use super::life::{helper_of, interrupt, traffic_of, wait_until};
use super::{holds, id, judged, options, root, run, turn, without_faults};
use std::time::Duration;
use weir::experiment::config::{experiment, Source};
use weir::experiment::plan::Plan;
use weir::report::compare::{compare, Bounds, ResultFile};
use weir::report::expect;
use weir::result::{Backend, Document, RunResult, Status};

fn plan(text: &str) -> Plan {
    let parsed = experiment::parse(&Source::new("experiment", text)).unwrap_or_else(|e| panic!("{e}"));
    parsed.plan_for(Backend::Lab).unwrap_or_else(|e| panic!("{e}"))
}

/// Half of the datagrams that get through come twice. A datagram counts once: the loss is what the link drops
/// of those that enter it, and the goodput is at most the sender's rate.
#[test]
fn datagrams_that_come_twice_count_once() {
    let _turn = turn();
    if !root() {
        return;
    }
    let plan = plan(
        "name = 'twice'\nduration = '4s'\n[path]\nrtt = '10ms'\n\
         [path.wan.out]\nrate = '100Mbit'\nloss = '10%'\nduplicate = '50%'\n[path.wan.back]\n\
         [[flow]]\nid = 'a'\nprotocol = 'udp'\nrate = '4Mbit'\nduration = '3s'\n",
    );
    judged("datagrams twice", || {
        let outcome = run(&plan, &options(&id("twice")));
        without_faults(&outcome)?;
        let flow = &outcome.result.flows[0];
        let link = outcome.result.links.iter().find(|l| l.name == "wan.out").unwrap();
        let dropped: u64 = link.drops.values().sum();
        // 4 Mbit/s of 1472 bytes, for 3 s.
        let sent = 4e6 * 3.0 / 8.0 / 1472.0;
        let seen = format!("loss {:?}, {dropped} dropped of {sent}, {} bit/s", flow.loss, flow.goodput_bps);
        let loss = flow.loss.unwrap();
        holds((loss - dropped as f64 / sent).abs() < 0.01, &seen)?;
        holds(flow.goodput_bps <= 4.02e6 * (1.0 - loss), &seen)
    });
}

/// An answer that takes longer than the run: the request has waited for all of it, and no bound below that
/// holds.
#[test]
fn an_unanswered_request_has_waited() {
    let _turn = turn();
    if !root() {
        return;
    }
    let plan = plan(
        "name = 'waits'\nduration = '2s'\n[path]\nrtt = '10ms'\nwan = { rate = '1Mbit', queue = '50p' }\n\
         [[flow]]\nid = 'a'\nkind = 'request'\nrequest = '200B'\nresponse = '10MB'\n\
         [[expect]]\nwhat = 'flow.a.*.exchanges.latency_us.p50'\nop = 'at_most'\ntarget = '1s'\n",
    );
    judged("an unanswered request", || {
        let mut outcome = run(&plan, &options(&id("waits")));
        without_faults(&outcome)?;
        let exchanges = outcome.result.flows[0].exchanges.unwrap();
        assert_eq!(exchanges.count, 0);
        let waited = exchanges.under_way_us.unwrap();
        assert_eq!(exchanges.latency_us.p50, waited);
        holds((1_500_000..=2_100_000).contains(&waited), waited)?;
        expect::conclude(&plan, &mut outcome.result);
        let check = &outcome.result.expects[0];
        holds(!check.ok && check.what.contains("latency"), check)
    });
}

/// Two runs, of which the second is interrupted: the result is read, the first run is whole and compared, and
/// of the second a flow that had not begun is left out.
#[test]
fn an_interrupted_run_leaves_the_one_before_it_whole() {
    let _turn = turn();
    if !root() {
        return;
    }
    let text =
        "name = 'cut'\nduration = '4s'\n[path]\nrtt = '10ms'\nwan = { rate = '5Mbit', queue = '50p' }\n\
                [[flow]]\nid = 'a'\n[[flow]]\nid = 'late'\nstart = '3s'\n";
    judged("an interrupted run", || {
        let mut child = helper_of(&id("cut"), text, &["--runs", "2"]);
        for traffic in [2, 0, 2] {
            wait_until("a run begins or ends", || traffic_of(child.id()) == traffic);
        }
        std::thread::sleep(Duration::from_millis(1_500));
        let said = interrupt(&mut child).to_string();
        let runs = Document::parse(&said).unwrap().runs();
        let flows = |run: &RunResult| run.flows.iter().map(|f| f.id.clone()).collect::<Vec<_>>();
        assert_eq!(runs.len(), 2);
        assert_eq!(flows(&runs[0]), ["a.0", "late.0"]);
        holds((runs[0].status, runs[1].status) == (Status::Ok, Status::Interrupted), &said)?;
        holds(flows(&runs[1]) == ["a.0"], flows(&runs[1]))?;
        let file = |runs: &[RunResult]| ResultFile { name: "cut".into(), runs: runs.to_vec() };
        let compared = compare(&[file(&runs), file(&runs[..1])], Bounds::default(), false).unwrap();
        assert_eq!((compared.left_out.len(), compared.outside.len()), (1, 0));
        Ok(())
    });
}
