use super::*;
use crate::report::table;
use crate::result::metric::{Found, Measured};
use crate::result::{ClassResult, FlowResult, MadeBy, Status};

fn run(world: Backend, goodput: f64, fct: Option<f64>) -> RunResult {
    let flow = |id: &str, goodput_bps: f64, fct_s| FlowResult {
        id: id.into(),
        class: "all".into(),
        end_s: 10.0,
        bytes: (goodput_bps / 8.0 * 10.0) as u64,
        goodput_bps,
        fct_s,
        retransmits: 4,
        ..FlowResult::default()
    };
    RunResult {
        experiment: "pair".into(),
        world,
        parity: Some(Parity { goodput: 0.05, fct: 0.10 }),
        flows: vec![flow("up.0", goodput, fct), flow("side.0", 10e6, None)],
        classes: vec![ClassResult { name: "all".into(), ..ClassResult::default() }],
        ..RunResult::default()
    }
}

fn given(name: &str, runs: Vec<RunResult>) -> ResultFile {
    ResultFile { name: name.into(), runs }
}

fn lab(goodput: f64) -> RunResult {
    run(Backend::Lab, goodput, None)
}

fn sim(goodput: f64) -> RunResult {
    run(Backend::Sim, goodput, None)
}

#[test]
fn the_simulator_against_the_median_of_labs() {
    let labs = [9e6, 10e6, 14e6].map(|bps| given("lab.json", vec![lab(bps)]));
    let mut all = vec![given("sim.json", vec![sim(10.4e6)])];
    all.extend(labs);
    let c = compare(&all, Bounds::default(), false).unwrap();
    assert_eq!(c.names, ["lab", "sim"]);
    let [a, b] = &c.settings[0].flows[0];
    assert_eq!(
        a.values.get("goodput_bps"),
        Some(Spread { median: 10e6, low: 9e6, high: 14e6, measured: None })
    );
    assert!((off(a.values.get("goodput_bps"), b.values.get("goodput_bps")).unwrap() - 0.04).abs() < 1e-12);
    assert_eq!(c.settings[0].runs, [3, 1]);
    assert_eq!(c.outside, []);
    // The class: 20 Mbit/s in the middle lab, 20.4 in the simulator; four retransmissions a flow.
    let [a, b] = &c.settings[0].classes[0];
    assert_eq!(
        (a.values.get("goodput_bps").unwrap().median, b.values.get("goodput_bps").unwrap().median),
        (20e6, 20.4e6)
    );
    assert_eq!(a.values.get("retransmits").unwrap().median, 8.0);
    assert_eq!(c.settings[0].groups.iter().map(|g| g[1].id.as_str()).collect::<Vec<_>>(), ["up", "side"]);
}

/// 8 and 12 Mbit/s in one world, 11 and 9 in the other: the flows of a group stand for each other.
#[test]
fn groups_are_judged_by_their_mean() {
    let two = |world, bps: [f64; 2]| {
        let mut r = run(world, bps[0], None);
        r.flows[1].id = "up.1".into();
        r.flows[1].goodput_bps = bps[1];
        r
    };
    let all =
        [given("l", vec![two(Backend::Lab, [8e6, 12e6])]), given("s", vec![two(Backend::Sim, [11e6, 9e6])])];
    let c = compare(&all, Bounds::default(), false).unwrap();
    assert_eq!((c.outside.len(), c.settings[0].flows.len(), c.settings[0].groups.len()), (0, 2, 1));
    let all = [all[0].clone(), given("s", vec![two(Backend::Sim, [9e6, 9e6])])];
    assert_eq!(compare(&all, Bounds::default(), false).unwrap().outside[0].group, "up");
}

#[test]
fn bounds_hold_on_both_sides() {
    let judged = |bps: f64| {
        let all = [given("l", vec![lab(10e6)]), given("s", vec![sim(bps)])];
        compare(&all, Bounds::default(), false).unwrap().outside
    };
    assert_eq!(judged(10.5e6), []);
    assert_eq!(judged(9.5e6), []);
    let far = judged(9.4e6);
    assert_eq!((far.len(), far[0].group.as_str(), far[0].what, far[0].bound), (1, "up", "goodput", 0.05));
    assert!((far[0].off.unwrap() + 0.06).abs() < 1e-12);
}

