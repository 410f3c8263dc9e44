use super::*;
use crate::experiment::config::{experiment, Source};
use crate::result::{self, Backend, Column, LinkResult};
use std::collections::BTreeMap;
use weir_core::rng::Rng;

const FIG_11: &str = include_str!("../../../../../experiments/papers/ack-shaper/fig11.toml");
const FIG_12: &str = include_str!("../../../../../experiments/papers/ack-shaper/fig12-short.toml");

fn plan(text: &str) -> Plan {
    let source = Source::new("test.toml", text);
    experiment::parse(&source).unwrap().plan_for(Backend::Lab).unwrap()
}

/// Returns the target rate of a group in the experiments used here.
fn target(group: &str) -> u64 {
    match group {
        "five" => 5_000_000,
        "hundred" => 100_000_000,
        _ => 10_000_000,
    }
}

/// Builds a possible result of such a plan: a start-up of a second with a burst in it, then noise of 4 % in
/// every bin of each flow.
fn run(plan: &Plan) -> RunResult {
    let mut rng = Rng::new(plan.seed);
    let bins = plan.duration.as_nanos() / plan.bin.as_nanos();
    let second = 1_000_000_000 / plan.bin.as_nanos();
    let mut out = RunResult {
        experiment: plan.name.clone(),
        world: Backend::Lab,
        seed: plan.seed,
        duration_s: plan.duration.as_secs_f64(),
        wall_s: 1.0,
        ..RunResult::default()
    };
    for flow in plan.flows() {
        let bps = target(&flow.group.id);
        let full = bps * plan.bin.as_nanos() / 8_000_000_000;
        let bytes = |i: u64| match i {
            i if i < second / 20 => full * 3,
            i if i < second => full * i / second,
            _ => full * 98 / 100 + rng.below(full / 25),
        };
        let bytes: Vec<u64> = (0..bins).map(bytes).collect();
        let total: u64 = bytes.iter().sum();
        let intervals = result::intervals(
            (plan.bin, plan.interval),
            (flow.start, plan.duration),
            &bytes,
            bytes.iter().sum(),
        );
        let mut series = Series::received(plan.bin, &bytes);
        let sawtooth = (0..bins).map(|i| (i % 300) as f64 / 10.0 + 10.0 + bps as f64 / 1e6).collect();
        series.columns.insert("cwnd_packets".into(), Column(sawtooth));
        series.columns.insert("rtt_us".into(), Column((0..bins).map(|i| 4e3 + (i % 97) as f64).collect()));
        out.series.insert(flow.id.clone(), series);
        out.flows.push(FlowResult {
            id: flow.id,
            target_bps: Some(bps),
            end_s: out.duration_s,
            bytes: total,
            goodput_bps: total as f64 * 8.0 / out.duration_s,
            intervals,
            ..FlowResult::default()
        });
    }
    out
}

/// Directory of a single test, removed at its end.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Dir {
        Dir(std::env::temp_dir().join(format!("weir-chart-{name}-{}", std::process::id())))
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_series_and_every_column_has_its_file() {
    let plan = plan(FIG_12);
    let mut result = run(&plan);
    let queue = Column(vec![0.0, 2.5]);
    let link = Series { t_s: vec![0.0, 0.5], columns: BTreeMap::from([("queue_bytes".into(), queue)]) };
    result.series.insert("wan.back".into(), link);
    result.links.push(LinkResult { name: "wan.back".into(), ..LinkResult::default() });
    let dir = Dir::new("all");
    let files = write(&dir.0.join("deeper"), &plan, &result).unwrap();
    let names: Vec<&str> = files.iter().map(|f| f.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names[..3], ["flows.csv", "cwnd_packets.csv", "queue_bytes.csv"]);
    assert_eq!(names[3..], ["rate.svg", "cwnd_packets.svg", "queue_bytes.svg", "rtt_us.svg"]);
    assert!(files.iter().all(|f| f.is_file()));
    let [flows, cwnd, queue] = [0, 1, 2].map(|n: usize| std::fs::read_to_string(&files[n]).unwrap());
    assert_eq!(queue, "of,t_s,queue_bytes\nwan.back,0,0\nwan.back,0.5,2.5\n");
    // 16 flows, each with 800 bins.
    assert_eq!((flows.lines().count(), cwnd.lines().count()), (17, 1 + 16 * 800));
    assert!(
        cwnd.starts_with("of,t_s,cwnd_packets,received_bytes,rtt_us\nfive.0,0,15,18750,4000\n"),
        "{cwnd:.90}"
    );
}

