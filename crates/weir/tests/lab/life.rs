//! The life of labs: how they begin and end, and that nothing of them stays.

use super::{id, left_behind, options, plan, root, run};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use weir::execute::lab;

#[test]
fn a_name_is_taken_while_its_lab_runs() {
    if !root() {
        return;
    }
    let name = id("taken");
    let mut first = helper(&name);
    let refused = lab::run(&plan(200, vec![]), &options(&name)).unwrap_err();
    assert!(refused.contains("running already"), "{refused}");
    interrupt(&mut first);
    assert!(!left_behind(&name));
}

#[test]
fn a_gateway_that_does_not_start_is_told_and_nothing_stays() {
    if !root() {
        return;
    }
    let mut plan = plan(200, vec![]);
    plan.gateway = Some(weir_core::gateway::Config::default());
    let mut options = options(&id("nogw"));
    options.program = PathBuf::from("/bin/false");
    let error = lab::run(&plan, &options).unwrap_err();
    assert!(error.contains("the gateway: exit status: 1"), "{error}");
    assert!(!left_behind(&id("nogw")));
}

#[test]
fn an_interrupted_lab_keeps_what_it_has_and_leaves_nothing() {
    if !root() {
        return;
    }
    let name = id("int");
    let mut helper = helper(&name);
    std::thread::sleep(Duration::from_millis(1_500));
    let result = interrupt(&mut helper);
    assert!(!left_behind(&name));
    assert_eq!(result["status"], "interrupted", "{result}");
    assert!(result["flows"][0]["bytes"].as_u64().unwrap() > 100_000, "{result}");
    let covered = result["duration_s"].as_f64().unwrap();
    assert!((0.1..50.0).contains(&covered), "{result}");
}

#[test]
fn the_next_lab_cleans_up_after_one_that_was_killed() {
    if !root() {
        return;
    }
    let name = id("killed");
    let mut helper = helper(&name);
    let children = children_of(helper.id());
    assert_eq!(children.len(), 2, "two traffic processes");
    helper.kill().unwrap();
    helper.wait().unwrap();
    wait_until("the lab's processes are gone", || children.iter().all(|pid| !is_running(*pid)));
    assert!(left_behind(&name));
    run(&plan(200, vec![]), &options(&id("next")));
    assert!(!left_behind(&name));
}

/// A lab of 60 s.
const LONG: &str = r#"
name = "long"
duration = "60s"
interval = "200ms"

[[flow]]
id = "up"
cc = "reno"
start = "START"
"#;

/// Starts `weir lab` on the long lab, under this name, and waits until its traffic runs.
pub fn helper(name: &str) -> Child {
    helper_from(name, "100ms")
}

/// As [`helper`], with a flow that starts at `start`.
pub fn helper_from(name: &str, start: &str) -> Child {
    let child = helper_of(name, &LONG.replace("START", start), &[]);
    let record = Path::new("/run/weir/lab").join(name);
    wait_until("the lab stands", || {
        let text = std::fs::read_to_string(&record).unwrap_or_default();
        text.contains("-sv") && traffic_of(child.id()) == 2
    });
    std::fs::remove_file(file_of(name)).unwrap();
    child
}

/// Starts `weir lab` on this experiment, under this name and with these options, with its result on standard
/// output.
pub fn helper_of(name: &str, text: &str, options: &[&str]) -> Child {
    std::fs::write(file_of(name), text).unwrap();
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .arg("lab")
        .arg(file_of(name))
        .args(["--id", name, "--json", "-"])
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

fn file_of(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("{name}.toml"))
}

/// Number of processes that send and receive for a lab.
pub fn traffic_of(pid: u32) -> usize {
    children_of(pid).iter().filter(|&&c| is_traffic(c)).count()
}

/// Sends SIGINT and waits for the end; the result.
pub fn interrupt(child: &mut Child) -> serde_json::Value {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    serde_json::from_str(&said).unwrap()
}

pub fn children_of(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let text = tasks.filter_map(|t| std::fs::read_to_string(t.path().join("children")).ok());
    text.flat_map(|t| t.split_whitespace().filter_map(|p| p.parse().ok()).collect::<Vec<u32>>()).collect()
}

fn is_traffic(pid: u32) -> bool {
    let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.contains("\0traffic")
}

fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "not within 60 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
