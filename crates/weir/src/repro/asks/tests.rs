use super::super::rows;
use super::super::work::make;
use super::*;
use crate::execute::progress::Progress;
use crate::execute::store::Store;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const EXPERIMENT: &str = r#"
name = "t"
duration = "1s"
flow = [{ id = "a" }]
path.wan = { rate = "10Mbit", queue = "100p" }
sweep."path.wan.rate" = ["1Mbit", "2Mbit", "4Mbit"]
[[expect]]
what = "flow.a.0.goodput_bps"
op = "at_least"
target = "100kbit"
"#;

fn rows_of(weir: &str) -> String {
    format!(
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
minutes = 0.1
unit = "Mbit/s"
x = ["1", "2", "4"]
[[row.series]]
name = "s"
weir = [{weir}]
"#
    )
}

const GOODPUT: &str = r#"{ file = "t.toml", what = "flow.a.0.goodput_bps", sweep = "path.wan.rate" }"#;

/// A paper in a folder.
fn paper(folder: &Path, experiment: &str, weir: &str) -> Result<Vec<Paper>, String> {
    std::fs::write(folder.join("t.toml"), experiment).unwrap();
    std::fs::write(folder.join(rows::FILE), rows_of(weir)).unwrap();
    Ok(vec![rows::read(folder).map_err(|e| e.to_string())?])
}

fn experiments_of(folder: &Path, experiment: &str, weir: &str) -> Result<Vec<Experiment>, String> {
    let papers = paper(folder, experiment, weir)?;
    experiments(&papers, &papers, Backend::Sim).map_err(|e| e.to_string())
}

#[test]
fn a_fault_of_a_measure_is_shown_in_the_rows() {
    let folder = tempfile::tempdir().unwrap();
    for (measure, words) in [
        (r#"{ file = "t.toml", what = "flow.b.0.goodput_bps" }"#, "no flow is named `b.0`"),
        (r#"{ file = "t.toml", what = "flow.a.0.goodput_bps", from = "2s" }"#, "2s is not before"),
        (
            r#"{ file = "t.toml", what = "flow.a.0.goodput_bps", baseline = "none" }"#,
            "no baseline is named `none`",
        ),
    ] {
        let error = experiments_of(folder.path(), EXPERIMENT, measure).unwrap_err();
        assert!(error.contains("rows.toml:16:9:") && error.contains(words), "{error}");
    }
    let error = experiments_of(folder.path(), "name = 1", GOODPUT).unwrap_err();
    assert!(error.contains("t.toml:1:"), "{error}");
}

#[test]
fn settings_choose_runs_whatever_their_notation() {
    let folder = tempfile::tempdir().unwrap();
    let all = experiments_of(folder.path(), EXPERIMENT, GOODPUT).unwrap();
    let chosen = |set: &str, sweep: Option<&str>| {
        let set = BTreeMap::from([("path.wan.rate".to_string(), toml::Value::String(set.into()))]);
        all[0].chosen(&Measured { set, sweep: sweep.map(str::to_string), ..Measured::default() })
    };
    assert_eq!(chosen("2000kbit", None).unwrap(), [[1]]);
    assert!(chosen("3Mbit", None).is_err());
    let by_rate = Measured { sweep: Some("path.wan.rate".into()), ..Measured::default() };
    assert_eq!(all[0].chosen(&by_rate).unwrap(), [[0], [1], [2]]);
    let wrong = Measured { sweep: Some("path.wan.rat".into()), ..Measured::default() };
    assert!(all[0].chosen(&wrong).unwrap_err().to_string().contains("did you mean `path.wan.rate`?"));
}

#[test]
fn a_key_changes_with_all_that_decides_a_value() {
    let folder = tempfile::tempdir().unwrap();
    let key = |experiment: &str, weir: &str, version: &str| {
        experiments_of(folder.path(), experiment, weir).unwrap()[0].key(0, version)
    };
    let own = key(EXPERIMENT, GOODPUT, "1");
    assert_eq!(own, key(EXPERIMENT, GOODPUT, "1"));
    let other = GOODPUT.replace("goodput_bps", "bytes");
    let changed = [
        key(EXPERIMENT, GOODPUT, "2"),
        key(&EXPERIMENT.replace("100p", "90p"), GOODPUT, "1"),
        key(&EXPERIMENT.replace("100kbit", "90kbit"), GOODPUT, "1"),
        key(EXPERIMENT, &other, "1"),
    ];
    assert!(changed.iter().all(|k| *k != own), "{changed:?}");
}

/// A run of 1000 s that ends when the process gets a signal would do; here the third run sets the flag.
#[test]
fn an_interrupted_report_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let all = experiments_of(folder.path(), EXPERIMENT, GOODPUT).unwrap();
    let store = Store::open(&folder.path().join("runs"), "1").unwrap();
    let (stop, made) = (AtomicBool::new(false), AtomicUsize::new(0));
    let run = |stop_at: usize| {
        made.store(0, Ordering::Relaxed);
        let one = |e: &Experiment, n: usize, p: &Progress| {
            if made.fetch_add(1, Ordering::Relaxed) + 1 == stop_at {
                stop.store(true, Ordering::Relaxed);
            }
            let options = crate::execute::sim::Options { pcap: None, progress: Some(p), stop: &stop };
            crate::execute::sim::run(e.runs[n].plan(), &options)
        };
        let given = make(&all, &store, 1, &stop, one).unwrap();
        (given, made.load(Ordering::Relaxed))
    };
    // The second run is cut short, so it is not kept, and the third does not begin.
    let (given, runs) = run(2);
    assert_eq!((runs, given[0][2].is_none()), (2, true));
    assert_eq!(given[0][1].as_ref().unwrap().faults, ["interrupted"]);
    stop.store(false, Ordering::Relaxed);
    let (given, runs) = run(0);
    assert_eq!(runs, 2);
    let goodput = |n: usize| given[0][n].as_ref().unwrap().values.values().next().unwrap()[0].value;
    // 1448 of 1514 bytes are payload, once slow start is over.
    for (n, mbit) in [(0, 1.0), (1, 2.0), (2, 4.0)] {
        let share = goodput(n) / (mbit * 1e6 * 1448.0 / 1514.0);
        assert!((0.9..=1.001).contains(&share), "{n}: {share}");
    }
    assert_eq!(run(0).1, 0);
    let other = Store::open(&folder.path().join("runs"), "2").unwrap();
    let fresh = make(&all, &other, 1, &stop, |_, _, _| Err("it broke".into())).unwrap();
    assert!(fresh[0].iter().all(|g| g.as_ref().unwrap().faults == ["it broke"]));
}
