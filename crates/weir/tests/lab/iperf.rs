//! iperf3 as a cross-check on the same path.

use super::life::{helper_from, interrupt};
use super::{holds, id, installed, judged, root, turn};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;
use weir_core::time::Duration as Nanos;

/// One shaped path, measured once with iperf3 and once with our own generator.
#[test]
fn iperf3_agrees() {
    let _turn = turn();
    if !root() || !installed("iperf3") || !installed("tc") {
        return;
    }
    judged("iperf3", iperf3_and_ours);
}

fn iperf3_and_ours() -> Result<(), String> {
    let name = id("iperf");
    // A lab that only stands there: its flow starts when the lab is long gone.
    let mut lab = helper_from(&name, "50s");
    let inside = |place: &str, program: &str| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("weir-{name}-{place}"), program]);
        command.stdout(Stdio::piped());
        command
    };
    let shape =
        ["qdisc", "add", "dev", "wan", "root", "tbf", "rate", "100mbit", "burst", "64kb", "latency", "20ms"];
    assert!(inside("gw", "tc").args(shape).status().unwrap().success());

    let mut server = inside("sv", "iperf3").args(["-s", "-1", "-p", "6001"]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let client = ["-c", "10.0.0.2", "-p", "6001", "-t", "3", "-J", "-C", "reno"];
    let out = inside("cl", "iperf3").args(client).output().unwrap();
    server.wait().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let theirs = report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();

    let ours = measure_by_hand(&inside);
    interrupt(&mut lab);
    let rates = format!("iperf3 {theirs:.0} b/s, ours {ours:.0} b/s");
    println!("{rates}");
    holds((ours / theirs - 1.0).abs() < 0.1 && (80e6..100e6).contains(&ours), rates)
}

/// Three seconds between two `weir traffic` processes driven as [`weir::execute::traffic::serve`] says, in
/// bits per second.
fn measure_by_hand(inside: &impl Fn(&str, &str) -> Command) -> f64 {
    let flow = |role, local, remote, sends| {
        format!(
            r#"{{"id": "f", "role": "{role}", "local": "10.0.0.{local}", "remote": "10.0.0.{remote}", "sends": {sends},
               "start_ns": 0, "amount": {{"until_ns": 3000000000}}, "cc": "reno"}}"#
        )
    };
    let sides = [
        ("sv", flow("listen", "2:6002", "1:7002", false)),
        ("cl", flow("connect", "1:7002", "2:6002", true)),
    ];
    let mut processes = sides.map(|(place, flow)| {
        let mut process =
            inside(place, env!("CARGO_BIN_EXE_weir")).arg("traffic").stdin(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.as_mut().unwrap();
        writeln!(input, r#"{{"stop_ns": 4000000000, "flows": [{flow}]}}"#).unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut ready = String::new();
        output.read_line(&mut ready).unwrap();
        assert_eq!(ready.trim(), "ready");
        (process, output)
    });
    let epoch = weir::execute::traffic::monotonic() + Nanos::from_millis(20);
    for (process, _) in &mut processes {
        writeln!(process.stdin.as_mut().unwrap(), "go {}", epoch.as_nanos()).unwrap();
    }
    let reports = processes.map(|(mut process, mut output)| {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert!(process.wait().unwrap().success());
        serde_json::from_str::<weir::execute::traffic::Report>(&line).unwrap()
    });
    assert!(reports.iter().all(|r| r.flows[0].error.is_none()), "{reports:?}");
    let got = reports[0].flows[0].received.as_ref().unwrap();
    got.bytes_in_time as f64 * 8.0 / 3.0
}