#[test]
fn completion_times() {
    let judged = |lab: Option<f64>, sim: Option<f64>| {
        let all =
            [given("l", vec![run(Backend::Lab, 1e6, lab)]), given("s", vec![run(Backend::Sim, 1e6, sim)])];
        compare(&all, Bounds::default(), false).unwrap().outside
    };
    assert_eq!(judged(Some(2.0), Some(2.2)), []);
    assert_eq!(judged(Some(2.0), Some(2.3)).len(), 1);
    assert_eq!(judged(None, None), []);
    // Complete on one side only.
    let far = judged(Some(2.0), None);
    assert_eq!((far.len(), far[0].what, far[0].off), (1, "fct", None));
}

#[test]
fn nothing_received_on_one_side_is_outside() {
    let all = [given("l", vec![lab(0.0)]), given("s", vec![sim(1e6)])];
    assert_eq!(compare(&all, Bounds::default(), false).unwrap().outside[0].off, None);
    let all = [given("l", vec![lab(0.0)]), given("s", vec![sim(0.0)])];
    assert_eq!(compare(&all, Bounds::default(), false).unwrap().outside, []);
}

fn goodput(bound: f64) -> Bounds {
    Bounds { goodput: Some(bound), ..Bounds::default() }
}

#[test]
fn flags_replace_what_is_declared() {
    let all = [given("l", vec![lab(10e6)]), given("s", vec![sim(11e6)])];
    assert_eq!(compare(&all, Bounds::default(), false).unwrap().outside.len(), 1);
    assert_eq!(compare(&all, goodput(0.2), false).unwrap().outside, []);
    let mut bare = all.to_vec();
    bare.iter_mut().flat_map(|g| &mut g.runs).for_each(|r| r.parity = None);
    let c = compare(&bare, Bounds::default(), false).unwrap();
    assert_eq!((c.bounds, c.outside.len()), (Bounds::default(), 0));
    assert_eq!(compare(&bare, goodput(0.05), false).unwrap().outside.len(), 1);
    assert_eq!(compare(&bare, Bounds { fct: Some(0.05), ..Bounds::default() }, false).unwrap().outside, []);
}

#[test]
fn one_world_alone_is_compared_with_its_first_file() {
    let all = [given("old", vec![sim(10e6)]), given("new", vec![sim(11e6)]), given("newer", vec![sim(13e6)])];
    let c = compare(&all, Bounds::default(), false).unwrap();
    assert_eq!(c.names, ["A", "B"]);
    assert_eq!(c.settings[0].flows[0][1].values.get("goodput_bps").unwrap().median, 12e6);
}

#[test]
fn sweeps_are_compared_setting_by_setting() {
    let with = |n: &str, bps| RunResult { settings: [("n".to_string(), n.into())].into(), ..sim(bps) };
    let a = given("a", vec![with("1", 1e6), with("2", 2e6)]);
    let b = given("b", vec![with("2", 2e6), with("1", 3e6)]);
    let c = compare(&[a.clone(), b], Bounds::default(), false).unwrap();
    let firsts: Vec<f64> =
        c.settings.iter().map(|s| s.flows[0][1].values.get("goodput_bps").unwrap().median).collect();
    assert_eq!(firsts, [3e6, 2e6]);
    assert_eq!((c.outside.len(), c.outside[0].settings["n"].to_string()), (1, "1".to_string()));
    let error = compare(&[a, given("b", vec![with("1", 1e6)])], Bounds::default(), false).unwrap_err();
    assert_eq!(error, "B has no run with n = 2");
}

