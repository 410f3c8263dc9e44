use super::flows::value;
use super::*;
use crate::experiment::config::{experiment, Source};
use crate::report::expect;
use crate::result::metric::FLOW;
use crate::result::{
    Backend, ClassAlone, ClassResult, FlowResult, Frames, GatewayResult, Interval, LinkResult, Machine,
    MadeBy, Quantiles, QuantilesMax, Runs, Series, Steering, SCHEMA,
};
use std::collections::BTreeMap;

const PLAN: &str = r#"
name = "two"
title = "two flows"
duration = "4s"
interval = "2s"
[path]
wan = { out = { rate = "20Mbit" } }
[[flow]]
id = "ten"
[[flow]]
id = "file"
bytes = "1MB"
[[expect]]
what = "flow.ten.*.goodput_bps"
op = "at_most"
target = "10Mbit"
[[expect]]
what = "link.*.drops"
op = "equals"
target = 0
[reference]
source = "Somebody, fig. 1"
row = [
  { name = "ten, per 2 s", paper = "9.9 to 10.1 Mbit/s", what = "flow.ten.*.interval_bps", every = "2s" },
  { name = "file, time", paper = "1 s", what = "flow.file.*.fct_s" },
]
"#;

fn plan(text: &str) -> Plan {
    let source = Source::new("two.toml", text);
    experiment::parse(&source).unwrap().plan_for(Backend::Lab).unwrap()
}

/// A flow of 10 Mbit/s with the two intervals that it has in 4 s.
fn flow(id: &str) -> FlowResult {
    let interval = |t_s, bps| Interval { t_s, len_s: 2.0, bytes: (bps / 4.0) as u64, bps };
    FlowResult {
        id: id.into(),
        class: "ten".into(),
        cc: "reno".into(),
        target_bps: Some(10_000_000),
        end_s: 4.0,
        bytes: 5_010_000,
        counts: "payload".into(),
        goodput_bps: 10_020_000.0,
        retransmits: 3,
        rtos: 1,
        rtt_us: Quantiles { p50: 4321, p99: 9876 },
        intervals: vec![interval(0.0, 9_980_000.0), interval(2.0, 10_060_000.0)],
        ..FlowResult::default()
    }
}

/// Concludes a run, with words of our own for the two checks.
fn conclude(plan: &Plan, run: &mut RunResult) {
    expect::conclude(plan, run);
    run.expects[0].what = "ten at most 10M".into();
    run.expects[1].what = "no drops".into();
}

fn result(plan: &Plan) -> RunResult {
    let file = FlowResult {
        id: "file.0".into(),
        cc: "cubic".into(),
        bytes: 500_000,
        goodput_bps: 8_000_000.0,
        end_s: 0.5,
        fct_s: Some(0.5),
        pass_reason: Some("no_class".into()),
        intervals: vec![Interval { t_s: 0.0, len_s: 0.5, bytes: 500_000, bps: 8e6 }],
        ..FlowResult::default()
    };
    // 2,495,000 and 2,515,000 bytes in 2 s are 9.98 and 10.06 Mbit/s.
    let bins: Vec<u64> = (0..400).map(|i| if i < 200 { 12_475 } else { 12_575 }).collect();
    let mut run = RunResult {
        schema: SCHEMA,
        experiment: "two".into(),
        world: Backend::Lab,
        status: Status::Ok,
        seed: 7,
        duration_s: 4.0,
        wall_s: 5.25,
        packets: 8000,
        made_by: MadeBy { kernel: "6.1.0".into(), ..MadeBy::default() },
        expects: vec![],
        gateway: Some(GatewayResult {
            steering: Some(Steering { passed_stale: 12, restarts: 1, ..Steering::default() }),
            cpu_s: 0.125,
            memory_bytes: Some(12_500_000),
            user_data_bytes: 0,
            frames: Frames {
                received: 100,
                made: 20,
                sent: 90,
                held: 1,
                absorbed: 27,
                dropped: [("queue_full".to_string(), 2)].into(),
            },
            pace: None,
        }),
        flows: vec![flow("ten.0"), file],
        classes: vec![ClassResult {
            name: "ten".into(),
            parent: None,
            target_bps: 10_000_000,
            bps: 10_020_000.0,
            held_ack_peak_bytes: 14_480,
            ack_queue_peak_bytes: 0,
            buffer_peak_bytes: 0,
            scheduled_only: ClassAlone::default(),
            held_ack_peak_packets: 10,
            acks_absorbed: 27,
            acks_generated: 20,
            acks_rewritten: 5,
            bound: None,
            others: None,
            admission: None,
            queue: None,
            pace: None,
        }],
        links: vec![
            LinkResult {
                name: "wan.out".into(),
                packets: 4000,
                bytes: 6_056_000,
                utilization: 0.6056,
                queue_us: QuantilesMax { p50: 100, p99: 2500, max: 3000 },
                drops: [("queue_full".to_string(), 2)].into(),
                ..LinkResult::default()
            },
            LinkResult { name: "wan.back".into(), packets: 4000, bytes: 264_000, ..LinkResult::default() },
        ],
        series: BTreeMap::from([("ten.0".to_string(), Series::received(plan.bin, &bins))]),
        ..RunResult::default()
    };
    conclude(plan, &mut run);
    run
}

