use super::aggregate::percentile;
use super::*;
use crate::experiment::config::{experiment, Source};
use crate::result::{Backend, ClassResult, Column, FlowResult, GatewayResult, LinkResult, MadeBy, Series};
use std::collections::BTreeMap;

const HEAD: &str = r#"
    name = "t"
    duration = "4s"
    path.wan = { rate = "100Mbit", loss = 0.01 }
    gateway.class = [{ name = "ten", ack = { preset = "ack-shaper", flow_rate = "10Mbit" } }]
    flow = [{ id = "ten", count = 2 }, { id = "other", start = "1s", bytes = "1GB" }]
"#;

fn plan(expect: &str) -> Plan {
    let text = format!("{HEAD}\n[[expect]]\n{expect}\n");
    experiment::parse(&Source::new("t.toml", text)).unwrap_or_else(|e| panic!("{e}")).plan
}

/// Bytes in a bin of 10 ms at 10 Mbit/s.
const FULL: u64 = 12_500;

/// Builds a result with `ten.0` and `ten.1` on their rate. `ten.1` has one bin of 20 ms' worth at 2.5 s and
/// nothing in the next bin. `other.0` has no set rate and gets half of it from 1 s on.
fn result() -> RunResult {
    let even = vec![FULL; 400];
    let mut uneven = even.clone();
    uneven[250] = 2 * FULL;
    uneven[251] = 0;
    let mut other = vec![FULL / 2; 400];
    other[..100].fill(0);
    let bin = Duration::from_millis(10);
    let flow = |id: &str, start_s: f64, target_bps, bytes: &[u64]| FlowResult {
        id: id.into(),
        target_bps,
        start_s,
        end_s: 4.0,
        bytes: bytes.iter().sum(),
        goodput_bps: bytes.iter().sum::<u64>() as f64 * 8.0 / (4.0 - start_s),
        fct_s: None,
        rtos: 1,
        ..Default::default()
    };
    let flows = vec![
        flow("ten.0", 0.0, Some(10_000_000), &even),
        flow("ten.1", 0.0, Some(10_000_000), &uneven),
        flow("other.0", 1.0, None, &other),
    ];
    let drops = BTreeMap::from([("queue_full".to_string(), 3), ("random_loss".to_string(), 4)]);
    RunResult {
        schema: crate::result::SCHEMA,
        experiment: "t".into(),
        world: Backend::Lab,
        status: Status::Ok,
        seed: 1,
        duration_s: 4.0,
        wall_s: 5.0,
        packets: 0,
        made_by: MadeBy::default(),
        expects: vec![],
        gateway: Some(GatewayResult::default()),
        flows,
        classes: vec![ClassResult { name: "ten".into(), held_ack_peak_bytes: 1000, ..Default::default() }],
        links: vec![LinkResult { name: "wan.out".into(), drops, ..Default::default() }],
        series: BTreeMap::from([
            ("ten.0".into(), Series::received(bin, &even)),
            ("ten.1".into(), Series::received(bin, &uneven)),
            ("other.0".into(), Series::received(bin, &other)),
        ]),
        ..RunResult::default()
    }
}

fn check_one(expect: &str) -> ExpectResult {
    let plan = plan(expect);
    assert_eq!(plan.bin, Duration::from_millis(10));
    evaluate(&plan, &result()).remove(0)
}

/// Asserts that the check holds with `good` in place of `@` and fails with `bad`.
fn turns(expect: &str, good: &str, bad: &str) {
    for (value, ok) in [(good, true), (bad, false)] {
        let got = check_one(&expect.replace('@', value));
        assert_eq!(got.ok, ok, "{value}: {got:?}");
    }
}

#[test]
fn averages() {
    let e = "what = 'flow.ten.*.goodput_bps'\nfrom = '2s'\nop = 'within'\ntarget = '@'\ntolerance = '0.5%'";
    turns(e, "10Mbit", "9.9Mbit");
    turns(e, "10.04Mbit", "10.06Mbit");
    turns(e, "flow_rate", "5Mbit");
    // A flow that starts late is averaged over its own life.
    turns("what = 'flow.other.0.goodput_bps'\nop = 'equals'\ntarget = '@'", "5Mbit", "3.75Mbit");
    let until =
        "what = 'flow.ten.1.goodput_bps'\nfrom = '2500ms'\nuntil = '2510ms'\nop = 'equals'\ntarget = '@'";
    turns(until, "20Mbit", "10Mbit");
}

