//! `weir repro` as a program: a report that is killed goes on where it was, and names are checked.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Number of runs: enough to be killed among them.
const RUNS: usize = 12;

/// Writes a paper with a row of many short runs and one that differs without a reason.
fn papers(folder: &Path) {
    let paper = folder.join("papers/one");
    std::fs::create_dir_all(&paper).unwrap();
    let rates: Vec<String> = (1..=RUNS).map(|n| format!("\"{n}Mbit\"")).collect();
    let experiment = format!(
        "name = \"t\"\nduration = \"120s\"\nflow = [{{ id = \"a\" }}]\n\
         path.wan = {{ rate = \"9Mbit\", queue = \"100p\" }}\nsweep.\"path.wan.rate\" = [{}]\n",
        rates.join(", ")
    );
    std::fs::write(paper.join("t.toml"), experiment).unwrap();
    let x: Vec<String> = (1..=RUNS).map(|n| format!("\"{n}\"")).collect();
    // 1448 of 1514 bytes are payload.
    let published: Vec<String> = (1..=RUNS).map(|n| format!("{:.3}", n as f64 * 1448.0 / 1514.0)).collect();
    let mut rows = "[paper]\ntitle = \"T\"\nauthors = \"A\"\nyear = 2000\n".to_string();
    for (id, tolerance) in [("fig1", "2%"), ("fig2", "0.0001%")] {
        let _ = write!(
            rows,
            "[[row]]\nid = \"{id}\"\ncovers = [\"fig. 1\"]\ntitle = \"t\"\nclaim = \"c\"\nminutes = 0.1\n\
             unit = \"Mbit/s\"\nx = [{}]\ntolerance = \"{tolerance}\"\ntolerance_from = \"test\"\n\
             [[row.series]]\nname = \"s\"\npublished = [{}]\n\
             weir = [{{ file = \"t.toml\", what = \"flow.a.0.goodput_bps\", sweep = \"path.wan.rate\" }}]\n",
            x.join(", "),
            published.join(", ")
        );
    }
    std::fs::write(paper.join("rows.toml"), rows).unwrap();
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("repro").args(arguments).args(["--jobs", "1", "--papers", "papers", "--out", "out"]);
    command.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let Output { status, stdout, stderr } = command(folder, arguments).output().unwrap();
    let text = String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap();
    (status.code().unwrap(), text)
}

fn results(folder: &Path) -> Vec<(std::ffi::OsString, std::time::SystemTime)> {
    let Ok(entries) = std::fs::read_dir(folder.join("out/runs")) else { return Vec::new() };
    let whole = |e: &std::fs::DirEntry| e.path().extension().is_some_and(|x| x == "json");
    let mut all: Vec<_> = entries
        .map(|e| e.unwrap())
        .filter(whole)
        .map(|e| (e.file_name(), e.metadata().unwrap().modified().unwrap()))
        .collect();
    all.sort();
    all
}

#[test]
fn a_report_that_is_killed_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    papers(folder.path());
    let mut first = command(folder.path(), &["one", "fig1"]).spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(120);
    while results(folder.path()).len() < 2 {
        assert!(Instant::now() < patience, "no results");
        std::thread::sleep(Duration::from_millis(2));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    let kept = results(folder.path());
    assert!(kept.len() < RUNS, "it was over before it was killed");
    assert!(!folder.path().join("out/report.html").exists());

    let (code, text) = run(folder.path(), &["one", "fig1"]);
    assert_eq!(code, 0, "{text}");
    let all = results(folder.path());
    // What was there has not been written again.
    assert!(all.len() == RUNS && kept.iter().all(|k| all.contains(k)), "{kept:?} {all:?}");
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("agrees") && page.contains("<svg"));
    let json = std::fs::read(folder.path().join("out/report.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let row = &json["papers"][0]["rows"][0];
    assert_eq!(
        (row["verdict"].as_str(), row["command"].as_str()),
        (Some("agrees"), Some("weir repro one fig1"))
    );

    // A row that differs without a reason is an error, and is the first of the report.
    let (code, text) = run(folder.path(), &["one"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("no reason is given") && text.contains("1 row differs without a reason"), "{text}");
    assert_eq!(results(folder.path()), all);
}

#[test]
fn a_name_that_does_not_exist_is_answered_with_those_that_do() {
    let folder = tempfile::tempdir().unwrap();
    papers(folder.path());
    let (code, text) = run(folder.path(), &["on"]);
    assert_eq!((code, text.trim()), (2, "weir: no paper is named `on`: did you mean `one`? there is `one`"));
    let (code, text) = run(folder.path(), &["one", "fig3"]);
    assert_eq!(code, 2);
    assert!(text.contains("did you mean `fig1`? there is `fig1` and `fig2`"), "{text}");
    let (code, text) = run(folder.path(), &["--papers", "nowhere"]);
    assert_eq!(code, 2, "{text}");
}
