//! `weir sim` and `weir compare` as commands: what they write, and how they end.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A lossy path, so that seeds matter.
const LOSSY: &str = "name = 'lossy'
duration = '2s'
[path]
rtt = '20ms'
wan = { rate = '10Mbit', queue = '1bdp', out = { loss = '1%' } }
[[flow]]
id = 'a'
cc = 'reno'
count = 2
[[flow]]
id = 'b'
cc = 'cubic'
direction = 'in'
bytes = '200kB'
start = '500ms'
";

fn weir(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir")).args(args).output().unwrap()
}

/// A fresh directory of this test's own.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sim").join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn file(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_string()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn json(out: &Output) -> Value {
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&out.stderr)))
}

/// Without the one thing that is not the same each time.
fn timeless(mut value: Value) -> Value {
    match &mut value {
        Value::Object(map) => {
            map.remove("wall_s");
            if let Some(Value::Array(runs)) = map.get_mut("runs") {
                runs.iter_mut().for_each(|run| *run = timeless(run.take()));
            }
        }
        other => panic!("no result: {other}"),
    }
    value
}

#[test]
fn the_same_again() {
    let d = directory("again");
    let file = file(&d, "lossy.toml", LOSSY);
    let out = weir(&["sim", &file, "--json", "-"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let first = timeless(json(&out));
    assert_eq!(first, timeless(json(&weir(&["sim", &file, "--json", "-"]))));
    assert_eq!((&first["world"], &first["status"], &first["seed"]), (&"sim".into(), &"ok".into(), &1.into()));
    assert_eq!(first["made_by"]["kernel"], "");
    assert!(first["flows"].as_array().unwrap().iter().all(|f| f["retransmits"].is_u64()));
    let other = timeless(json(&weir(&["sim", &file, "--json", "-", "--seed", "2"])));
    assert_eq!(other["seed"], 2);
    assert_ne!(first["flows"], other["flows"]);
    // The table is on standard error, without control characters.
    let table = text(&out.stderr);
    assert!(table.contains("lossy\nsim, seed 1: 2 s in ") && table.contains("a.1"), "{table}");
    assert!(!table.contains('\x1b'), "{table:?}");
}

#[test]
fn a_sweep_is_the_same_at_any_number_of_jobs() {
    let d = directory("jobs");
    let sweep =
        format!("{LOSSY}[sweep]\n'path.wan.out.loss' = ['0.1%', '1%', '3%']\n'flow.a.count' = [1, 2]\n");
    let file = file(&d, "sweep.toml", &sweep);
    let with = |jobs: &str| weir(&["sim", &file, "--json", "-", "--jobs", jobs, "--seeds", "2"]);
    let (one, four) = (with("1"), with("4"));
    assert_eq!(one.status.code(), Some(0), "{}", text(&one.stderr));
    let (one, four) = (timeless(json(&one)), timeless(json(&four)));
    assert_eq!(one, four);
    let runs = one["runs"].as_array().unwrap();
    let told = |r: &Value| {
        let s = &r["settings"];
        (
            s["path.wan.out.loss"].as_f64().unwrap(),
            s["flow.a.count"].as_u64().unwrap(),
            r["seed"].as_u64().unwrap(),
        )
    };
    assert_eq!(runs.len(), 12);
    assert_eq!(told(&runs[0]), (0.001, 1, 1));
    assert_eq!(told(&runs[3]), (0.001, 2, 2));
    assert_eq!(told(&runs[11]), (0.03, 2, 2));
    let summary = one["summary"].as_array().unwrap();
    assert_eq!(summary.len(), 6);
    let group = &summary[0]["groups"][0];
    assert_eq!((&group["group"], &group["goodput_bps"]["n"]), (&"a".into(), &2.into()));
    assert!(group["goodput_bps"]["ci95"].as_f64().unwrap() > 0.0);
    // Received bytes are left out.
    assert_eq!(runs[0]["series"], serde_json::json!({}));
}

/// The second run cannot write its frames, the last two fail their check.
#[test]
fn runs_that_fail_stop_no_others() {
    let d = directory("failing");
    let expect = "[[expect]]\nwhat = 'link.wan.out.drops'\nop = 'equals'\ntarget = 0\n";
    let sweep = format!("{LOSSY}{expect}[sweep]\n'path.wan.out.loss' = [0, '5%']\nseed = [1, 2]\n");
    let sweep = sweep.replace("queue = '1bdp'", "queue = '10000p'");
    let (file, pcap, out) = (file(&d, "sweep.toml", &sweep), d.join("pcap"), d.join("out"));
    std::fs::create_dir(&pcap).unwrap();
    std::fs::write(pcap.join("002"), "in the way").unwrap();
    let path = |p: &Path| p.to_str().unwrap().to_string();
    let ended = weir(&["sim", &file, "--json", "-", "--pcap", &path(&pcap), "--out", &path(&out)]);
    assert_eq!(ended.status.code(), Some(3), "{}", text(&ended.stderr));
    let result = json(&ended);
    let runs = result["runs"].as_array().unwrap();
    let status: Vec<&str> = runs.iter().map(|r| r["status"].as_str().unwrap()).collect();
    assert_eq!(status, ["ok", "failed", "failed", "failed"]);
    assert!(runs[1]["error"].as_str().unwrap().contains("002"), "{}", runs[1]);
    assert_eq!(runs[3]["expects"][0]["ok"], false);
    let table = text(&ended.stderr);
    assert!(table.contains("4 runs, 1 ok, 3 FAILED"), "{table}");
    assert!(table.contains("could not run  path.wan.out.loss = 0, seed = 2: "), "{table}");
    let failed = "FAILED  path.wan.out.loss = 5%, seed = 1: link.wan.out.drops = 0: found ";
    assert!(table.contains(failed), "{table}");
    assert!(out.join("004/rate.svg").is_file() && out.join("result.json").is_file());
    let index = std::fs::read_to_string(out.join("index.csv")).unwrap();
    let lines: Vec<&str> = index.lines().collect();
    assert!(lines[0].starts_with("run,path.wan.out.loss,seed,"), "{index}");
    assert!(lines[1].starts_with("001,0,1,") && lines[4].starts_with("004,0.05,2,"), "{index}");
    let title = std::fs::read_to_string(out.join("004/rate.svg")).unwrap();
    assert!(title.contains("path.wan.out.loss = 5%, seed = 2"), "the settings are in the title");
    assert!(pcap.join("004/clients.pcap").is_file());
}

/// A sweep in three parts, of which one is killed and begun again, is the same as in one.
#[test]
fn parts_of_a_sweep_are_the_sweep() {
    let d = directory("parts");
    let sweep = format!("{LOSSY}[sweep]\n'path.wan.out.loss' = ['0.1%', '1%']\n'flow.a.count' = [1, 2]\n");
    let (file, store) = (file(&d, "sweep.toml", &sweep), d.join("store"));
    let common = [&file, "--store", store.to_str().unwrap(), "--seeds", "3"];
    let call = |more: &[&str]| {
        let args: Vec<&str> = more[..1].iter().chain(&common).chain(&more[1..]).copied().collect();
        weir(&args)
    };
    let merged = call(&["merge"]);
    assert_eq!(merged.status.code(), Some(2));
    assert!(text(&merged.stderr).contains("12 of 12 runs are not in "), "{}", text(&merged.stderr));

    let mut killed = Command::new(env!("CARGO_BIN_EXE_weir"));
    killed.arg("sweep").args(common).args(["--shard", "1/3", "--jobs", "1"]).stdout(Stdio::null());
    let mut killed = killed.spawn().unwrap();
    let kept = || std::fs::read_dir(&store).map_or(0, |files| files.flatten().filter(is_result).count());
    while kept() == 0 {
        std::thread::sleep(Duration::from_millis(2));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let before = kept();
    let again = call(&["sweep", "--shard", "1/3"]);
    assert_eq!(text(&again.stdout), format!("{} runs made, {before} were there\n", 4 - before));

    let merged = call(&["merge"]);
    assert_eq!(merged.status.code(), Some(2));
    assert!(text(&merged.stderr).contains("8 of 12 runs are not in "), "{}", text(&merged.stderr));
    assert_eq!(json(&call(&["merge", "--partial", "--json", "-"]))["runs"].as_array().unwrap().len(), 4);
    for shard in ["2/3", "3/3"] {
        assert_eq!(text(&call(&["sweep", "--shard", shard]).stdout), "4 runs made, 0 were there\n");
    }
    let out = d.join("out");
    let parts = json(&call(&["merge", "--json", "-", "--out", out.to_str().unwrap()]));
    let whole = json(&weir(&["sim", &file, "--seeds", "3", "--json", "-"]));
    assert_eq!(timeless(parts), timeless(whole));
    assert!(out.join("index.csv").is_file());
    // A shard of none, and a folder that is a file.
    assert_eq!(call(&["sweep", "--shard", "4/3"]).status.code(), Some(2));
    let wrong = weir(&["sweep", &file, "--store", &file]);
    assert_eq!(wrong.status.code(), Some(3), "{}", text(&wrong.stderr));
}

fn is_result(file: &std::fs::DirEntry) -> bool {
    file.path().extension().is_some_and(|end| end == "json")
}

#[test]
fn a_failed_expectation_is_exit_code_1() {
    let d = directory("expect");
    let text =
        format!("{LOSSY}[[expect]]\nwhat = 'flow.a.*.goodput_bps'\nop = 'at_least'\ntarget = '9Mbit'\n");
    let out = weir(&["sim", &file(&d, "x.toml", &text)]);
    assert_eq!(out.status.code(), Some(1));
    assert!(self::text(&out.stderr).contains("1 expectation does not hold"));
}

/// Rows of a sweep are labelled with its values, so another seed for all of them is refused.
#[test]
fn a_seed_beside_swept_seeds_is_refused() {
    let directory = directory("seeds");
    let file = file(&directory, "s.toml", &format!("{LOSSY}\n[sweep]\nseed = [1, 2]\n"));
    let out = weir(&["sim", &file, "--seed", "9"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("[sweep] varies `seed`"), "{}", text(&out.stderr));
}

#[test]
fn an_unknown_congestion_control_is_refused_with_those_that_exist() {
    let d = directory("unknown");
    let file = file(&d, "x.toml", &LOSSY.replace("'cubic'", "'illinois'"));
    let out = weir(&["sim", &file]);
    assert_eq!(out.status.code(), Some(2));
    let said = text(&out.stderr);
    assert!(said.contains(&file) && said.contains("illinois") && said.contains("cc"), "{said}");
    assert!(said.contains("`reno`") && said.contains("`cubic`"), "{said}");
    assert!(out.stdout.is_empty());
}

#[test]
fn captures_are_read_by_tcpdump() {
    let d = directory("pcap");
    let (file, pcap) = (file(&d, "lossy.toml", LOSSY), d.join("frames"));
    let result = json(&weir(&["sim", &file, "--json", "-", "--pcap", pcap.to_str().unwrap()]));
    let names: Vec<String> = {
        let entries =
            std::fs::read_dir(&pcap).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = entries.collect();
        names.sort();
        names
    };
    let all = "clients gw-lan gw-wan lan.back lan.out servers wan.back wan.out";
    assert_eq!(names, all.split(' ').map(|n| format!("{n}.pcap")).collect::<Vec<_>>());
    let read = |name: &str| {
        let path = pcap.join(format!("{name}.pcap"));
        let out = Command::new("tcpdump").args(["-nvv", "-tt", "--nano", "-r"]).arg(path).output().unwrap();
        assert!(out.status.success(), "{}", text(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let clients = read("clients");
    // A frame is a line that begins with its time, and one for TCP.
    let frames = |dump: &str| dump.lines().filter(|l| !l.starts_with(' ')).count() as u64;
    let packets = |link: usize| result["links"][link]["packets"].as_u64().unwrap();
    assert_eq!(frames(&clients), packets(0) + packets(1));
    assert_eq!(frames(&read("lan.out")), packets(0));
    assert!(clients.starts_with("0.000000000 IP "), "{clients:.100}");
    assert!(clients.contains("Flags [S]") && clients.contains("mss 1460") && clients.contains("(correct)"));
    assert!(!clients.contains("incorrect") && !clients.contains("bad cksum"));
}

/// Sends SIGINT once the process catches it.
fn interrupt(pid: u32) {
    let begin = Instant::now();
    let catches = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let mask =
            status.lines().find_map(|l| l.strip_prefix("SigCgt:")).map(str::trim).unwrap_or("0").to_string();
        u64::from_str_radix(&mask, 16).unwrap_or(0) >> 1 & 1 == 1
    };
    while !catches() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it never caught SIGINT");
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}

#[test]
fn ctrl_c_leaves_what_has_been_computed() {
    let d = directory("interrupted");
    // All flows begin at once: a flow that has not begun has no row.
    let long = LOSSY.replace("'2s'", "'100000s'").replace("'500ms'", "'0s'");
    let (file, result) = (file(&d, "long.toml", &long), d.join("result.json"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(["sim", &file, "--json"]).arg(&result).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    interrupt(child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let result: Value = serde_json::from_slice(&std::fs::read(result).unwrap()).unwrap();
    assert_eq!((&result["status"], &result["expects"]), (&"interrupted".into(), &serde_json::json!([])));
    let seconds = result["duration_s"].as_f64().unwrap();
    assert!(seconds > 0.0 && seconds < 100_000.0);
    assert_eq!(result["flows"].as_array().unwrap().len(), 3);
}

/// A path of a nanosecond has thousands of segments in each: no machine gets to its end.
#[test]
fn ctrl_c_ends_a_run_that_has_no_rate() {
    let d = directory("endless");
    let text = "name = 'x'\nduration = '1s'\n[path]\nrtt = '1ns'\n[[flow]]\nid = 'a'\n";
    let file = file(&d, "endless.toml", text);
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let mut child = command.args(["sim", &file]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    interrupt(child.id());
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("it does not stop");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn ctrl_c_in_a_sweep_leaves_the_runs_that_were_made() {
    let d = directory("interrupted-sweep");
    // The first runs are done at once, the others never.
    let sweep = format!("{LOSSY}[sweep]\nduration = ['1s', '100000s', '99999s']\n").replace("interval", "#");
    let (file, result) = (file(&d, "long.toml", &sweep), d.join("result.json"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(["sim", &file, "--jobs", "1", "--out"]).arg(&d).arg("--json").arg(&result);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    while !d.join("001/rate.svg").is_file() {
        assert!(begin.elapsed() < Duration::from_secs(60), "the first run was never written");
        std::thread::sleep(Duration::from_millis(5));
    }
    interrupt(child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let result: Value = serde_json::from_slice(&std::fs::read(result).unwrap()).unwrap();
    let status: Vec<&Value> = result["runs"].as_array().unwrap().iter().map(|r| &r["status"]).collect();
    assert_eq!(status[0], "ok");
    assert!(status[1..].iter().all(|s| *s == "interrupted") && status.len() < 3, "{status:?}");
}

#[test]
fn results_are_compared() {
    let d = directory("compare");
    let experiment = file(&d, "lossy.toml", &format!("{LOSSY}[parity]\ngoodput = 0.05\nfct = 0.1\n"));
    let result = |seed: &str| {
        let out = weir(&["sim", &experiment, "--json", "-", "--seed", seed]);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        out.stdout
    };
    let write = |name: &str, bytes: &[u8]| file(&d, name, text(bytes));
    let (a, same, b) =
        (write("a.json", &result("1")), write("same.json", &result("1")), write("b.json", &result("2")));
    let out = weir(&["compare", &a, &same]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(
        text(&out.stdout).contains("ok      parity: goodput within 5 %, fct within 10 %"),
        "{}",
        text(&out.stdout)
    );
    // Flows that share a lossy path do not share it equally.
    let out = weir(&["compare", &a, &b, "--goodput", "0.0001"]);
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stdout));
    assert!(text(&out.stderr).contains("outside parity"));
    let out = weir(&["compare", &a, &b, "--goodput", "1000", "--fct", "1000", "--json", "-"]);
    assert_eq!((out.status.code(), json(&out)["outside"].as_array().unwrap().len()), (Some(0), 0));
    let out = weir(&["compare", &a, d.join("none.json").to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("none.json: No such file"), "{}", text(&out.stderr));
    let out = weir(&["compare", &a, &experiment]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("lossy.toml: no JSON: "), "{}", text(&out.stderr));
    assert_eq!(weir(&["compare", &a]).status.code(), Some(2));
}