#[test]
fn completion_times_have_a_distribution_where_there_are_enough() {
    let plan = plan(FIG_12);
    let mut result = run(&plan);
    let dir = Dir::new("fct");
    let has = |result: &RunResult| {
        let files = write(&dir.0, &plan, result).unwrap();
        files.iter().any(|file| file.ends_with("fct.svg"))
    };
    assert!(!has(&result));
    result.flows.iter_mut().for_each(|flow| flow.fct_s = Some(1.0));
    assert!(has(&result));
}

#[test]
fn errors_name_the_file() {
    let plan = plan(FIG_12);
    let dir = Dir::new("file");
    std::fs::write(&dir.0, "a file").unwrap();
    let error = write(&dir.0.join("x"), &plan, &run(&plan)).unwrap_err().to_string();
    std::fs::remove_file(&dir.0).unwrap();
    assert!(error.contains("weir-chart-file"), "{error}");
}

#[test]
fn names_stay_in_the_directory() {
    assert_eq!(file_name("../x/y"), "_._x_y");
    assert_eq!(file_name("five.0"), "five.0");
}

#[test]
fn a_short_column_leaves_empty_cells() {
    let columns = BTreeMap::from([
        ("a".to_string(), Column(vec![1.0])),
        ("b,".into(), Column(vec![result::UNKNOWN, 3.5])),
    ]);
    let series = BTreeMap::from([("web.0".into(), Series { t_s: vec![0.0, 0.25], columns })]);
    let result = RunResult { series, ..RunResult::default() };
    let tables: Vec<(&str, String)> = tables(&result).into_iter().collect();
    assert_eq!(tables, [("a", "of,t_s,a,b_\nweb.0,0,1,\nweb.0,0.25,,3.5\n".to_string())]);
}

#[test]
fn targets_are_marked_and_groups_named() {
    let plan = plan(FIG_12);
    let chart = rates(&About::planned(&plan), &run(&plan)).unwrap();
    assert_eq!(chart.legend, ["five (8 flows)", "ten (8 flows)"]);
    assert_eq!(chart.panels[0].marks, [(5.0, "5 Mbit/s".to_string()), (10.0, "10 Mbit/s".to_string())]);
    // Two steps of the groups' means, 16 lines.
    assert_eq!(chart.panels[0].curves.len(), 18);
    // The burst of three times the rate is cut at one and a half; 1.5 x 10 x 1.06 = 15.9.
    assert!((chart.panels[0].high - 15.9).abs() < 1e-9, "{}", chart.panels[0].high);
    assert!(chart.notes[1].starts_with("drawn to 15 Mbit/s, the highest is 30 Mbit/s"), "{:?}", chart.notes);
}

#[test]
fn deviations_are_in_percent_of_each_flow_s_own_target() {
    let plan = plan(FIG_12);
    let mut result = run(&plan);
    for f in &mut result.flows {
        let target = f.target_bps.unwrap() as f64;
        f.intervals.iter_mut().for_each(|i| i.bps = target * 1.02);
    }
    let panel = rates(&About::planned(&plan), &result).unwrap().panels.remove(1);
    // 2 % and half of that as room.
    assert!((panel.high - 3.0).abs() < 1e-9 && panel.low == -panel.high, "{panel:?}");
    for c in &panel.curves {
        let Shape::Line(points) = &c.shape else { panic!("{c:?}") };
        let times: Vec<f64> = points.iter().map(|p| p.0).collect();
        assert_eq!(times, [0.0, 2.0, 2.0, 4.0, 4.0, 6.0, 6.0, 8.0]);
        assert!(points.iter().all(|p| (p.1 - 2.0).abs() < 1e-9), "{points:?}");
    }
    result.flows.iter_mut().for_each(|f| f.target_bps = None);
    let chart = rates(&About::planned(&plan), &result).unwrap();
    assert!(chart.panels.len() == 1 && chart.panels[0].marks.is_empty() && chart.marks.is_empty());
}