#[test]
fn what_does_not_go_together() {
    let said = |files: &[ResultFile]| compare(files, Bounds::default(), false).unwrap_err();
    let one = given("a.json", vec![sim(1e6)]);
    assert_eq!(said(std::slice::from_ref(&one)), "one file alone: there is nothing to compare it with");
    let other = RunResult { experiment: "other".into(), ..sim(1e6) };
    assert_eq!(
        said(&[one.clone(), given("b.json", vec![other])]),
        "b.json is of another experiment, \"other\", than a.json, \"pair\""
    );
    let cut = RunResult { status: Status::Interrupted, ..sim(1e6) };
    let error = said(&[one.clone(), given("b.json", vec![cut])]);
    assert!(
        error.starts_with("there is nothing to compare: b.json: run 1, seed 0, was interrupted; "),
        "{error}"
    );
    let mut fewer = sim(1e6);
    fewer.flows.pop();
    let error = said(&[one.clone(), given("b.json", vec![fewer])]);
    assert_eq!(error, "the flows are not the same: only one side has `side.0`");
    let edited = RunResult { made_by: MadeBy { config_sha256: "x".into(), ..MadeBy::default() }, ..sim(1e6) };
    assert!(compare(&[one, given("b.json", vec![edited])], Bounds::default(), false).unwrap().edited);
}

#[test]
fn runs_that_were_cut_are_left_out_and_named() {
    let cut = RunResult { status: Status::Interrupted, seed: 7, ..sim(9e9) };
    let broken = RunResult { error: Some("no".into()), ..sim(9e9) };
    let files = [given("a", vec![sim(1e6)]), given("b", vec![sim(2e6), cut, sim(4e6), broken])];
    let c = compare(&files, Bounds::default(), false).unwrap();
    assert_eq!(c.left_out, ["b: run 2, seed 7, was interrupted", "b: run 4, seed 0, could not be made: no"]);
    assert_eq!(
        (c.settings[0].runs, c.settings[0].flows[0][1].values.get("goodput_bps").unwrap().median),
        ([1, 2], 3e6)
    );
}

/// Four flows end in A, after 2 s each; in B two do, after 1 s. B is not twice as fast.
#[test]
fn means_of_different_numbers_of_flows_are_not_judged() {
    let run = |ended: usize, fct: f64| {
        let flow = |k: usize| FlowResult {
            id: format!("f.{k}"),
            fct_s: (k < ended).then_some(fct),
            fct_at_least_s: (k >= ended).then_some(9.0),
            ..FlowResult::default()
        };
        RunResult { flows: (0..4).map(flow).collect(), ..RunResult::default() }
    };
    let bounds = Bounds { goodput: None, fct: Some(0.6) };
    let compared =
        |b, bounds| compare(&[given("a", vec![run(4, 2.0)]), given("b", vec![b])], bounds, false).unwrap();
    let c = compared(run(2, 1.0), Bounds { fct: Some(0.1), ..bounds });
    let measured = Some([Measured { n: 1, of: 1 }, Measured { n: 2, of: 4 }]);
    assert_eq!((c.outside.len(), c.outside[0].off, c.outside[0].measured), (1, None, measured));
    let b = c.settings[0].groups[0][1].values.get("fct_s").unwrap();
    assert_eq!((b.median, b.measured), (1.0, Some(Measured { n: 2, of: 4 })));
    // The difference in the ended shares is within the bound.
    assert!(compared(run(2, 1.0), bounds).outside.is_empty());
    let text = table::comparison(&c, false);
    assert!(text.contains("known of 100 % of the flows on one side and of 50 % on the other"), "{text}");
}

/// Ten flows end after 1 to 10 s, but the two longest had not ended after 5 s: the median stands, higher
/// quantiles are bounds.
#[test]
fn quantiles_of_flows_that_had_not_ended_are_bounds() {
    let found: Vec<Found> =
        (1..=8).map(|s| Found::Known(f64::from(s))).chain([Found::AtLeast(5.0); 2]).collect();
    let d = Distribution::of(&found).unwrap();
    assert_eq!((d.n, d.of, d.p50, d.at_least), (8, 10, 5.0, vec!["p90", "p99", "max"]));
}

#[test]
fn names_in_json_are_flat() {
    let labs = [lab(9e6), lab(10e6)].map(|run| given("lab.json", vec![run]));
    let c = compare(&labs, Bounds::default(), false).unwrap();
    let row = serde_json::to_value(&c.settings[0].flows[0][0]).unwrap();
    let keys: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
    // serde_json sorts them here.
    let want = ["fct_s", "goodput_bps", "id", "retransmits", "rtos", "rtt_p50_us", "rtt_p99_us"];
    assert_eq!((keys.as_slice(), row["fct_s"].is_null()), (want.as_slice(), true));
}