/// From 2 s on "ten" has 10 Mbit/s in each flow, and "other" 5.
#[test]
fn parts_of_another_measure() {
    let e = "what = 'flow.other.0.goodput_bps'\nof = 'flow.ten.*.goodput_bps'\nfrom = '2s'\nop = 'at_most'\ntarget = '@'";
    turns(e, "50.5%", "49.5%");
}

/// In the baseline "ten.0" and "ten.1" have 5 Mbit/s each, in the run itself 10.
#[test]
fn parts_of_a_baseline() {
    let expect = |target: &str| {
        let text = format!(
            "{HEAD}\n[baseline]\nslow = {{ \"path.wan.rate\" = \"10Mbit\" }}\n[[expect]]\nwhat = 'flow.ten.*.goodput_bps'\n\
             aggregate = 'sum'\nfrom = '2s'\nof = 'baseline.slow'\nop = 'at_most'\ntarget = '{target}'"
        );
        experiment::parse(&Source::new("t.toml", text)).unwrap_or_else(|e| panic!("{e}")).plan
    };
    let mut run = result();
    let plan = expect("250%");
    let nothing = &evaluate(&plan, &run)[0];
    assert_eq!((nothing.ok, nothing.at.as_str()), (false, "nothing to compare with"));
    let mut slow = result();
    let half = Series::received(Duration::from_millis(10), &[FULL / 2; 400]);
    for id in ["ten.0", "ten.1"] {
        slow.series.insert(id.into(), half.clone());
    }
    run.baselines.insert("slow".into(), slow);
    let found = &evaluate(&plan, &run)[0];
    assert_eq!((found.ok, found.bound, found.found), (true, 25_000_000.0, Some(20_000_000.0)));
    assert_eq!(found.what, "sum of flow.ten.*.goodput_bps from 2s <= 250% of baseline slow");
    assert!(!evaluate(&expect("150%"), &run)[0].ok);
    // Anything is at least a part of nothing.
    let mut plan = expect("90%");
    plan.expects[0].op = Op::AtLeast;
    assert!(evaluate(&plan, &run)[0].ok);
    let slow = run.baselines.get_mut("slow").unwrap();
    for id in ["ten.0", "ten.1"] {
        slow.series.insert(id.into(), Series::received(Duration::from_millis(10), &[0; 400]));
    }
    let of_nothing = &evaluate(&plan, &run)[0];
    assert_eq!(
        (of_nothing.ok, of_nothing.at.as_str()),
        (false, "what it is compared with is 0, so that anything would do")
    );
}

/// From 2 s on the flows of "ten" have 10 Mbit/s each and "other" 5: half of both the mean and the largest, a
/// quarter of the sum.
#[test]
fn parts_of_what_several_values_are_together() {
    let e = "what = 'flow.other.*.goodput_bps'\nof = 'flow.ten.*.goodput_bps'\nfrom = '2s'\nop = 'equals'\ntarget = '@'";
    turns(&format!("{e}\naggregate = 'max'"), "50%", "25%");
    turns(&format!("{e}\naggregate = 'sum'"), "25%", "50%");
}

#[test]
fn percentiles_are_nearest_ranks() {
    let rank = |n: u32, percent| {
        let samples: Vec<Sample> = (1..=n).rev().map(|v| Sample::new(v.into(), String::new())).collect();
        percentile(&samples, percent, |s| s.value)
    };
    assert_eq!(
        (rank(1, 99), rank(4, 50), rank(5, 50), rank(100, 99), rank(101, 99)),
        (1.0, 2.0, 3.0, 99.0, 100.0)
    );
    // 1 for 98 s, 7 for one second, 9 for another.
    let held = [(9.0, 1.0), (1.0, 98.0), (7.0, 1.0)];
    let samples = held.map(|(value, weight)| Sample { weight, ..Sample::new(value, String::new()) });
    assert_eq!([98, 99, 100].map(|p| percentile(&samples, p, |s| s.value)), [1.0, 7.0, 9.0]);
}

