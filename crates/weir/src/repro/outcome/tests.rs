use super::super::asks::{experiments, key, Value};
use super::super::rows;
use super::*;
use std::path::Path;

const EXPERIMENT: &str = r#"
name = "t"
duration = "1s"
flow = [{ id = "a" }]
path.wan = { rate = "10Mbit", queue = "100p" }
[baseline]
old = { "path.wan.rate" = "5Mbit" }
"#;

fn paper(folder: &Path, row: &str) -> Vec<Paper> {
    std::fs::write(folder.join("t.toml"), EXPERIMENT).unwrap();
    let text = format!(
        r#"
[paper]
title = "T"
authors = "A"
year = 2000
[[row]]
id = "fig1"
covers = ["fig. 1"]
title = "t"
claim = "c"
minutes = 1
unit = "Mbit/s"
x = ["1"]
better = "higher"
tolerance = "10%"
tolerance_from = "test"
{row}
[[row.series]]
name = "s"
published = [10]
as_published = [{{ file = "t.toml", what = "flow.a.0.goodput_bps", baseline = "old" }}]
weir = [{{ file = "t.toml", what = "flow.a.0.goodput_bps" }}]
[[row.says]]
words = "Weir has twice as much"
of = "s/weir"
above = "s/as_published"
margin = "100%"
"#
    );
    std::fs::write(folder.join(rows::FILE), text).unwrap();
    vec![rows::read(folder).unwrap_or_else(|e| panic!("{e}"))]
}

/// Judges the row with these values in bit/s, as if they had been measured in virtual time, and in the lab
/// `lab` times as much.
fn judged_in(row: &str, as_published: f64, weir: f64, lab: Option<f64>) -> RowOutcome {
    judged_with(row, as_published, weir, lab, false)
}

/// Judges likewise; `cut` makes what the lab has of the paper's scheme a lower bound.
fn judged_with(row: &str, as_published: f64, weir: f64, lab: Option<f64>, cut: bool) -> RowOutcome {
    let folder = tempfile::tempdir().unwrap();
    let papers = paper(folder.path(), row);
    let of = |world| experiments(&papers, &papers, world).unwrap_or_else(|e| panic!("{e}"));
    let both = [of(Backend::Sim), of(Backend::Lab)];
    let made = |times: f64| vec![vec![Some(given(&papers[0], as_published * times, weir * times))]];
    let mut made = [made(1.0), made(lab.unwrap_or(0.0))];
    let published = key(papers[0].rows[0].series[0].as_published[0].get_ref());
    made[1][0][0].as_mut().unwrap().values.get_mut(&published).unwrap()[0].at_least = cut;
    let mut worlds: Vec<World> =
        both.iter().zip(&made).map(|(experiments, made)| World { experiments, made }).collect();
    worlds.truncate(1 + usize::from(lab.is_some()));
    let mut report = report(&papers, &worlds, "1").unwrap_or_else(|e| panic!("{e}"));
    report.papers.remove(0).rows.remove(0)
}

fn judged(row: &str, as_published: f64, weir: f64) -> RowOutcome {
    judged_in(row, as_published, weir, None)
}

/// Returns a result of the row's run with these values in bit/s.
fn given(paper: &Paper, as_published: f64, weir: f64) -> Given {
    let series = &paper.rows[0].series[0];
    let value = |v: f64| vec![Value { value: v, at_least: false }];
    Given {
        seed: 3,
        settings: Vec::new(),
        wall_s: 2.0,
        faults: Vec::new(),
        checks: Vec::new(),
        values: [
            (key(series.as_published[0].get_ref()), value(as_published)),
            (key(series.weir[0].get_ref()), value(weir)),
        ]
        .into(),
        starved: false,
    }
}

#[test]
fn the_lab_has_values_of_the_files_that_run_there_and_decides_no_verdict() {
    let lab = |row: &RowOutcome| {
        let of = |c: &Option<ColumnOutcome>| c.as_ref().unwrap().lab.clone();
        [of(&row.series[0].as_published), of(&row.series[0].weir)]
    };
    let mbit = |v: f64| vec![Some(Spread { low: v, mean: v, high: v })];
    let row = judged_in("lab = [\"t.toml\"]", 9e6, 22e6, Some(0.5));
    assert_eq!(lab(&row), [mbit(4.5), mbit(11.0)]);
    assert_eq!((row.verdict, row.differences.len()), (Verdict::Better, 0));
    // A flow that had not ended leaves a value unknown.
    assert_eq!(lab(&judged_with("lab = [\"t.toml\"]", 9e6, 22e6, Some(0.5), true)), [vec![None], mbit(11.0)]);
    // Without the lab, and where the row does not name the file, there are none.
    assert_eq!(lab(&judged("lab = [\"t.toml\"]", 9e6, 22e6)), [Vec::new(), Vec::new()]);
    assert_eq!(lab(&judged_in("", 9e6, 22e6, Some(0.5))), [Vec::new(), Vec::new()]);
}

#[test]
fn verdicts_follow_from_values_and_tolerances() {
    // 9 and 22 of 10 Mbit/s: the paper's scheme is within 10 %, Weir's is better, and has twice as much.
    let row = judged("", 9e6, 22e6);
    assert_eq!((row.verdict, row.unexplained, row.differences.len()), (Verdict::Better, false, 0));
    let deviation = |c: &Option<ColumnOutcome>| c.as_ref().unwrap().deviation[0].unwrap();
    assert!((deviation(&row.series[0].as_published) + 0.1).abs() < 1e-9);
    assert!((deviation(&row.series[0].weir) - 1.2).abs() < 1e-9);
    assert_eq!((row.seeds.as_slice(), row.seconds), (&[3_u64][..], 2.0));
    // The paper's scheme is 15 % below: the row differs, without a reason.
    let row = judged("", 8.5e6, 22e6);
    assert_eq!((row.verdict, row.unexplained), (Verdict::Differs, true));
    assert_eq!(row.differences, ["s, as published: 8.5 Mbit/s at 1, published 10"]);
    // With a reason it is explained, and the verdict stays.
    let reason = "because = \"b\"\nshown_by = [\"t.toml\"]";
    let row = judged(reason, 8.5e6, 22e6);
    assert_eq!((row.verdict, row.unexplained, row.needless_reason), (Verdict::Differs, false, false));
    // A reason where nothing differs is noted.
    assert!(judged(reason, 10e6, 22e6).needless_reason);
    // A claim that does not hold: 19.9 is not twice 10.
    let row = judged("", 10e6, 19.9e6);
    assert_eq!((row.verdict, row.says[0].holds), (Verdict::Differs, false));
    assert_eq!(row.says[0].found, "19.9 at 1, at least 20 Mbit/s");
    // Weir's scheme is worse than the paper's here.
    let row = judged("", 10.9e6, 9.5e6);
    assert_eq!(row.differences[0], "s: Weir's scheme is worse than the paper's here, -12.8 % at 1");
}

#[test]
fn units_of_rows_are_those_of_metrics() {
    assert_eq!(factor(Unit::Rate, "Mbit/s"), Some(1e-6));
    assert_eq!(factor(Unit::Rate, "kB/s"), Some(1.0 / 8000.0));
    assert_eq!(factor(Unit::Micros, "ms"), Some(1e-3));
    assert_eq!(factor(Unit::Rate, "ms"), None);
    assert_eq!(factor(Unit::Count, "packets"), Some(1.0));
}

#[test]
fn numbers_are_short() {
    assert_eq!(
        [1234.5, 123.45, 12.345, 0.12345, 5.0, 0.0].map(short),
        ["1234", "123.5", "12.35", "0.123", "5", "0"]
    );
}
