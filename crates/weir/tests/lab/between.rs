//! The conformance suite between two interfaces.

use super::{installed, root, turn};
use serde_json::Value;
use std::process::Command;
use weir::execute::lab::Namespace;

/// Two interfaces with a bridge between them.
struct Bridged {
    ends: Namespace,
    middle: Namespace,
}

impl Bridged {
    fn new(test: &str) -> Bridged {
        let name = |part| format!("wconf-{}-{test}-{part}", std::process::id());
        let made = |part| Namespace::create(&name(part)).unwrap();
        let path = Bridged { ends: made("ends"), middle: made("box") };
        for namespace in [&path.ends, &path.middle] {
            // Nothing but the cases' frames.
            namespace.sysctl("ipv6/conf/all/disable_ipv6", "1").unwrap();
            namespace.sysctl("ipv6/conf/default/disable_ipv6", "1").unwrap();
        }
        let (ends, middle) = (path.ends.name(), path.middle.name());
        let cable = |side| format!("link add {side} netns {ends} type veth peer name {side} netns {middle}");
        path.middle.ip(&["lan", "wan"].map(cable)).unwrap();
        let up = |side: &str| format!("link set {side} up");
        path.ends.ip(&["lan", "wan"].map(up)).unwrap();
        let lines =
            ["link add bridge0 type bridge", "link set lan master bridge0", "link set wan master bridge0"];
        path.middle.ip(&lines.map(String::from)).unwrap();
        path.middle.ip(&["lan", "wan", "bridge0"].map(up)).unwrap();
        while !path.middle.is_up().unwrap() || !path.ends.is_up().unwrap() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        path
    }

    /// Returns the verdict of the suite: its exit code, how many cases there are, and which of them fail.
    fn judged(&self) -> (Option<i32>, usize, Vec<String>) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(["conformance", "--lan", "lan", "--wan", "wan", "--json", "-"]);
        self.ends.start_inside(&mut command).unwrap();
        let output = command.output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)));
        let cases = report["cases"].as_array().unwrap();
        let failed = cases.iter().filter(|case| !case["failures"][0].is_null());
        let words = |case: &Value| format!("{}: {}", case["name"].as_str().unwrap(), case["failures"][0]);
        (output.status.code(), cases.len(), failed.map(words).collect())
    }

    /// Judges three times at most, until this many cases fail: what a machine that stands still does to a
    /// frame is not the bridge's.
    fn judged_until(&self, failing: usize) -> (Option<i32>, usize, Vec<String>) {
        let mut last = self.judged();
        for _ in 0..2 {
            if last.2.len() == failing {
                break;
            }
            println!("once more: {:?}", last.2);
            last = self.judged();
        }
        last
    }
}

impl Drop for Bridged {
    fn drop(&mut self) {
        for namespace in [&self.ends, &self.middle] {
            let _ = Namespace::remove(namespace.name());
        }
    }
}

#[test]
fn the_kernel_s_bridge_passes_every_case() {
    let _turn = turn();
    if !root() {
        return;
    }
    let (code, cases, failed) = Bridged::new("bridge").judged_until(0);
    assert_eq!((code, failed), (Some(0), vec![]));
    assert!(cases > 50, "{cases}");
}

/// It drops what is urgent, and nothing else.
#[test]
fn a_bridge_that_breaks_a_rule_fails_its_case() {
    let _turn = turn();
    if !root() || !installed("nft") {
        return;
    }
    let path = Bridged::new("broken");
    let rules =
        "table bridge t { chain f { type filter hook forward priority 0; tcp flags & urg == urg drop; }; }";
    path.middle.nft(rules).unwrap();
    let (code, _, failed) = path.judged_until(1);
    let names: Vec<&str> = failed.iter().map(|f| f.split(':').next().unwrap()).collect();
    assert_eq!((code, names), (Some(1), vec!["urgent"]), "{failed:?}");
}