/// Each of "ten" has received 400 × 12,500 bytes, "other" 300 × 6,250.
#[test]
fn flows_of_a_size() {
    let found = |min: u64, max: u64| {
        let what = "what = 'flow.*.bytes'\naggregate = 'sum'\nop = 'equals'\ntarget = 0";
        check_one(&format!("{what}\nsizes = [{min}, {max}]")).found
    };
    assert_eq!(found(5_000_000, 5_000_000), Some(10_000_000.0));
    assert_eq!(found(1_875_000, 4_999_999), Some(1_875_000.0));
    assert_eq!(found(0, 9_000_000), Some(11_875_000.0));
    assert_eq!(found(5_000_001, 9_000_000), None);
}

#[test]
fn intervals() {
    // 2.5 to 2.51 s holds twice the rate; a second around it does not.
    let e = "what = 'flow.ten.*.interval_bps'\nfrom = '2s'\nop = 'within'\ntarget = 'flow_rate'\ntolerance = '3%'\nevery = '@'";
    turns(e, "1s", "10ms");
    let found = check_one(&e.replace('@', "10ms"));
    assert_eq!(found.at, "ten.1, 2.500 to 2.510 s");
    assert_eq!((found.found, found.bound), (Some(20_000_000.0), 10_300_000.0));
}

#[test]
fn windows() {
    let e = "what = 'flow.ten.1.max_bps'\nwindow = '@'\nfrom = '1s'\nop = 'at_most'\ntarget = 'flow_rate'\ntolerance = '5%'";
    turns(e, "400ms", "100ms");
    turns(
        "what = 'flow.ten.1.min_bps'\nwindow = '400ms'\nop = 'at_least'\ntarget = '@'",
        "9.75Mbit",
        "9.76Mbit",
    );
}

#[test]
fn fields_and_aggregates() {
    turns("what = 'link.wan.out.drops'\nop = 'equals'\ntarget = @", "7", "0");
    turns("what = 'link.wan.out.drops.queue_full'\nop = 'at_most'\ntarget = @", "3", "2");
    turns("what = 'link.*.drops.shutdown'\nop = 'equals'\ntarget = @", "0", "1");
    turns("what = 'class.ten.held_ack_peak_bytes'\nop = 'at_most'\ntarget = '@'", "1kB", "999B");
    turns("what = 'gateway.frames.held'\nop = 'at_least'\ntarget = @", "0", "1");
    turns("what = 'flow.*.rtos'\naggregate = 'sum'\nop = 'at_most'\ntarget = @", "3", "2");
    turns(
        "what = 'flow.*.goodput_bps'\naggregate = 'sum'\nfrom = '1s'\nop = 'equals'\ntarget = '@'",
        "25Mbit",
        "24Mbit",
    );
    // 10, 10 and 5 Mb/s: the root of (2 × 1.667² + 3.333²) / 3.
    turns(
        "what = 'flow.*.goodput_bps'\naggregate = 'deviation'\nfrom = '1s'\nop = 'at_most'\ntarget = '@'",
        "2358kbit",
        "2357kbit",
    );
    turns("what = 'flow.*.goodput_bps'\naggregate = 'min'\nop = 'at_least'\ntarget = '@'", "5Mbit", "6Mbit");
}

/// `ten.0` has acknowledged 100 bytes from 0.5 s and 300 from 1 s on, `ten.1` 1000 from 3 s on; a queue
/// holds 4 packets for 1 s, then 1 for 3 s.
fn with_series(expect: &str) -> ExpectResult {
    let text = format!("series = ['acked', 'queue']\n{HEAD}\n[[expect]]\n{expect}\n");
    let parsed = experiment::parse(&Source::new("t.toml", text)).unwrap_or_else(|e| panic!("{e}"));
    let mut run = result();
    let series = |name: &str, t_s: &[f64], values: &[f64]| Series {
        t_s: t_s.to_vec(),
        columns: BTreeMap::from([(name.to_string(), Column(values.to_vec()))]),
    };
    run.series.insert("ten.0".into(), series("acked_bytes", &[0.5, 1.0], &[100.0, 300.0]));
    run.series.insert("ten.1".into(), series("acked_bytes", &[3.0], &[1000.0]));
    run.series.insert("wan.out".into(), series("queue_packets", &[0.0, 1.0], &[4.0, 1.0]));
    evaluate(&parsed.plan, &run).remove(0)
}