#[test]
fn many_flows_are_a_range_and_a_mean() {
    let plan = plan(&FIG_12.replacen("count = 8", "count = 17", 1));
    let chart = rates(&About::planned(&plan), &run(&plan)).unwrap();
    let shapes = &chart.panels[0].curves;
    // Two steps, range and mean of `five`, eight lines of `ten`.
    assert_eq!(shapes.len(), 2 + 2 + 8);
    assert!(matches!(shapes[2].shape, Shape::Band(_)) && matches!(shapes[3].shape, Shape::Line(_)));
    assert_eq!(chart.legend[0], "five (17 flows)");
    let Shape::Band(range) = &chart.panels[1].curves[0].shape else { panic!() };
    let times: Vec<f64> = range.iter().map(|s| s.t).collect();
    assert_eq!(times, [1.0, 3.0, 5.0, 7.0], "one value for each interval");
}

#[test]
fn columns_have_the_unit_of_their_name() {
    let plan = plan(FIG_12);
    let result = run(&plan);
    let label = |name| column(&About::planned(&plan), &result, name).unwrap().panels[0].label.clone();
    assert_eq!(label("rtt_us"), "rtt, ms");
    assert_eq!(label("cwnd_packets"), "cwnd, packets");
    assert!(column(&About::planned(&plan), &result, "held_bytes").is_none());
    // 4 + 0.096 ms at most.
    let high = column(&About::planned(&plan), &result, "rtt_us").unwrap().panels[0].high;
    assert!((high - 4.096 * 1.06).abs() < 1e-9, "{high}");
}

#[test]
fn the_svg_is_well_formed_whatever_the_title() {
    let mut plan = plan(FIG_11);
    plan.title = "a < b & \"c\"\u{1b}".into();
    let text = draw::svg(&rates(&About::planned(&plan), &run(&plan)).unwrap()).unwrap();
    assert!(text.contains("a &lt; b &amp; &quot;c&quot;\n"), "{text:.600}");
    assert!(!text.contains('\u{1b}') && text.trim_end().ends_with("</svg>"));
    assert!(text.contains(r##"stroke="#222222""##), "target lines");
}

#[test]
fn a_run_without_anything_has_no_charts() {
    let plan = plan(FIG_12);
    let mut result = run(&plan);
    result.series.clear();
    // Intervals are enough for the rates.
    let steps = rates(&About::planned(&plan), &result).unwrap();
    assert_eq!(steps.panels[0].curves.len(), 2);
    result.flows.clear();
    let dir = Dir::new("empty");
    assert_eq!(write(&dir.0, &plan, &result).unwrap(), Vec::<PathBuf>::new());
}

#[test]
fn a_run_that_was_interrupted_at_once() {
    let plan = plan(FIG_12);
    let mut result = run(&plan);
    result.duration_s = 0.0;
    for f in &mut result.flows {
        f.end_s = 0.0;
        f.intervals.clear();
    }
    result.series.values_mut().for_each(|s| *s = Series::received(plan.bin, &[]));
    let dir = Dir::new("interrupted");
    assert_eq!(write(&dir.0, &plan, &result).unwrap().len(), 3);
    assert_eq!(data::window(Duration::from_secs(8), plan.bin), Duration::from_millis(50));
}

#[test]
fn what_is_unknown_is_not_drawn_as_zero() {
    let plan = plan(FIG_12);
    let mut result = run(&plan);
    for series in result.series.values_mut() {
        let rtt = series.columns.get_mut("rtt_us").unwrap();
        rtt.0[..100].fill(result::UNKNOWN);
    }
    let chart = column(&About::planned(&plan), &result, "rtt_us").unwrap();
    let lowest = chart.panels[0].curves.iter().flat_map(|c| match &c.shape {
        Shape::Line(points) => points.clone(),
        _ => Vec::new(),
    });
    // In milliseconds.
    assert!(lowest.fold(f64::INFINITY, |low, (_, v)| low.min(v)) >= 4.0);
}

#[test]
fn a_run_of_a_sweep_says_its_settings() {
    let plan = plan(FIG_12);
    let mut result = run(&plan);
    let alone = title(&About::planned(&plan), &result);
    result.settings = [("path.wan.loss".to_string(), result::Setting::number("0.1%", 0.001))].into();
    assert_eq!(title(&About::planned(&plan), &result), format!("{alone}: path.wan.loss = 0.1%"));
    assert_eq!(rates(&About::planned(&plan), &result).unwrap().title, title(&About::planned(&plan), &result));
}
