use super::*;
use crate::result::{ClassResult, FlowResult, MadeBy, Status};

fn run(world: World, goodput: f64, fct: Option<f64>) -> RunResult {
    let flow = |id: &str, goodput_bps, fct_s| FlowResult {
        id: id.into(),
        class: "all".into(),
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

fn given(name: &str, runs: Vec<RunResult>) -> Given {
    Given { name: name.into(), runs }
}

fn lab(goodput: f64) -> RunResult {
    run(World::Lab, goodput, None)
}

fn sim(goodput: f64) -> RunResult {
    run(World::Sim, goodput, None)
}

#[test]
fn the_simulator_against_the_median_of_labs() {
    let labs = [9e6, 10e6, 14e6].map(|bps| given("lab.json", vec![lab(bps)]));
    let mut all = vec![given("sim.json", vec![sim(10.4e6)])];
    all.extend(labs);
    let c = compare(&all, Bounds::default()).unwrap();
    assert_eq!(c.names, ["lab", "sim"]);
    let [a, b] = &c.settings[0].flows[0];
    assert_eq!(a.values.get("goodput_bps"), Some(Spread { median: 10e6, low: 9e6, high: 14e6 }));
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
        [given("l", vec![two(World::Lab, [8e6, 12e6])]), given("s", vec![two(World::Sim, [11e6, 9e6])])];
    let c = compare(&all, Bounds::default()).unwrap();
    assert_eq!((c.outside.len(), c.settings[0].flows.len(), c.settings[0].groups.len()), (0, 2, 1));
    let all = [all[0].clone(), given("s", vec![two(World::Sim, [9e6, 9e6])])];
    assert_eq!(compare(&all, Bounds::default()).unwrap().outside[0].group, "up");
}

#[test]
fn bounds_hold_on_both_sides() {
    let judged = |bps: f64| {
        let all = [given("l", vec![lab(10e6)]), given("s", vec![sim(bps)])];
        compare(&all, Bounds::default()).unwrap().outside
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
        let all = [given("l", vec![run(World::Lab, 1e6, lab)]), given("s", vec![run(World::Sim, 1e6, sim)])];
        compare(&all, Bounds::default()).unwrap().outside
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
    assert_eq!(compare(&all, Bounds::default()).unwrap().outside[0].off, None);
    let all = [given("l", vec![lab(0.0)]), given("s", vec![sim(0.0)])];
    assert_eq!(compare(&all, Bounds::default()).unwrap().outside, []);
}

fn goodput(bound: f64) -> Bounds {
    Bounds { goodput: Some(bound), ..Bounds::default() }
}

#[test]
fn flags_replace_what_is_declared() {
    let all = [given("l", vec![lab(10e6)]), given("s", vec![sim(11e6)])];
    assert_eq!(compare(&all, Bounds::default()).unwrap().outside.len(), 1);
    assert_eq!(compare(&all, goodput(0.2)).unwrap().outside, []);
    let mut bare = all.to_vec();
    bare.iter_mut().flat_map(|g| &mut g.runs).for_each(|r| r.parity = None);
    let c = compare(&bare, Bounds::default()).unwrap();
    assert_eq!((c.bounds, c.outside.len()), (Bounds::default(), 0));
    assert_eq!(compare(&bare, goodput(0.05)).unwrap().outside.len(), 1);
    assert_eq!(compare(&bare, Bounds { fct: Some(0.05), ..Bounds::default() }).unwrap().outside, []);
}

#[test]
fn one_world_alone_is_compared_with_its_first_file() {
    let all = [given("old", vec![sim(10e6)]), given("new", vec![sim(11e6)]), given("newer", vec![sim(13e6)])];
    let c = compare(&all, Bounds::default()).unwrap();
    assert_eq!(c.names, ["A", "B"]);
    assert_eq!(c.settings[0].flows[0][1].values.get("goodput_bps").unwrap().median, 12e6);
}

#[test]
fn sweeps_are_compared_setting_by_setting() {
    let with = |n: &str, bps| RunResult { settings: [("n".to_string(), n.to_string())].into(), ..sim(bps) };
    let a = given("a", vec![with("1", 1e6), with("2", 2e6)]);
    let b = given("b", vec![with("2", 2e6), with("1", 3e6)]);
    let c = compare(&[a.clone(), b], Bounds::default()).unwrap();
    let firsts: Vec<f64> =
        c.settings.iter().map(|s| s.flows[0][1].values.get("goodput_bps").unwrap().median).collect();
    assert_eq!(firsts, [3e6, 2e6]);
    assert_eq!((c.outside.len(), c.outside[0].settings["n"].as_str()), (1, "1"));
    let error = compare(&[a, given("b", vec![with("1", 1e6)])], Bounds::default()).unwrap_err();
    assert_eq!(error, "B has no run with n = 2");
}

#[test]
fn what_does_not_go_together() {
    let said = |files: &[Given]| compare(files, Bounds::default()).unwrap_err();
    let one = given("a.json", vec![sim(1e6)]);
    assert_eq!(said(std::slice::from_ref(&one)), "one file alone: there is nothing to compare it with");
    let other = RunResult { experiment: "other".into(), ..sim(1e6) };
    assert_eq!(
        said(&[one.clone(), given("b.json", vec![other])]),
        "b.json is of another experiment, \"other\", than a.json, \"pair\""
    );
    let cut = RunResult { status: Status::Interrupted, ..sim(1e6) };
    assert!(said(&[one.clone(), given("b.json", vec![cut])]).starts_with("b.json: the run was interrupted"));
    let mut fewer = sim(1e6);
    fewer.flows.pop();
    let error = said(&[one.clone(), given("b.json", vec![fewer])]);
    assert_eq!(error, "the flows are not the same: only one side has `side.0`");
    let edited = RunResult { made_by: MadeBy { config_sha256: "x".into(), ..MadeBy::default() }, ..sim(1e6) };
    assert!(compare(&[one, given("b.json", vec![edited])], Bounds::default()).unwrap().edited);
}

#[test]
fn names_in_json_are_flat() {
    let labs = [lab(9e6), lab(10e6)].map(|run| given("lab.json", vec![run]));
    let c = compare(&labs, Bounds::default()).unwrap();
    let row = serde_json::to_value(&c.settings[0].flows[0][0]).unwrap();
    let keys: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
    // serde_json sorts them here.
    let want = ["fct_s", "goodput_bps", "id", "retransmits", "rtos", "rtt_p50_us", "rtt_p99_us"];
    assert_eq!((keys.as_slice(), row["fct_s"].is_null()), (want.as_slice(), true));
}