#[test]
fn series_at_a_time() {
    let found = |what: &str, at: &str| {
        with_series(&format!("what = '{what}'\nat = '{at}'\nop = 'at_least'\ntarget = 0")).found
    };
    for (at, value) in [("500ms", 100.0), ("999999999ns", 100.0), ("1s", 300.0), ("4s", 300.0)] {
        assert_eq!(found("flow.ten.0.acked_bytes", at), Some(value), "{at}");
    }
    // Before the first row there is nothing, which fails.
    assert_eq!(found("flow.ten.0.acked_bytes", "499ms"), None);
    assert_eq!(found("link.wan.out.queue_packets", "0s"), Some(4.0));
    let sum = with_series(
        "what = 'flow.ten.*.acked_bytes'\nat = '3s'\naggregate = 'sum'\nop = 'equals'\ntarget = 1300",
    );
    assert!(sum.ok, "{sum:?}");
    assert_eq!(sum.what, "sum of flow.ten.*.acked_bytes at 3s = 1.3 kB");
}

/// A window of 4 packets for 1 s and of 8 until the flow ends at 2 s: 6 on average, and none from then on.
/// Bytes that were acknowledged stay.
#[test]
fn a_series_of_a_flow_ends_with_it() {
    let found = |what: &str| {
        let text = format!(
            "name = 't'\nduration = '4s'\nseries = ['cwnd', 'acked']\npath.wan = {{ rate = '1Mbit' }}
            [[flow]]\nid = 'a'\n[[expect]]\nop = 'at_least'\ntarget = 0\nwhat = 'flow.a.0.{what}"
        );
        let plan = experiment::parse(&Source::new("t.toml", text)).unwrap_or_else(|e| panic!("{e}")).plan;
        let columns = [("cwnd_packets", vec![4.0, 8.0]), ("acked_bytes", vec![10.0, 30.0])];
        let columns = columns.map(|(name, values)| (name.to_string(), Column(values))).into();
        let series = BTreeMap::from([("a.0".into(), Series { t_s: vec![0.0, 1.0], columns })]);
        let flows = vec![FlowResult { id: "a.0".into(), end_s: 2.0, ..FlowResult::default() }];
        let result = RunResult { duration_s: 4.0, flows, series, ..RunResult::default() };
        evaluate(&plan, &result)[0].found
    };
    assert_eq!(found("cwnd_packets'\naggregate = 'mean'"), Some(6.0));
    assert_eq!([found("cwnd_packets'\nat = '2s'"), found("cwnd_packets'\nat = '3s'")], [Some(8.0), None]);
    assert_eq!(found("acked_bytes'\nat = '3s'"), Some(30.0));
}

#[test]
fn series_over_time() {
    let found = |how: &str, when: &str| {
        let what = "what = 'link.wan.out.queue_packets'\nop = 'at_most'\ntarget = 100";
        with_series(&format!("{what}\naggregate = '{how}'\n{when}")).found
    };
    assert_eq!(found("max", ""), Some(4.0));
    // A value that holds at `from` counts; a value that begins at `until` does not.
    assert_eq!(found("max", "from = '500ms'"), Some(4.0));
    assert_eq!(found("max", "from = '1s'"), Some(1.0));
    assert_eq!(found("min", "until = '1s'"), Some(4.0));
    // (1 s × 4 + 3 s × 1) / 4 s
    assert_eq!(found("mean", ""), Some(1.75));
    let each = with_series("what = 'link.wan.out.queue_packets'\nop = 'at_most'\ntarget = 3");
    assert_eq!((each.ok, each.at.as_str()), (false, "wan.out at 0.000000 s"));
}

