//! Client, router and server in network namespaces of a test of its own.

use super::root;
use std::path::Path;
use std::process::Command;

/// Client (`c`), router (`r`, with `lan` and `wan`) and server (`s`), which are gone afterwards.
pub struct Nets {
    name: String,
    /// Files of the test.
    pub folder: tempfile::TempDir,
}

impl Nets {
    /// Makes the namespaces; their names begin with `prefix`.
    pub fn new(prefix: &str) -> Nets {
        remove_left(prefix);
        let folder = tempfile::tempdir().unwrap();
        let nets = Nets { name: format!("{prefix}-{}", std::process::id()), folder };
        for place in ["c", "r", "s"] {
            nets.ip(&format!("netns add {}", nets.at(place)));
        }
        let [c, r, s] = ["c", "r", "s"].map(|place| nets.at(place));
        nets.ip(&format!("link add near netns {c} type veth peer name lan netns {r}"));
        nets.ip(&format!("link add near netns {s} type veth peer name wan netns {r}"));
        for (place, dev, address) in [
            (&c, "near", "10.33.1.2"),
            (&r, "lan", "10.33.1.1"),
            (&r, "wan", "10.33.2.1"),
            (&s, "near", "10.33.2.2"),
        ] {
            nets.ip(&format!("-n {place} address add {address}/24 dev {dev}"));
            nets.ip(&format!("-n {place} link set {dev} up"));
            nets.ip(&format!("-n {place} link set lo up"));
        }
        nets.ip(&format!("-n {c} route add default via 10.33.1.1"));
        nets.ip(&format!("-n {s} route add default via 10.33.2.1"));
        let forwards = nets.inside("r", "sysctl").args(["-qw", "net.ipv4.ip_forward=1"]).status();
        assert!(forwards.unwrap().success());
        nets
    }

    /// Returns the name of a namespace.
    pub fn at(&self, place: &str) -> String {
        format!("{}-{place}", self.name)
    }

    /// Runs `ip` with these words.
    pub fn ip(&self, line: &str) {
        let done = Command::new("ip").args(line.split_whitespace()).status().unwrap();
        assert!(done.success(), "ip {line}");
    }

    /// Returns a command that runs there.
    pub fn inside(&self, place: &str, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.at(place)]).arg(program.as_ref());
        command
    }
}

/// Removes the namespaces `PREFIX-PID-NAME` of tests that were killed, and ends what runs there.
pub fn remove_left(prefix: &str) {
    let ip = |words: &[&str]| Command::new("ip").args(words).output().unwrap();
    for entry in std::fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let rest = name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-'));
        let owner = rest.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if owner.is_none_or(|owner| Path::new(&format!("/proc/{owner}")).exists()) {
            continue;
        }
        let pids = String::from_utf8(ip(&["netns", "pids", &name]).stdout).unwrap();
        for pid in pids.split_whitespace() {
            let _ = Command::new("kill").args(["-9", pid]).output();
        }
        ip(&["netns", "delete", &name]);
    }
}

#[test]
fn namespaces_of_a_killed_test_are_removed() {
    if !root() {
        return;
    }
    let mut ended = Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let [left, own] = [ended.id(), std::process::id()].map(|pid| format!("left-{pid}-c"));
    for name in [&left, &own] {
        assert!(Command::new("ip").args(["netns", "add", name]).status().unwrap().success());
    }
    remove_left("left");
    let there = [left, own.clone()].map(|name| Path::new("/run/netns").join(name).exists());
    assert!(Command::new("ip").args(["netns", "delete", &own]).status().unwrap().success());
    assert_eq!(there, [false, true]);
}

impl Drop for Nets {
    fn drop(&mut self) {
        for place in ["c", "r", "s"] {
            let _ = Command::new("ip").args(["netns", "delete", &self.at(place)]).status();
        }
    }
}