#[test]
fn the_whole_table() {
    let plan = plan(PLAN);
    let expected = "\
two: two flows
lab, seed 7, Linux 6.1.0: 4 s in 5.2 s, 8000 frames, FAILED

flow    cc     class  goodput  target    off     min     max  rtt p50  rtt p99  retr  rto    fct  passed
                       Mbit/s  Mbit/s      %  Mbit/s  Mbit/s       ms       ms                 s
ten.0   reno   ten     10.020  10.000  +0.20   9.980  10.060     4.32     9.88     3    1      -  -
file.0  cubic  -        8.000       -      -       -       -        -        -     0    0  0.500  no_class
all 2 flows: 11.02 Mbit/s over 4 s
min and max are those of whole intervals of 2s

gateway: 0 bytes of user data, ACKs 27 absorbed, 20 made, 5 rewritten, 0.12 s of CPU, 12.50 MB of memory
frames: 100 in + 20 made = 90 out + 1 held + 27 absorbed + 2 dropped (queue_full 2)
the engine was away: 12 segments passed as they came, 1 restarts
class       goodput     target  held peak  packets  absorbed  made  rewritten
                                                        ACKs  ACKs       ACKs
ten    10.02 Mbit/s  10 Mbit/s   14.48 kB       10        27    20          5

link      packets      data  used  queue p50   p99   max  drops
                                %         ms    ms    ms
wan.out      4000  6.056 MB  60.6       0.10  2.50  3.00  queue_full 2
wan.back     4000    264 kB     -          -     -     -  -

FAILED  ten at most 10M: found 10.02 Mbit/s (ten.0), bound 10 Mbit/s
FAILED  no drops: found 2 (wan.out), bound 0

beside Somebody, fig. 1
              paper               ours
ten, per 2 s  9.9 to 10.1 Mbit/s  9.980 to 10.06 Mbit/s
file, time    1 s                 0.5000 s
";
    let got = render(&result(&plan), &plan, false);
    assert_eq!(got, expected, "\n{got}");
}

#[test]
fn a_machine_that_had_no_time_is_told_of() {
    let plan = plan(PLAN);
    let mut run = result(&plan);
    run.machine = Some(Machine { stolen_percent: 67.2, longest_stall_ms: 212.7, skipped_programs: 0 });
    let line = "8000 frames, FAILED\ninconclusive: the machine was overloaded during this run: \
                67 % of its processors' time went to others, and it stood still for 213 ms at most\n";
    assert!(render(&run, &plan, false).contains(line));
    run.machine = Some(Machine { stolen_percent: 1.0, longest_stall_ms: 8.0, skipped_programs: 3 });
    assert!(render(&run, &plan, false)
        .contains("for 8 ms at most; its kernel left out 3 calls of weir_chirp's programs\n"));
    run.machine = Some(Machine { stolen_percent: 1.0, longest_stall_ms: 8.0, skipped_programs: 0 });
    assert_eq!(render(&run, &plan, false), render(&result(&plan), &plan, false));
}

#[test]
fn control_characters_only_where_asked_for() {
    let mut plan = plan(PLAN);
    plan.title = "\x1b[2Jbad\rtitle\u{9b}".into();
    let mut run = result(&plan);
    run.flows[0].cc = "re\x07no".into();
    run.flows[1].pass_reason = Some("\x1b[31m".into());
    run.expects[0].at = "a\nb".into();
    let plain = render(&run, &plan, false);
    assert!(plain.chars().all(|c| !c.is_control() || c == '\n'), "{plain:?}");
    assert!(plain.contains("two: ?[2Jbad?title?\n"), "{plain}");
    let painted = render(&run, &plan, true);
    assert!(painted.contains("\x1b[1;31mFAILED\x1b[0m"), "{painted:?}");
    // Apart from colours the text is unchanged: control characters from a file have no effect.
    let codes = ["\x1b[1;31m", "\x1b[32m", "\x1b[1m", "\x1b[0m"];
    assert_eq!(codes.iter().fold(painted, |text, code| text.replace(code, "")), plain);
}