#[test]
fn nothing_to_measure_fails() {
    let missing = check_one("what = 'flow.other.0.fct_s'\nop = 'at_most'\ntarget = '1000s'");
    assert_eq!((missing.ok, missing.found), (false, None));
    let unset = check_one(
        "what = 'flow.other.*.goodput_bps'\nop = 'within'\ntarget = 'flow_rate'\ntolerance = '100%'",
    );
    assert!(!unset.ok && unset.at.contains("sets no rate"), "{unset:?}");
    let plan = plan("what = 'flow.ten.*.goodput_bps'\nop = 'at_least'\ntarget = '1bit'");
    let mut without = result();
    without.series.clear();
    assert!(!evaluate(&plan, &without)[0].ok);
    without.status = Status::Interrupted;
    conclude(&plan, &mut without);
    assert_eq!((without.status, without.expects.len()), (Status::Interrupted, 0));
}

#[test]
fn a_failed_check_is_a_failed_run() {
    let plan = plan("what = 'flow.ten.0.rtos'\nop = 'equals'\ntarget = 0");
    let mut run = result();
    conclude(&plan, &mut run);
    assert_eq!(run.status, Status::Failed);
    assert_eq!(run.expects[0].what, "flow.ten.0.rtos = 0");
    let drops = check_one("what = 'link.*.drops.shutdown'\nop = 'equals'\ntarget = 0");
    assert!(drops.found.is_some_and(|v| v.is_sign_positive()), "-0 reads as an error");
}

/// Two flows end after 1 and 2 s; a third had not ended after 3.
fn unfinished(expect: &str) -> ExpectResult {
    let flow = |k: u32, fct_s: Option<f64>| FlowResult {
        id: format!("f.{k}"),
        cc: "reno".into(),
        end_s: 4.0,
        fct_s,
        fct_at_least_s: fct_s.is_none().then_some(3.0),
        size_bytes: Some(1000),
        ..FlowResult::default()
    };
    let flows = vec![flow(0, Some(1.0)), flow(1, Some(2.0)), flow(2, None)];
    let result = RunResult { duration_s: 4.0, flows, ..RunResult::default() };
    let text = format!(
        "name = 't'\nduration = '4s'\npath.wan = {{ rate = '1Mbit' }}
        [[flow]]\nid = 'f'\ncount = 3\nbytes = 1000\n[[expect]]\nwhat = 'flow.f.*.fct_s'\n{expect}"
    );
    let plan = experiment::parse(&Source::new("t.toml", text)).unwrap_or_else(|e| panic!("{e}")).plan;
    evaluate(&plan, &result).remove(0)
}

#[test]
fn a_flow_that_had_not_ended_took_at_least_so_long() {
    for (check, ok, found, at_least) in [
        ("op = 'at_most'\ntarget = '2500ms'", false, 3.0, true),
        // It may have ended after 3.5 s; this is unknown.
        ("op = 'at_most'\ntarget = '5s'", false, 3.0, true),
        ("op = 'at_least'\ntarget = '1s'", true, 1.0, false),
        ("op = 'at_most'\ntarget = '5s'\naggregate = 'mean'", false, 2.0, true),
        ("op = 'at_least'\ntarget = '2s'\naggregate = 'mean'", true, 2.0, true),
        ("op = 'at_most'\ntarget = '2s'\naggregate = 'p50'", true, 2.0, false),
        ("op = 'at_most'\ntarget = '9s'\naggregate = 'p99'", false, 3.0, true),
        ("op = 'at_most'\ntarget = '1s'\naggregate = 'min'", true, 1.0, false),
        ("op = 'within'\ntarget = '3s'\ntolerance = '50%'\naggregate = 'max'", false, 3.0, true),
        // Of 1, 2 and 3 s it is 0.82, of 1, 2 and any other time at least 0.41: it may grow and shrink.
        ("op = 'at_least'\ntarget = '1ms'\naggregate = 'deviation'", false, 0.0, true),
        ("op = 'at_most'\ntarget = '9s'\naggregate = 'deviation'", false, 0.0, true),
    ] {
        let e = unfinished(check);
        assert_eq!((e.ok, e.found, e.at_least), (ok, Some(found), at_least), "{check}: {e:?}");
    }
    let mean = unfinished("op = 'at_most'\ntarget = '5s'\naggregate = 'mean'");
    assert_eq!(mean.at, "mean of 3, 2 of them known");
}

