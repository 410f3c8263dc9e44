//! A gateway of two engines, which share out the classes of hosts.

use super::life::{children_of, wait_until};
use super::{holds, id, judged, left_behind, options, root, turn, without_faults};
use std::fmt::Write;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use weir::execute::lab::{self, Options, Outcome};
use weir::experiment::config::{engines, experiment, Source};
use weir::experiment::plan::Plan;
use weir::report::expect;
use weir::result::Backend;

const HOSTS: u32 = 8;
/// Rate of each host's downloads together.
const RATE: f64 = 4e6;
/// Rates are measured from here on, in seconds: all has happened by then.
const FROM: u32 = 7;

/// Each host has a class for its downloads.
fn classes() -> String {
    let mut text = String::new();
    for n in 0..HOSTS {
        // As hosts have them: from 10.1.0.1 on.
        writeln!(
            text,
            "[[gateway.class]]\nname = \"home{n}\"\ndirection = \"in\"\nrate = \"4Mbit\"\nmatch = [{{ dst = \"10.1.0.{}/32\" }}]",
            n + 1
        )
        .unwrap();
    }
    text
}

/// Each host has two downloads.
fn plan() -> Plan {
    let text = format!(
        "name = \"engines\"\nduration = \"12s\"\nbin = \"500ms\"\n[path]\nrtt = \"20ms\"\n\
         [[host]]\nname = \"homes\"\nside = \"lan\"\ncount = {HOSTS}\n\
         [[flow]]\nid = \"down\"\ndirection = \"in\"\nclient = \"homes\"\ncount = {}\n\
         [[expect]]\nwhat = \"class.*.goodput_bps\"\nfrom = \"{FROM}s\"\nop = \"within\"\ntarget = \"4Mbit\"\ntolerance = \"3%\"\n\
         [gateway]\n{}",
        2 * HOSTS,
        classes()
    );
    let parsed = experiment::parse(&Source::new("engines.toml", text)).unwrap_or_else(|e| panic!("{e}"));
    parsed.plan_for(Backend::Lab).unwrap_or_else(|e| panic!("{e}"))
}

/// Hosts that a second engine has.
fn seconds(plan: &Plan) -> Vec<usize> {
    engines::split(plan.gateway.as_ref().unwrap(), 2).parts[1].places.clone()
}