#[test]
fn thirty_three_flows_are_a_line_for_each_group() {
    let plan = plan(PLAN);
    let mut run = result(&plan);
    // 32 flows of 10.02 Mbit/s, but one of 9.06: the mean is (31 x 10.02 + 9.06) / 32 = 9.99.
    run.flows = (0..32).map(|i| flow(&format!("ten.{i}"))).collect();
    assert!(render(&run, &plan, false).contains("\nten.31 "));
    run.flows[4].goodput_bps = 9_060_000.0;
    run.flows[4].cc = "cubic".into();
    run.flows[4].intervals[0].bps = 8_100_000.0;
    run.flows[5].pass_reason = Some("mptcp".into());
    run.flows[6].pass_reason = Some("mptcp".into());
    run.flows.push(flow("other.0"));
    let text = render(&run, &plan, false);
    let words = |name: &str| -> Vec<String> {
        let line = text.lines().find(|l| l.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
        line.split_whitespace().map(str::to_string).collect()
    };
    assert_eq!(
        words("ten ").join(" "),
        "ten 32 reno, cubic ten 9.060/9.990/10.020 10.000 -9.40 8.100 10.060 4.32 9.88 96 32 mptcp 2"
    );
    assert_eq!(words("other ")[..2], ["other", "1"]);
    assert!(text.contains("more than 32 flows: one line for each group"), "{text}");
    assert!(!text.contains("ten.31"), "{text}");
}

#[test]
fn connections_that_were_given_up_are_named() {
    let plan = plan(PLAN);
    let mut run = result(&plan);
    assert!(!render(&run, &plan, false).contains("given up"));
    run.flows[1].gave_up = 1;
    let line = format!(
        "given up after time-outs without an answer: 1 of {} flows ({})",
        run.flows.len(),
        run.flows[1].id
    );
    assert!(render(&run, &plan, false).contains(&line), "{line}");
}

#[test]
fn slow_flows_are_in_kilobits() {
    let plan = plan(PLAN);
    let mut run = result(&plan);
    run.flows.truncate(1);
    run.flows[0].goodput_bps = 64_000.0;
    run.flows[0].target_bps = None;
    let text = render(&run, &plan, false);
    assert!(text.contains("kbit/s") && text.contains(" 64.000 "), "{text}");
    assert!(!text.contains("off"), "no target, no deviation: {text}");
}

#[test]
fn cut_intervals_say_nothing_about_the_range() {
    let plan = plan(PLAN);
    let mut f = flow("ten.0");
    f.intervals.push(Interval { t_s: 4.0, len_s: 1.999, bytes: 0, bps: 0.0 });
    let range = |f: &FlowResult| {
        ["min_bps", "max_bps"].map(|name| {
            let metric = FLOW.iter().find(|m| m.name == name).unwrap();
            value(metric, f, plan.interval)
        })
    };
    assert_eq!(range(&f), [Some(9_980_000.0), Some(10_060_000.0)]);
    f.intervals.clear();
    assert_eq!(range(&f), [None, None]);
}

#[test]
fn what_was_not_measured_is_said() {
    let plan = plan(PLAN);
    let mut run = result(&plan);
    run.series.clear();
    run.flows.clear();
    conclude(&plan, &mut run);
    let text = render(&run, &plan, false);
    assert!(text.contains("FAILED  ten at most 10M: nothing to measure\n"), "{text}");
    assert!(text.contains("file, time    1 s                 nothing measured\n"), "{text}");
    run.status = Status::Interrupted;
    run.gateway = None;
    let text = render(&run, &plan, false);
    assert!(text.contains("checks were not made: the run was interrupted"), "{text}");
    assert!(!text.contains("gateway") && !text.contains("FAILED"), "{text}");
}

/// An interrupted run has seen a part of its time, and one with an error nothing: neither counts.
#[test]
fn tables_of_several_runs_are_of_complete_runs() {
    let plan = plan(PLAN);
    let whole = result(&plan);
    let mut cut = result(&plan);
    cut.classes[0].bps = 90e6;
    cut.expects.iter_mut().for_each(|check| (check.found, check.ok) = (Some(90e6), true));
    cut.reference.iter_mut().for_each(|row| (row.low, row.high) = (Some(1.0), Some(90e6)));
    let broken = RunResult { error: Some("no such file".into()), ..cut.clone() };
    cut.status = Status::Interrupted;
    let ink = Ink { terminal: false };
    let tables = |runs: Vec<RunResult>| {
        let runs = Runs { schema: SCHEMA, runs, summary: Vec::new() };
        [
            found::classes(&runs, &[], ink),
            found::checks(&runs, &plan, ink),
            found::reference(&runs, &[], &plan, ink),
        ]
    };
    let alone = tables(vec![whole.clone()]);
    assert!(alone[0][2].starts_with("ten       1   10.020"), "{alone:?}");
    assert!(alone[1][0].contains("found 10.02 Mbit/s; 0 of 1 runs hold"), "{alone:?}");
    assert_eq!(tables(vec![whole.clone(), cut.clone()]), alone);
    assert_eq!(tables(vec![broken, whole, cut]), alone);
}