/// Flows that have a link of 10 Mbit/s one after the other have 10 together, not 20, and half of it in twice
/// the time.
#[test]
fn a_sum_of_rates_is_of_one_window() {
    let bin = Duration::from_millis(10);
    let flow = |id: &str, from: usize| {
        let mut bytes = vec![0; 400];
        bytes[from..from + 100].fill(FULL);
        let (start_s, end_s) = (from as f64 / 100.0, from as f64 / 100.0 + 1.0);
        let row = FlowResult { id: id.into(), start_s, end_s, bytes: 100 * FULL, ..FlowResult::default() };
        (row, (id.to_string(), Series::received(bin, &bytes)))
    };
    let (flows, series): (Vec<_>, BTreeMap<_, _>) = [flow("a.0", 0), flow("a.1", 100)].into_iter().unzip();
    let result = RunResult { duration_s: 4.0, flows, series, ..RunResult::default() };
    let sum = |times: &str| {
        let text = format!(
            "name = 't'\nduration = '4s'\npath.wan = {{ rate = '10Mbit' }}\n[[flow]]\nid = 'a'\ncount = 2
            [[expect]]\nwhat = 'flow.a.*.goodput_bps'\naggregate = 'sum'\n{times}\nop = 'at_most'\ntarget = '10Mbit'"
        );
        let plan = experiment::parse(&Source::new("t.toml", text)).unwrap_or_else(|e| panic!("{e}")).plan;
        evaluate(&plan, &result)[0].found
    };
    assert_eq!(
        // From 3 s on they are over, and receive nothing.
        [sum("until = '2s'"), sum(""), sum("from = '500ms'\nuntil = '1500ms'"), sum("from = '3s'")],
        [Some(10e6), Some(5e6), Some(10e6), Some(0.0)]
    );
}

/// A flow that lives for 4 s and receives 10 Mbit/s in the third of them alone: bins that its series leaves
/// out are of its life.
#[test]
fn bins_without_a_byte_may_be_left_out() {
    let found = |series: Series, how: &str| {
        let row = FlowResult { id: "a.0".into(), end_s: 4.0, bytes: 100 * FULL, ..FlowResult::default() };
        let series = BTreeMap::from([("a.0".to_string(), series)]);
        let result = RunResult { duration_s: 4.0, flows: vec![row], series, ..RunResult::default() };
        let text = format!(
            "name = 't'\nduration = '4s'\npath.wan = {{ rate = '10Mbit' }}\n[[flow]]\nid = 'a'
            [[expect]]\nwhat = 'flow.a.0.{how}\nop = 'at_most'\ntarget = '10Mbit'"
        );
        let plan = experiment::parse(&Source::new("t.toml", text)).unwrap_or_else(|e| panic!("{e}")).plan;
        evaluate(&plan, &result)[0].found
    };
    let bin = Duration::from_millis(10);
    let whole: Vec<u64> = (0..400).map(|n| if (200..300).contains(&n) { FULL } else { 0 }).collect();
    for (how, bps) in [
        ("goodput_bps'\nuntil = '3s'", 10e6 / 3.0),
        ("goodput_bps'\nfrom = '1s'", 10e6 / 3.0),
        ("max_bps'\nwindow = '1s'", 10e6),
        ("max_bps'\nwindow = '2s'", 5e6),
        ("min_bps'\nwindow = '1s'", 0.0),
    ] {
        let all = found(Series::received(bin, &whole), how).unwrap();
        assert!((all - bps).abs() < 1.0, "{how}: {all}");
        assert_eq!(found(Series::received_from(bin, 200, &whole[200..300]), how), Some(all), "{how}");
        assert_eq!(found(Series::received(bin, &[]), how), Some(0.0), "{how}");
    }
}