/// The supervisor of the lab's gateway and its file.
fn gateway(id: &str) -> (u32, String) {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        for pid in children_of(std::process::id()) {
            let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let arguments: Vec<&str> = line.split('\0').collect();
            if arguments.get(1) == Some(&"run") && arguments.get(2).is_some_and(|file| file.contains(id)) {
                return (pid, arguments[2].to_owned());
            }
        }
        assert!(Instant::now() < until, "the gateway never ran");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn output(id: &str, arguments: &[&str]) -> Output {
    let namespace = format!("weir-{id}-gw");
    let inside = ["netns", "exec", &namespace, env!("CARGO_BIN_EXE_weir")];
    Command::new("ip").args(inside).args(arguments).output().unwrap()
}

/// Waits until the gateway answers: its programs take the kernel seconds, or more on a busy machine.
fn wait_for_answers(id: &str) {
    let until = Instant::now() + Duration::from_secs(30);
    while !output(id, &["ctl", "show"]).status.success() {
        assert!(Instant::now() < until, "the gateway never answered");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn weir(id: &str, arguments: &[&str]) -> String {
    let output = output(id, arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Runs the plan with two engines, and something else from two seconds after the gateway's first answer on.
/// Fails if that comes too late for what is measured, as on a machine that has no time.
fn run(plan: &Plan, name: &str, meanwhile: impl FnOnce(u32, String) + Send) -> Result<Outcome, String> {
    let file = format!("[ports]\ndev = \"wan\"\nengines = 2\n{}", classes());
    let options = Options { engines: Some(2), file: Some(file), ..options(name) };
    let outcome = std::thread::scope(|scope| {
        let other = scope.spawn(move || {
            let (pid, file) = gateway(name);
            let began = Instant::now();
            wait_for_answers(name);
            let answered = began.elapsed();
            std::thread::sleep(Duration::from_secs(2));
            holds(began.elapsed() < Duration::from_secs(FROM.into()), answered)?;
            meanwhile(pid, file);
            Ok(())
        });
        let outcome = lab::run(plan, &options).unwrap();
        other.join().unwrap().map(|()| outcome)
    });
    assert!(!left_behind(name), "the lab left something behind");
    outcome
}

/// Every host is at its rate, and no flow went wrong.
fn at_their_rates(plan: &Plan, outcome: &Outcome) -> Result<(), String> {
    without_faults(outcome)?;
    let samples = expect::measure(&plan.expects[0].measure, plan.bin, &outcome.result);
    assert_eq!(samples.len(), HOSTS as usize);
    let off: Vec<(String, f64)> = samples.iter().map(|s| (s.at.clone(), s.value / RATE - 1.0)).collect();
    let steering = outcome.result.gateway.as_ref().and_then(|g| g.steering);
    holds(off.iter().all(|(_, off)| off.abs() < 0.03), format!("{off:.3?}, {steering:?}"))
}

#[test]
fn both_engines_hold_their_hosts_at_their_rates() {
    if !root() {
        return;
    }
    let _turn = turn();
    let (plan, name) = (plan(), id("engines"));
    assert!((1..HOSTS as usize).contains(&seconds(&plan).len()), "each engine has some");
    judged("two engines", || {
        let mut said = String::new();
        let outcome = run(&plan, &name, |_, _| said = weir(&name, &["ctl", "--json", "show"]))?;
        // What is shown is the whole: the classes in their order, the flows of both.
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        let report = &said["report"];
        let names: Vec<&str> =
            report["classes"].as_array().unwrap().iter().filter_map(|c| c["name"].as_str()).collect();
        assert_eq!(names, (0..HOSTS).map(|n| format!("home{n}")).collect::<Vec<_>>());
        let flows = report["flows"].as_array().unwrap().len();
        let active = [0, 1].map(|n| report["engines"][n]["active_flows"].as_u64().unwrap());
        let seconds = 2 * seconds(&plan).len() as u64;
        let all = u64::from(2 * HOSTS);
        holds(flows as u64 == all && active == [all - seconds, seconds], (flows, active))?;
        at_their_rates(&plan, &outcome)
    });
}

/// The one process that has both engines. A supervisor whose engine got no time may just be starting another
/// one.
fn process_of_both(supervisor: u32) -> u32 {
    let mut found = None;
    wait_until("one process has both engines", || {
        let engines = children_of(supervisor);
        let threads = engines.iter().filter_map(|pid| std::fs::read_dir(format!("/proc/{pid}/task")).ok());
        let names =
            threads.flatten().flatten().filter_map(|t| std::fs::read_to_string(t.path().join("comm")).ok());
        found = (names.filter(|name| name.trim() == "engine 1").count() == 1 && engines.len() == 1)
            .then(|| engines[0]);
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn the_next_process_takes_the_flows_of_all_engines_up() {
    if !root() {
        return;
    }
    let _turn = turn();
    let (plan, name) = (plan(), id("engines-kill"));
    judged("two engines that are killed", || {
        let outcome = run(&plan, &name, |supervisor, _| {
            let engine = process_of_both(supervisor);
            let pid = rustix::process::Pid::from_raw(engine as i32).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        })?;
        let steering = outcome.result.gateway.as_ref().and_then(|g| g.steering).unwrap();
        holds(steering.restarts == 1, steering)?;
        at_their_rates(&plan, &outcome)
    });
}

#[test]
fn hosts_move_to_another_engine_and_stay_at_their_rates() {
    if !root() {
        return;
    }
    let _turn = turn();
    let (plan, name) = (plan(), id("engines-move"));
    let first = (0..HOSTS as usize).find(|host| !seconds(&plan).contains(host)).unwrap();
    // The group of this host begins with another address then, which has the other engine.
    let moved = |address: &str| {
        let mut config = plan.gateway.clone().unwrap();
        let mut rule = config.classes[first].matches[0].clone();
        rule.dst = weir_core::gateway::Prefix::new(address.parse().unwrap(), 32);
        config.classes[first].matches.push(rule);
        engines::split(&config, 2).parts[1].places.contains(&first)
    };
    let address = (1..=20).map(|n| format!("10.0.0.{n}")).find(|address| moved(address)).unwrap();
    judged("hosts that move", || {
        let mut moved_along = false;
        let outcome = run(&plan, &name, |_, file| {
            let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file:?}: {e}"));
            let old = format!("dst = \"10.1.0.{}/32\"", first + 1);
            assert!(text.contains(&old), "{text}");
            let new =
                text.replace(&format!("{{ {old} }}"), &format!("{{ {old} }}, {{ dst = \"{address}/32\" }}"));
            assert_ne!(new, text);
            std::fs::write(&file, new).unwrap();
            weir(&name, &["reload"]);
            std::thread::sleep(Duration::from_secs(2));
            let said: serde_json::Value =
                serde_json::from_str(&weir(&name, &["ctl", "--json", "show"])).unwrap();
            let active = said["report"]["engines"][1]["active_flows"].as_u64().unwrap();
            moved_along = active == 2 * (seconds(&plan).len() as u64 + 1);
        })?;
        let frames = &outcome.result.gateway.as_ref().unwrap().frames;
        holds(moved_along && frames.dropped.is_empty(), frames)?;
        at_their_rates(&plan, &outcome)
    });
}
