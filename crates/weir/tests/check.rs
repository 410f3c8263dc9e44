//! `weir check` as a command: exit codes, standard output, JSON.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn weir(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir")).args(args).output().unwrap()
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// An experiment needs nothing of this host to be right; what a gateway needs depends on it.
#[test]
fn a_right_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/examples/annotated.toml");
    let out = weir(&["check", path.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(text(&out.stdout).contains("each flow 10Mbit of TCP payload"), "{}", text(&out.stdout));
    assert!(out.stderr.is_empty());

    let out = weir(&["check", "--json", "-", path.to_str().unwrap()]);
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&report["ok"], &report["kind"]), (&true.into(), &"experiment".into()));
}

/// A sweep says what it varies; the lab refuses it by name, before it looks at anything else.
#[test]
fn a_sweep() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/examples/simulator.toml");
    let out = weir(&["check", path.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let said = text(&out.stdout);
    assert!(said.contains("sweep of 4 runs") && said.contains("flow.bulk.cc = reno, cubic"), "{said}");

    let out = weir(&["lab", path.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("`sweep` makes several experiments"), "{}", text(&out.stderr));
}

#[test]
fn a_wrong_file() {
    let path = file("wrong.toml", "name = \"x\"\nduration = \"1\"\n[[flow]]\nid = \"a\"\n");
    let name = path.to_str().unwrap();
    let out = weir(&["check", name]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).starts_with(&format!("{name}:2:12: ")), "{}", text(&out.stderr));
    assert!(out.stdout.is_empty());

    let out = weir(&["check", "--json", "-", name]);
    assert_eq!(out.status.code(), Some(2));
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(report["ok"], false);
    assert_eq!((&report["errors"][0]["line"], &report["errors"][0]["column"]), (&2.into(), &12.into()));
}

/// A schema is a JSON document for each format.
#[test]
fn schemas() {
    for format in ["experiment", "gateway", "wan"] {
        let out = weir(&["schema", format]);
        let schema: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(schema["type"], "object", "{format}");
    }
    assert_eq!(weir(&["schema", "customers"]).status.code(), Some(2));
}

#[test]
fn no_file() {
    let out = weir(&["check", "/nonexistent/x.toml"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("/nonexistent/x.toml: No such file"), "{}", text(&out.stderr));
    assert_eq!(weir(&["chek"]).status.code(), Some(2));
}

/// The short form is checked as it would run. Whether there is such an interface is the host's matter: exit
/// code 3.
#[test]
fn the_short_form() {
    let out = weir(&["check", "--dev", "weir-none0", "--out-flow-rate", "20Mbit"]);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
    let said = text(&out.stdout);
    assert!(said.contains("uploads: their ACKs are taken as they come in by weir-none0"), "{said}");
    assert!(said.contains("downloads: nothing is taken") && said.contains("each flow 20Mbit"), "{said}");
    assert!(said.contains("there is no interface weir-none0"), "{said}");

    let out = weir(&["check", "--dev", "weir-none0", "--up", "2Mbit", "--down", "20Mbit"]);
    let said = text(&out.stdout);
    assert!(said.contains("hosts in turn, and the flows of each"), "{said}");
    // One and a half full frames at 2 Mbit/s take 9.084 ms, more than CoDel's 5.
    assert!(said.contains("CoDel (target 9084us, interval 100ms, marks)"), "{said}");
    assert!(said.contains("to each flow that ACKs cannot slow its fair share"), "{said}");
    assert!(said.contains("what exceeds a fair share, too"), "{said}");
    // One processor may not carry that of a faster line.
    let out = weir(&["check", "--dev", "weir-none0", "--down", "1001Mbit"]);
    let said = text(&out.stdout);
    assert!(said.contains("to each flow that ACKs cannot slow its fair share"), "{said}");
    assert!(!said.contains("what exceeds a fair share, too"), "{said}");

    for (args, says) in [
        (&["run"][..], "give a file, or an interface and the rates of its line"),
        (&["run", "--dev", "eth1"], "--dev eth1 without a rate"),
        (&["run", "--dev", "eth1", "--out-flow-rate", "1kbit"], "not from 8kbit to 100Gbit"),
        (&["run", "--dev", "eth1", "--out-flow-rate", "1Mbit", "--json", "/dev/null"], "no regular file"),
        (&["run", "--dev", "eth1", "--up", "0Mbit"], "a rate of zero"),
        (&["run", "--up", "1Mbit"], "--dev <INTERFACE>"),
        (&["run", "--dev", "eth1", "--ack-filter", "delayed"], "--up <RATE>"),
        (&["run", "--dev", "eth1", "--up", "1Mbit", "--out-flow-rate", "1Mbit"], "cannot be used with"),
        (&["run", "--dev", "eth1", "--up", "1Mbit", "--ack-filter", "delay"], "unknown value `delay`"),
        (&["wan", "--dev", "eth1", "--ack-filter", "classical"], "needs"),
        (&["model", "ack-filter", "--rate", "0bit", "--rtt", "1s"], "a rate of zero"),
        (&["model", "ack-filter", "--rate", "1Mbit", "--rtt", "0s"], "0s"),
        (
            &["model", "ack-filter", "--rate", "1Mbit", "--rtt", "1s", "--threshold", "0"],
            "0 is not a number of ACKs",
        ),
        (&["bench", "sim", "--runs", "3"], "cargo build --release -p weir-bench"),
        (&["run", "--dev", "eth1", "--in-flow-rate", "5Mbit", "--tins", "diffserv4"], "cannot be used with"),
        (&["check", "--dev", "eth1", "--out-flow-rate", "5Mbit", "--tins", "bogus"], "cannot be used with"),
        (
            &["check", "--dev", "eth1", "--out-flow-rate", "5Mbit", "--ack-filter", "no"],
            "cannot be used with",
        ),
        (&["check", "--host", "--up", "5Mbit"], "cannot be used with"),
        (&["metrics", "--listen", "127.0.0.1:9650", "--every", "5"], "cannot be used with"),
        (&["ctl", "show", ""], "an address or a name is expected"),
        (&["wan", "--dev", "eth1"], "nothing is emulated"),
        (&["wan", "--rate", "1Mbit"], "--dev eth1, or --lan eth0 --wan eth1"),
        (&["wan", "--lan", "eth0", "--wan", "eth0", "--rtt", "1ms"], "the same interface"),
    ] {
        let out = weir(args);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {}", text(&out.stderr));
        assert!(text(&out.stderr).contains(says), "{args:?}: {}", text(&out.stderr));
    }
}

/// A gateway whose table of ports has a wrong name is no experiment.
#[test]
fn a_gateway_with_a_slip_is_judged_as_one() {
    let path = file("port.toml", "[port]\ndev = \"wan0\"\n[gateway]\n");
    let out = weir(&["check", path.to_str().unwrap()]);
    let said = text(&out.stderr);
    assert!(said.contains("unknown key `port`") && said.contains("did you mean `ports`?"), "{said}");
    assert!(!said.contains("duration"), "{said}");
}

#[test]
fn the_rates_of_all_customers_are_told_exactly() {
    file("exact.csv", "id,prefixes,down,up\n1,10.0.0.1,2500kbit,400kbit\n2,10.0.0.2,1Gbit,100kbit\n");
    let path = file("exact.toml", "[ports]\ndev = 'weir-none0'\n[gateway.customers]\nfile = 'exact.csv'\n");
    let out = weir(&["check", path.to_str().unwrap()]);
    let said = text(&out.stdout);
    assert!(said.contains("together 1002.5 Mbit/s down and 0.5 Mbit/s up"), "{said}");
}

#[test]
fn a_check_of_an_emulator_says_which_way_is_out() {
    let path = file(
        "ways.toml",
        "[ports]\ndev = 'eth1'\n[path.wan]\nout = { rate = '10Mbit' }\nback = { rate = '5Mbit' }\n",
    );
    let out = weir(&["check", path.to_str().unwrap()]);
    let said = text(&out.stdout);
    assert!(said.contains("all frames that leave by eth1 (out) and come in by it (back)"), "{said}");
}

/// A class whose flows spill does not leave all data in the kernel: its direction says what is taken.
#[test]
fn a_check_says_what_spills() {
    let toml = "[ports]\ndev = \"eth7\"\n[[gateway.class]]\nname = \"a\"\nrate = \"10Mbit\"\nunresponsive = ";
    for (way, spills) in [("\"queue\"", true), ("\"fair\"", false)] {
        let path = file(&format!("spills-{spills}.toml"), &format!("{toml}{way}\n"));
        let out = weir(&["check", path.to_str().unwrap()]);
        let said = text(&out.stdout);
        assert_eq!(said.contains("what exceeds a fair share, too"), spills, "{said}");
        assert_eq!(said.contains("every policy works on ACKs alone"), !spills, "{said}");
    }
}