fn described(run: RunResult, cc: &str, kernel: &str, sack: &str) -> RunResult {
    let settings = [("net.ipv4.tcp_sack".to_string(), sack.to_string())].into();
    let mut run =
        RunResult { made_by: MadeBy { kernel: kernel.into(), settings, ..MadeBy::default() }, ..run };
    run.flows.iter_mut().for_each(|f| f.cc = cc.into());
    run
}

#[test]
fn runs_under_other_conditions_are_refused_unless_told() {
    let ours = given("a.json", vec![described(lab(1e6), "cubic", "6.1", "1")]);
    let same = given("b.json", vec![described(lab(1e6), "cubic", "6.1", "1")]);
    assert_eq!(compare(&[ours.clone(), same], Bounds::default(), false).unwrap().differences.len(), 0);
    let other = given("b.json", vec![described(lab(1e6), "bbr", "6.12", "0")]);
    let all = [ours.clone(), other];
    let want = [
        "the congestion control of up: cubic in a.json, bbr in b.json",
        "the congestion control of side: cubic in a.json, bbr in b.json",
        "the kernel: 6.1 in a.json, 6.12 in b.json",
        "net.ipv4.tcp_sack: 1 in a.json, 0 in b.json",
    ];
    let refused = compare(&all, Bounds::default(), false).unwrap_err();
    assert!(want.iter().all(|said| refused.contains(said)), "{refused}");
    assert!(refused.ends_with("--allow-differences compares them all the same"), "{refused}");
    assert_eq!(compare(&all, Bounds::default(), true).unwrap().differences, want);
    // Between worlds only the congestion control is compared.
    let simulated = described(sim(1e6), "cubic", "", "anything");
    assert!(compare(&[ours.clone(), given("s", vec![simulated.clone()])], Bounds::default(), false).is_ok());
    let simulated = described(sim(1e6), "reno", "", "1");
    assert!(compare(&[ours, given("s", vec![simulated])], Bounds::default(), false).is_err());
}

/// Settings of a sweep differ by intention.
#[test]
fn settings_of_a_sweep_are_no_differences() {
    let with = |cc: &str| RunResult {
        settings: [("flow.up.cc".to_string(), cc.into())].into(),
        ..described(sim(1e6), cc, "", "1")
    };
    let file = given("a", vec![with("reno"), with("cubic")]);
    let c = compare(&[file.clone(), file], Bounds::default(), false).unwrap();
    assert_eq!((c.differences.len(), c.settings.len()), (0, 2));
}

/// Values 1 to 10: of nearest rank, 10 % do not exceed 1, half 5, 90 % 9.
#[test]
fn groups_of_several_flows_have_distributions() {
    let ten = |world| {
        let flow = |k: u32| FlowResult {
            id: format!("web.{k}"),
            fct_s: Some(f64::from(k)),
            ..FlowResult::default()
        };
        let flows = (1..=10).rev().map(flow).collect();
        RunResult { flows, ..run(world, 1e6, None) }
    };
    let all = [given("l", vec![ten(Backend::Lab), ten(Backend::Lab)]), given("s", vec![ten(Backend::Sim)])];
    let c = compare(&all, Bounds::default(), false).unwrap();
    let fct = c.settings[0].distributions.iter().find(|d| d.metric == "fct_s").unwrap();
    let want = Distribution {
        n: 20,
        of: 20,
        at_least: vec![],
        min: 1.0,
        p10: 1.0,
        p50: 5.0,
        p90: 9.0,
        p99: 10.0,
        max: 10.0,
    };
    assert_eq!(
        (fct.group.as_str(), &fct.sides),
        ("web", &[Some(want.clone()), Some(Distribution { n: 10, of: 10, ..want })])
    );
    // No flow has a round-trip time, and a few flows no distribution.
    assert!(c.settings[0].distributions.iter().all(|d| !d.metric.starts_with("rtt")));
    let few = [given("l", vec![lab(1e6)]), given("s", vec![sim(1e6)])];
    assert!(compare(&few, Bounds::default(), false).unwrap().settings[0].distributions.is_empty());
}