/// A flow of 1 Gbit/s receives 1 MB in 8 ms and 250 kB in 2 ms more; a second one of 1 Mbit/s receives 125
/// bytes a millisecond for 4 s. No bin of 10 ms lies inside the first one's life.
#[test]
fn a_flow_shorter_than_a_bin_counts() {
    let bin = Duration::from_millis(10);
    let row = |id: &str, start_s, end_s, bytes, goodput_bps| FlowResult {
        id: id.into(),
        start_s,
        end_s,
        bytes,
        goodput_bps,
        ..FlowResult::default()
    };
    let flows = vec![row("a.0", 1.002, 1.012, 1_250_000, 1e9), row("a.1", 0.0, 4.0, 500_000, 1e6)];
    let short = Series::received_from(bin, 100, &[1_000_000, 250_000]);
    let series = BTreeMap::from([("a.0".into(), short), ("a.1".into(), Series::received(bin, &[1250; 400]))]);
    let result = RunResult { duration_s: 4.0, flows, series, ..RunResult::default() };
    let check = |what: &str| {
        let text = format!(
            "name = 't'\nduration = '4s'\npath.wan = {{ rate = '1Gbit' }}\n[[flow]]\nid = 'a'\ncount = 2
            [[expect]]\nwhat = 'flow.a.*.{what}"
        );
        let plan = experiment::parse(&Source::new("t.toml", text)).unwrap_or_else(|e| panic!("{e}")).plan;
        let found = evaluate(&plan, &result).remove(0);
        (found.ok, found.found.unwrap(), found.at_least)
    };
    // All of its life is measured: the rate is that of its row.
    assert_eq!(check("goodput_bps'\nop = 'at_most'\ntarget = '2Mbit'"), (false, 1e9, false));
    assert_eq!(
        check("goodput_bps'\naggregate = 'mean'\nop = 'at_most'\ntarget = '2Mbit'"),
        (false, 1.001e9 / 2.0, false)
    );
    // A window of a second with all of its life in it has 10 Mbit.
    for over in ["max_bps'\nwindow = '1s'", "interval_bps'\nevery = '1s'"] {
        assert_eq!(
            check(&format!("{over}\nop = 'at_most'\ntarget = '2Mbit'")),
            (false, 10e6, false),
            "{over}"
        );
    }
    assert_eq!(check("min_bps'\nwindow = '1s'\nop = 'at_least'\ntarget = '9Mbit'").1, 1e6);
    // Of 8 ms of its life there may be all of the bytes in their bin, or none.
    let part = "goodput_bps'\nfrom = '1s'\nuntil = '1010ms'\nop = 'at_most'\ntarget =";
    assert_eq!(check(&format!("{part} '999Mbit'")), (false, 0.0, true));
    assert!(check(&format!("{part} '1Gbit'")).0);
}

/// One of two flows took more than 3 s, and none has a sample of the round-trip time. An interrupted run has
/// no counterparts of a paper's values.
#[test]
fn counterparts_of_a_papers_values_are_bounds_too() {
    let text = "name = 't'\nduration = '4s'\npath.wan = { rate = '1Mbit' }
        [[flow]]\nid = 'f'\ncount = 2\nbytes = 1000
        [reference]\nsource = 'a paper'
        [[reference.row]]\nname = 'time'\npaper = '1 s'\nwhat = 'flow.*.fct_s'
        [[reference.row]]\nname = 'round trip'\npaper = '1 ms'\nwhat = 'flow.*.rtt_us.p50'";
    let plan = experiment::parse(&Source::new("t.toml", text)).unwrap_or_else(|e| panic!("{e}")).plan;
    let flow = |id: &str, fct_s: Option<f64>| FlowResult {
        id: id.into(),
        cc: "reno".into(),
        end_s: 4.0,
        fct_s,
        fct_at_least_s: fct_s.is_none().then_some(3.0),
        ..FlowResult::default()
    };
    let flows = vec![flow("f.0", Some(0.5)), flow("f.1", None)];
    let mut result = RunResult { duration_s: 4.0, flows, ..RunResult::default() };
    conclude(&plan, &mut result);
    let found: Vec<_> = result.reference.iter().map(|row| (row.low, row.high, row.at_least)).collect();
    assert_eq!(found, [(Some(0.5), Some(3.0), true), (None, None, true)]);
    let shown = crate::report::table::render(&result, &plan, false);
    assert!(
        shown.contains("0.5000 to >=3 s")
            && shown.lines().any(|l| l.starts_with("round trip") && l.ends_with(" -")),
        "{shown}"
    );
    let mut cut = RunResult { status: Status::Interrupted, reference: vec![], ..result };
    conclude(&plan, &mut cut);
    assert_eq!(cut.reference, []);
}
