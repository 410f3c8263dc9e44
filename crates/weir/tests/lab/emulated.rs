//! A running emulator is asked and changed.

use super::nets::Nets;
use super::{holds, installed, judged, root, turn};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Output, Stdio};

/// An emulator, which does not outlive its test.
struct Emulator(Child);

impl Drop for Emulator {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn begin(nets: &Nets, options: &[&str]) -> Emulator {
    let mut command = nets.inside("r", env!("CARGO_BIN_EXE_weir"));
    command.args(["wan", "--dev", "wan"]).args(options).stdout(Stdio::piped());
    let mut emulator = command.spawn().unwrap();
    let said = BufReader::new(emulator.stdout.as_mut().unwrap()).lines().next();
    assert_eq!(said.unwrap().unwrap(), "ready");
    Emulator(emulator)
}

fn ctl(nets: &Nets, words: &[&str]) -> Output {
    nets.inside("r", env!("CARGO_BIN_EXE_weir")).arg("ctl").args(words).output().unwrap()
}

/// Prints the least time in milliseconds that a SYN takes to be refused.
const ROUND_TRIP: &str = "
import socket, time
def one():
    s, t = socket.socket(), time.monotonic()
    s.connect_ex(('10.33.2.2', 9))
    return time.monotonic() - t
print(1e3 * min(one() for _ in range(5)))
";

fn round_trip(nets: &Nets) -> f64 {
    let out = nets.inside("c", "python3").args(["-c", ROUND_TRIP]).output().unwrap();
    String::from_utf8(out.stdout).unwrap().trim().parse().unwrap()
}

#[test]
fn a_running_emulator_is_asked_and_changed() {
    let _turn = turn();
    if root() && installed("python3") && installed("iperf3") {
        judged("a running emulator", asked_and_changed);
    }
}

fn asked_and_changed() -> Result<(), String> {
    let nets = Nets::new("emu");
    let _emulator = begin(&nets, &["--rate", "50Mbit", "--delay", "10ms"]);
    let before = round_trip(&nets);
    let set = ctl(&nets, &["set", "path.wan.out.delay=40ms", "path.wan.rate=8 Mbit"]);
    assert!(set.status.success(), "{set:?}");
    let after = round_trip(&nets);
    // 10 ms each way, then 40 and 10.
    holds((20.0..25.0).contains(&before) && (50.0..55.0).contains(&after), (before, after))?;
    let mut server = nets.inside("s", "iperf3").args(["-s", "-1"]).stdout(Stdio::null()).spawn().unwrap();
    let tries = ["-c", "10.33.2.2", "-t", "4", "-O", "1", "-J", "--connect-timeout", "3000"];
    let mut client = nets.inside("c", "iperf3");
    let client = client.args(tries).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(3));
    let shown = ctl(&nets, &["--json", "show"]);
    let client: Value = serde_json::from_slice(&client.wait_with_output().unwrap().stdout).unwrap();
    let _ = server.kill();
    let _ = server.wait();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let goodput = client["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or(0.0);
    let out = &shown["emulator"]["now"][0];
    // 1,448 of 1,514 bytes of a frame are payload.
    holds((6.8e6..7.7e6).contains(&goodput), goodput)?;
    holds((7.4e6..8.4e6).contains(&out["bps"].as_f64().unwrap()), out)?;
    assert_eq!((&out["target_bps"], &out["name"]), (&8_000_000.into(), &"wan.out".into()));
    let table = String::from_utf8(ctl(&nets, &["show"]).stdout).unwrap();
    assert!(table.contains("wan.out: 8Mbit") && table.contains("delay 40ms"), "{table}");
    for (words, why) in [
        (&["set", "path.wan.aqm=codel"][..], "path.wan.out.aqm cannot be changed while it runs"),
        (&["set", "path.wan.rate=fast"], "path.wan.out.rate"),
        (&["set", "class/a.rate=1Mbit"], "sets nothing"),
        (&["off", "17"], "an emulator runs here, and no gateway"),
    ] {
        let said = ctl(&nets, words);
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.status.code() == Some(2) && text.contains(why), "{words:?}: {text}");
    }
    // What follows is nothing but the settings of before.
    assert!(String::from_utf8(ctl(&nets, &["show"]).stdout).unwrap().contains("wan.out: 8Mbit"));
    Ok(())
}