/// Returns a run with a bulk flow and with flows of `web` that took these times.
fn drawn(seed: u64, fct: &[f64]) -> RunResult {
    let flow =
        |id: String, fct_s| FlowResult { id, end_s: 10.0, fct_s, retransmits: 1, ..FlowResult::default() };
    let web = fct.iter().enumerate().map(|(k, fct)| flow(format!("web.{k}"), Some(*fct)));
    RunResult {
        seed,
        drawn: vec!["web".into()],
        flows: std::iter::once(flow("bulk.0".into(), None)).chain(web).collect(),
        ..RunResult::default()
    }
}

fn ids(rows: &[[Row; 2]]) -> Vec<&str> {
    rows.iter().map(|[a, _]| a.id.as_str()).collect()
}

fn fct(rows: &[[Row; 2]], row: usize) -> [f64; 2] {
    rows[row].each_ref().map(|side| side.values.get("fct_s").unwrap().median)
}

/// `web.0` of one seed is another flow than that of another: 3 flows of 2 s on average, and 4 or none of 3 s.
#[test]
fn drawn_flows_of_other_seeds_are_compared_as_a_group() {
    let all = [
        given("a", vec![drawn(1, &[1.0, 2.0, 3.0])]),
        given("b", vec![drawn(2, &[]), drawn(3, &[2.0, 2.0, 4.0, 4.0])]),
    ];
    let c = compare(&all, Bounds { goodput: None, fct: Some(0.4) }, false).unwrap();
    let [one] = c.settings.as_slice() else { panic!("{c:?}") };
    assert_eq!((ids(&one.flows), ids(&one.groups)), (vec!["bulk.0"], vec!["bulk", "web"]));
    assert_eq!(fct(&one.groups, 1), [2.0, 3.0]);
    assert_eq!(one.apart, [Apart { group: "web".into(), flows: [[3, 3], [0, 4]], seeds: true }]);
    assert_eq!((c.outside.len(), c.outside[0].group.as_str(), c.outside[0].off), (1, "web", Some(0.5)));
    let text = table::comparison(&c, false);
    let said = "web: 3 flows in A, 0 to 4 in B; each seed draws others, so it is compared as a group";
    assert!(text.contains(said) && text.contains("\nweb  ") && !text.contains("web.0"), "{text}");
    // Flows that are not drawn are the same in all runs, or the runs do not go together.
    let mut given = all.to_vec();
    given.iter_mut().flat_map(|file| &mut file.runs).for_each(|run| run.drawn.clear());
    let error = compare(&given, Bounds::default(), false).unwrap_err();
    assert_eq!(error, "runs of the same world do not have the same flows: only one has `web.0`");
}

/// Flows of the same seed are the same ones. Of sources that wait for their flows, more may have begun.
#[test]
fn drawn_flows_of_the_same_seed_are_compared_one_by_one() {
    let compared = |a: RunResult, b: RunResult| {
        let c = compare(&[given("a", vec![a]), given("b", vec![b])], Bounds::default(), false).unwrap();
        (table::comparison(&c, false), c.settings.into_iter().next().unwrap())
    };
    let (_, same) = compared(drawn(1, &[1.0, 2.0]), drawn(1, &[2.0, 1.0]));
    assert_eq!((ids(&same.flows), same.apart.len()), (vec!["bulk.0", "web.0", "web.1"], 0));
    assert_eq!([fct(&same.flows, 1), fct(&same.flows, 2)], [[1.0, 2.0], [2.0, 1.0]]);
    let (_, other) = compared(drawn(1, &[1.0, 2.0]), drawn(2, &[2.0, 1.0]));
    assert_eq!((ids(&other.flows), other.apart[0].seeds), (vec!["bulk.0"], true));
    let (text, more) = compared(drawn(1, &[1.0, 3.0]), drawn(1, &[1.0]));
    assert_eq!((ids(&more.flows), fct(&more.groups, 1)), (vec!["bulk.0"], [2.0, 1.0]));
    let said = "web: 2 flows in A, 1 in B; how many begin depends on the run, so it is compared as a group";
    assert!(text.contains(said), "{text}");
}
